# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An earlier run that did not end: its evidence instead of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._common.reader import Reader, raise_problems
from ...intent.tests import read_only
from ..readings.tester_log import Evidence
from .earlier_report import EarlierReport, by_identity
from .step import step


def of_run(
    run: Mapping[str, Any],
    plan: Mapping[str, Any],
    where: str,
    *,
    folder: str,
    evidence: Evidence,
    resumed: EarlierReport | None,
) -> EarlierReport:
    """Return what a run that did not end measured in one place: its evidence, judged by its own plan.

    ``run``: its run.json; ``resumed``: what it took over itself.
    """
    only = checked(run["scope"]["only"])
    found = step(plan, where, evidence, only=only, earlier=resumed, hosts=run["hosts"])
    return EarlierReport(
        folder,
        found.summary["verdict"],
        by_identity(found.results),
        run={"id": run["run"]["id"]},
        tests=plan["tests"],
        endpoints={where: found.endpoints["hosts"]},
    )


def checked(only: Mapping[str, Any]) -> dict[str, Any]:
    """Return the option ``only`` checked, empty when it names nothing."""
    problems: list[Any] = []
    found = read_only(Reader(only, "only", problems))
    raise_problems(problems)
    return found if any(found.values()) else {}
