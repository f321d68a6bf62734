# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of the SR-IOV operator's daemon: the only place that says why a node stays ``InProgress``."""

from __future__ import annotations

import json
import re

# Fields of a line: time, level, place in the source, message, details as JSON. What the daemon tries again, with
# growing pauses, is one line each time.
_FAILED = re.compile(r"^\S+\tERROR\t[^\t]*\tReconciler error\t(.*)$", re.MULTILINE)
_DONE = "sync succeeded"
# So often, so that what passes by itself is not taken for a failure.
_TIMES = 3
_MOST = 300


def complaint(log: str) -> str:
    """Return the failure that the end of a log repeats; empty text for none."""
    last = log.rpartition(_DONE)[2]
    latest = [_error(details) for details in _FAILED.findall(last)[-_TIMES:]]
    if len(latest) < _TIMES or len(set(latest)) > 1:
        return ""
    return latest[0][:_MOST]


def _error(details: str) -> str:
    """Return the error among the details of a line; details that are cut or have none as they are."""
    try:
        found = json.loads(details)
    except ValueError:
        return details
    return str(found.get("error", details)) if isinstance(found, dict) else details
