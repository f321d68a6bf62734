# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the user's own over the report: JMESPath queries that must give ``true``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.errors import InputError
from ..._common.reader import Reader, describe, nearest, raise_problems

try:
    import jmespath
    from jmespath.exceptions import JMESPathError
    from jmespath.functions import Functions
except ImportError:
    jmespath = None

PATH = "rdma_gates"
# Names of fields in the report (docs/report.schema.json). A misspelt one finds nothing, which can look like success.
KEYS = frozenset(
    word
    for line in """
    flow_labels lid_offset shared_links
    schema verdict findings rails hosts results warnings context diagnoses outliers links gates baseline
    schedule where rail client server test value unit expected bound_by reason passes pass basis cause counters
    link spread memory gpu peer_rail star min max n rate width mtu bdf path pairs fail no_data worst median node
    pci netdev address kind host peer direction confidence failed tests evidence text reproduce repeated
    deviations severity found name query before change mode rounds slot seconds share lateness latency_median
    latency_worst absence duplicate unsteady count readings first comparison compared better worse new missing
    remaining resolved now trend written size switch run scope versions id folder started ended endpoints subset
    only limit resumed image host_network machine_id kernel perftest version drivers release collection cluster
    fault unmeasured paths levels traffic group peer_group sensitivity pkey
    gpu_memory low finding nccl collective expected_from transports left_out
    """.splitlines()
    for word in line.split()
)
# Below these stand names that are not ours: counters, hosts, programs.
FREE = frozenset(("hosts", "counters", "context", "lateness", "left_out", "transports"))
# What is added to a report after the gates were judged.
LATER = "nccl"
# So much of what a query gave is shown.
SHOWN = 400


@dataclass(frozen=True)
class Gate:
    """``query`` must give true. ``severity``: failure or warning."""

    name: str
    query: str
    severity: str


def check(gates: Any) -> tuple[Gate, ...]:
    """Return the gates of ``rdma_gates``, a list of {name, query, severity (default failure)}.

    Raise one InputError that names every problem by its path: unknown keys, a name that is given twice, syntax,
    functions and their arguments, and fields that no report has. Meant to be called before anything is measured.
    """
    problems: list[str] = []
    if not isinstance(gates, (list, tuple, type(None))):
        raise InputError(f"{PATH}: expected a list, found {describe(gates)}")
    found = [_gate(Reader(gate, f"{PATH}[{number}]", problems)) for number, gate in enumerate(gates or ())]
    names = [gate.name for gate in found]
    for name in dict.fromkeys(name for name in names if name and names.count(name) > 1):
        problems.append(f'{PATH}: the name "{name}" is given to more than one gate')
    raise_problems(problems)
    return tuple(found)


def _gate(reader: Reader) -> Gate:
    gate = Gate(
        name=reader.text("name", ""),
        query=reader.text("query", ""),
        severity=reader.text("severity", "failure", choices=("failure", "warning")),
    )
    for key in ("name", "query"):
        if not getattr(gate, key):
            reader.refuse(key, "missing; every gate needs one")
    if gate.query:
        for problem in _query_problems(gate.query):
            reader.refuse("query", problem)
    reader.close()
    return gate


def judge(report: Mapping[str, Any], gates: Any) -> list[dict[str, Any]]:
    """Return ``gates`` of the report: {name, query, severity, verdict (pass or fail), found, text}.

    ``gates`` as ``check`` takes them. A gate passes when its query gives ``true``, and never otherwise: false, null,
    numbers, texts and lists (of offenders, or empty because a path is wrong) fail. ``found`` is what it gave, as JSON
    text, cut when long; "" when it could not be computed.
    """
    return [_judged(report, gate) for gate in check(gates)]


def _judged(report: Mapping[str, Any], gate: Gate) -> dict[str, Any]:
    try:
        value = jmespath.search(gate.query, report)
    except JMESPathError as exc:
        found, text = "", f"could not be computed: {_line(exc)}"
    else:
        found, text = _short(value), _told(value)
    verdict = "pass" if text == "" else "fail"
    told = f"{gate.name}: {text or 'holds'}"
    own = {"name": gate.name, "query": gate.query, "severity": gate.severity}
    return {**own, "verdict": verdict, "found": found, "text": told}


def _told(value: Any) -> str:
    """Return why a query's value is not a pass, "" when it is."""
    if value is True:
        return ""
    if value is False:
        return "does not hold"
    if value is None or value in ([], "", {}):
        return (
            f"found nothing ({_short(value)}), which is neither true nor false. Compare it with a value, such as "
            "length(...) == `0`"
        )
    if isinstance(value, list):
        return f"{len(value)} found: {_short(value)}"
    return f"expected true, found {_short(value)}. Compare it with the required value"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 4] + " ..."


def _line(exc: Exception) -> str:
    return " ".join(str(exc).split())


def _query_problems(query: str) -> list[str]:
    """Return what is wrong with a query that can be known without a report."""
    if jmespath is None:
        raise InputError(
            f"{PATH} require the Python package jmespath, which is not installed on the controller. Install it, or "
            f"leave {PATH} empty"
        )
    try:
        tree = jmespath.compile(query).parsed
    except JMESPathError as exc:
        return [_line(exc)]
    problems = [problem for node in _nodes(tree) for problem in _call_problems(node)]
    named = {str(node["value"]) for node in _nodes(tree) if node["type"] == "key_val_pair"}
    fields = list(_fields(tree))
    if not any(node["type"] == "field" for node in _nodes(tree)):
        problems.append("does not read the report, so its result would never change")
    if LATER in set(fields) - named:
        problems.append(
            f"reads {LATER}, but collectives run only after the gates have decided, so it would find nothing. The"
            " verdict of the report includes them. Set their limits in rdma_fabric.tests.nccl.minimum"
        )
    unknown = dict.fromkeys(name for name in fields if name not in KEYS | named)
    return problems + [f'no field of a report is named "{name}"; {nearest(name, KEYS)}' for name in unknown]


def _nodes(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield tree
    for child in tree["children"]:
        yield from _nodes(child)


def _call_problems(node: Mapping[str, Any]) -> list[str]:
    if node["type"] != "function_expression":
        return []
    known = Functions.FUNCTION_TABLE
    name, given = node["value"], len(node["children"])
    if name not in known:
        return [f"no function {name}(); {nearest(name, known)}"]
    signature: Sequence[Mapping[str, Any]] = known[name]["signature"]
    variadic = bool(signature) and signature[-1].get("variadic")
    if given == len(signature) or (variadic and given > len(signature)):
        return []
    return [f"{name}() takes {len(signature)} arguments{' or more' if variadic else ''}, found {given}"]


def _fields(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of fields, without those that stand after a name of ``FREE``."""
    if node["type"] == "field":
        yield str(node["value"])
    for child in node["children"]:
        names = list(_fields(child))
        yield from names
        if FREE & set(names):
            return
