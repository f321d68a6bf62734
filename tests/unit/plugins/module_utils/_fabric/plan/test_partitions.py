"""A table of lines for the subnet manager; a real OpenSM and ibnetdiscover on a simulated fabric, about two seconds.

Where the programs are missing (Debian packages opensm, ibsim-utils, infiniband-diags), the latter is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet
from tests.unit.support.simulated_fabric import Fabric, simulated

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.ib_fabric import parse
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

MANAGED = {"ufm_secret": "ufm", "first_guid": "02:00:00:00:00:00:00:00", "last_guid": "02:FF:FF:FF:FF:FF:FF:FF"}
HEAD = "gpufabric=0x0001, indx0, ipoib, mtu={}, defmember=full :"


def planned(hosts: dict[str, dict[str, Any]] | None = None, **fabric: Any) -> dict[str, Any]:
    default = {"profile": "sriov_ib", "supernet": "192.168.0.0/16"}
    return plan({**default, **fabric}, hosts or fleet(2, rails=1, link_layer="infiniband"))


def entries(made: dict[str, Any]) -> list[str]:
    return [line for line in made["partitions"] if not line.startswith("# ") or line.startswith("# gpu")]


def test_without_a_key_the_default_partition_has_the_mtu() -> None:
    assert entries(planned()) == ["Default=0x7fff, ipoib, mtu=4 : ALL=full ;"]
    made = planned(profile="ipoib", mtu=4092)
    assert entries(made) == ["Default=0x7fff, ipoib, mtu=5 : ALL=full ;"]
    assert not [line for line in made["partitions"] if "virtualization" in line]
    assert [line for line in planned()["partitions"] if "enable virtualization (virt_enabled 2" in line]


@pytest.mark.parametrize(
    ("profile", "sriov"), [("macvlan", {}), ("sriov_ib", {"pkey": "0x8001", "ib_kubernetes": MANAGED})]
)
def test_nothing_for_ethernet_and_ufm(profile: str, sriov: dict[str, Any]) -> None:
    hosts = fleet(2, rails=1, link_layer="ethernet" if profile == "macvlan" else "infiniband")
    own = {"sriov": sriov} if sriov else {}
    made = plan({"profile": profile, "supernet": "192.168.0.0/16", **own}, hosts)
    assert "partitions" not in made
    assert "infiniband/partitions.conf" not in manifests(made, Chart())


def test_members_are_the_virtual_functions_that_the_role_makes() -> None:
    hosts = fleet(3, rails=1, link_layer="infiniband")
    hosts["gpu-0002"]["facts"]["rdma_devices"] = []
    hosts["gpu-0003"]["facts"] = None
    made = plan(
        {
            "profile": "sriov_ib",
            "supernet": "192.168.0.0/16",
            "mtu": 4092,
            "absent_hosts": "report",
            "rail_count": 1,
            "sriov": {"pkey": "0x8001", "vfs": 2, "externally_managed": True},
        },
        hosts,
    )
    assert entries(made) == [
        "# gpu-0001 rail0",
        f"{HEAD.format(5)} 0xba3fd20003180001, 0xba3fd20103180001 ;",
    ]
    assert made["partitions"][-1] == (
        "# Members of gpu-[0002-0003] are missing: the facts have no GUIDs of their ports."
    )
    text = manifests(made, Chart())["infiniband/partitions.conf"]
    assert text == "".join(f"{line}\n" for line in made["partitions"])


def with_addresses(hosts: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Give ports the hardware addresses of IPoIB, which end in their GUIDs."""
    for number, host in enumerate(hosts.values(), 1):
        for port in host["facts"]["ports"] if host["facts"] else ():
            port["mac"] = f"00:00:10:49:fe:80:00:00:00:00:00:00:ba:3f:d2:00:03:18:00:{number:02x}"
    return hosts


def test_ports_are_members_where_pods_share_them() -> None:
    hosts = with_addresses(fleet(2, rails=1, link_layer="infiniband"))
    made = planned(hosts, profile="ipoib", pkey="0x1", mtu=4092)
    assert entries(made) == [
        "# gpu-0001 rail0",
        f"{HEAD.format(5)} 0xba3fd20003180001 ;",
        "# gpu-0002 rail0",
        f"{HEAD.format(5)} 0xba3fd20003180002 ;",
    ]
    assert [text for text in made["warnings"] if "the partition 0x1 is set by the administrator" in text]


def test_the_operator_makes_virtual_functions_with_the_guids_of_a_file() -> None:
    made = planned(sriov={"pkey": "0x8001"})
    assert made["partitions"][-2:] == [
        "# Members: the GUIDs in /etc/sriov-operator/infiniband/guids of each node, which you choose.",
        f"# {HEAD.format(4)} GUID, GUID ;",
    ]


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    # Two members of the partition below, and a port that is none.
    ports = {"gpu-0001": "ba3fd20003180001", "gpu-0002": "ba3fd20003180002", "other": "b83fd203000000ff"}
    made = Fabric(tmp_path, ports)
    yield made
    made.end()


@simulated
def test_opensm_gives_the_members_their_key(fabric: Fabric) -> None:
    text = manifests(planned(mtu=4092, sriov={"pkey": "0x8001", "vfs": 128, "externally_managed": True}), Chart())[
        "infiniband/partitions.conf"
    ]
    log = fabric.configure(text)
    assert "SUBNET UP" in log and "PARSE ERROR" not in log
    # OpenSM lets all ports into its default partition as limited members, unless the administrator says otherwise.
    assert [fabric.keys(port) for port in (1, 2, 3)] == [["0x8001", "0x7fff"], ["0x8001", "0x7fff"], ["0x7fff"]]


@simulated
def test_opensm_makes_the_partition_the_first_one_of_shared_ports(fabric: Fabric) -> None:
    hosts = with_addresses(fleet(2, rails=1, link_layer="infiniband"))
    made = planned(hosts, profile="ipoib", pkey="0x8001", mtu=4092)
    assert "PARSE ERROR" not in fabric.configure(manifests(made, Chart())["infiniband/partitions.conf"])
    assert [fabric.keys(port) for port in (1, 3)] == [["0x8001", "0x7fff"], ["0x7fff"]]


@simulated
def test_opensm_takes_the_default_partition(fabric: Fabric) -> None:
    log = fabric.configure(manifests(planned(), Chart())["infiniband/partitions.conf"])
    assert "SUBNET UP" in log and "PARSE ERROR" not in log
    assert fabric.keys(1) == ["0xffff"]
    assert "PARSE ERROR" in fabric.configure("gpufabric=0x0001 ipoib ;\n")


@simulated
def test_the_switch_of_each_host_is_discovered(fabric: Fabric) -> None:
    fabric.configure(manifests(planned(), Chart())["infiniband/partitions.conf"])
    found = parse(fabric.run("ibnetdiscover"))
    assert {guid: (own["system"], own["port"]) for guid, own in found.items()} == {
        "ba3fd20003180000": ("SW", "1"),
        "ba3fd20003180001": ("SW", "2"),
        "b83fd203000000fe": ("SW", "3"),
    }
    assert len({own["chassis"] for own in found.values()}) == 1
