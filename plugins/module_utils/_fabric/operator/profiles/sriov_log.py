# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of the SR-IOV operator's daemon: the only place that says why a node stays ``InProgress``."""

from __future__ import annotations

import json
from collections.abc import Iterator

# Fields of a line, with tabs between: time, level, the name of the part (not always), place in the source, message,
# details as JSON (not always). What the daemon tries again, with growing pauses, is one line each time; those before
# it tell more.
_FAILED = "Reconciler error"
_DONE = "sync succeeded"
# So often, so that what passes by itself is not taken for a failure.
_TIMES = 3
_MOST = 300


def complaint(log: str) -> str:
    """Return the failure that the end of a log repeats; empty text for none."""
    latest = list(_failures(log.rpartition(_DONE)[2]))[-_TIMES:]
    if len(latest) < _TIMES or len(set(latest)) > 1:
        return ""
    return latest[0][:_MOST]


def _failures(log: str) -> Iterator[str]:
    """Yield the cause of each failure: the last error before it that says something else."""
    causes: list[str] = []
    for line in log.splitlines():
        _time, _tab, rest = line.partition("\t")
        if not rest.startswith("ERROR\t"):
            continue
        error = _error(rest.rpartition("\t")[2])
        if f"\t{_FAILED}\t" not in rest:
            causes.append(error)
            continue
        yield next((cause for cause in reversed(causes) if cause not in ("", error)), error)
        causes = []


def _error(details: str) -> str:
    """Return the error among the details of a line, "" for none; details that are cut as they are."""
    try:
        found = json.loads(details)
    except ValueError:
        return details
    return str(found.get("error", "")) if isinstance(found, dict) else details
