"""Automatic selection of rails: what a port carries or supports, judged per class of identical servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support import sysfs_tree
from tests.unit.support.plan_factory import configured, host_facts, port, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.fold import fold, fold_addresses
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.host_facts import HIDDEN_QUEUE_PAIRS
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.intent import Intent
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.hosts import Host
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.rails import RailMap, find_rails
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.select import foreign_uses, server_classes

NET = {"supernet": "192.168.0.0/16"}
README = {**NET, "capacity": {"hosts": 32, "pods_per_host": 2}, "operator": {"release": "26.7.1"}}
FREE = "Identical servers must have the same ports free. Free these ports, or "
CHOOSE = "choose the rails by PCI address (rdma_fabric.rails[].pci, or rdma_host.rails for one host)"


def use(kind: str, text: str) -> dict[str, str]:
    return {"kind": kind, "text": text}


def host(number: int, *ports: dict[str, Any], rails: dict[str, str] | None = None) -> Host:
    name = f"gpu-{number:02d}"
    return Host(name, host_facts(number, ports=list(ports)), True, False, None, None, rails or {})


def unknown(number: int) -> Host:
    return Host(f"gpu-{number:02d}", None, False, False, None, None, {})


def find(*hosts: Host, **fabric: Any) -> RailMap:
    return find_rails(Intent.from_params({**NET, **fabric}, registry.names()), hosts)


def chosen(*hosts: Host, **fabric: Any) -> dict[str, list[str]]:
    """Host -> the buses of its rails."""
    return {name: [port["pci"][5:7] for port in own] for name, own in find(*hosts, **fabric).ports.items()}


def left_out(*hosts: Host, **fabric: Any) -> dict[str, str]:
    (own,) = find(*hosts, **fabric).classes
    return {pci[5:7]: reason for pci, reason in own.left_out.items() if pci != "0000:01:00.0"}


def refusal(*hosts: Host, **fabric: Any) -> str:
    with pytest.raises(InputError) as caught:
        find(*hosts, **fabric)
    return str(caught.value)


def test_the_storage_ports_of_a_gpu_server_are_not_rails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch).inventory().to_dict()
    made = plan(README, {"gpu-01": {"facts": facts, "rdma_host": {}}})
    assert [(rail["rail"], rail["pci"][5:7]) for rail in made["hosts"]["gpu-01"]["rails"]] == [
        ("rail0", "18"), ("rail1", "40"), ("rail2", "4f"), ("rail3", "5e"),
        ("rail4", "9a"), ("rail5", "c0"), ("rail6", "ce"), ("rail7", "dc"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("port", "reason"),
    [
        ({"addresses": ["10.1.1.11/24"]}, "has address 10.1.1.11/24"),
        ({"addresses": ["192.168.0.1/24", "10.1.1.11/24"]}, "has address 10.1.1.11/24"),
        ({"addresses": ["2001:db8::1/64"]}, "has address 2001:db8::1/64"),
        ({"duty": "carries the default route"}, "carries the default route"),
        ({"master": "br0"}, "is a member of br0"),
        ({"link_layer": "infiniband"}, "is an InfiniBand port"),
        ({"uses": [use("route", "route to 10.8.0.0/16")]}, "has route to 10.8.0.0/16"),
        ({"uses": [use("route", "the default route")]}, "has the default route"),
        (
            {"uses": [use("route", "3 routes, e.g. to 192.168.1.0/24, 192.168.2.0/24")]},
            "has 3 routes, e.g. to 192.168.1.0/24, 192.168.2.0/24",
        ),
        ({"uses": [use("mount", "nfs4 mount /data from 10.1.1.1")]}, "carries nfs4 mount /data from 10.1.1.1"),
        ({"uses": [use("bridge", "bridge br0")]}, "carries bridge br0"),
        ({"uses": [use("bond", "bond bond1")]}, "carries bond bond1"),
        (
            {"uses": [use("vlan", "VLAN port.5"), use("address", "address 10.5.0.1/24")]},
            "carries VLAN port.5, carries address 10.5.0.1/24",
        ),
        (
            {"uses": [use("unknown", "TCP connections that cannot be read (/proc/net/tcp)")]},
            "carries TCP connections that cannot be read (/proc/net/tcp)",
        ),
        # Storage inside the supernet, by iSCSI or by NVMe over RDMA; virtual machines that have VFs of the port.
        (
            {
                "addresses": ["192.168.1.7/24"],
                "uses": [use("address", "address 192.168.1.7/24"), use("tcp", "1 TCP connection, e.g. x")],
            },
            "carries 1 TCP connection, e.g. x",
        ),
        (
            {"uses": [use("queue_pairs", "4 RDMA queue pairs of kernel module nvme_rdma")]},
            "carries 4 RDMA queue pairs of kernel module nvme_rdma",
        ),
        (
            {"uses": [use("queue_pairs", "RDMA queue pairs on VFs of qemu[1]")]},
            "carries RDMA queue pairs on VFs of qemu[1]",
        ),
        ({"max_speed": 200.0}, "it supports 200 Gb/s, the rails support 400 Gb/s"),
        ({"max_speed": 800.0}, None),
        ({"vendor": "8086"}, "vendor 8086 is not in rdma_fabric.select.vendors"),
    ],
)
def test_a_port_that_carries_anything_else_is_left_out_with_the_reason(port: dict[str, Any], reason: str) -> None:
    servers = [host(number, rail_port(0), rail_port(1, **port), rail_port(2)) for number in (1, 2)]
    if reason is None:
        assert refusal(*servers).startswith("rails cannot be chosen automatically: of the ports that can be rails 1 ")
        return
    assert left_out(*servers) == {"28": reason}
    assert chosen(*servers) == {"gpu-01": ["18", "38"], "gpu-02": ["18", "38"]}


@pytest.mark.parametrize(
    "port",
    [
        {"addresses": ["192.168.1.7/24"]},
        {"uses": [use("queue_pairs", "4 RDMA queue pairs of python3[4711]")]},
        {"uses": [HIDDEN_QUEUE_PAIRS._asdict()]},
        {"uses": [use("route", "route to 192.168.2.0/24")]},
        {"uses": [use("route", "2 routes, e.g. to 192.168.2.0/24, 192.168.3.0/24")]},
        # The present speed is no measure.
        {"speed": 100.0},
        {"speed": None},
    ],
)
def test_a_port_that_serves_the_fabric_stays_one(port: dict[str, Any]) -> None:
    assert chosen(host(1, rail_port(0), rail_port(1, **port), rail_port(2))) == {"gpu-01": ["18", "28", "38"]}


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"max_speed": None},
        {"max_speed": 100.0},
        # It waits for its address: after a boot, or without a driver.
        {"addresses": []},
        {"netdev": None, "driver": None, "addresses": []},
        # The rail's address is there, and something else, too.
        {"addresses": ["192.168.1.2/24", "10.1.1.11/24"], "uses": [use("mount", "nfs mount /a from 10.1.1.1")]},
        {"addresses": [], "uses": [use("queue_pairs", "4 RDMA queue pairs of python3[4711]")]},
        # Jobs, pods with VFs, a file system over RDMA.
        {
            "uses": [
                use("tcp", "1 TCP connection, e.g. x"),
                use("queue_pairs", "RDMA queue pairs on VFs of qemu[1]"),
                use("queue_pairs", "4 RDMA queue pairs of kernel module ko2iblnd"),
            ],
            "addresses": [],
        },
    ],
)
def test_what_the_collection_configured_stays_a_rail(other: dict[str, Any]) -> None:
    own = {"configured": configured(1, "192.168.1.2/24"), "addresses": ["192.168.1.2/24"], **other}
    ports = rail_port(0, configured=configured(0)), rail_port(1, **own), rail_port(2, configured=configured(2))
    assert chosen(host(1, *ports)) == {"gpu-01": ["18", "28", "38"]}


def railed(number: int, between: dict[str, Any], *more: dict[str, Any]) -> Host:
    """Return a host whose rails are the ports around another one."""
    ends = [
        rail_port(at, netdev=f"rail{rail}", configured=configured(rail, f"192.168.{rail}.{number}/24"),
                  addresses=[f"192.168.{rail}.{number}/24"])
        for rail, at in enumerate((0, 2))
    ]  # fmt: skip
    return host(number, ends[0], between, ends[1], *more)


NEW = "is not a rail yet, and rdma_fabric.rail_count allows no more"


USED = {"addresses": ["10.1.1.9/24"]}


@pytest.mark.parametrize(
    ("servers", "reason"),
    [
        ([railed(1, rail_port(1)), railed(2, rail_port(1))], NEW),
        ([railed(1, rail_port(1, **USED)), railed(2, rail_port(1))], NEW),
        ([railed(1, rail_port(1)), unknown(2)], NEW),
        ([railed(1, rail_port(1, **USED)), railed(2, rail_port(1, **USED))], "has address 10.1.1.9/24"),
        # A server without rails follows those of its class.
        ([railed(1, rail_port(1)), host(2, rail_port(0), rail_port(1), rail_port(2))], NEW),
    ],
    ids=["on all", "on some", "limited run", "on none", "new server"],
)
def test_storage_that_is_idle_for_a_moment_moves_no_rail(servers: list[Host], reason: str) -> None:
    """Its address is not up yet after a boot, or it is in maintenance."""
    for wish in ({}, {"rail_count": 2}):
        assert set(map(tuple, chosen(*servers, **wish).values())) == {("18", "38")}
    assert left_out(*servers) == {"28": reason}


def test_a_new_rail_must_be_asked_for_and_renumbers_none() -> None:
    used, more = rail_port(1, addresses=["10.1.1.9/24"]), rail_port(3)
    assert chosen(railed(1, used, more)) == {"gpu-01": ["18", "38"]}
    assert chosen(railed(1, used, more), rail_count=3) == {"gpu-01": ["18", "38", "48"]}
    assert refusal(railed(1, rail_port(1)), railed(2, rail_port(1)), rail_count=3) == (
        "rails that are configured would change. gpu-[01-02]: 0000:38:00.0 was configured as rail1 and would be rail2. "
        f"Repair the host, or {CHOOSE}"
    )
    rails = [{"name": f"rail{rail}", "pci": [f"0000:{bus}:00.0"]} for rail, bus in enumerate(("18", "28", "38"))]
    assert chosen(railed(1, rail_port(1)), rails=rails) == {"gpu-01": ["18", "28", "38"]}


def test_a_configured_host_that_lost_a_card_keeps_its_rails_or_is_refused() -> None:
    ports = [rail_port(at, configured=configured(at)) for at in range(4)]
    lost = Host("gpu-02", host_facts(2, ports=[ports[0], *ports[2:]], lost_rails={"rail1": ports[1]["pci"]}), True,
                False, None, None, {})  # fmt: skip
    for run in ([lost], [lost, unknown(3)]):
        assert refusal(*run) == (
            "rails that are configured would change. gpu-02: 0000:38:00.0 was configured as rail2 and would be rail1; "
            "gpu-02: 0000:48:00.0 was configured as rail3 and would be rail2; gpu-02: 0000:28:00.0 was configured as "
            f"rail1 and would be no rail: the port is missing. Repair the host, or {CHOOSE}"
        )
    # The last rail: no other is renumbered, and still it is not forgotten.
    last = host_facts(2, ports=ports[:3], lost_rails={"rail3": ports[3]["pci"]})
    assert "rail3 and would be no rail" in refusal(Host("gpu-02", last, True, False, None, None, {}))


def test_a_port_that_has_the_name_of_a_rail_already_gets_no_other() -> None:
    """A preparation ended after it named the ports, for a reboot; storage is not up yet when the next one begins."""
    ports = rail_port(0, netdev="rail0"), rail_port(1), rail_port(2, netdev="rail1")
    assert refusal(host(1, *ports), host(2, *ports)) == (
        "rails that are configured would change. gpu-[01-02]: 0000:38:00.0 is named rail1 and would be rail2. "
        f"Repair the host, or {CHOOSE}"
    )
    assert chosen(host(1, ports[0], ports[2])) == {"gpu-01": ["18", "38"]}
    own = {"rail0": "0000:38:00.0", "rail1": "0000:18:00.0"}
    assert chosen(host(1, ports[0], ports[2], rails=own), rail_count=2) == {"gpu-01": ["38", "18"]}


def test_a_rail_that_serves_something_else_now_is_neither_taken_nor_dropped() -> None:
    storage = {"addresses": ["10.1.1.5/24"], "uses": [use("mount", "nfs4 mount /data from 10.1.1.200")]}
    ports = rail_port(0, configured=configured(0)), rail_port(1, configured=configured(1, "192.168.1.5/24"), **storage)
    assert refusal(host(1, *ports), host(2, *ports)) == (
        "rails that are configured would change. gpu-[01-02]: 0000:28:00.0 was configured as rail1 and would be no "
        "rail: has address 10.1.1.5/24, carries nfs4 mount /data from 10.1.1.200. Repair the host, or " + CHOOSE
    )
    assert chosen(host(1, *ports), rails=[{"name": "rail0", "pci": ["0000:18:00.0"]}]) == {"gpu-01": ["18"]}


def test_a_change_of_the_selection_drops_no_rail() -> None:
    ports = rail_port(0, configured=configured(0)), rail_port(1, configured=configured(1), driver="mlx4_core")
    assert "0000:28:00.0 was configured as rail1 and would be no rail: driver mlx4_core is not in" in refusal(
        host(1, *ports), select={"drivers": ["mlx5_core"]}
    )


def test_what_only_some_identical_servers_carry_stops_the_plan_and_names_them() -> None:
    servers = [host(number, rail_port(0), rail_port(1)) for number in range(1, 17)]
    for number in (3, 4, 9):
        ports = rail_port(0), rail_port(1, addresses=[f"10.1.1.{number}/24"])
        servers[number - 1] = host(number, *ports)
    assert refusal(*servers) == (
        "rails cannot be chosen automatically: 0000:28:00.0 (enp40s0np0) has address 10.1.1.[3-4,9]/24 on "
        f"gpu-[03-04,09], but not on gpu-[01-02,05-08,10-16]. {FREE}{CHOOSE}"
    )


def test_a_choice_by_address_is_consent() -> None:
    storage = rail_port(1, addresses=["10.1.1.11/24"], max_speed=200.0)
    servers = [host(1, rail_port(0), storage), host(2, rail_port(0), rail_port(1))]
    rails = [{"name": "x", "pci": ["0000:18:00.0"]}, {"name": "y", "pci": ["0000:28:00.0"]}]
    assert chosen(*servers, rails=rails) == {"gpu-01": ["18", "28"], "gpu-02": ["18", "28"]}
    servers[0] = host(1, rail_port(0), storage, rails={"rail0": "0000:28:00.0", "rail1": "0000:18:00.0"})
    assert chosen(*servers, rail_count=2) == {"gpu-01": ["28", "18"], "gpu-02": ["18", "28"]}


def test_each_class_of_identical_servers_has_ports_of_its_own() -> None:
    """One generation has its storage where the other has a rail; the free port of the one says nothing of the other."""
    old = [host(number, rail_port(0), rail_port(1), rail_port(2, addresses=["10.1.1.1/24"])) for number in (1, 2)]
    new = [host(number, rail_port(0, addresses=["10.1.1.9/24"]), rail_port(2), rail_port(3)) for number in (3, 4)]
    found = {"gpu-01": ["18", "28"], "gpu-02": ["18", "28"], "gpu-03": ["38", "48"], "gpu-04": ["38", "48"]}
    assert chosen(*old, *new) == found


def test_an_unbound_driver_on_one_server_moves_no_rail() -> None:
    """The rate of a port is that of the same port of identical servers."""
    broken = rail_port(1, driver=None, netdev=None, speed=None, max_speed=None)
    servers = [host(1, rail_port(0), rail_port(1), rail_port(2)), host(2, rail_port(0), broken, rail_port(2))]
    assert chosen(*servers, select={"drivers": ["mlx5_core"]}) == {
        "gpu-01": ["18", "28", "38"], "gpu-02": ["18", "28", "38"],
    }  # fmt: skip


def test_a_lost_card_moves_no_rail() -> None:
    """gpu-02 lost the card of rail1. Its storage port, not yet in use, must not take the place."""
    used = rail_port(4, addresses=["10.1.1.1/24"])
    whole = [host(number, *(rail_port(rail) for rail in range(4)), used) for number in (1, 3)]
    hurt = host(2, rail_port(0), rail_port(2), rail_port(3), rail_port(4))
    assert refusal(*whole, hurt) == (
        "rails cannot be chosen automatically: gpu-02 has no port at 0000:28:00.0, otherwise it is identical to "
        f"gpu-[01,03]. Their rails would be different ports. Repair the host, or {CHOOSE}"
    )
    assert refusal(*whole, host(2, rail_port(0), rail_port(2), rail_port(3), used)).startswith(
        "hosts do not agree on the number of rails: 4 on 2 of 3 hosts, but 3 on gpu-02 ("
    )
    own = {f"rail{rail}": f"0000:{bus}:00.0" for rail, bus in enumerate(("18", "58", "38", "48"))}
    found = chosen(*whole, Host("gpu-02", hurt.facts, True, False, None, None, own), rail_count=4)
    assert found["gpu-02"] == ["18", "58", "38", "48"]


def test_a_lost_card_counts_beside_another_management_port() -> None:
    """Only cards that can carry rails tell whether servers are otherwise identical."""
    whole = host(1, *(rail_port(rail) for rail in range(4)), rail_port(4, addresses=["10.1.1.1/24"]))
    other = port("0000:02:00.0", "eno2", vendor="8086", device="1521", max_speed=1.0)
    hurt = host(2, other, rail_port(0), rail_port(2), rail_port(3), rail_port(4))
    assert "gpu-02 has no port at 0000:28:00.0, otherwise it is identical to gpu-01" in refusal(whole, hurt)


MISHAPS = (
    {"speed": None, "carrier": False, "operstate": "down"},
    {"speed": 100.0},
    {"netdev": None, "driver": None, "speed": None, "max_speed": None},
    {"driver": "vfio-pci", "netdev": None, "speed": None, "max_speed": None},
    {"max_speed": 200.0},
    {"max_speed": None},
    {"addresses": ["10.1.1.1/24"]},
    {"addresses": ["192.168.0.9/24"]},
    {"master": "br0"},
    {"duty": "carries the ssh connection of this run"},
    {"link_layer": "infiniband"},
    {"uses": [use("mount", "nfs mount /a from 10.1.1.1")]},
    {"uses": [use("unknown", "mounts that cannot be read")]},
)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from(MISHAPS)), min_size=1, max_size=2),
    st.sampled_from([{}, {"select": {"drivers": ["mlx5_core"]}}, {"select": {"min_speed": 300}}, {"rail_count": 4}]),
)
def test_what_happens_at_run_time_moves_no_rail(mishaps: list[Any], fabric: dict[str, Any]) -> None:
    """Whatever happens to ports of one or two of three identical servers: the same rails, or a refusal."""
    ports = [[rail_port(rail) for rail in range(4)] for _server in range(3)]
    for server, rail, mishap in mishaps:
        ports[server][rail].update(mishap)
    try:
        found = chosen(*(host(number + 1, *own) for number, own in enumerate(ports)), **fabric)
    except InputError:
        return
    assert list(found.values()) == [["18", "28", "38", "48"]] * 3


@pytest.mark.parametrize(
    ("ports", "fabric"),
    [
        ([rail_port(0), rail_port(1, max_speed=None)], {}),
        ([rail_port(0, max_speed=None), rail_port(1, max_speed=None, device="a2dc")], {}),
        ([rail_port(0, max_speed=None), rail_port(1, max_speed=None)], {"select": {"min_speed": 100}}),
    ],
)
def test_a_rate_that_is_not_readable_is_not_guessed(ports: list[dict[str, Any]], fabric: dict[str, Any]) -> None:
    assert "the driver does not report which rates" in refusal(host(1, *ports), **fabric)
    alike = [rail_port(0, max_speed=None), rail_port(1, max_speed=None)]
    assert chosen(host(1, *alike)) == {"gpu-01": ["18", "28"]}


def test_fewer_faster_ports_are_not_chosen_by_chance() -> None:
    ports = [rail_port(0), *(rail_port(number, max_speed=100.0) for number in (1, 2))]
    assert refusal(host(1, *ports)) == (
        "rails cannot be chosen automatically: of the ports that can be rails 1 support 400 Gb/s, 2 support 100 Gb/s; "
        f"set rdma_fabric.select.min_speed. {FREE}{CHOOSE}"
    )
    assert chosen(host(1, *ports), select={"min_speed": 200}) == {"gpu-01": ["18"]}


def test_a_limited_run_does_not_guess_what_other_servers_carry() -> None:
    """One server alone cannot tell whether a use is of its whole class: the numbers of the rails would follow it."""
    ports = rail_port(0), rail_port(1, addresses=["10.1.1.11/24"]), rail_port(2)
    assert refusal(host(1, *ports), unknown(2), unknown(3)) == (
        "rails cannot be chosen automatically: 0000:28:00.0 has address 10.1.1.11/24 on gpu-01, and facts "
        "of gpu-[02-03] are missing: they may use the same ports for other traffic. Run without --limit, set "
        f"rdma_fabric.rail_count, or {CHOOSE}"
    )
    # A port that is idle here may be storage that is not set up yet.
    assert refusal(host(1, ports[0], ports[2]), unknown(2)).startswith(
        "rails cannot be chosen automatically: gpu-01 has no rails yet, and facts of gpu-02 are missing: they may use "
    )
    absent = Host("gpu-02", None, True, True, None, None, {})
    assert chosen(host(1, ports[0], ports[2]), absent) == {"gpu-01": ["18", "38"]}
    assert chosen(host(1, *ports), unknown(2), rail_count=2) == {"gpu-01": ["18", "38"]}
    # Rails that are configured tell which ports were chosen.
    assert chosen(host(1, rail_port(0, configured=configured(0)), *ports[1:]), unknown(2)) == {"gpu-01": ["18"]}


@given(st.lists(st.sampled_from(["", "10.1.1.1/24", "192.168.0.1/24"]), min_size=3, max_size=3), st.integers(1, 4))
def test_no_port_with_an_address_of_others_is_ever_chosen(addresses: list[str], count: int) -> None:
    ports = [rail_port(number, addresses=[text] if text else []) for number, text in enumerate(addresses)]
    servers = [host(number, *ports) for number in range(1, count + 1)]
    (own,) = server_classes(Intent.from_params(NET, registry.names()), servers)
    free = [port["pci"] for port in ports if "10.1.1.1/24" not in port["addresses"]]
    assert (list(own.candidates), own.problems) == (free, ())


def test_a_port_with_another_address_of_the_supernet_is_not_taken_over() -> None:
    """A storage network inside a large supernet: the port looks like a rail, its address does not."""
    ports = [rail_port(0), rail_port(1, addresses=["192.168.50.11/24"])]
    fleet = {"gpu-01": {"facts": host_facts(1, ports=ports), "rdma_host": {}}}
    with pytest.raises(InputError) as caught:
        plan(NET, fleet)
    assert str(caught.value) == (
        "ports with addresses inside rdma_fabric.supernet, but outside the subnets of their rails: rail1 "
        "(0000:28:00.0, subnet 192.168.1.0/24) has address 192.168.50.11/24. If these ports are rails, "
        f"{CHOOSE}; otherwise use another rdma_fabric.supernet"
    )
    rails = [{"name": "a", "pci": ["0000:18:00.0"]}, {"name": "b", "pci": ["0000:28:00.0"]}]
    assert plan({**NET, "rails": rails}, fleet)["hosts"]["gpu-01"]["rails"][1]["address"] == "192.168.1.1/24"
    for rail, own in enumerate(ports):
        own["configured"] = configured(rail, *own["addresses"])
    assert plan(NET, fleet)["hosts"]["gpu-01"]["rails"][1]["address"] == "192.168.1.1/24"


def test_without_a_supernet_every_address_is_of_others() -> None:
    assert foreign_uses(rail_port(0, addresses=["192.168.0.1/24"]), ()) == ["has address 192.168.0.1/24"]


def test_a_message_about_sixty_identical_hosts_is_short() -> None:
    ports = [rail_port(number) for number in range(10)]
    servers = [host(number, *ports) for number in range(1, 61)]
    message = refusal(*servers, rail_count=4)
    assert message.startswith(
        "rdma_fabric.rail_count is 4, but more ports than that match rdma_fabric.select: gpu-[01-60] has 0000:01:00.0 "
    )
    assert len(message) < 900


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["lab-1"], "lab-1"),
        (["gpu-01", "gpu-02", "gpu-03"], "gpu-[01-03]"),
        (["gpu-08", "gpu-09", "gpu-10", "gpu-100"], "gpu-[08-10], gpu-100"),
        (["lab-9", "lab-10", "lab-11", "lab-13"], "lab-[9-11,13]"),
        (["r1-gpu1.x.org", "r1-gpu2.x.org", "r2-gpu1.x.org"], "r1-gpu[1-2].x.org, r2-gpu1.x.org"),
        (["10.0.0.1", "head", "head"], "10.0.0.1, head"),
        ([f"n{number}" for number in range(1, 40, 2)], "n[1,3,5,7,9,11,13,15] and 12 more"),
        ([f"n{letter}" for letter in "abcdefghij"], "na, nb, nc, nd, ne, nf, ng, nh and 2 more"),
    ],
)
def test_names_are_folded(names: list[str], folded: str) -> None:
    assert fold(names) == folded


def test_addresses_are_folded() -> None:
    found = fold_addresses([f"192.168.0.{number}/24" for number in (1, 2, 3, 7)] + ["10.0.0.1/24"])
    assert found == "192.168.0.[1-3,7]/24, 10.0.0.1/24"
