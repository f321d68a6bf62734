# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One report against an earlier one: what became worse, better, is new or missing. It judges nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._common.reader import and_more, some
from ..measure.judge.earlier_report import EarlierReport, Key, Row, by_identity
from ..measure.schedule.schedule import IDENTITY
from .ports import ends
from .summary import name_of

# Two runs of a healthy fabric differ by less than this share.
CHANGE = 0.1
_RANK = {"pass": 2, "fail": 1, "no_data": 0}
_SENTENCES = 12
_PORTS = 4


def compare(report: Mapping[str, Any], earlier: EarlierReport, change: float = CHANGE) -> dict[str, Any]:
    """Return the ``comparison`` of ``report`` with an earlier one.

    ``worse`` and ``better``: tests of both whose verdict changed, or whose value did by more than the share ``change``;
    ``new`` and ``missing``: ports that only one of the two has; ``diagnoses``: texts, new, resolved or remaining.
    """
    before, now = earlier.rows, by_identity(report["results"])
    common = [key for key in now if key in before]
    changes = [row for row in (_change(before[key], now[key], change) for key in common) if row]
    made: dict[str, Any] = {
        "before": {"verdict": earlier.verdict, "tests": len(before), "written": _written(earlier)},
        "compared": len(common),
        "worse": [row for row in changes if row["trend"] == "worse"],
        "better": [row for row in changes if row["trend"] == "better"],
        "new": _only(now, before),
        "missing": _only(before, now),
        "diagnoses": _diagnoses(report.get("diagnoses", ()), earlier.diagnoses),
    }
    made["text"] = _text(report, made)
    return made


def _change(before: Mapping[str, Any], now: Mapping[str, Any], least: float) -> dict[str, Any] | None:
    """Return what changed in one test, None when nothing did. The verdict counts before the value."""
    share = _share(before, now)
    trend = _RANK[now["verdict"]] - _RANK[before["verdict"]]
    if not trend and share is not None and abs(share) > least:
        trend = 1 if (share > 0) == (now["unit"] == "Gb/s") else -1
    if not trend:
        return None
    return {
        **{key: now[key] for key in IDENTITY if key in now},
        "trend": "better" if trend > 0 else "worse",
        "unit": now["unit"],
        "before": {"value": before["value"], "verdict": before["verdict"]},
        "now": {"value": now["value"], "verdict": now["verdict"]},
        "change": share,
    }


def _share(before: Mapping[str, Any], now: Mapping[str, Any]) -> float | None:
    if not before["value"] or now["value"] is None or before["unit"] != now["unit"]:
        return None
    return round(now["value"] / before["value"] - 1, 3)


def _only(one: Mapping[Key, Row], other: Mapping[Key, Row]) -> list[dict[str, str]]:
    """Return the ports of ``one`` that ``other`` did not measure."""
    missing = sorted(_ports_of(one.values()) - _ports_of(other.values()))
    return [{"where": where, "host": host, "rail": rail} for where, host, rail in missing]


def _ports_of(rows: Iterable[Row]) -> set[tuple[str, str, str]]:
    return {key for row in rows for key in ends(row).values()}


def _diagnoses(today: Sequence[Row], earlier: Sequence[Row]) -> dict[str, list[str]]:
    keys = ("where", "kind", "rail", "host", "peer", "direction", "peer_rail")
    now, before = (
        {tuple(diagnosis.get(key) for key in keys): diagnosis["text"] for diagnosis in one} for one in (today, earlier)
    )
    return {
        "new": [text for key, text in now.items() if key not in before],
        "remaining": [text for key, text in now.items() if key in before],
        "resolved": [text for key, text in before.items() if key not in now],
    }


def _written(earlier: EarlierReport) -> str | None:
    written = earlier.context.get("written")
    return None if written is None else str(written)


def _text(report: Mapping[str, Any], made: Mapping[str, Any]) -> list[str]:
    """Return the comparison in sentences: the sums, then port by port, the largest groups first."""
    before = made["before"]
    first = "before: %s%s, now: %s; of %d tests in both %d became worse, %d better" % (
        before["verdict"],
        " (%s)" % before["written"] if before["written"] else "",
        report["verdict"],
        made["compared"],
        len(made["worse"]),
        len(made["better"]),
    )
    told = ["%s: %s" % (word, text) for word in ("new", "resolved", "remaining") for text in made["diagnoses"][word]]
    told += [*_groups("worse", made["worse"]), *_groups("better", made["better"])]
    told += _ports("measured now and not before", made["new"]) + _ports("not measured now", made["missing"])
    more = and_more(told, _SENTENCES)
    return [first, *told[:_SENTENCES], *(["..." + more] if more else [])]


def _groups(word: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence a port, each test told once: at the port that most of what is left has in common."""
    told: list[str] = []
    left = list(rows)
    while left and len(told) < _SENTENCES:
        touched = Counter(key for row in left for key in sorted(set(ends(row).values())))
        worst, tests = touched.most_common(1)[0]
        where, host, rail = worst
        told.append("%s: %s in %d test%s" % (word, name_of(host, rail, where), tests, "" if tests == 1 else "s"))
        left = [row for row in left if worst not in ends(row).values()]
    return told


def _ports(words: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    if not rows:
        return []
    names = [name_of(row["host"], row["rail"], row["where"]) for row in rows]
    return ["%s: %s" % (words, some(names, _PORTS))]
