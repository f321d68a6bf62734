"""Whether a report is right about a simulated fabric: what it found, and which healthy parts it accuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.tools import importable  # noqa: F401

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.summary import stops

from .fabric import Tree, leaf_name
from .faults import Fault
from .run import Measured

Finding = Mapping[str, Any]
#: Kinds of findings that accuse no part of the fabric.
_NO_PART = ("unknown", "configuration", "overload", "tester", "address")
_OF_HOST = ("host", "port", "direction", "mtu", "gpu")
#: Kinds of findings about what joins groups of hosts: a leaf, its uplinks, what is between two groups or above all.
OF_GROUPS = ("group", "uplinks", "groups", "paths")
#: Fault -> the kind of finding that names it.
_GROUP_KINDS = {"leaf": "group", "uplinks": "uplinks", "uplink": "uplinks"}
_AT_HOST = ("host", "port", "send", "receive", "thermal", "overloaded", "late", "throttled")


@dataclass(frozen=True)
class Score:
    """``passed``: the run. ``found`` of ``planted`` faults are named as what they are; ``right`` of ``told`` findings.

    ``accused``: healthy parts that are confirmed. ``named``: healthy parts that are suspected, or unsteady.
    """

    passed: bool
    planted: int
    found: int
    told: int
    right: int
    accused: tuple[str, ...]
    named: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether every fault is found and nothing else is told."""
        return self.found == self.planted and self.right == self.told


def score(tree: Tree, faults: Sequence[Fault], measured: Measured) -> Score:
    """Compare a report with what was planted."""
    step = measured.step
    told = list(findings(measured))
    wrong = [one for one in told if not guilty(tree, faults, one)]
    accused = [one for one in wrong if one.get("confidence") == "confirmed"]
    return Score(
        passed=step.summary["verdict"] == "pass" and not stops({"unsteady": step.unsteady, "outliers": step.outliers}),
        planted=len(faults),
        found=sum(any(names(tree, fault, one) for one in told) for fault in faults),
        told=len([one for one in told if one["kind"] not in _NO_PART]),
        right=sum(one["kind"] not in _NO_PART and any(names(tree, fault, one) for fault in faults) for one in told),
        accused=tuple(map(_place, accused)),
        named=tuple(_place(one) for one in wrong if one not in accused),
    )


def findings(measured: Measured) -> Iterator[Finding]:
    """The diagnoses of a report, and its unsteady tests beyond what chance explains."""
    yield from measured.step.summary["diagnoses"]
    yield from (row for row in measured.step.unsteady if row["severity"] == "failure")


def _place(one: Finding) -> str:
    words = (one["kind"], one.get("host"), one.get("peer"), one.get("rail"), one.get("direction"), *_groups(one))
    return " ".join(str(word) for word in words if word)


def _groups(one: Finding) -> list[str]:
    given = [one.get("group"), one.get("peer_group"), *(one.get("groups") or [])]
    return [str(group) for group in given if group]


def _is_unsteady(one: Finding) -> bool:
    return "readings" in one


def names(tree: Tree, fault: Fault, one: Finding) -> bool:
    """Whether a finding names a fault as what it is."""
    kind = one["kind"]
    if fault.kind in ("overloaded", "late", "throttled"):
        at_host = one.get("host") in (None, tree.names[fault.host or 0])
        return at_host and (kind == "overload" or (fault.kind == "throttled" and kind == "host"))
    if fault.rail is not None and one.get("rail") != fault.rail:
        return False
    if fault.kind in _AT_HOST:
        if one.get("host") != tree.names[fault.host or 0]:
            return False
        if fault.kind in ("send", "receive"):
            # Unsteady tests have no direction.
            return (kind == "direction" and one.get("direction") == fault.kind) or (
                kind == "port" and _is_unsteady(one)
            )
        return bool(kind == ("port" if fault.kind == "thermal" else fault.kind))
    if fault.kind == "rail":
        return bool(kind == "rail")
    if fault.kind == "spine":
        # Each rail has its own spines, and which one it is cannot be known.
        return kind in ("paths", "unknown")
    return bool(kind == _GROUP_KINDS[fault.kind] and leaf_name(fault.group or 0) in _groups(one))


def guilty(tree: Tree, faults: Sequence[Fault], one: Finding) -> bool:
    """Whether a finding accuses nothing that is healthy: it names a fault, a part of it, or a test that needs it."""
    if one["kind"] in _NO_PART or any(names(tree, fault, one) for fault in faults):
        return True
    rail = one.get("rail")
    near = [fault for fault in faults if rail is None or fault.rail in (None, rail)]
    if one["kind"] in _OF_HOST:
        own = [f for f in near if f.kind in _AT_HOST and tree.names[f.host or 0] == one.get("host")]
        opposite = {"send": "receive", "receive": "send"}.get(one.get("direction") or "")
        return any(fault.kind != opposite for fault in own)
    if one["kind"] == "pair":
        ends = (tree.names.index(one["host"]), tree.names.index(one["peer"]))
        return any(_joins(tree, fault, ends, rail or tree.rail_names[0]) for fault in near)
    if one["kind"] in OF_GROUPS:
        return any(_reaches(tree, fault, one) for fault in near)
    return _is_unsteady(one) and bool(near)


def _reaches(tree: Tree, fault: Fault, one: Finding) -> bool:
    """Whether a fault is of the groups that a finding names, or of the paths that leave them."""
    if fault.kind in ("leaf", "uplinks", "uplink"):
        return one["kind"] == "paths" or leaf_name(fault.group or 0) in _groups(one)
    if fault.kind != "spine":
        return fault.kind == "rail"
    # It is none of a leaf switch.
    leaves = [leaf_name(tree.group(host)) for host in range(tree.hosts) if tree.group(host, 1) == fault.group]
    return one["kind"] in ("uplinks", "groups") and bool({*leaves} & {*_groups(one)})


def _joins(tree: Tree, fault: Fault, ends: tuple[int, int], rail: str) -> bool:
    one, other = ends
    return fault.host in ends or fault.touches(tree, one, other, rail) or fault.touches(tree, other, one, rail)
