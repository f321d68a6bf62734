# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCIe links that rails of a host share on their way to the processor, and which rails can be tested at once.

A packet between a NIC and host memory crosses every link from the NIC to the root port. Each bridge of that way
reports one of these links, whichever of its two sides it is, so no type of bridge has to be known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..._common.reader import some
from .link_rates import efficiency, pcie_rate

Port = Mapping[str, Any]
Link = dict[str, Any]
# A link and what is at its other end report alternately, beginning with the root port.
_ENDS = 2


def uplinks(ports: Sequence[Port | None], rails: Sequence[str], avoided: Sequence[Collection[str]]) -> list[list[Link]]:
    """Return for each port of a host the links above it that can limit it, as ``side["uplinks"]`` of the plan.

    A link is {pci: its bridge, speed, width, best_speed, best_width: what both of its ends support, rails: the rails
    over it}. ``avoided``: for each port the bridges that its tests do not cross, as those above NIC and GPU alike.
    Links that carry as much as the port's own, for no more rails, are left out.
    """
    above = [_known(port, skipped) if port else [] for port, skipped in zip(ports, avoided)]
    users: dict[str, list[str]] = {}
    for rail, links in zip(rails, above):
        for link in links:
            users.setdefault(link["pci"], []).append(rail)
    return [
        _limiting(port, [{**link, "rails": users[link["pci"]]} for link in links]) if port else []
        for port, links in zip(ports, above)
    ]


def _known(port: Port, skipped: Collection[str]) -> list[Link]:
    chain = [*port.get("uplinks", ()), {**port["pcie"], "pci": card(port)}]
    return [
        {**{key: link[key] for key in ("pci", "speed", "width")}, **_best(chain, index)}
        for index, link in enumerate(chain)
        if link["speed"] and link["width"] and link["pci"] not in skipped
    ]


def card(port: Port) -> str:
    """Return the PCI device of a port; its functions (the ports of a card) share one PCIe link."""
    return str(port["pci"]).rpartition(".")[0]


def _best(chain: Sequence[Mapping[str, Any]], index: int) -> dict[str, Any]:
    """Return what both ends of a link support; nothing where its other end is not certain."""
    other = index ^ 1
    if len(chain) % _ENDS or other >= len(chain):
        return {}
    ends = (chain[index], chain[other])
    same = len({(end["speed"], end["width"]) for end in ends}) == 1
    if not same or not all(end["max_speed"] and end["max_width"] for end in ends):
        return {}
    return {key: min(end[f"max_{key.rpartition('_')[2]}"] for end in ends) for key in ("best_speed", "best_width")}


def _limiting(port: Port, links: Iterable[Link]) -> list[Link]:
    """Return the links that can limit a port, each once although both of its ends report it."""
    own = port["pcie"]
    least = (own["speed"] or 0) * (own["width"] or 0) or float("inf")
    found: list[Link] = []
    for link in links:
        new = all(_same(link) != _same(other) for other in found)
        if new and (link["speed"] * link["width"] < least or len(link["rails"]) > 1):
            found.append(link)
    return found


def _same(link: Link) -> tuple[Any, ...]:
    return (link["speed"], link["width"], tuple(link["rails"]))


def sharing(plan: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """Return ``sharing`` of the plan's tests: groups of rails with a PCIe link that cannot carry them all at once.

    A link of any host counts, so that all pairs are tested alike. Nothing where there is none. ``host_sharing``: the
    same on the way to host memory, where tests use GPU memory and the links differ.
    """
    found = _groups(plan, "uplinks")
    sides = [side for own in plan["expectations"].values() for side in own.values()]
    beside = _groups(plan, "host_uplinks") if any("host_uplinks" in side for side in sides) else found
    return {**({"sharing": found} if found else {}), **({"host_sharing": beside} if beside != found else {})}


def _groups(plan: Mapping[str, Any], key: str) -> list[list[str]]:
    """Return the groups of rails by the links under ``key`` of each side, or else its uplinks."""
    layers = {rail["name"]: rail.get("link_layer") or "ethernet" for rail in plan["rails"]}
    expected = plan["expectations"]
    found: set[tuple[str, ...]] = set()
    for name in layers:
        for host, side in expected.get(name, {}).items():
            for link in side.get(key, side.get("uplinks", ())):
                sides = {rail: expected[rail][host] for rail in link["rails"]}
                if len(sides) > 1 and _overloaded(link, side, sides, layers=layers):
                    found.add(tuple(sides))
    return [list(group) for group in sorted(found)]


def redirects(port: Port, common: Collection[str]) -> bool:
    """Whether ACS sends what a port has for the GPU up to the root: a bridge below those ``common`` with it redirects.

    With address translation (ATS) in use, requests are translated, and pass bridges with ACS Direct Translated P2P.
    """
    below = [link for link in port.get("uplinks", ()) if link["pci"] not in common]
    ats = port.get("ats")
    return any(link.get("redirects") and not (ats and link.get("translated_direct") is not False) for link in below)


def told(shared: Mapping[str, Sequence[Sequence[str]]], expected: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the plan warns of, for ``sharing`` of its tests and its expectations."""
    found = [
        f"{host} {rail}" for rail, sides in expected.items() for host, side in sides.items() if "redirected" in side
    ]
    if found:
        yield (
            f"PCIe ACS redirects the traffic between NIC and GPU to the processor on {some(found)}, although both are"
            " behind the same PCIe switch. Their tests from GPU memory are judged by the links to the processor, as"
            " those from host memory. Disable it with rdma_pcie_acs: true. On virtualized hosts, enable both ATS of the"
            " NIC (ATS_ENABLED) and ACS Direct Translated P2P of the switch ports (setpci)"
        )
    groups = [" and ".join(group) for group in shared.get("sharing", ())]
    if groups:
        yield (
            f"{some(groups)} share a PCIe link that cannot carry them at the same time, so applications that use all"
            " rails get less than their links carry. With tests.rails_at_once auto they are measured one at a time in"
            " each direction"
        )


def _overloaded(link: Link, side: Mapping[str, Any], sides: Mapping[str, Any], *, layers: Mapping[str, str]) -> bool:
    # A port whose rate is not known yet may have any when it is measured.
    wanted = [
        (own.get("rate") or own.get("max_rate") or float("inf")) * efficiency(own["mtu"], layers[rail])
        for rail, own in sides.items()
        if own.get("mtu")
    ]
    return sum(wanted) > pcie_rate(link["speed"], link["width"], (side.get("pcie") or {}).get("max_payload"))
