# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report.json of an earlier run: baseline, comparison, resumption and the history of runs read it here.

It may be damaged, written by hand, or of another tool or version. It is checked once, as a whole: whoever uses it finds
the types that docs/report.schema.json describes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...._common.errors import InputError
from ...._common.reader import describe
from ...intent.kinds import KINDS
from ...intent.typed import Type, Unfit, dict_of, list_of, number, optional, plain, record
from ..schedule.flow_labels import LARGEST as LARGEST_LABEL
from ..schedule.schedule import Measurement, subject

SCHEMA = "gpufabric.rdma/report/2"
_FAMILY = SCHEMA.rpartition("/")[0] + "/"
# Bytes of a file. A report has about 0.5 KB for each result.
LARGEST = 2 << 30
_MOST = 100_000_000

Row = Mapping[str, Any]
# The place ("host" or "pod") and the test, which identify a result in a report.
Key = tuple[str, Measurement]


class UnusableReport(InputError):
    """A report that cannot be used. ``problem``: the message without what to do."""

    def __init__(self, problem: str, action: str) -> None:
        super().__init__(f"{problem}. {action}")
        self.problem = problem


def _any(value: Any) -> Any:
    return value


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise Unfit("text", value)


def _one_of(*words: str) -> Type:
    known = frozenset(words)

    def read(value: Any) -> Any:
        if value.__class__ is str and value in known:
            return value
        raise Unfit(f"{', '.join(words[:-1])} or {words[-1]}", value)

    return read


def _partial(**known: Type) -> Type:
    """Return the type of dicts in which these keys, where they are there, have these types."""
    parts = tuple(known.items())

    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Unfit("a dict", value)
        for key, part in parts:
            if key in value:
                try:
                    part(value[key])
                except Unfit as error:
                    raise error.below(key) from None
        return value

    return read


def _all(*types: Type) -> Type:
    """Return the type of values that have all of these types."""

    def read(value: Any) -> Any:
        for one in types:
            one(value)
        return value

    return read


def _consistent(row: Any) -> Any:
    """Read a result in the unit of its kind of test, with a value above 0 if it passed: a later run divides by it."""
    unit = _UNITS.get(row["test"], row["unit"])
    if row["unit"] != unit:
        raise Unfit(f"{unit}, the unit of {row['test']}", row["unit"]).below("unit")
    if row["verdict"] == "pass" and not row["value"]:
        raise Unfit("a number above 0 in a result that passed", row["value"]).below("value")
    return row


def _by_name(values: Type) -> Type:
    return dict_of(_word, values, _MOST)


_UNITS = {name: kind.unit for name, kind in KINDS.items()}
_AMOUNT = number(0, 1e15)
_SIZE = number(0, 1 << 40, whole=True)
_WORDS = optional(_word)
_DICT = _by_name(_any)
_VERDICT = _one_of("pass", "fail", "no_data")
_ATTEMPT = _all(
    record(**{"pass": _SIZE}, value=optional(_AMOUNT), verdict=_VERDICT, reason=_word),
    # Options of commands that people copy are made of these.
    _partial(flow_labels=list_of(number(1, LARGEST_LABEL, whole=True), 1024), lid_offset=number(0, 127, whole=True)),
)
_RESULT = _all(
    record(
        **dict.fromkeys(("where", "rail", "client", "server", "test", "bound_by", "reason"), _word),
        unit=_one_of("Gb/s", "us"),
        verdict=_VERDICT,
        value=optional(_AMOUNT),
        expected=optional(_AMOUNT),
        passes=list_of(_ATTEMPT, _MOST),
    ),
    _partial(
        size=_SIZE,
        paths=list_of(_ATTEMPT, _MOST),
        **dict.fromkeys(("peer_rail", "memory", "star", "basis", "resumed"), _word),
        counters=_by_name(_by_name(_AMOUNT)),
        link=_by_name(_DICT),
        gpu=_by_name(record(path=_word)),
        spread=record(min=_AMOUNT, max=_AMOUNT, n=_SIZE),
    ),
    _consistent,
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
_DIAGNOSIS = _all(
    record(text=_word),
    _partial(**dict.fromkeys(("where", "kind", "rail", "host", "peer", "direction", "peer_rail"), _WORDS)),
)
_REPORT = _all(
    record(verdict=_VERDICT, results=list_of(_RESULT, _MOST)),
    _partial(
        run=optional(_all(_DICT, _partial(id=_word))),
        scope=optional(_all(_DICT, _partial(subset=list_of(_word, _MOST)))),
        versions=optional(_by_name(_HOST)),
        tests=_TESTS,
        endpoints=_by_name(_by_name(_by_name(_DICT))),
        context=_DICT,
        diagnoses=list_of(_DIAGNOSIS, _MOST),
    ),
)


@dataclass(frozen=True)
class EarlierReport:
    """What later runs use of an earlier report. A value is None where the report does not record it.

    ``path``: of its file, for messages. ``rows``: its results. ``run``: {id, started, ended, ...}; ``scope``: what the
    run covers; ``versions``: host -> machine, versions and ports. ``tests``: options of rdma_fabric.tests;
    ``endpoints``: place -> host -> rail -> the port that was measured. ``diagnoses``: [{kind, host, text, ...}].
    """

    path: str
    verdict: str
    rows: Mapping[Key, Row]
    run: Row | None = None
    scope: Row | None = None
    versions: Mapping[str, Row] | None = None
    tests: Row | None = None
    endpoints: Mapping[str, Mapping[str, Mapping[str, Row]]] | None = None
    context: Row = field(default_factory=dict)
    diagnoses: Sequence[Row] = ()

    @classmethod
    def read(cls, found: str | bytes | Mapping[str, Any], path: str) -> EarlierReport:
        """Return the report in the content of a file, or in a dict; UnusableReport names what is wrong with it."""
        report = _parsed(found, path) if isinstance(found, (str, bytes)) else found
        check_schema(report, path)
        try:
            _REPORT(report)
        except Unfit as error:
            raise _unusable(path, _fault(error)) from None
        rows = by_identity(report["results"])
        if len(rows) != len(report["results"]):
            raise _unusable(path, _duplicate(report["results"]))
        about = {key: report.get(key) for key in ("run", "scope", "versions", "tests", "endpoints")}
        diagnoses = report.get("diagnoses", ())
        return cls(path, report["verdict"], rows, **about, context=report.get("context", {}), diagnoses=diagnoses)

    @property
    def run_id(self) -> str:
        """The id of the run, "" when the report records none."""
        return (self.run or {}).get("id", "")

    def passed(self) -> dict[Key, Row]:
        """Return the results that passed; each has a value above 0."""
        return {key: row for key, row in self.rows.items() if row["verdict"] == "pass"}


#: Of a run that takes nothing over.
NONE = EarlierReport("", "no_data", {})


def by_identity(results: Iterable[Row]) -> dict[Key, Row]:
    """Return results by place and test."""
    return {(result["where"], subject(result)): result for result in results}


def check_schema(report: Any, path: str) -> None:
    """Raise UnusableReport unless it is a dict with the schema of this version of the collection."""
    if not isinstance(report, Mapping):
        raise _unusable(path, f"expected a dict, found {describe(report)}")
    schema = report.get("schema")
    if isinstance(schema, str) and schema.startswith(_FAMILY) and schema != SCHEMA:
        raise UnusableReport(
            f"{path} has the schema {plain(schema, 80)}, expected {SCHEMA}: another version of this collection"
            " wrote it",
            "Run a new measurement, and give its report.json",
        )
    if schema != SCHEMA:
        raise _unusable(path, f"schema: expected {SCHEMA}, found {plain(describe(schema), 80)}")


def _parsed(text: str | bytes, path: str) -> Any:
    if len(text) > LARGEST:
        raise _unusable(path, f"expected at most {LARGEST >> 20} MiB, found more")
    try:
        return json.loads(text)
    except ValueError as error:
        raise _unusable(path, f"expected JSON, found an error: {plain(str(error), 200)}") from None
    except RecursionError:
        raise _unusable(path, "expected JSON, found lists or dicts nested too deeply") from None


def _unusable(path: str, fault: str) -> UnusableReport:
    return UnusableReport(
        f"{path} is not a report of this collection: {fault}", "Give the report.json of an earlier run"
    )


def _fault(error: Unfit) -> str:
    return f"{error.path or 'report'}: expected {error.expected}, found {plain(describe(error.value), 80)}"


def _duplicate(results: Sequence[Row]) -> str:
    """Return which result is about the same test as one before it."""
    first: dict[Key, int] = {}
    for at, result in enumerate(results):
        before = first.setdefault((result["where"], subject(result)), at)
        if before != at:
            return f"results[{at}]: expected each test once, found the test of results[{before}]"
    return ""
