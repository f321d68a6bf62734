# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a pair can be: what its links carry after headers, or what the user gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ...._common.units import leading_number
from ...intent.kinds import KINDS, USUAL
from ...intent.thresholds import GPU_PATHS
from ...plan.link_rates import USUAL_PAYLOAD, efficiency, pcie_link, pcie_rate, rdma_mtu

# A measurement may exceed what the link carries by this much before it is taken for a wrong reading.
ABOVE = 1.02
FLOOR_HINT = "give rdma_fabric.thresholds.floor"


class Expectation(NamedTuple):
    """What a test must reach, in ``unit``.

    ``least`` Gb/s (None: not known). ``most`` us, for latency (None: no limit was given, the fleet alone judges).
    ``bound_by`` floor, link, pcie, vf, gpu, uplinks, unknown, or for latency limit or fleet. ``ceiling`` Gb/s: more
    than this cannot be true; None when the link is not known or not to be trusted. ``why``: a part of a sentence.
    ``doubt``: a sentence that says why no ceiling holds although the link's rate is known.
    """

    least: float | None
    bound_by: str
    ceiling: float | None
    why: str
    most: float | None = None
    unit: str = "Gb/s"
    doubt: str = ""


class Asked(NamedTuple):
    """How a pair is measured, besides rail and hosts.

    ``kind`` as in schedule.Measurement. ``together``: all rails of a host at once, so that ports of one card share its
    PCIe link. ``gpu_paths``: path class to share where it differs from ``GPU_PATHS``. ``between``: the groups of the
    hosts whose uplinks the path crosses, "" inside a group, with ``oversubscribed``, by how much these are.
    ``headers``: bytes that packets have besides the usual ones.
    """

    kind: str = USUAL
    bidirectional: bool = False
    together: bool = True
    gpu_paths: Mapping[str, float | None] = {}
    between: str = ""
    oversubscribed: float = 1.0
    headers: int = 0


class _Bound(NamedTuple):
    """``rate`` Gb/s one way, set by ``by``; ``what`` names it. The lowest comes first."""

    rate: float
    by: str
    what: str


class Side(NamedTuple):
    """One side of a pair, worked out once for all pairs in which it is.

    ``own``: its expectation of the plan for the kind that is measured. ``link``: Gb/s of its link after headers, None
    when the rate or the MTU is not known. ``sends`` and ``receives``: the least of its bounds in that role, None with
    ``link``.
    """

    name: str
    own: Mapping[str, Any]
    mtu: int | None
    link: float | None
    sends: _Bound | None
    receives: _Bound | None


def side_of(
    rail: Mapping[str, Any], name: str, side: Mapping[str, Any], *, planned_mtu: int | None, asked: Asked
) -> Side:
    """Return what a side carries on a rail.

    ``rail``: the plan's rail; its ``speed`` is the rate that links are meant to have, None if the intent has none.
    ``side``: its expectation of the plan: {rate, mtu, floor, tolerance}, optionally bidirectional, latency_us, pcie
    {speed, width, max_payload, ports}, uplinks (plan/uplinks.py), vf_rate, kinds {kind: what differs for it}, gpu (path
    class) when it works in GPU memory, and described_rate, what the RDMA device says of itself, which stands in for a
    rate that the plan does not know, and links, the number of members of a bond. Rates in Gb/s. coding: the share of
    the rate that carries data (link_rates.py). ``planned_mtu``: the RDMA MTU that tests ask for.
    """
    own = _of_kind(side, asked.kind)
    layer = rail.get("link_layer") or "ethernet"
    mtu = planned_mtu or rdma_mtu(own.get("mtu"), layer) or rdma_mtu(rail.get("mtu"), layer)
    rate = own.get("rate") or own.get("described_rate")
    if rate is None or mtu is None:
        return Side(name, own, mtu, None, None, None)
    share = efficiency(mtu, layer, asked.headers) * own.get("coding", 1.0)
    at = f"at RDMA MTU {mtu}"
    bounds = [_Bound(rate * share, "link", f"{rate:g} Gb/s link of {name} {at}")]
    meant = rail.get("speed")
    if meant is not None and meant < rate:
        # Something on the way may limit what a port carries; its own rate stays what no reading can exceed.
        bounds.append(_Bound(meant * share, "link", f"{meant:g} Gb/s of link_speed for the link of {name} {at}"))
    bounds += _pcie_bound(name, own, asked.together, port_rate=rate)
    receives = min(bounds)
    # A limit of a VF holds for what it sends.
    if own.get("vf_rate"):
        bounds.append(_Bound(own["vf_rate"] * share, "vf", f"{own['vf_rate']:g} Gb/s limit of a VF of {name} {at}"))
    sends = min(bounds)
    # The queue pairs of a test can use all members of a bond; none of them is promised.
    link = rate * share * own.get("links", 1)
    return Side(name, own, mtu, link, sends, sends if asked.bidirectional else receives)


def expect(rail: Mapping[str, Any], sides: Sequence[Side], *, asked: Asked) -> Expectation:
    """Return what a pair must reach on a rail of the plan. ``sides``: the client first; in a star its centre alone."""
    if KINDS[asked.kind].latency:
        return _latency(side.own for side in sides)
    floors = [side.own["floor"] for side in sides if side.own.get("floor") is not None]
    if not floors:
        return _computed(sides, asked)
    # A pair is as fast as its slower end: the end without a floor may be the slower one.
    others = [side for side in sides if side.own.get("floor") is None]
    computed = _computed(others, asked) if others else None
    if computed and computed.least is not None and computed.least < min(floors):
        return computed
    return _of_floor(rail, sides, asked, floor=min(floors))


def _of_floor(rail: Mapping[str, Any], sides: Sequence[Side], asked: Asked, *, floor: float) -> Expectation:
    """Return the expectation where a floor decides: what the known links carry stays its ceiling.

    What an RDMA device says of itself is none (soft-RoCE says 2.5 or 10 whatever is underneath), and a rate below the
    floor is not believed by whoever gave the floor.
    """
    layer = rail.get("link_layer") or "ethernet"
    ways = 2 if asked.bidirectional else 1
    links = [
        (
            _link_of(side.own) * ways * (efficiency(side.mtu, layer) if side.mtu else 1),
            side.name,
            side.own["rate"],
        )
        for side in sides
        if side.own.get("rate") is not None
    ]
    ceiling, name, rate = min(links, default=(None, "", 0.0))
    why = "floor of the inventory"
    if ceiling is None or floor <= ceiling:
        return Expectation(floor, "floor", ceiling, why)
    doubt = f"the floor of {floor:.3g} Gb/s is above the {ceiling:.3g} Gb/s of the {rate:g} Gb/s link of {name}"
    return Expectation(floor, "floor", None, why, doubt=doubt)


def _link_of(own: Mapping[str, Any]) -> float:
    return float(own["rate"]) * float(own.get("coding", 1.0)) * int(own.get("links", 1))


def _of_kind(side: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    differs = side.get("kinds", {}).get(kind)
    return {**side, **differs} if differs else side


def _latency(sides: Iterable[Mapping[str, Any]]) -> Expectation:
    # No physics gives a bound that holds for every fabric: a limit is the user's, or there is none.
    limits = [side["latency_us"] for side in sides if side.get("latency_us") is not None]
    if limits:
        return Expectation(None, "limit", None, "latency_us of the inventory", max(limits), "us")
    return Expectation(None, "fleet", None, "latency_us is not set; only outliers are reported", None, "us")


def _computed(sides: Sequence[Side], asked: Asked) -> Expectation:
    senders = {sender for sender, _receiver in KINDS[asked.kind].ways(sides[0].name, sides[-1].name)}
    links, bounds = [], []
    for side in sides:
        limit = side.sends if side.name in senders else side.receives
        if side.link is None or limit is None:
            return _unknown(f"the link rate or MTU of {side.name} is not known; {FLOOR_HINT}")
        links.append(side.link)
        bounds.append(limit)
    if asked.oversubscribed > 1:
        bounds.append(_uplinks_bound(min(links), asked))
    bound = _to_gpu_memory(min(bounds), sides, asked.gpu_paths)
    if isinstance(bound, Expectation):
        return bound
    return _shared(bound, min(links), sides, bidirectional=asked.bidirectional)


def _uplinks_bound(link: float, asked: Asked) -> _Bound:
    """Return what uplinks of switches leave for a pair while all hosts use them."""
    rate = link / asked.oversubscribed
    what = f"{rate:.3g} Gb/s that uplinks oversubscribed {asked.oversubscribed:g}:1 between {asked.between} leave"
    return _Bound(rate, "uplinks", what)


def _shared(bound: _Bound, link: float, sides: Sequence[Side], *, bidirectional: bool) -> Expectation:
    """Return the share of a bound that must be reached; both ways together twice a link can be reached."""
    key, ways, of = ("bidirectional", 2, "twice the") if bidirectional else ("tolerance", 1, "the")
    share = min([side.own.get(key, 1.0) for side in sides])
    why = f"{share * 100:g} % of {of} {bound.what}"
    return Expectation(bound.rate * ways * share, bound.by, link * ways, why)


def _pcie_bound(name: str, side: Mapping[str, Any], together: bool, *, port_rate: float) -> list[_Bound]:
    pcie = side.get("pcie")
    if not pcie or not pcie.get("speed") or not pcie.get("width"):
        return []
    links = [(name, pcie, pcie.get("ports", 1))]
    links += [(f"{name} at {link['pci']}", link, len(link["rails"])) for link in side.get("uplinks", ())]
    bounds = []
    for place, link, rails in links:
        ports, payload = (rails if together else 1), pcie.get("max_payload")
        rate, words, at = _slot(link["speed"], link["width"], payload, ports=ports, port_rate=port_rate)
        bounds.append(_Bound(rate, "pcie", f"{words} of {place} {at}"))
    return bounds


# A fleet has few kinds of slots.
@lru_cache(maxsize=1024)
def _slot(speed: float, width: int, payload: int | None, *, ports: int, port_rate: float) -> tuple[float, str, str]:
    """Return Gb/s of a slot for one of its ports, and the words for it before and after the host's name."""
    rate = pcie_rate(speed, width, payload) / ports
    at = f"MPS {payload}" if payload else f"MPS {USUAL_PAYLOAD}, which is assumed"
    at += f", shared by {ports} rails" if ports > 1 else ""
    return rate, f"{pcie_link(speed, width)} link", f"at {at} ({rate:.3g} Gb/s on a {port_rate:g} Gb/s port)"


def _to_gpu_memory(bound: _Bound, sides: Sequence[Side], given: Mapping[str, float | None]) -> _Bound | Expectation:
    """Return the bound for GPU memory; the bound itself when no side works in it."""
    paths = [(side.name, side.own["gpu"]) for side in sides if side.own.get("gpu")]
    shares = []
    for name, path in paths:
        share = given[path] if given.get(path) is not None else GPU_PATHS.get(path)
        if share is None:
            hint = f"give rdma_fabric.thresholds.gpu_paths.{path}"
            return _unknown(f"NIC and GPU of {name} meet at {path}, for which no usual rate is known; {hint}")
        shares.append((share, name, path))
    if not shares or min(shares)[0] == 1.0:
        return bound
    share, name, path = min(shares)
    what = f"{share * 100:g} % that GPU memory by {path} of {name} gets of the {bound.what}"
    return _Bound(bound.rate * share, "gpu", what)


def _unknown(why: str) -> Expectation:
    return Expectation(None, "unknown", None, why)


def described_rate(text: str | None) -> float | None:
    """Return Gb/s of an RDMA port's ``rate`` file (``100 Gb/sec (4X EDR)``); None when it has no number."""
    return leading_number(text)
