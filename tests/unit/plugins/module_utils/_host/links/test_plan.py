"""Plans for links, by properties: what was reached is not changed again, and everything comes back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.inventory import HostInventory
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.rail_ports import Rail, Way
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import plan as links_plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import reload
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links.plan import Have, LinkPlan, Wish

PORTS = ("0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0")
RULES = {"arp_announce": "0", "arp_ignore": "0", "rp_filter": "1"}
SERVICES = {"networkd": ("systemd-networkd",), "networkmanager": ("NetworkManager",), "netplan": ("systemd-networkd",)}


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> HostInventory:
    with pytest.MonkeyPatch.context() as patch:
        host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path_factory.mktemp("host"), patch)
        host.idle()
        return host.inventory()


def untouched(inventory: HostInventory) -> Have:
    netdevs = [port.netdev.name for port in inventory.ports if port.netdev]
    return Have({}, {}, {}, {}, {"/etc/netplan/50-mine.yaml": ""}, dict.fromkeys(netdevs, RULES), (), ())


def reached(inventory: HostInventory, plan: LinkPlan) -> tuple[HostInventory, Have]:
    """The host after a plan was carried out."""
    after = plan.change.after
    ports = []
    sysctl: dict[str, Any] = {}
    for port in inventory.ports:
        state = after["links"].get(port.pci)
        link = port.netdev
        if link and state:
            sysctl[link.name] = state["sysctl"]
            link = dataclasses.replace(link, mtu=state["mtu"], up=state["up"], addresses=tuple(state["addresses"]))
        elif link:
            sysctl[link.name] = RULES
        ports.append(dataclasses.replace(port, netdev=link))
    have = dataclasses.replace(
        untouched(inventory),
        own=after["files"],
        sysctl=sysctl,
        routing=tuple(after["routing"]),
        active=tuple(after["connections"]),
    )
    configured = {pci: tuple(entry["set"]["addresses"]) for pci, entry in plan.record.items()}
    return dataclasses.replace(inventory, ports=tuple(ports), configured=configured), have


@st.composite
def fabrics(draw: st.DrawFn) -> tuple[tuple[Rail, ...], str, str]:
    """Rails, a network manager, and what is asked of source routing."""
    manager = draw(st.sampled_from(sorted(SERVICES)))
    subnets = draw(st.lists(st.integers(0, 1), min_size=1, max_size=len(PORTS)))
    # Only systemd-networkd can be told to keep addresses that no file gives.
    keeps = [manager == "networkd" and draw(st.booleans()) for _subnet in subnets]
    versions = draw(st.sampled_from(["4", "6", "46"]))
    rails = []
    for n, (subnet, keep) in enumerate(zip(subnets, keeps)):
        known = {"4": f"10.0.{subnet}.{n + 1}/24", "6": f"fd00:{subnet}::{n + 1:x}/64"}
        first, *more = [None] if keep else [known[version] for version in versions]
        ipv6 = Way(more[0]) if more and more[0] else None
        rails.append(Rail(f"rail{n}", PORTS[n], "mlx5_core", f"rail{n}", first, 9000, ipv6=ipv6))
    return tuple(rails), manager, draw(st.sampled_from(["auto", "always", "never"]))


@given(first=fabrics(), second=fabrics())
def test_what_was_reached_stays_and_everything_comes_back(
    inventory: HostInventory, first: tuple[Any, ...], second: tuple[Any, ...]
) -> None:
    running = tuple(sorted({*SERVICES[first[1]], *SERVICES[second[1]]}))
    host = dataclasses.replace(inventory, managers=running)
    have, record = untouched(host), {}
    for rails, manager, routing in (first, second):
        plan = links_plan.plan_links(host, rails, record, have=have, wish=Wish(manager, routing, "/etc"))
        host, have = reached(host, plan)
        record = plan.record
        again = links_plan.plan_links(host, rails, record, have=have, wish=Wish(manager, routing, "/etc"))
        assert (again.change.before, again.commands) == (again.change.after, ())
    plan = links_plan.plan_links(host, (), record, have=have, wish=Wish("auto", "auto", "/etc"))
    host, have = reached(host, plan)
    assert plan.record == {}
    assert (host.ports, have.own, have.routing, have.active) == (inventory.ports, {}, (), ())
    assert have.sysctl == untouched(inventory).sysctl


@pytest.mark.parametrize(
    "name", ["10-gpufabric-east-rail1.network", "gpufabric-east-rail1.nmconnection", "10-gpufabric-east-rail1.link"]
)
def test_a_rail_is_touched_by_its_own_files_alone(name: str) -> None:
    rails = [Rail(name, pci, "mlx5_core", "x", None, 9000) for name, pci in zip(("rail1", "east-rail1"), PORTS)]
    assert reload.touched({}, {f"/etc/{name}": ""}, rails) == {PORTS[1]}
