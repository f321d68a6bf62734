# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report.json that is read back: whether everything that later runs use of it is of the right type.

It may be damaged, written by hand, or of something else. What is missing is left to those who need it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...._common.errors import InputError
from ...._common.reader import describe
from ...intent.typed import Type, Unfit, dict_of, list_of, matching, number, optional, plain, record

SCHEMA = "gpufabric.rdma/report/2"
_FAMILY = SCHEMA.rpartition("/")[0] + "/"
_MOST = 100_000_000


def _any(value: Any) -> Any:
    return value


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Unfit("text", value)


def _partial(**known: Type) -> Type:
    """Return the type of dicts in which these keys, where they are there, have these types."""

    def read(value: Any) -> Any:
        there = value if isinstance(value, Mapping) else {}
        return record(**{key: part for key, part in known.items() if key in there})(value)

    return read


def _all(*types: Type) -> Type:
    """Return the type of values that have all of these types."""

    def read(value: Any) -> Any:
        for one in types:
            one(value)
        return value

    return read


def _by_name(values: Type) -> Type:
    return dict_of(_word, values, _MOST)


_AMOUNT = number(0, 1e15)
_SIZE = number(0, 1 << 40, whole=True)
_WORDS = optional(_word)
_DICT = _by_name(_any)
_RESULT = _all(
    record(
        **dict.fromkeys(("where", "rail", "client", "server", "test", "unit"), _word),
        verdict=matching(re.compile("pass|fail|no_data"), "pass, fail or no_data"),
        value=optional(_AMOUNT),
    ),
    _partial(size=_SIZE, peer_rail=_word, memory=_word, star=_word, passes=list_of(_DICT, _MOST)),
)
_TESTS = _all(
    _DICT,
    _partial(
        **dict.fromkeys(("mode", "directions", "memory"), _word),
        size=_SIZE,
        sizes=list_of(_SIZE, _MOST),
        latency_size=optional(_SIZE),
    ),
)
_HOST = _all(_DICT, _partial(drivers=_DICT, rails=_by_name(_DICT)))
_REPORT = _partial(
    verdict=_word,
    run=optional(_all(_DICT, _partial(id=_word))),
    scope=optional(_all(_DICT, _partial(subset=list_of(_word, _MOST)))),
    versions=optional(_by_name(_HOST)),
    tests=_TESTS,
    endpoints=_by_name(_by_name(_by_name(_DICT))),
    results=list_of(_RESULT, _MOST),
    context=_DICT,
    diagnoses=list_of(
        _all(
            record(text=_word),
            _partial(**dict.fromkeys(("where", "kind", "rail", "host", "peer", "direction", "peer_rail"), _WORDS)),
        ),
        _MOST,
    ),
)


def other_version(report: Any) -> str:
    """Return the schema of a report that another version of the collection wrote, "" for anything else."""
    found = report.get("schema") if isinstance(report, Mapping) else None
    return found if isinstance(found, str) and found.startswith(_FAMILY) and found != SCHEMA else ""


def check_version(option: str, path: str, report: Any) -> None:
    """Raise InputError for a report of another version: its keys have other names or meanings."""
    if found := other_version(report):
        raise InputError(
            f"{option}: {path} has the schema {plain(found, 80)}, expected {SCHEMA}: another version of this collection"
            " wrote it. Run a new measurement, and give its report.json"
        )


def problem(report: Any) -> str:
    """Return what is wrong with a report that was read, "" when all that is there can be used."""
    if other := other_version(report):
        return f"schema: expected {SCHEMA}, found {plain(other, 80)}, which another version of this collection wrote"
    try:
        _REPORT(report)
    except Unfit as error:
        found = plain(describe(error.value), 80)
        return f"{error.path or 'report'}: expected {error.expected}, found {found}"
    return ""
