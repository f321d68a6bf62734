# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A baseline: what each pair reached when all was well, and what a later run lost against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...._common.errors import InputError
from ...._common.reader import describe, some
from ..schedule.schedule import label
from .earlier_report import EarlierReport, Row, by_identity

# What an entry names of a test. None of them in an entry about all tests, no client and server in one about a rail.
_NAMES = ("where", "rail", "client", "server", "test")


def compare(
    results: Sequence[Row], earlier: EarlierReport, allowed_drop: float, *, severity: str = "failure"
) -> list[dict[str, Any]]:
    """Return ``baseline`` of the report: {where, rail, client, server, test, value, before, change, severity, text}.

    ``earlier``: the report of a run when all was well, of which only what passed counts, since what was bad must not
    become the rule; InputError when nothing passed in it. ``allowed_drop``: the share, above 0 and below 1, by which a
    value may be worse: less bandwidth, more latency. ``change`` is (value - before) / before. What is only on one side
    is one warning for each place, rail and test, without client, server and numbers (None). Nothing in common is one
    entry of ``severity``, with a text alone, since then nothing was compared.
    """
    _check_drop(allowed_drop)
    before = earlier.passed()
    if not before:
        raise InputError(
            f"baseline: none of the {len(earlier.rows)} results in {earlier.path} passed. Give the report.json of a"
            " run that passed"
        )
    now = {key: row for key, row in by_identity(results).items() if _has_value(row)}
    pairs = [(row, before[key]) for key, row in now.items() if key in before]
    if not pairs:
        text = f"nothing was compared: no test in common, {len(now)} values in this run, {len(before)} in the baseline"
        return [_entry({}, severity, text)]
    found = (_dropped(row, then, allowed=allowed_drop, severity=severity) for row, then in pairs)
    missing = [row for key, row in before.items() if key not in now] if len(pairs) < len(before) else []
    added = [row for key, row in now.items() if key not in before] if len(pairs) < len(now) else []
    return [
        *(entry for entry in found if entry),
        *_one_sided(missing, "of the baseline have no value in this run"),
        *_one_sided(added, "of this run are not in the baseline"),
    ]


def _check_drop(share: Any) -> None:
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
        raise InputError(
            f"allowed drop against the baseline: expected a share between 0 and 1 (0.1 is 10 %), found "
            f"{describe(share)}"
        )


def _has_value(row: Row) -> bool:
    return row["value"] is not None and row["verdict"] != "no_data"


def _dropped(row: Row, before: Row, *, allowed: float, severity: str) -> dict[str, Any] | None:
    value, unit = row["value"], row["unit"]
    change = (value - before["value"]) / before["value"]
    worse = change if unit == "us" else -change
    if worse <= allowed:
        return None
    text = (
        f"{row['client']} to {row['server']} {row['rail']} {label(row)}: {value:.3g} {unit}, {before['value']:.3g} "
        f"{unit} in the baseline ({change * 100:+.0f} %, {allowed * 100:g} % allowed)"
    )
    return {**_entry(row, severity, text), "value": value, "before": before["value"], "change": change}


def _entry(names: Mapping[str, Any], severity: str, text: str) -> dict[str, Any]:
    """Return an entry without numbers."""
    unknown = dict.fromkeys(("value", "before", "change"))
    return {**{name: names.get(name) for name in _NAMES}, **unknown, "severity": severity, "text": text}


def _one_sided(rows: Iterable[Row], what: str) -> Iterator[dict[str, Any]]:
    """Yield one warning for each place, rail and test: a run of other pairs would give thousands."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for row in rows:
        key = (row["where"], row["rail"], row["test"], label(row))
        groups.setdefault(key, []).append(f"{row['client']} to {row['server']}")
    for (where, rail, test, named), pairs in groups.items():
        text = f"{rail} {named}: {len(pairs)} pairs {what} ({some(pairs)})"
        yield _entry({"where": where, "rail": rail, "test": test}, "warning", text)
