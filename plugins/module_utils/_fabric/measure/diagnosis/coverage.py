# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run would have shown: for each port, leaf switch and rail the least share of bad tests that is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...._common.reader import some
from .components import Component, Totals, View
from .significance import sensitivity

Result = Mapping[str, Any]
_NAMES = {"port": "ports", "group": "leaf switches", "rail": "rails"}
_SHOWN = 3


def rows(results: Sequence[Result], view: View, more: int) -> list[dict[str, Any]]:
    """Return ``sensitivity`` of the report for the results of one place.

    Each is {kind, rail, host, group, readings, share}: a component that is bad in this share of its tests would have
    been found in 95 % of runs; None: not even one that is bad in nearly all of them. ``more``: the readings that the
    budget has for a port with a low one.
    """
    totals = Totals.of(results, view.homes)
    parts = sorted(part for part in totals.tests if part.kind in _NAMES)
    return [_row(part, totals, view.background, more=more if part.kind == "port" else 0) for part in parts]


def _row(part: Component, totals: Totals, background: float, *, more: int) -> dict[str, Any]:
    count = totals.tests[part]
    whole = totals.tests[Component("run")]
    share = sensitivity(count, background, totals.compared[part.kind], more=more, readings=whole)
    names = {"port": {"host": part.one}, "group": {"group": part.one}}.get(part.kind, {})
    return {"kind": part.kind, "rail": part.rail, **names, "readings": count, "share": share}


def text(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence about rows: for each kind what most components would have shown, and which have less."""
    told = [_of_kind(kind, [row for row in found if row["kind"] == kind]) for kind in _NAMES]
    known = [one for one in told if one]
    return f"would have shown in 95 % of runs: {', '.join(known)}" if known else ""


def _of_kind(kind: str, found: Sequence[Mapping[str, Any]]) -> str:
    if not found:
        return ""
    usual = Counter(row["share"] for row in found).most_common(1)[0][0]
    less = [row for row in found if usual is not None and (row["share"] is None or row["share"] > usual)]
    names = [" ".join(row[key] for key in ("host", "group", "rail") if key in row) for row in less]
    fewer = f" ({len(less)} of {len(found)} have too few readings for that: {some(names, _SHOWN)})" if less else ""
    if usual is None:
        return f"no fault of {_NAMES[kind]}, which have too few readings"
    return f"{_NAMES[kind]} that are bad in {100 * usual:.0f} % of their tests{fewer}"
