# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Links that came up below what NIC, card or the rest of the rail can do: known before any packet is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..._common.units import leading_number, natural
from .link_rates import efficiency, pcie_link, pcie_rate

Side = Mapping[str, Any]
Sides = Mapping[str, Side]
Described = Mapping[str, Mapping[str, str]]


def find(plan: Mapping[str, Any], described: Mapping[str, Described] | None = None) -> list[dict[str, Any]]:
    """Return ``links`` of the report: {host, rail, kind (rate, pcie, mtu or pfc), found, expected, text}, all texts.

    Rates and PCIe links are those of the plan's expectations: facts of the hosts of this run. MTUs change between plan
    and measurement, so they come from ``described``: host name -> rail -> what its tester said (evidence.Endpoint).
    What is not known is no finding.
    """
    found: list[dict[str, Any]] = []
    for rail in plan["rails"]:
        sides = plan["expectations"].get(rail["name"], {})
        told = {host: rails.get(rail["name"], {}) for host, rails in (described or {}).items()}
        every = (
            *_rates(rail, sides),
            *_pcie_links(rail, sides),
            *_uplinks(rail, sides),
            *_mtus(rail, sides, told),
            *_flow_control(rail, plan),
        )
        for host, kind, own, expected, text in every:
            found.append(_finding(host, rail["name"], kind, found=own, expected=expected, text=text))
    return found


def _finding(host: str, rail: str, kind: str, *, found: str, expected: str, text: str) -> dict[str, Any]:
    whole = f"{host} {rail}: {text}"
    return {"host": host, "rail": rail, "kind": kind, "found": found, "expected": expected, "text": whole}


_Found = Iterator[tuple[str, str, str, str, str]]


def usual(values: Iterable[Any]) -> Any:
    """Return the most frequent value, the largest of equally frequent ones; None without a known value."""
    counts = Counter(value for value in values if value is not None)
    return max(counts, key=lambda value: (counts[value], value)) if counts else None


def _rates(rail: Mapping[str, Any], sides: Sides) -> _Found:
    most = usual(side.get("rate") for side in sides.values())
    for host, side in sides.items():
        rate = side.get("rate")
        if rate is None:
            continue
        best, who = _best_rate(rail.get("speed"), side.get("max_rate"), most)
        if rate < best:
            text = f"the link came up at {rate:g} Gb/s, {who} {best:g} Gb/s: check cable, transceiver, switch port "
            yield host, "rate", f"{rate:g} Gb/s", f"{best:g} Gb/s", text + "and autonegotiation"


def _best_rate(meant: float | None, nic: float | None, most: float) -> tuple[float, str]:
    """Return the rate in Gb/s that a port should have, and who says so: the intent, else its NIC or the rail."""
    if meant is not None:
        return meant, "rdma_fabric.link_speed is"
    if nic is not None and nic > most:
        return nic, "its NIC supports"
    return most, "most ports of the rail run at"


def _pcie_links(rail: Mapping[str, Any], sides: Sides) -> _Found:
    links = {host: (side["pcie"]["speed"], side["pcie"]["width"]) for host, side in sides.items() if side.get("pcie")}
    most = usual((speed * width, speed, width) for speed, width in links.values())
    alike = len(set(links.values())) == 1
    for host, (speed, width) in links.items():
        pcie = sides[host]["pcie"]
        card = (pcie.get("max_speed") or speed, pcie.get("max_width") or width)
        best = card if speed < card[0] or width < card[1] else most[1:]
        if speed * width >= best[0] * best[1]:
            continue
        enough, told = _carries(rail, sides[host], pcie, ports=pcie.get("ports", 1))
        # A fleet of cards in slots that are slower but fast enough is no fault of any link.
        if alike and enough:
            continue
        own, other = pcie_link(speed, width), pcie_link(*best)
        source = "the card supports" if best == card else "most ports of the rail have"
        yield host, "pcie", own, other, f"{own}, {source} {other}: {told}; check slot, riser and BIOS"


def _uplinks(rail: Mapping[str, Any], sides: Sides) -> _Found:
    """Yield PCIe links above the ports that are slower than both of their ends support, or than on most hosts."""
    slowest = {
        host: min(side["uplinks"], key=lambda link: link["speed"] * link["width"])
        for host, side in sides.items()
        if side.get("uplinks")
    }
    # A host without such links has none that is slower than the port's own.
    links = {host: slowest.get(host) or side.get("pcie") for host, side in sides.items()}
    shapes = {host: (link["speed"], link["width"]) for host, link in links.items() if link}
    most = usual((speed * width, speed, width) for speed, width in shapes.values())
    alike = len(set(shapes.values())) == 1
    for host, link in slowest.items():
        speed, width = shapes[host]
        ends = (link.get("best_speed") or speed, link.get("best_width") or width)
        best = ends if ends > (speed, width) else most[1:]
        enough, told = _carries(rail, sides[host], link, ports=len(link["rails"]))
        if speed * width >= best[0] * best[1] or (alike and enough):
            continue
        own, other = pcie_link(speed, width), pcie_link(*best)
        source = "both of its ends support" if best == ends else "most hosts of the rail have"
        what = f"{own} at the bridge {link['pci']} above the port, {source} {other}"
        yield host, "pcie", own, other, f"{what}: {told}; check riser, backplane and BIOS"


def _carries(rail: Mapping[str, Any], side: Side, link: Mapping[str, Any], *, ports: int) -> tuple[bool, str]:
    """Return whether a PCIe link carries the rate of a port when ``ports`` use it, and a sentence that says so."""
    pcie, rate, mtu = side.get("pcie") or {}, side.get("rate"), side.get("mtu")
    carried = pcie_rate(link["speed"], link["width"], pcie.get("max_payload")) / ports
    if rate is None or mtu is None:
        return False, f"it carries {carried:.3g} Gb/s"
    needed = rate * efficiency(mtu, rail.get("link_layer") or "ethernet")
    if carried >= needed:
        return True, f"enough for its {rate:g} Gb/s port"
    return False, f"it carries {carried:.3g} Gb/s, its port needs {needed:.3g} Gb/s"


def _mtus(rail: Mapping[str, Any], sides: Sides, told: Described) -> _Found:
    for host, words in told.items():
        planned = sides.get(host, {}).get("mtu")
        mtu = words.get("mtu", "")
        if planned and mtu.isdigit() and int(mtu) < planned:
            # The port and its switch port agree on it when the subnet manager configures them; no partition changes it.
            infiniband = "check the MTU that the port (max_mtu of ibv_devinfo) and its switch port support"
            ethernet = f"check for an MTU below {rail['mtu']} on host and switch"
            action = infiniband if rail.get("link_layer") == "infiniband" else ethernet
            text = f"RDMA MTU {mtu}, expected {planned}: {action}"
            yield host, "mtu", mtu, str(planned), text


def _flow_control(rail: Mapping[str, Any], plan: Mapping[str, Any]) -> _Found:
    """Yield switch ports without flow control for the traffic class of applications and tests."""
    entry = plan.get("tests", {}).get("traffic", {}).get(rail["name"], {})
    if entry.get("priority") is None or entry["priority"] not in (entry["pfc"] or ()):
        return
    for host, own in plan.get("switches", {}).get(rail["name"], {}).items():
        if entry["priority"] not in own.get("pfc", [entry["priority"]]):
            known, wanted = _priorities(own["pfc"]), _priorities(entry["pfc"])
            told = f"{own['switch']} port {own['port']} has flow control for {known} (DCBX by LLDP)"
            text = f"{told}, the host for {wanted}, and traffic class {entry['traffic_class']} has priority"
            text = f"{text} {entry['priority']}: the switch can drop its packets. Enable PFC for this priority there"
            yield host, "pfc", known, wanted, text


def _priorities(values: Iterable[int]) -> str:
    found = [str(value) for value in values]
    return f"priority {', '.join(found)}" if found else "no priority"


def below(rail: Mapping[str, Any], side: Side, link: Mapping[str, str]) -> list[str]:
    """Return in what a link is below the plan after a test, as parts of a sentence; what is not known is no finding.

    ``link``: {rate, mtu, pcie} as a tester reads them from sysfs ("100 Gb/sec (4X EDR)", "9000", "16.0 GT/s PCIe x8").
    A rate means nothing where a floor was given, and the MTU of IPoIB nothing for RDMA.
    """
    told = []
    rate = leading_number(link.get("rate"))
    if rate and side.get("floor") is None and rate < (side.get("rate") or 0):
        told.append(f"the link is at {rate:g} Gb/s after the test, {side['rate']:g} Gb/s in the plan")
    mtu = natural(link.get("mtu")) if rail.get("link_layer") == "ethernet" else None
    if mtu is not None and mtu < (rail.get("mtu") or 0):
        told.append(f"MTU {mtu} after the test, {rail['mtu']} in the plan")
    planned = side.get("pcie") or {}
    speed, width = leading_number(link.get("pcie")), natural(link.get("pcie", "").rpartition(" x")[2])
    if speed and width and speed * width < planned.get("speed", 0) * planned.get("width", 0):
        was = pcie_link(planned["speed"], planned["width"])
        told.append(f"{pcie_link(speed, width)} after the test, {was} in the plan")
    return told
