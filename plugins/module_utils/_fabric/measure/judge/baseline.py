# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A baseline: what each pair reached when all was well, and what a later run lost against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...._common.errors import InputError
from ...._common.reader import describe, some
from ..schedule.schedule import IDENTITY, label

# What a value belongs to. The last ones are missing for plain tests of one rail and size in host memory.
KEYS = ("where", "rail", "client", "server", "test", "unit")
OPTIONAL = tuple(key for key in IDENTITY if key not in KEYS)
Key = tuple[Any, ...]


def compare(
    results: Sequence[Mapping[str, Any]], report: Any, allowed_drop: float, *, severity: str = "failure"
) -> list[dict[str, Any]]:
    """Return ``baseline`` of the report: {where, rail, client, server, test, value, before, change, severity, text}.

    ``report``: the report.json of a run when all was well, of which only what passed counts, since what was bad must
    not become the rule; InputError when it is none, or nothing passed in it. ``allowed_drop``: the share, above 0 and
    below 1, by which a value may be worse: less bandwidth, more latency. ``change`` is (value - before) / before. What
    is only on one side is one warning for each place, rail and test, without client, server and numbers (None). Nothing
    in common is one entry of ``severity``, with a text alone, since then nothing was compared.
    """
    if isinstance(allowed_drop, bool) or not isinstance(allowed_drop, (int, float)) or not 0 < allowed_drop < 1:
        raise InputError(
            f"allowed drop against the baseline: expected a share between 0 and 1 (0.1 is 10 %), found "
            f"{describe(allowed_drop)}"
        )
    before = _read(report)
    now = {_key(r): r["value"] for r in results if r["value"] is not None and r["verdict"] != "no_data"}
    common = [key for key in now if key in before]
    if not common:
        text = f"nothing in common with the baseline: {len(now)} values now, {len(before)} in it; nothing was compared"
        return [_entry(("",) * len(KEYS), None, None, severity=severity, text=text)]
    told = [_dropped(key, now[key], before[key], allowed=allowed_drop, severity=severity) for key in common]
    missing = [key for key in before if key not in now]
    added = [key for key in now if key not in before]
    return [
        *(entry for entry in told if entry),
        *_one_sided(missing, "in the baseline gave no value now"),
        *_one_sided(added, "measured now are not in the baseline"),
    ]


def _key(item: Mapping[str, Any]) -> Key:
    return tuple(item.get(key) for key in (*KEYS, *OPTIONAL))


def _dropped(key: Key, value: float, before: float, *, allowed: float, severity: str) -> dict[str, Any] | None:
    _where, rail, client, server, _test, unit = key[: len(KEYS)]
    change = (value - before) / before
    worse = change if unit == "us" else -change
    if worse <= allowed:
        return None
    text = (
        f"{client} to {server} {rail} {_label(key)}: {value:.3g} {unit}, {before:.3g} {unit} in the baseline "
        f"({change * 100:+.0f} %, {allowed * 100:g} % allowed)"
    )
    return _entry(key, value, before, severity=severity, text=text)


def _label(key: Key) -> str:
    return label(dict(zip((*KEYS, *OPTIONAL), key)))


def _entry(key: Key, value: float | None, before: float | None, *, severity: str, text: str) -> dict[str, Any]:
    named = {name: part or None for name, part in zip(KEYS, key) if name != "unit"}
    change = None if value is None or before is None else (value - before) / before
    return {**named, "value": value, "before": before, "change": change, "severity": severity, "text": text}


def _one_sided(keys: Sequence[Key], what: str) -> Iterator[dict[str, Any]]:
    """Yield one warning for each place, rail and test: a run of other pairs would give thousands."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for key in keys:
        where, rail, client, server, test = key[:5]
        groups.setdefault((where, rail, test, _label(key)), []).append(f"{client} to {server}")
    for (where, rail, test, named), pairs in groups.items():
        text = f"{rail} {named}: {len(pairs)} pairs {what} ({some(pairs)})"
        yield _entry((where, rail, None, None, test), None, None, severity="warning", text=text)


def _read(report: Any) -> dict[Key, float]:
    """Return key -> value of what passed in a report; one InputError names the first thing that is wrong."""
    results = report.get("results") if isinstance(report, Mapping) else None
    if not isinstance(results, list) or not all(isinstance(result, Mapping) for result in results):
        raise InputError(
            "baseline: this is not a report.json of this collection. Set the path of the report of a good run"
        )
    values: dict[Key, float] = {}
    for number, result in enumerate(results):
        if result.get("verdict") != "pass" or result.get("value", 0) is None:
            continue
        key = _row(f"baseline: results[{number}]", result)
        if key in values:
            raise InputError(f"baseline: results[{number}]: the same test is there twice; give another report.json")
        values[key] = float(result["value"])
    if not values:
        raise InputError(f"no baseline: none of {len(results)} results passed; take a run that was good")
    return values


def _row(path: str, row: Mapping[str, Any]) -> Key:
    wrong = [key for key in KEYS if not isinstance(row.get(key), str)]
    wrong += [key for key in OPTIONAL if key != "size" and not isinstance(row.get(key, ""), str)]
    if wrong:
        raise InputError(f"{path}.{wrong[0]}: expected text, found {describe(row.get(wrong[0]))}")
    if isinstance(row.get("size"), bool) or not isinstance(row.get("size", 0), int):
        raise InputError(f"{path}.size: expected a whole number of bytes, found {describe(row['size'])}")
    value = row.get("value")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise InputError(f"{path}.value: expected a number above 0, found {describe(value)}")
    return _key(row)
