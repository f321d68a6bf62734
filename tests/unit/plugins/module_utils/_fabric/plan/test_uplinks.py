"""PCIe links that rails share on their way to the processor, by the shapes of known servers."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import uplinks

GEN4, GEN5, GEN6 = 16.0, 32.0, 64.0


def bridge(pci: str, speed: float | None, width: int | None = 16, most: float | None = None) -> dict[str, Any]:
    return {"pci": pci, "speed": speed, "width": width, "max_speed": most or speed, "max_width": 16}


def port(pci: str, speed: float, *above: dict[str, Any], most: float | None = None) -> dict[str, Any]:
    own = {"speed": speed, "width": 16, "max_speed": most or speed, "max_width": 16, "max_payload": 256}
    return {"pci": pci, "pcie": own, "uplinks": list(above)}


def switched(root: float, *rails: str, down: float | None = None) -> list[dict[str, Any]]:
    """Return the ports of NICs behind one switch, whose link to the processor runs at ``root`` GT/s."""
    above = (bridge("0000:00:01.0", root), bridge("0000:01:00.0", root))
    speed = down or root
    return [
        port(f"0000:{at + 16:02x}:00.0", speed, *above, bridge(f"0000:02:0{at}.0", speed)) for at, _ in enumerate(rails)
    ]


def found(ports: list[dict[str, Any] | None], *avoided: tuple[str, ...]) -> list[list[tuple[str, float, list[str]]]]:
    rails = [f"rail{at}" for at, _ in enumerate(ports)]
    skipped = avoided or ((),) * len(ports)
    return [[(x["pci"], x["speed"], x["rails"]) for x in own] for own in uplinks.uplinks(ports, rails, skipped)]


def test_a_nic_with_a_way_of_its_own_has_no_link_to_name() -> None:
    """DGX and HGX H100 and H200: nothing is shared, and no link above is slower than the NIC's own."""
    assert found([port("0000:18:00.0", GEN5, bridge("0000:15:01.0", GEN5))]) == [[]]


def test_two_nics_behind_one_switch_share_its_link_which_is_named_once() -> None:
    """DGX A100; root port and upstream port of the switch are the ends of one link."""
    shared = [("0000:00:01.0", GEN4, ["rail0", "rail1"])]
    assert found(list(switched(GEN4, "a", "b"))) == [shared, shared]


def test_a_link_slower_than_the_nics_own_is_named_although_nobody_shares_it() -> None:
    """ConnectX-8: Gen6 inside the NIC, Gen5 to the processor."""
    assert found(list(switched(GEN5, "a", down=GEN6))) == [[("0000:00:01.0", GEN5, ["rail0"])]]


def test_ports_of_one_card_share_its_link() -> None:
    above = bridge("0000:00:01.0", GEN4)
    ports = [port("0000:18:00.0", GEN4, above), port("0000:18:00.1", GEN4, above)]
    assert found(ports) == [[("0000:00:01.0", GEN4, ["rail0", "rail1"])]] * 2
    alone = [port("0000:18:00.0", GEN4), port("0000:18:00.1", GEN4)]
    assert found(alone) == [[("0000:18:00", GEN4, ["rail0", "rail1"])]] * 2


def test_what_is_not_known_is_no_link() -> None:
    ports = [port("0000:18:00.0", GEN5, bridge("0000:15:01.0", None, None)), None]
    assert found(ports) == [[], []]


def test_bridges_that_packets_to_a_gpu_do_not_cross_count_for_nothing() -> None:
    ports = switched(GEN4, "a", "b")
    crossed = ("0000:00:01.0", "0000:01:00.0")
    assert found(list(ports), crossed, crossed) == [[], []]


@pytest.mark.parametrize(
    ("above", "best"),
    [
        # The root port and the NIC support more than their link has.
        ((bridge("0000:00:01.0", GEN4, most=GEN5),), {"best_speed": GEN5, "best_width": 16}),
        # A bridge whose other end is not known.
        ((bridge("0000:00:01.0", GEN4, most=GEN5), bridge("0000:01:00.0", GEN5)), {}),
    ],
)
def test_what_both_ends_of_a_link_support(above: tuple[dict[str, Any], ...], best: dict[str, Any]) -> None:
    ports = [port("0000:18:00.0", GEN4, *above, most=GEN5), port("0000:19:00.0", GEN4, *above, most=GEN5)]
    (first, *_), _second = uplinks.uplinks(ports, ["rail0", "rail1"], [(), ()])
    assert {key: first[key] for key in first if key.startswith("best")} == best


def plan_of(speed: float, rates: dict[str, float | None]) -> dict[str, Any]:
    link = {"pci": "0000:00:01.0", "speed": speed, "width": 16, "rails": list(rates)}
    sides = {rail: {"h1": {"rate": rate, "mtu": 4096, "uplinks": [link]}} for rail, rate in rates.items()}
    return {"rails": [{"name": rail, "link_layer": "ethernet"} for rail in rates], "expectations": sides}


@pytest.mark.parametrize(
    ("speed", "rates", "shared"),
    [
        (GEN4, {"rail0": 200.0, "rail1": 200.0}, [["rail0", "rail1"]]),
        (GEN4, {"rail0": 100.0, "rail1": 100.0}, []),
        (GEN4, {"rail0": 400.0}, []),
        # A rate that is not known yet may be any.
        (GEN4, {"rail0": 100.0, "rail1": None}, [["rail0", "rail1"]]),
        (GEN5, {"rail0": 400.0, "rail1": 400.0, "rail2": 400.0}, [["rail0", "rail1", "rail2"]]),
    ],
)
def test_rails_share_a_link_that_cannot_carry_them_all(
    speed: float, rates: dict[str, float | None], shared: list[list[str]]
) -> None:
    assert uplinks.sharing(plan_of(speed, rates)).get("sharing", []) == shared


def test_the_plan_tells_who_shares() -> None:
    shared = uplinks.sharing(plan_of(GEN4, {"rail0": 200.0, "rail1": 200.0}))
    (text,) = uplinks.told(shared, {})
    assert text.startswith("rail0 and rail1 share a PCIe link that cannot carry them at the same time")
    assert list(uplinks.told({}, {})) == []


COMMON = ("pci0000:00", "0000:00:01.0", "0000:01:00.0")


@pytest.mark.parametrize(
    ("above", "below", "ats", "direct", "redirected"),
    [
        (None, None, None, None, False),
        (False, False, False, False, False),
        (False, True, False, True, True),
        (False, True, None, False, True),
        (False, True, True, True, False),
        # Translated requests are redirected too, unless the switch port lets them pass.
        (False, True, True, False, True),
        # Facts of earlier versions do not know it.
        (False, True, True, None, False),
        # The bridges above NIC and GPU alike are not on their way.
        (True, False, False, False, False),
    ],
)
def test_acs_below_the_common_bridge_redirects_unless_translated_requests_pass(
    above: bool | None, below: bool | None, ats: bool | None, direct: bool | None, redirected: bool
) -> None:
    links = [{"pci": pci, "redirects": above} for pci in COMMON[1:]]
    own = {"uplinks": [*links, {"pci": "0000:02:00.0", "redirects": below, "translated_direct": direct}], "ats": ats}
    assert uplinks.redirects(own, COMMON) is redirected


def test_facts_of_earlier_versions_do_not_know_acs() -> None:
    assert uplinks.redirects({"uplinks": [{"pci": "0000:02:00.0"}]}, COMMON) is False
