# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether one of several paths between two ports is bad, by readings of single paths (``paths`` of a result)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

from ..schedule.flow_labels import source_port
from ..schedule.schedule import label

Result = Mapping[str, Any]
# Chance must be less likely to put all low readings on the same paths, and none on the others.
_SELDOM = 0.01
# There must be so many paths, and readings of each if they differ.
_LEAST = 2
# What also fails by single paths may still be a port.
_LABEL = "flow label"
_OF_PORTS = ("host", "port", "direction")


def tell(result: Result) -> tuple[bool, str]:
    """Return whether single paths of a result are bad and others not, and what its readings show, "" if nothing."""
    counts = _counts(result.get("paths", ()))
    if len(counts) < _LEAST:
        return False, ""
    low, total = (sum(column) for column in zip(*counts.values()))
    bad = [path for path, (own, _total) in counts.items() if own]
    good = [path for path in counts if path not in bad]
    what = "LID offset" if any("lid_offset" in row for row in result["paths"]) else _LABEL
    pair = f"{result['client']} to {result['server']} {result['rail']} {label(result)}"
    if not bad:
        return False, f"{pair}: none of {total} readings on {len(counts)} single paths is low"
    if low == total:
        return False, f"{pair}: low on each of {len(counts)} single paths, so it is not one of several paths"
    if min(total for _low, total in counts.values()) < _LEAST:
        return False, ""
    whole = all(own in (0, number) for own, number in counts.values())
    if whole and _chance([one for _low, one in counts.values()], low) <= _SELDOM:
        return True, (
            f"{pair}: each reading with {_listed(what, bad)} is low, none with {_listed(what, good)}: one of several"
            f" paths between them is bad. {_action(what, bad[0])}"
        )
    return (
        False,
        f"{pair}: {low} of {total} readings on {len(counts)} single paths are low, not always on the same path",
    )


def _counts(rows: Sequence[Mapping[str, Any]]) -> dict[int, tuple[int, int]]:
    """Return for each path how many of its readings are low, and how many there are; not those without a path."""
    counts: dict[int, tuple[int, int]] = {}
    for row in rows:
        path = row.get("lid_offset", next(iter(row.get("flow_labels", ())), None))
        if row["verdict"] != "no_data" and path is not None:
            low, total = counts.get(path, (0, 0))
            counts[path] = (low + (row["verdict"] == "fail"), total + 1)
    return dict(sorted(counts.items()))


def _chance(totals: Sequence[int], low: int) -> float:
    """Return how likely it is that ``low`` readings, drawn by chance, are all readings of some paths."""
    sets = (some for size in range(1, len(totals)) for some in combinations(totals, size))
    return sum(sum(one) == low for one in sets) / comb(sum(totals), low)


def _action(what: str, path: int) -> str:
    if what == _LABEL:
        return f"Look up on the switches which path packets with the UDP source port {source_port(path)} take"
    return f"Trace the route to the LID of the server plus {path} (ibtracert)"


def _listed(what: str, paths: Sequence[int]) -> str:
    numbers = [str(path) for path in paths]
    if len(numbers) == 1:
        return f"{what} {numbers[0]}"
    return f"{what}s {', '.join(numbers[:-1])} and {numbers[-1]}"


def concerns(finding: Mapping[str, Any], result: Result, homes: Mapping[str, str]) -> bool:
    """Return whether the ports of a result are among those of a diagnosis or of an unsteady component."""
    names = {result["client"], result["server"]}
    groups = {homes.get(name, "") for name in names}
    own = {finding.get(key) for key in ("host", "peer")} - {None, ""}
    of_groups = {finding.get(key) for key in ("group", "peer_group")} - {None, ""}
    crosses = finding["kind"] not in ("uplinks", "groups", "paths") or len(groups) > 1
    rails = {result["rail"], result.get("peer_rail") or result["rail"]}
    return (
        result["where"] == finding["where"]
        and finding["rail"] in {None, *rails}
        and own <= names
        and (of_groups <= groups and crosses)
    )


def added(
    findings: Sequence[Mapping[str, Any]], results: Sequence[Result], homes: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return findings with what readings of single paths show of them: as evidence, and of paths in their text."""
    known = [(result, *tell(result)) for result in results if result.get("paths")]
    return [
        _with_paths(one, [(p, text) for r, p, text in known if text and concerns(one, r, homes)]) for one in findings
    ]


def _with_paths(finding: Mapping[str, Any], own: Sequence[tuple[bool, str]]) -> dict[str, Any]:
    found = dict(finding)
    if own and "evidence" in found:
        found["evidence"] = [*found["evidence"], *(text for _is_path, text in own)]
    told = [text for is_path, text in own if is_path]
    if told and found["kind"] not in _OF_PORTS:
        found["text"] = f"{found['text']}. {told[0]}"
    return found
