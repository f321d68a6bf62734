# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a result must reach: ``rdma_fabric.thresholds`` for the fleet, and its overrides by rail, host and test."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..._common.reader import Reader, nearest, raise_problems, some
from .kinds import KINDS

# Share of the host's own rate that reaches GPU memory by each path from NIC to GPU. Behind PCIe switches line rate
# is what fleets ask for and get. Through the CPU (PHB, NODE, SYS) published results go from 0.5 to 1 and depend on
# processor and direction: no number holds, so it must be given (rdma_fabric.thresholds.gpu_paths).
GPU_PATHS: Mapping[str, float | None] = {"PIX": 0.97, "PXB": 0.97, "PHB": None, "NODE": None, "SYS": None}

PATH = "rdma_fabric.thresholds.overrides"


@dataclass(frozen=True)
class Threshold:
    """``tolerance`` and ``bidirectional``: the share of the expected rate (of twice the rate) that must be reached.

    ``floor`` (Gb/s) replaces the expected rate. ``latency_us``: the most that latency tests may show.
    """

    tolerance: float
    bidirectional: float
    floor: float | None
    latency_us: float | None


# Bidirectional tests are published with 0.9 of twice the rate as their gate, one way with 0.95 or above.
DEFAULT = Threshold(0.95, 0.90, None, None)


@dataclass(frozen=True)
class Override:
    """``values`` (fields of Threshold) for these rails, hosts (or groups of the inventory) and kinds; () means all."""

    rails: tuple[str, ...]
    hosts: tuple[str, ...]
    kinds: tuple[str, ...]
    values: Mapping[str, float]


@dataclass(frozen=True)
class Outliers:
    """When a value is an outlier of its rail; see measure/outliers.py. ``severity``: warning or failure."""

    severity: str
    deviations: float
    margin: float
    latency_margin: float


@dataclass(frozen=True)
class Unsteady:
    """Tests that failed and passed when they were repeated; see measure/unsteady.py. ``severity``: warning or failure.

    ``background``: the share of tests that do so without a cause.
    """

    severity: str
    background: float


@dataclass(frozen=True)
class Thresholds:
    """``fleet`` holds for everybody, then each override that matches, the last one winning."""

    fleet: Threshold
    overrides: tuple[Override, ...]
    gpu_paths: Mapping[str, float | None]
    outliers: Outliers
    unsteady: Unsteady

    def of(self, rail: str, names: Collection[str], kind: str | None = None) -> Threshold:
        """Return the threshold of a rail of a host. ``names``: the host's own and those of its groups.

        Without a ``kind`` the overrides of single kinds do not count.
        """
        found = self.fleet
        for one in self.overrides:
            if _fits(one, rail, names) and (not one.kinds or kind in one.kinds):
                found = replace(found, **one.values)
        return found

    def side(self, rail: str, names: Collection[str]) -> dict[str, Any]:
        """Return the threshold as a dict with, under ``kinds``, what differs for single kinds."""
        common = asdict(self.of(rail, names))
        named = dict.fromkeys(kind for one in self.overrides if _fits(one, rail, names) for kind in one.kinds)
        kinds = {kind: _difference(common, asdict(self.of(rail, names, kind))) for kind in named}
        return {**common, "kinds": {kind: values for kind, values in kinds.items() if values}}


def _fits(one: Override, rail: str, names: Collection[str]) -> bool:
    return (not one.rails or rail in one.rails) and (not one.hosts or any(name in names for name in one.hosts))


def _difference(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in own.items() if value != common[key]}


def read_thresholds(reader: Reader) -> Thresholds:
    """Read ``rdma_fabric.thresholds``; what is wrong is noted in the reader."""
    fleet = _values(reader)
    thresholds = Thresholds(
        fleet=replace(DEFAULT, **fleet),
        overrides=tuple(_override(item) for item in reader.sections("overrides")),
        gpu_paths=_gpu_paths(reader.section("gpu_paths")),
        outliers=_outliers(reader.section("outliers")),
        unsteady=_unsteady(reader.section("unsteady")),
    )
    reader.close()
    return thresholds


def _values(reader: Reader) -> dict[str, float]:
    """Return the fields of Threshold that are given."""
    values = {
        "tolerance": reader.number("tolerance", None, 0.01, high=1.0),
        "bidirectional": reader.number("bidirectional", None, 0.01, high=1.0),
        "floor": reader.number("floor", None, 0.0, high=10000.0),
        "latency_us": reader.number("latency_us", None, 0.1, high=1e6),
    }
    return {key: value for key, value in values.items() if value is not None}


def _override(reader: Reader) -> Override:
    override = Override(reader.texts("rails"), reader.texts("hosts"), reader.texts("kinds"), _values(reader))
    if not override.values:
        reader.refuse("", "sets no value; set at least one of tolerance, bidirectional, floor and latency_us")
    reader.close()
    return override


def _gpu_paths(reader: Reader) -> dict[str, float | None]:
    paths = {path: reader.number(path, usual, 0.01, high=1.0) for path, usual in GPU_PATHS.items()}
    reader.close()
    return paths


def _outliers(reader: Reader) -> Outliers:
    outliers = Outliers(
        severity=reader.text("severity", "warning", choices=("warning", "failure")),
        deviations=reader.number("deviations", 5.0, 1.0, high=1000.0),
        margin=reader.number("margin", 0.05, 0.001, high=1.0),
        latency_margin=reader.number("latency_margin", 0.25, 0.001, high=100.0),
    )
    reader.close()
    return outliers


def _unsteady(reader: Reader) -> Unsteady:
    unsteady = Unsteady(
        severity=reader.text("severity", "failure", choices=("warning", "failure")),
        background=reader.number("background", 0.001, 1e-6, high=0.5),
    )
    reader.close()
    return unsteady


def groups_of(hosts: Iterable[str], groups: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """Return host -> its own name and those of its groups. ``groups``: name -> hosts, as the inventory has them."""
    found: dict[str, set[str]] = {name: {name} for name in hosts}
    for group, members in groups.items():
        for name in members:
            if name in found:
                found[name].add(group)
    return {name: frozenset(names) for name, names in found.items()}


def check_matches(
    thresholds: Thresholds, rails: Sequence[str], names: Mapping[str, Collection[str]], *, kinds: Sequence[str]
) -> None:
    """Refuse thresholds that would judge nothing: an operator would believe in a gate that is not there.

    ``rails`` and ``kinds`` are those to be measured; ``names`` is what ``groups_of`` returns for the whole fleet.
    """
    known = {name for own in names.values() for name in own}
    problems = []
    if thresholds.fleet.latency_us is not None and not any(KINDS[kind].latency for kind in kinds):
        problems.append(f"rdma_fabric.thresholds.latency_us: no latency is measured (tests: {', '.join(kinds)})")
    for number, one in enumerate(thresholds.overrides):
        path = f"{PATH}[{number}]"
        problems += [f"{path}.rails: no rail {name}; {nearest(name, rails)}" for name in one.rails if name not in rails]
        problems += [
            f"{path}.hosts: {name} is neither a host of the fleet nor a group with one; {_nearest(name, known)}"
            for name in one.hosts
            if name not in known
        ]
        idle = [kind for kind in one.kinds if kind not in kinds]
        problems += [f"{path}.kinds: {kind} is not measured; {nearest(kind, kinds)}" for kind in idle]
        problems += [] if idle else _idle(path, one, one.kinds or kinds)
    raise_problems(problems)


def _nearest(name: str, known: Collection[str]) -> str:
    text = nearest(name, known)
    return text if text.startswith("did you mean") else f"known here: {some(sorted(known))}"


def _idle(path: str, one: Override, kinds: Sequence[str]) -> list[str]:
    """Return a problem for each value that no test of ``kinds`` reads."""
    latency = {KINDS[kind].latency for kind in kinds}
    return [
        f"{path}.{key}: it judges {'latency' if key == 'latency_us' else 'bandwidth'}, and these tests measure none "
        f"({', '.join(kinds)})"
        for key in one.values
        if (key == "latency_us") not in latency
    ]
