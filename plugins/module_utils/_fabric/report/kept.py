# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which runs of a report folder are kept, and what is said of those that did not end."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..intent.budgets import LOCATING, budget_of
from ..intent.tests import STARS, complete
from ..measure.judge.earlier_report import SCHEMA
from .runs import UNKNOWN

# Of runs that ended before they began to measure, which measured nothing, so many are kept for their messages.
EMPTY = 10
# From more unfinished runs than these on, a new run names the newest ones, and reports how much space all of them take.
PILE = 5


@dataclass(frozen=True)
class Known:
    """A folder in ``runs``. ``done``: it has a report; ``resumed``: the path that its run resumed, "" for none.

    ``passes``: whether a pass began that measures, which those of the mesh do not. ``running``: whether its run still
    goes on, None when this cannot be known.
    ``scope``: what its run covers.
    """

    done: bool
    resumed: str = ""
    passes: bool = False
    running: bool | None = None
    scope: Mapping[str, Any] = field(default_factory=dict)


def sorted_out(known: Mapping[str, Known], keep: int, used: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return which runs are to be removed, and which of the others have no report, both by age.

    A report without a run counts as a finished one of the time when it was set aside. A run that a finished one
    resumed, and covered, counts as finished. The newest ``keep`` finished runs stay. Of those without a report all stay
    that began a pass or still go on, and the newest EMPTY others. So does what these resumed, and the runs that the
    paths ``used`` name.
    """
    newest = sorted(known, key=lambda name: UNKNOWN.sub(r"\1", name), reverse=True)
    done = {name for name in newest if known[name].done}
    # A run is older than the one that resumes it.
    for name in newest:
        for other in _in(known[name].resumed, newest) if name in done else ():
            if covers(known[name].scope, known[other].scope):
                done.add(other)
    others = [name for name in newest if name not in done]
    empty = [name for name in others if not known[name].passes and not known[name].running]
    finished = [name for name in newest if name in done]
    needed = {name for path in used for name in _in(path, newest)}
    for name in newest:
        if name in needed or name in others and name not in empty[EMPTY:]:
            needed |= _in(known[name].resumed, newest)
    old = {*finished[keep:], *empty[EMPTY:]} - needed
    return sorted(old), [name for name in reversed(others) if name not in old]


def _in(path: str, names: Collection[str]) -> set[str]:
    """Return which runs a path names."""
    return set(path.split("/")) & set(names)


def covers(scope: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a run of ``scope`` measured all that one of the ``other`` scope was to measure."""
    return scope.get("only") in ({}, None, other.get("only")) and all(
        set(other.get(key) or []) <= set(scope.get(key) or []) for key in ("where", "hosts", "rails")
    )


def going_on(folder: str) -> str:
    """Return why the run in ``folder`` cannot be continued."""
    return (
        f"run: resume names {folder}, and this run is still in progress. Wait until it ends; its report"
        " then shows whether anything is left to measure"
    )


def largest_log(plan: Mapping[str, Any]) -> int:
    """Return the bytes that the log of a pass on a host can have: 2 KiB for each test, and room for what is added."""
    tests = complete(plan["tests"])
    hosts, rails = len(plan["endpoints"]["host"]), len(plan["rails"])
    flows = 2 * hosts * rails * (rails if tests["cross_rail"] or tests["mode"] == "loopback" else 1)
    if tests["mode"] in STARS:
        flows *= tests["fan"]
    budget = budget_of(tests, hosts)
    flows = flows * (tests["repeats"] or 1) + rails * (budget.slots + budget.more + LOCATING * (tests["repeats"] or 1))
    return 65536 + 4096 * flows * len(tests["kinds"]) * max(1, len(tests["sizes"]))


def unfinished(folder: str, known: Mapping[str, Known], size: int) -> list[str]:
    """Return how to continue the runs without a report in ``folder``, by age; ``size``: bytes of all of them.

    One that measured nothing cannot be continued.
    """
    going = [name for name in known if known[name].running]
    ended = [name for name in known if known[name].passes and name not in going]
    lines = [f"Run {name} in the same folder is still in progress" for name in going]
    for name in ended[-PILE:]:
        state = "did not end" if known[name].running is False else "has no report; it may still run elsewhere"
        lines.append(f"Run {name} {state}. To continue it, set resume: {folder}/{name}")
    if len(ended) > PILE:
        lines.append(
            f"{len(ended)} runs in {folder} have no report and take {size / 1e6:.1f} MB. Runs that measured something"
            " are never removed automatically. Remove the ones that you do not need, such as the oldest:"
            f" rm -r {shlex.quote(f'{folder}/{ended[0]}')}"
        )
    return lines


def of_other_versions(folder: str, names: Sequence[str]) -> list[str]:
    """Return what to do with the runs in ``folder`` whose reports another version of this collection wrote."""
    if not names:
        return []
    return [
        f"{len(names)} runs in {folder} have a report of another version of this collection (its schema is not"
        f" {SCHEMA}). They are never removed automatically. Remove the ones that you do not need, such as the oldest:"
        f" rm -r {shlex.quote(f'{folder}/{names[0]}')}"
    ]
