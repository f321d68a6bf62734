"""The cluster file of k8s-launch-kit: groups of nodes, their ports and rails."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import cluster_file
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan


def port(pci: str, rail: int | None, **other: Any) -> dict[str, Any]:
    # Keys as `l8k discover` writes them.
    own = {"deviceID": "a2dc", "rdmaDevice": "", "pciAddress": pci, "networkInterface": "", "numaNode": 0}
    traffic = {"traffic": "east-west", "rail": rail} if rail is not None else {"traffic": "north-south"}
    return {**own, **traffic, **other}


NUMBERLESS = port("0000:1a:00.0", None, traffic="east-west")


def group(*names: str, **other: Any) -> dict[str, Any]:
    ports = [port("0000:1a:00.0", 1), port("0000:3C:00.0", 0), port("0000:9d:00.0", None)]
    return {
        "identifier": "a",
        "machineType": "m",
        "linkType": "Ethernet",
        "pfs": ports,
        "workerNodes": [*names],
        **other,
    }


def test_rails_have_the_order_of_the_file() -> None:
    found = plan(
        {"supernet": "192.168.0.0/16", "rail_count": 2}, cluster_file.hosts({"clusterConfig": [group("a", "b")]})
    )
    assert [rail["pci"] for rail in found["hosts"]["b"]["rails"]] == ["0000:3c:00.0", "0000:1a:00.0"]


def test_classes_of_servers_stay_apart() -> None:
    other = group("c", pfs=[port("0000:09:00.0", 0), port("0000:23:00.0", 1)])
    hosts = cluster_file.hosts({"clusterConfig": [group("a", "b"), other]})
    found = plan({"supernet": "192.168.0.0/16", "rail_count": 2}, hosts)
    assert [found["hosts"][name]["rails"][0]["pci"] for name in "abc"] == ["0000:3c:00.0"] * 2 + ["0000:09:00.0"]


def test_infiniband_ports_are_taken_for_what_they_are() -> None:
    hosts = cluster_file.hosts({"clusterConfig": [group("a", linkType="InfiniBand")]})
    assert {one["link_layer"] for one in hosts["a"]["facts"]["ports"]} == {"infiniband"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "clusterConfig: expected the list of node groups that l8k discover writes, found nothing (null)"),
        ({"clusterConfig": []}, "clusterConfig: expected the list of node groups"),
        ({"clusterConfig": [group()]}, "clusterConfig[0].workerNodes: missing"),
        ({"clusterConfig": [group("a"), group("a")]}, "clusterConfig[1].workerNodes: a is in two groups"),
        ({"clusterConfig": [group("a", linkType="Token Ring")]}, "linkType: expected Ethernet or InfiniBand"),
        ({"clusterConfig": [group("a", pfs=[port("1a:00", 0)])]}, "pfs[0].pciAddress: expected a PCI address such as"),
        (
            {"clusterConfig": [group("a", pfs=[port("0000:1a:00.0", 0, deviceID="x")])]},
            "deviceID: expected a PCI device ID",
        ),
        (
            {"clusterConfig": [group("a", pfs=[NUMBERLESS])]},
            "rail: missing; a port with traffic",
        ),
        ({"clusterConfig": ["x"]}, 'clusterConfig[0]: expected a dict, found "x" (text)'),
    ],
)
def test_what_is_wrong_is_named(content: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        cluster_file.hosts(content)
    assert message in str(error.value)
