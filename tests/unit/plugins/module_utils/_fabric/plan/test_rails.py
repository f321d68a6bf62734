"""Finding rails, and the messages when they cannot be found."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import host_facts, port, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.intent import Intent
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.hosts import Host
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.rails import (
    check_names_free,
    find_rails,
    netdev_names,
)

MANAGEMENT = "0000:01:00.0 eno1 vendor 8086 10 Gb/s: vendor 8086 is not in rdma_fabric.select.vendors"


def host(name: str, ports: list[dict[str, Any]], rails: dict[str, str] | None = None, **facts: Any) -> Host:
    return Host(name, host_facts(1, ports=ports, **facts), True, False, None, None, rails or {})


def intent(**params: Any) -> Intent:
    return Intent.from_params({"supernet": "192.168.0.0/16", **params}, registry.names())


def two() -> list[dict[str, Any]]:
    return [rail_port(0), rail_port(1)]


def pcis(wish: Intent, *hosts: Host) -> dict[str, list[str]]:
    return {name: [p["pci"] for p in ports] for name, ports in find_rails(wish, hosts).ports.items()}


def test_ports_of_the_vendor_in_pci_order() -> None:
    found = find_rails(intent(), [host("a", two()[::-1])])
    assert found.names == ("rail0", "rail1")
    assert [p["pci"] for p in found.ports["a"]] == ["0000:18:00.0", "0000:28:00.0"]


@pytest.mark.parametrize(
    "second",
    [
        rail_port(1, duty="carries the default route (of mgmt)"),
        rail_port(1, duty="carries the ssh connection of this run"),
        rail_port(1, master="br0"),
        rail_port(1, link_layer="infiniband"),
        rail_port(1, vendor="14e4"),
    ],
)
def test_what_is_never_a_rail(second: dict[str, Any]) -> None:
    assert pcis(intent(), host("a", [rail_port(0), second])) == {"a": ["0000:18:00.0"]}


def test_selection_by_driver_and_speed() -> None:
    ports = [rail_port(0, driver="mlx4_core"), rail_port(1, max_speed=25.0), rail_port(2, speed=None), rail_port(3)]
    wish = intent(select={"drivers": ["mlx5_core"], "min_speed": 100})
    assert pcis(wish, host("a", ports)) == {"a": ["0000:38:00.0", "0000:48:00.0"]}


def test_listed_addresses_by_class_of_host() -> None:
    wish = intent(
        rails=[{"name": "x", "pci": ["0000:99:00.0", "0000:28:00.0"]}, {"name": "y", "pci": ["0000:18:00.0"]}]
    )
    assert pcis(wish, host("a", two())) == {"a": ["0000:28:00.0", "0000:18:00.0"]}


def test_named_rails_without_address_take_the_rest() -> None:
    wish = intent(rails=[{"name": "x"}, {"name": "y", "pci": ["0000:18:00.0"]}])
    assert pcis(wish, host("a", two())) == {"a": ["0000:28:00.0", "0000:18:00.0"]}


def test_a_host_of_its_own() -> None:
    own = host("b", two(), rails={"rail0": "0000:28:00.0"})
    assert pcis(intent(), host("a", two()), own) == {
        "a": ["0000:18:00.0", "0000:28:00.0"],
        "b": ["0000:28:00.0", "0000:18:00.0"],
    }


@pytest.mark.parametrize(
    ("wish", "hosts", "message"),
    [
        (
            {},
            [host("a", two()), host("b", two()), host("c", [rail_port(1)])],
            "hosts do not agree on the number of rails: 2 on 2 of 3 hosts, but 1 on c "
            f"({MANAGEMENT}; 0000:28:00.0 enp40s0np0 vendor 15b3 400 Gb/s). Set rdma_fabric.rail_count, list PCI "
            "addresses "
            "in rdma_fabric.rails, or change rdma_fabric.select. To report ports that single hosts lack as no_data, "
            "set rdma_fabric.absent_hosts: report",
        ),
        (
            {"rail_count": 2},
            [host("a", two()), host("c", [rail_port(1)])],
            f"not every rail has a port on every host. c: 1 ports match for rail0, rail1 (it has {MANAGEMENT}; "
            "0000:28:00.0 enp40s0np0 vendor 15b3 400 Gb/s). List the ports in rdma_fabric.rails[].pci or "
            "rdma_host.rails, or "
            "change rdma_fabric.select",
        ),
        (
            {"rail_count": 1},
            [host("a", two())],
            f"rdma_fabric.rail_count is 1, but more ports than that match rdma_fabric.select: a has {MANAGEMENT}; "
            "0000:18:00.0 "
            "enp24s0np0 vendor 15b3 400 Gb/s; 0000:28:00.0 enp40s0np0 vendor 15b3 400 Gb/s. Narrow the "
            "selection, or list PCI "
            "addresses in rdma_fabric.rails",
        ),
        (
            {},
            [host("a", [])],
            f"no port can be a rail (rdma_fabric.select: vendors 15b3): a has {MANAGEMENT}. Change "
            "rdma_fabric.select, or list "
            "PCI addresses in rdma_fabric.rails",
        ),
        (
            {"rails": [{"name": "x", "pci": ["0000:99:00.0", "0000:98:00.0"]}]},
            [host("a", [])],
            "not every rail has a port on every host. a: x: no port 0000:99:00.0 or 0000:98:00.0 (it has "
            f"{MANAGEMENT}). List "
            "the ports in rdma_fabric.rails[].pci or rdma_host.rails, or change rdma_fabric.select",
        ),
        (
            {"rails": [{"name": "x", "pci": ["0000:01:00.0"]}]},
            [host("a", [])],
            "not every rail has a port on every host. a: x: 0000:01:00.0 carries the default route (it has "
            f"{MANAGEMENT}). List "
            "the ports in rdma_fabric.rails[].pci or rdma_host.rails, or change rdma_fabric.select",
        ),
        (
            {"rails": [{"name": "x", "pci": ["0000:18:00.0"]}, {"name": "y", "pci": ["0000:18:00.0"]}]},
            [host("a", [rail_port(0, link_layer="infiniband", max_speed=None)], rails={"z": "0000:18:00.0"})],
            'not every rail has a port on every host. a: rdma_host.rails names "z", which is not a rail, x: '
            "0000:18:00.0 is an "
            "InfiniBand port, which cannot carry macvlan, y: 0000:18:00.0 is an InfiniBand port, which cannot "
            "carry macvlan, "
            f"0000:18:00.0 is given to more than one rail (it has {MANAGEMENT}; 0000:18:00.0 enp24s0np0 vendor 15b3). "
            "List the ports in rdma_fabric.rails[].pci or rdma_host.rails, or change rdma_fabric.select",
        ),
    ],
)
def test_no_rail(wish: dict[str, Any], hosts: list[Host], message: str) -> None:
    with pytest.raises(InputError) as caught:
        find_rails(intent(**wish), hosts)
    assert str(caught.value) == message


def test_names_are_the_rails_or_already_equal() -> None:
    hosts = [host("a", two()), host("b", two())]
    rails = find_rails(intent(), hosts)
    assert netdev_names(intent(), rails) == ("rail0", "rail1")
    assert netdev_names(intent(rename=False), rails) == ("enp24s0np0", "enp40s0np0")


def test_names_that_cannot_be_equal() -> None:
    hosts = [
        host("a", [rail_port(0)]),
        host("b", [rail_port(0, netdev="ens1")]),
        host("c", [rail_port(0, netdev=None)]),
    ]
    wish = intent(rename=False)
    with pytest.raises(InputError) as caught:
        netdev_names(wish, find_rails(wish, hosts))
    assert str(caught.value) == (
        "names must be equal on all hosts when rdma_fabric.rename is false: rail0 is enp24s0np0 on a; ens1 on b; "
        "without a "
        "netdev (no driver) on c. Set rename: true"
    )


def test_a_name_that_another_interface_has() -> None:
    hosts = [host("a", [rail_port(0), port("0000:70:00.0", "rail0", vendor="8086")])]
    rails = find_rails(intent(), hosts)
    with pytest.raises(InputError) as caught:
        check_names_free(hosts, rails, rails.names)
    assert str(caught.value) == (
        "names of rails are taken by other interfaces, so they cannot be equal on all hosts: a has rail0 at "
        "0000:70:00.0. "
        "Name the rails otherwise in rdma_fabric.rails"
    )
