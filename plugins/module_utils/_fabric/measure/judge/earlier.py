# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier run measured, as far as a later one can take it over: {results, tests, endpoints, run}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._common.reader import Reader, raise_problems
from ...intent.tests import read_only
from ..readings.tester_log import Evidence
from . import stored
from .step import step

_KEYS = frozenset(("where", "rail", "client", "server", "test", "value", "unit", "expected", "bound_by", "verdict")) | {
    "reason",
    "passes",
}


def of_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a report.json holds. Raise KeyError, TypeError or ValueError for something else."""
    if wrong := stored.problem(report):
        raise ValueError(wrong)
    results = [result for result in report["results"] if set(result) >= _KEYS]
    known = {key: dict(report[key]) if key in report else None for key in ("tests", "endpoints")}
    return {"results": results, **known, "run": dict(report.get("run") or {}).get("id", "")}


def of_run(
    run: Mapping[str, Any],
    plan: Mapping[str, Any],
    where: str,
    *,
    evidence: Evidence,
    resumed: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return what a run that did not end measured in one place: its evidence, judged by its own plan.

    ``run``: its run.json; ``resumed``: what it took over itself.
    """
    only = checked(run["scope"]["only"])
    found = step(plan, where, evidence, only=only, earlier=resumed, hosts=run["hosts"])
    known = {"tests": plan["tests"], "endpoints": {where: found.endpoints["hosts"]}}
    return {"results": found.results, **known, "run": run["run"]["id"]}


def checked(only: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option ``only`` checked, empty when it names nothing."""
    problems: list[Any] = []
    found = read_only(Reader(only, "only", problems))
    raise_problems(problems)
    return found if any(found.values()) else {}
