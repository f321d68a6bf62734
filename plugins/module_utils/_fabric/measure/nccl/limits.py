# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a collective must reach: the rails' rate on the network alone, published values where NVLink is used too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from typing import Any

from ...intent.nccl import NETWORK
from ...intent.tests import complete
from ...plan.gpu_affinity import BELOW_SWITCHES
from ..judge.expectation import Asked, Side, side_of
from ..schedule import crossing
from .units import Collective, Unit, options

BITS = 8.0
_PAIR = 2


@dataclass(frozen=True)
class Model:
    """A published least bus bandwidth (GB/s) of all_reduce between two hosts; ``rails``: Gb/s of all rails of one."""

    gpu: str
    gpus: int
    rails: float
    minimum: float
    source: str


_OCI = "gate of oracle-quickstart/oci-hpc, scripts/ncclscout.py"
MODELS = (
    Model("A100", 8, 1600.0, 185.0, _OCI),
    Model("H100", 8, 3200.0, 440.0, _OCI),
    Model("H200", 8, 3200.0, 440.0, _OCI),
    Model("B200", 8, 3200.0, 440.0, _OCI),
    Model("B300", 8, 6400.0, 700.0, _OCI),
)


@dataclass(frozen=True)
class Limit:
    """The least bus bandwidth in GB/s and where it is from; None where there is none."""

    value: float | None
    source: str


@dataclass(frozen=True)
class Carried:
    """What the rails of a unit carry, in Gb/s.

    ``least``: each rail of each host, None with ``why`` it is not known; ``what`` limits it, "" for its link alone.
    ``most``: more than all rails of a host cannot be true; None where that is not known. ``rails``: of each host.
    """

    least: float | None
    what: str
    most: float | None
    rails: int
    why: str = ""


def limit(plan: Mapping[str, Any], unit: Unit, what: Collective, *, gpus: int, model: str) -> Limit:
    """Return what a collective of a unit must reach. ``gpus``: those of each host; ``model``: the name of the GPU."""
    chosen = options(plan)
    key = f"{what.collective}_network" if what.path == NETWORK else what.collective
    given = chosen["minimum"].get(key)
    if given is not None:
        return Limit(given, f"tests.nccl.minimum.{key}")
    if what.collective != "all_reduce":
        return Limit(None, "no published value; set tests.nccl.minimum." + key)
    found = carried(plan, unit.hosts, gpus=gpus)
    if found.least is None:
        return Limit(None, f"{found.why}; set tests.nccl.minimum.{key}")
    if what.path == NETWORK:
        share = chosen["network_share"]
        of = found.what or "rails' rate"
        return Limit(round(_of_gpu(found, gpus) / BITS * share, 1), f"{share:g} of the {of} (tests.nccl.network_share)")
    if found.what:
        return Limit(None, f"published values do not hold for the {found.what}; set tests.nccl.minimum.all_reduce")
    return _published(model, gpus, _rates(plan, unit.hosts), hosts=len(unit.hosts))


def _of_gpu(found: Carried, gpus: int) -> float:
    """Return Gb/s of a GPU: the slowest rail decides; rails without a GPU of their own help."""
    least = found.least or 0.0
    return least * (found.rails // gpus) if found.rails >= gpus else least / ceil(gpus / found.rails)


def _published(model: str, gpus: int, rates: Sequence[float], *, hosts: int) -> Limit:
    words = model.replace("-", " ").split()
    for one in MODELS:
        if one.gpu in words and one.gpus == gpus and hosts == _PAIR and min(rates) >= one.rails:
            return Limit(one.minimum, one.source)
    return Limit(None, "no published value for this server and number of hosts; set tests.nccl.minimum.all_reduce")


def near_gpus(plan: Mapping[str, Any]) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return rail -> host -> its GPU, as the plan knows them (plan/nccl_gpus.py)."""
    return plan.get("nccl_gpus") or plan.get("gpus") or {}


def far(plan: Mapping[str, Any], hosts: Sequence[str], gpus: int) -> str:
    """Return why NCCL may use host memory on these hosts, "" where each GPU has a rail behind its PCIe switches."""
    for host in hosts:
        own = [sides[host] for sides in near_gpus(plan).values() if sides.get(host)]
        direct = [one for one in own if one["path"] in BELOW_SWITCHES]
        near = max([one.get("near", 0) for one in own] + [len({one["bdf"] for one in direct})])
        if not own:
            return f"the GPUs near the rails of {host} are not known"
        if len(direct) < len(own) or near < gpus:
            return f"not every GPU and rail of {host} is behind a PCIe switch with the other"
    return ""


def carried(plan: Mapping[str, Any], hosts: Sequence[str], *, gpus: int) -> Carried:
    """Return what the rails of these hosts carry, by their links and all that the plan knows to limit them."""
    rails = {rail["name"]: rail for rail in plan["rails"]}
    bounds, most, counts = [], [], []
    for host in hosts:
        sides = [
            side_of(rails[name], host, _seen_by_nccl(plan, name, host), planned_mtu=None, asked=Asked())
            for name, own in plan["expectations"].items()
            if host in own
        ]
        counts.append(len(sides))
        bounds += [_bound(side) for side in sides]
        most.append(_most(sides))
    known = [bound for bound in bounds if bound is not None]
    ceiling = None if None in most else min((one for one in most if one is not None), default=None)
    if not min(counts) or len(known) < len(bounds):
        return Carried(None, "", ceiling, min(counts), "the rate of a rail is not known")
    apart = far(plan, hosts, gpus) if near_gpus(plan) else ""
    if apart:
        return Carried(None, "", ceiling, min(counts), apart)
    rate, what = min(known)
    ratio = _oversubscribed(plan, hosts)
    if ratio > 1:
        what = f"rails' rate through uplinks oversubscribed {ratio:g}:1"
    return Carried(rate / ratio, what, ceiling, min(counts))


def _seen_by_nccl(plan: Mapping[str, Any], rail: str, host: str) -> dict[str, Any]:
    """Return the expectation of a side, with the PCIe links between its port and its GPU where the plan knows them."""
    gpu = near_gpus(plan).get(rail, {}).get(host) or {}
    return {**plan["expectations"][rail][host], **({"uplinks": gpu["uplinks"]} if "uplinks" in gpu else {})}


def _bound(side: Side) -> tuple[float, str] | None:
    floor = side.own.get("floor")
    if floor is not None:
        return float(floor), "floor of the inventory"
    if side.sends is None:
        return None
    return side.sends.rate, "" if side.sends.by == "link" else side.sends.what


def _most(sides: Sequence[Side]) -> float | None:
    """Return what the links of a host carry in all; None where one is not known, or a floor says more than it."""
    links = [side.link for side in sides]
    doubted = any(side.link is not None and (side.own.get("floor") or 0.0) > side.link for side in sides)
    return None if None in links or doubted else sum(link for link in links if link is not None)


def _oversubscribed(plan: Mapping[str, Any], hosts: Sequence[str]) -> float:
    """Return by how much the uplinks between groups of these hosts are oversubscribed, 1 inside a group."""
    tests = complete(plan.get("tests") or {})
    if not tests["oversubscription"]:
        return 1.0
    homes = crossing.homes(tests)
    groups = sorted({homes.get(host, "") for host in hosts})
    return max((crossing.uplinks(tests, *pair)[1] for pair in combinations(groups, 2)), default=1.0)


def _rates(plan: Mapping[str, Any], hosts: Sequence[str]) -> list[float]:
    return [sum(own[host].get("rate") or 0.0 for own in plan["expectations"].values() if host in own) for host in hosts]
