# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a collective must reach: the rails' rate on the network alone, published values where NVLink is used too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...intent.nccl import NETWORK
from ...plan.link_rates import efficiency
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


def limit(plan: Mapping[str, Any], unit: Unit, what: Collective, *, gpus: int, model: str) -> Limit:
    """Return what a collective of a unit must reach. ``gpus``: those of each host; ``model``: the name of the GPU."""
    chosen = options(plan)
    key = f"{what.collective}_network" if what.path == NETWORK else what.collective
    given = chosen["minimum"].get(key)
    if given is not None:
        return Limit(given, f"tests.nccl.minimum.{key}")
    if what.collective != "all_reduce":
        return Limit(None, "no published value; set tests.nccl.minimum." + key)
    rate = rails_rate(plan, unit.hosts)
    if rate is None:
        return Limit(None, "the rate of a rail is not known")
    if what.path == NETWORK:
        share = chosen["network_share"]
        return Limit(round(rate / BITS / gpus * share, 1), f"{share:g} of the rails' rate (tests.nccl.network_share)")
    return _published(model, gpus, _rates(plan, unit.hosts), hosts=len(unit.hosts))


def _published(model: str, gpus: int, rates: Sequence[float], *, hosts: int) -> Limit:
    words = model.replace("-", " ").split()
    for one in MODELS:
        if one.gpu in words and one.gpus == gpus and hosts == _PAIR and min(rates) >= one.rails:
            return Limit(one.minimum, one.source)
    return Limit(None, "no published value for this server and number of hosts; set tests.nccl.minimum.all_reduce")


def rails_rate(plan: Mapping[str, Any], hosts: Sequence[str]) -> float | None:
    """Return the payload rate (Gb/s) of all rails of the slowest of these hosts, None if a rate is not known."""
    layers = {rail["name"]: rail.get("link_layer") or "ethernet" for rail in plan["rails"]}
    found = []
    for host in hosts:
        sides = [(name, own[host]) for name, own in plan["expectations"].items() if host in own]
        rates = [
            side["rate"] * efficiency(side["mtu"], layers[name]) if side.get("rate") and side.get("mtu") else None
            for name, side in sides
        ]
        if not rates or None in rates:
            return None
        found.append(sum(rate for rate in rates if rate is not None))
    return min(found) if found else None


def _rates(plan: Mapping[str, Any], hosts: Sequence[str]) -> list[float]:
    return [sum(own[host].get("rate") or 0.0 for own in plan["expectations"].values() if host in own) for host in hosts]
