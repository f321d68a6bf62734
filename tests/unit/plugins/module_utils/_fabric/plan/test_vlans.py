"""VLANs of rails in the plan: which interface has the address, and what networks are made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.plugins.module_utils._fabric.operator.test_conformance import RELEASES, check
from tests.unit.support.plan_factory import configured, fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan


def planned(hosts: dict[str, Any] | None = None, **fabric: Any) -> dict[str, Any]:
    return plan({"supernet": "192.168.0.0/16", **fabric}, hosts or fleet(2))


def test_all_rails_have_the_vlan_but_those_with_their_own() -> None:
    made = planned(
        vlan=100, rails=[{"name": "a"}, {"name": "b", "vlan": 200}, {"name": "c", "vlan": 0}], hosts=fleet(2, 3)
    )
    assert [rail["master"] for rail in made["rails"]] == ["a.100", "b.200", "c"]
    assert [rail.get("vlan") for rail in made["hosts"]["gpu-0001"]["rails"]] == [100, 200, None]
    masters = [item["spec"]["master"] for item in made["objects"]["networks"] if item["kind"] == "MacvlanNetwork"]
    assert masters == ["a.100", "b.200", "c"]
    # Devices are those of the port.
    plugin = json.loads(made["objects"]["policy"][0]["spec"]["rdmaSharedDevicePlugin"]["config"])
    assert [entry["selectors"] for entry in plugin["configList"]] == [{"ifNames": [name]} for name in "abc"]
    assert made["warnings"] == planned(rails=[{"name": name} for name in "abc"], hosts=fleet(2, 3))["warnings"]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("profile", ["macvlan", "raw"])
def test_every_line_takes_it(release: str, profile: str) -> None:
    made = planned(profile=profile, vlan=100, operator={"release": release})
    for item in (*made["objects"]["policy"], *made["objects"]["networks"]):
        check(RELEASES[release], item)


@pytest.mark.parametrize("release", RELEASES)
def test_a_vlan_has_both_versions(release: str) -> None:
    both = {"ipv6": {"supernet": "fd00:10::/48"}, "vlan": 100, "operator": {"release": release}}
    made = planned(**both)
    own = made["hosts"]["gpu-0001"]["rails"][0]
    assert (own["vlan"], own["address"], own["ipv6"]["address"]) == (100, "192.168.0.1/24", "fd00:10::1/64")
    (network,) = (
        one
        for one in made["objects"]["networks"]
        if one["metadata"]["name"] == "rail0" and one["kind"] == "MacvlanNetwork"
    )
    assert network["spec"]["master"] == "rail0.100"
    assert json.loads(network["spec"]["ipam"])["poolName"] == "rail0,rail0-ipv6"
    for item in made["objects"]["networks"]:
        check(RELEASES[release], item)


def test_a_host_that_has_the_vlan_keeps_its_address() -> None:
    hosts = fleet(2, 1)
    port = next(one for one in hosts["gpu-0001"]["facts"]["ports"] if one["rdma"])
    port.update(addresses=["192.168.0.9/24"], configured=configured("rail0", "192.168.0.9/24"))
    made = planned(hosts, vlan=100)
    assert made["hosts"]["gpu-0001"]["rails"][0]["address"] == "192.168.0.9/24"


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        ({"vlan": 4095}, "rdma_fabric.vlan: expected 0 to 4094, found 4095"),
        (
            {"vlan": 100, "rails": [{"name": "storage-rail0"}, {"name": "b"}]},
            "rdma_fabric.vlan: storage-rail0.100, the name of the VLAN interface of storage-rail0, is longer than 15"
            " characters. Shorten the name of the rail",
        ),
        (
            {"vlan": 100, "profile": "host_device"},
            "rdma_fabric.vlan: is used by profile macvlan or raw, but rdma_fabric.profile is host_device. Remove one",
        ),
        (
            {"profile": "host_device", "rails": [{"name": "a", "vlan": 100}, {"name": "b"}]},
            "rdma_fabric.rails: pods of profile host_device do not use a VLAN interface of the host. Remove vlan",
        ),
        (
            {"vlan": 100, "addresses": "keep"},
            "rdma_fabric.addresses: a VLAN interface has an address of the plan, but addresses is keep. Remove one",
        ),
    ],
)
def test_what_is_refused(fabric: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(**fabric)
    assert message in str(caught.value)
