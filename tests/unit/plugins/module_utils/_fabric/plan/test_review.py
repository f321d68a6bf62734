"""The plan as a table: whole output."""

from __future__ import annotations

from typing import Any

from tests.unit.support.plan_factory import configured, host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

NET = {"supernet": "192.168.0.0/16", "capacity": {"hosts": 62}}


def gpu(pci: str, above: str) -> dict[str, Any]:
    return {"pci": pci, "path": ["pci0000:00", above, pci], "numa_node": 0}


def fleet(numbers: range, *ports: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {
        f"gpu-{number:02d}": {"facts": host_facts(number, ports=[dict(port) for port in ports], **facts)}
        for number in numbers
    }


def test_classes_of_hosts_with_their_rails_and_all_other_ports() -> None:
    switch = {"path": ["pci0000:00", "0000:17:00.0", "0000:18:00.0"]}
    storage = {"addresses": ["10.1.1.1/24"], "max_speed": 200.0}
    hosts = {
        **fleet(range(1, 61), rail_port(0, **switch), rail_port(1), rail_port(2, **storage),
                gpus=[gpu("0000:19:00.0", "0000:17:00.0"), gpu("0000:29:00.0", "0000:27:00.0")]),
        **fleet(range(61, 62), rail_port(0), rail_port(4)),
    }  # fmt: skip
    for number in range(1, 61):
        hosts[f"gpu-{number:02d}"]["facts"]["ports"][3]["addresses"] = [f"10.1.1.{number}/24"]
    for rail in (0, 1):
        own = configured(rail, f"192.168.{rail}.7/24")
        hosts["gpu-07"]["facts"]["ports"][rail + 1].update(configured=own, addresses=own["addresses"])
    hosts["gpu-07"]["facts"]["ports"][1]["netdev"] = "rail0"
    made = plan({**NET, "rail_count": 2}, {**hosts, "gpu-99": {}}, limit=list(hosts))
    assert made["table"] == [
        "gpu-[01-60]: 60 identical hosts",
        "  rail   PCI address   interface             max speed  driver     nearest GPU                     address",
        "  rail0  0000:18:00.0  enp24s0np0 (1 other)  400 Gb/s   mlx5_core  0000:19:00.0 PIX                "
        "192.168.0.[1-60]/24",
        "  rail1  0000:28:00.0  enp40s0np0            400 Gb/s   mlx5_core  0000:19:00.0, 0000:29:00.0 PHB  "
        "192.168.1.[1-60]/24",
        "  not rails:",
        "  0000:01:00.0  eno1        10 Gb/s   ixgbe      vendor 8086 is not in rdma_fabric.select.vendors",
        "  0000:38:00.0  enp56s0np0  200 Gb/s  mlx5_core  has address 10.1.1.[1-60]/24",
        "gpu-61: 1 host of its kind",
        "  rail   PCI address   interface   max speed  driver     nearest GPU  address",
        "  rail0  0000:18:00.0  enp24s0np0  400 Gb/s   mlx5_core  -            192.168.0.61/24",
        "  rail1  0000:58:00.0  enp88s0np0  400 Gb/s   mlx5_core  -            192.168.1.61/24",
        "  not rails:",
        "  0000:01:00.0  eno1  10 Gb/s  ixgbe  vendor 8086 is not in rdma_fabric.select.vendors",
        "No facts of gpu-99",
        "tests use no traffic class (the fabric has no QoS: class 0)",
    ]
    assert made["warnings"] == []


def test_ports_chosen_by_address_show_what_they_carry_and_where_they_differ() -> None:
    rails = [{"name": "a", "pci": ["0000:18:00.0"]}, {"name": "b", "pci": ["0000:28:00.0"]}]
    storage = {"driver": "ice", "device": "1592", "max_speed": 100.0, "addresses": ["10.1.1.1/24"], "speed": 100.0,
               "uses": [{"kind": "mount", "text": "nfs mount /data from 10.1.1.9"}]}  # fmt: skip
    hosts = fleet(range(1, 3), rail_port(0), rail_port(1, **storage), rail_port(2), gpus=[
        gpu(f"0000:{bus}:00.0", "0000:f0:00.0") for bus in ("c0", "c1", "c2")
    ])  # fmt: skip
    made = plan({**NET, "rails": rails}, hosts)
    assert made["table"] == [
        "gpu-[01-02]: 2 identical hosts",
        "  rail  PCI address   interface   max speed  driver     nearest GPU  address",
        "  a     0000:18:00.0  enp24s0np0  400 Gb/s   mlx5_core  3 GPUs PHB   192.168.0.[1-2]/24",
        "  b     0000:28:00.0  enp40s0np0  100 Gb/s   ice        3 GPUs PHB   192.168.1.[1-2]/24",
        "  b has address 10.1.1.1/24, carries nfs mount /data from 10.1.1.9 on gpu-[01-02]",
        "  not rails:",
        "  0000:01:00.0  eno1        10 Gb/s   ixgbe      vendor 8086 is not in rdma_fabric.select.vendors",
        "  0000:38:00.0  enp56s0np0  400 Gb/s  mlx5_core  not named in rdma_fabric.rails",
        "tests use no traffic class (the fabric has no QoS: class 0)",
    ]
    check = "Check that these ports are meant"
    assert made["warnings"] == [
        f"the rails of gpu-[01-02] differ in their supported rate: 400 Gb/s on a; 100 Gb/s on b. {check}",
        f"the rails of gpu-[01-02] differ in their driver: mlx5_core on a; ice on b. {check}",
        f"the rails of gpu-[01-02] differ in their model: 15b3:1021 on a; 15b3:1592 on b. {check}",
    ]


def test_rates_that_no_driver_reports() -> None:
    made = plan(NET, fleet(range(1, 2), rail_port(0, max_speed=None), rail_port(1, max_speed=None)))
    assert made["warnings"] == [
        "no driver reports the rates that the rails of gpu-01 support, so the ports were not compared"
    ]
    assert made["table"][2] == ("  rail0  0000:18:00.0  enp24s0np0  unknown    mlx5_core  -            192.168.0.1/24")
