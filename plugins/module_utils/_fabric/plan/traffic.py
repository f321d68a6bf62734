# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The class of traffic that tests use: by default the one that QoS settings give the packets of applications.

Rails of a plan have hosts of one class of servers only, so both ends of a test find their traffic class by the rail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.errors import InputError
from ..._common.fold import fold
from ..._common.reader import Reader, converted, raise_problems
from ..._common.traffic_class import traffic_class
from ..intent.intent import Intent
from .hosts import Host

ROLE = "rail_links_qos"
OPERATOR = "operator.nic_configuration"
_NONE = "the fabric has no QoS: class 0"
_PRIORITIES = 8
# Settings that list priorities.
_LISTS = ("pfc", "ecn")
# The priority that a port takes from a DSCP which it trusts: the upper three of its six bits.
_PER_PRIORITY = 8


@dataclass(frozen=True)
class Qos:
    """What QoS settings say of RDMA packets; None where they say nothing. ``source``: where they are.

    ``problem``: why no traffic class follows from them.
    """

    traffic_class: int | None = None
    trust: str | None = None
    pfc: tuple[int, ...] | None = None
    ecn: tuple[int, ...] | None = None
    source: str = ROLE
    problem: str = ""


def planned(intent: Intent, hosts: Sequence[Host], rails: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``traffic`` of the plan's tests: rail -> {traffic_class, dscp, priority, pfc, source, text, doubts}.

    ``traffic_class`` is None where perftest is given none. ``problem``, where hosts mark packets differently: the plan
    warns of it, and nothing is measured (``require_one``).
    """
    asked: int | None = intent.tests["traffic_class"]
    qos = _of_hosts(hosts, asked is None) or _of_operator(intent) or Qos()
    doubts = [] if asked is not None else [qos.problem] if qos.problem else [*_unlike(hosts, qos), *_lossy(qos)]
    return {
        "traffic": {
            rail["name"]: _entry(asked, qos, doubts, infiniband=rail["link_layer"] == "infiniband") for rail in rails
        }
    }


def _entry(asked: int | None, qos: Qos, doubts: Sequence[str], *, infiniband: bool) -> dict[str, Any]:
    byte = qos.traffic_class if asked is None else asked
    source = "set in tests.traffic_class" if asked is not None else f"from {qos.source}"
    problem = ""
    if asked is None and infiniband:
        byte, source, doubts = None, "InfiniBand: DSCP does not apply", ()
    elif asked is None and qos.problem:
        source, problem = f"{qos.source} of hosts differs", qos.problem
    elif byte is None:
        source = f"{qos.source} sets no DSCP: class 0" if qos.pfc else _NONE
    dscp = None if byte is None or infiniband else byte // 4
    found = {
        "traffic_class": byte,
        "dscp": dscp,
        "priority": None if dscp is None else priority_of(dscp),
        "pfc": None if qos.pfc is None or infiniband else list(qos.pfc),
        "source": source,
    }
    told = {"text": _text(found, qos.trust), "doubts": list(doubts)}
    return {**found, **told, **({"problem": problem} if problem else {})}


def require_one(plan: Mapping[str, Any]) -> None:
    """Raise InputError when the hosts of a plan mark packets differently, so that its tests have no traffic class."""
    traffic = plan.get("tests", {}).get("traffic", {})
    problem = next((entry["problem"] for entry in traffic.values() if entry.get("problem")), "")
    if problem:
        raise InputError(problem)


def priority_of(dscp: int) -> int:
    """Return the priority of packets with a DSCP on ports that trust it, with the usual table."""
    return dscp // _PER_PRIORITY


def _text(entry: Mapping[str, Any], trust: str | None) -> str:
    if entry["traffic_class"] is None:
        return f"no traffic class ({entry['source']})"
    if entry["dscp"] is None:
        return f"traffic class {entry['traffic_class']}, {entry['source']}"
    words = [f"DSCP {entry['dscp']}"]
    words.append(f"priority {entry['priority']}" + ("" if trust == "dscp" else " if the port trusts DSCP"))
    if entry["pfc"] is not None:
        words.append(f"PFC {'on' if entry['priority'] in entry['pfc'] else 'not on'} this priority")
    return f"traffic class {entry['traffic_class']} ({', '.join(words)}), {entry['source']}"


def _of_hosts(hosts: Sequence[Host], needed: bool) -> Qos | None:
    """Return what ``rail_links_qos`` of the hosts of this run have in common; None when none has any."""
    found = {name: own for name, own in _read(hosts).items() if own}
    if not found:
        return None
    by_class: dict[int, list[str]] = {}
    for name, own in found.items():
        byte = traffic_class(own)
        if byte is not None:
            by_class.setdefault(byte, []).append(name)
    problem = ""
    if needed and len(by_class) > 1:
        told = "; ".join(f"{byte} on {fold(names)}" for byte, names in sorted(by_class.items()))
        problem = (
            f"{ROLE}: hosts mark RDMA packets with different traffic classes ({told}), but both ends of a test need"
            " one, so nothing can be measured. Set one dscp or traffic_class for all of these hosts, or set"
            " rdma_fabric.tests.traffic_class"
        )
    byte = next(iter(by_class)) if len(by_class) == 1 else None
    lists = [_common([tuple(sorted(own[key])) if key in own else None for own in found.values()]) for key in _LISTS]
    trust, (pfc, ecn) = _common([own.get("trust") for own in found.values()]), lists
    return Qos(byte, trust, pfc, ecn, problem=problem)


def _common(values: Sequence[Any]) -> Any:
    """Return the value that all have, None when they differ."""
    return values[0] if all(value == values[0] for value in values) else None


def _read(hosts: Sequence[Host]) -> dict[str, dict[str, Any]]:
    """Return host of this run -> those of its QoS settings that matter here, checked."""
    problems: list[str] = []
    found = {}
    for host in hosts:
        if host.limited and not host.absent:
            reader = Reader(host.qos or {}, f"{ROLE} of {host.name}", problems)
            own = {
                "dscp": reader.integer("dscp", None, 0, high=63),
                "traffic_class": reader.integer("traffic_class", None, 0, high=255),
                "trust": reader.text("trust", None, choices=("dscp", "pcp")),
                **{key: reader.integers(key, 0, _PRIORITIES - 1) if key in reader else None for key in _LISTS},
            }
            found[host.name] = {key: value for key, value in own.items() if value is not None}
    raise_problems(problems)
    return found


def _of_operator(intent: Intent) -> Qos | None:
    """Return the QoS of the NIC configuration operator's templates when all that have one agree."""
    sections = [template.settings.get("roceOptimized") for template in intent.operator.nic_configuration.templates]
    enabled = [one for one in sections if isinstance(one, Mapping) and converted(one.get("enabled"), bool) is True]
    every = [one["qos"] for one in enabled if isinstance(one.get("qos"), Mapping)]
    found = {(_byte(own.get("tos")), str(own.get("trust")), _bits(own.get("pfc"))) for own in every}
    return Qos(*next(iter(found)), source=OPERATOR) if len(found) == 1 else None


def _byte(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 3 and int(text) <= 255 else None


def _bits(value: Any) -> tuple[int, ...] | None:
    """Return the priorities of ``0,0,0,1,0,0,0,0``."""
    bits = str(value).split(",")
    known = len(bits) == _PRIORITIES and set(bits) <= {"0", "1"}
    return tuple(at for at, bit in enumerate(bits) if bit == "1") if known else None


def _unlike(hosts: Sequence[Host], qos: Qos) -> Iterator[str]:
    """Yield which hosts have no traffic class of their own while others have one."""
    if qos.source != ROLE or qos.traffic_class is None:
        return
    without = [name for name, own in _read(hosts).items() if traffic_class(own) is None]
    if without:
        yield (
            f"{fold(without)}: {ROLE} sets no dscp, while other hosts have traffic class {qos.traffic_class}. Tests use"
            " it on all hosts, applications only where it is configured. Set dscp on all hosts"
        )


def _lossy(qos: Qos) -> Iterator[str]:
    """Yield why the class of tests is not the one with flow control, or with congestion control."""
    if qos.traffic_class is not None and qos.ecn and priority_of(qos.traffic_class // 4) not in qos.ecn:
        yield (
            f"{qos.source} gives RDMA packets priority {priority_of(qos.traffic_class // 4)}, and enables congestion"
            f" control (ECN) on priority {', '.join(map(str, qos.ecn))}. Set ecn to the priority of the DSCP"
        )
    if not qos.pfc:
        return
    shown = ", ".join(str(priority) for priority in qos.pfc)
    if qos.traffic_class is None:
        yield (
            f"{qos.source} enables PFC on priority {shown}, but sets no traffic class of RDMA packets, so tests use"
            f" class 0, which has no flow control. Set the DSCP, such as {qos.pfc[0] * _PER_PRIORITY + 2} for priority"
            f" {qos.pfc[0]}"
        )
    elif priority_of(qos.traffic_class // 4) not in qos.pfc:
        dscp = qos.traffic_class // 4
        yield (
            f"{qos.source} gives RDMA packets DSCP {dscp}, which is priority {priority_of(dscp)}, and enables PFC on"
            f" priority {shown}: their class is not lossless. Set a DSCP of that priority, or PFC on priority"
            f" {priority_of(dscp)}"
        )


def doubts(found: Mapping[str, Any]) -> list[str]:
    """Return what the plan warns of, each text once (``found``: of ``planned``)."""
    return list(dict.fromkeys(text for entry in found["traffic"].values() for text in entry["doubts"]))


def told(tests: Mapping[str, Any]) -> list[str]:
    """Return a line about the class of traffic for the rails of each class; [] where a plan tells none."""
    groups: dict[str, list[str]] = {}
    for rail, entry in tests.get("traffic", {}).items():
        groups.setdefault(entry["text"], []).append(rail)
    one = len(groups) == 1
    return [f"tests use {text}" if one else f"tests of {fold(rails)} use {text}" for text, rails in groups.items()]


def byte_of(tests: Mapping[str, Any], rail: str) -> int | None:
    """Return the traffic class of tests of a rail, None where perftest is given none."""
    entry = tests.get("traffic", {}).get(rail)
    found: int | None = entry["traffic_class"] if entry else tests.get("traffic_class")
    return found


def bytes_of(tests: Mapping[str, Any]) -> Any:
    """Return the traffic class of all tests, or those of the rails where they differ."""
    found = {rail: byte_of(tests, rail) for rail in tests.get("traffic", {})}
    values = set(found.values()) or {tests.get("traffic_class")}
    return next(iter(values)) if len(values) == 1 else dict(sorted(found.items()))
