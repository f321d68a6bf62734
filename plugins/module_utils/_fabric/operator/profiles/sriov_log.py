# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of the SR-IOV operator's daemon: the only place that says why a node stays ``InProgress``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

# Fields of a line, with tabs between: time, level, the name of the part (not always), place in the source, message,
# details as JSON (not always). What the daemon tries again, with growing pauses, is one line each time; those before
# it tell more.
_FAILED = "\tReconciler error\t"
_BEGINS = "\tnew generation\t"
_DONE = "sync succeeded"
# So often, so that what passes by itself is not taken for a failure.
_TIMES = 3
_MOST = 300


def complaint(log: str, state: Mapping[str, Any]) -> str:
    """Return the failure that the end of a log repeats; empty text for none.

    ``state``: that of the node. A failure of what an older generation of it asked for says nothing about this one.
    """
    wanted = (state.get("metadata") or {}).get("generation")
    failures = _failures(log.rpartition(_DONE)[2])
    latest = [cause for generation, cause in failures if generation == wanted][-_TIMES:]
    if len(latest) < _TIMES or len(set(latest)) > 1:
        return ""
    return latest[0][:_MOST]


def _failures(log: str) -> Iterator[tuple[Any, str]]:
    """Yield generation and cause of each failure: the last error before it that says something else."""
    generation, causes = None, [""]
    for line in log.splitlines():
        details = line.rpartition("\t")[2]
        if _BEGINS in line:
            generation, causes = _field(details, "generation"), []
        if "\tERROR\t" not in line:
            continue
        error = str(_field(details, "error") or "")
        if _FAILED not in line:
            causes.append(error)
            continue
        yield generation, next((cause for cause in reversed(causes) if cause not in ("", error)), error)
        causes = []


def _field(details: str, key: str) -> Any:
    """Return one of the details of a line; None where they are cut or do not have it."""
    try:
        found = json.loads(details)
    except ValueError:
        return None
    return found.get(key) if isinstance(found, dict) else None
