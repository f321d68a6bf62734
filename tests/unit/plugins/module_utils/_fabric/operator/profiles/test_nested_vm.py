"""The network model nested_vm, and what the plan says of ports that a hypervisor passed through. Costs below 1 s."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet, host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import presets
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

FABRIC = {"profile": "nested_vm", "supernet": "192.168.0.0/16"}
VF = (
    "the port is a virtual function (VF) that the hypervisor passed through, whose settings cannot be read in the"
    " virtual machine{why}. On the hypervisor, run 'ip link set PF mtu {mtu}' and 'ip link set PF vf N {settings}' for"
    " the VF that 'ip link show' lists with the MAC address of the port"
)


def guests(passthrough: str | None, **more: Any) -> dict[str, dict[str, Any]]:
    """Two hosts with two ports each."""
    device = "101e" if passthrough == "vf" else "1021"
    ports = {"passthrough": passthrough, "device": device, **more}
    return {
        f"gpu-{number:04d}": {
            "facts": host_facts(number, ports=[rail_port(rail, **ports) for rail in (0, 1)], virtual=True)
        }
        for number in (1, 2)
    }


def passed(made: dict[str, Any]) -> list[str]:
    """The warnings about rails of both hosts, without their beginning."""
    return [text.partition(": ")[2] for text in made["warnings"] if text.startswith("gpu-[0001-0002] rail")]


@pytest.mark.parametrize("passthrough", ["pf", "vf"])
def test_a_pod_gets_the_whole_function(passthrough: str) -> None:
    """The objects are those of host_device."""
    own = plan(FABRIC, guests(passthrough))
    other = plan({**FABRIC, "profile": "host_device"}, guests(passthrough))
    assert own["objects"] == other["objects"]
    assert [item["kind"] for item in own["objects"]["networks"]] == ["IPPool"] * 2 + ["HostDeviceNetwork"] * 2
    assert [rail["share"] for rail in own["rails"]] == [1, 1]


@pytest.mark.parametrize(
    ("profile", "settings", "why"),
    [
        ("nested_vm", "state auto max_tx_rate 0", ""),
        ("host_device", "state auto max_tx_rate 0", ""),
        *(
            (
                profile,
                "state auto max_tx_rate 0 trust on spoofchk off",
                ", and pods have MAC addresses of their own, which it must not filter",
            )
            for profile in ("macvlan", "raw")
        ),
    ],
)
def test_the_plan_lists_what_the_hypervisor_must_set(profile: str, settings: str, why: str) -> None:
    fabric = {**FABRIC, "profile": profile, "mtu": 4200}
    text = VF.format(why=why, mtu=4200, settings=settings)
    assert passed(plan(fabric, guests("vf"))) == [text, text]
    assert passed(plan(fabric, guests("pf"))) == []


def test_infiniband_of_a_guest() -> None:
    text = VF.format(why="", mtu=2044, settings="state auto")
    fabric = {**FABRIC, "profile": "ipoib"}
    assert passed(plan(fabric, guests("vf", link_layer="infiniband"))) == [text, text]


@pytest.mark.parametrize(("profile", "layer"), [("sriov", "ethernet"), ("sriov_ib", "infiniband")])
def test_a_vf_has_no_vfs(profile: str, layer: str) -> None:
    rails = [{"name": "rail0", "pci": ["0000:18:00.0"]}, {"name": "rail1", "pci": ["0000:28:00.0"]}]
    fabric = {**FABRIC, "profile": profile, "rails": rails}
    reason = "is a virtual function .VF. that the hypervisor passed through, so it has no VFs, which cannot carry"
    with pytest.raises(InputError, match=f"rail0: 0000:18:00.0 {reason} {profile}"):
        plan(fabric, guests("vf", link_layer=layer))


def test_hypervisors_hide_the_vfs_of_a_pf() -> None:
    """QEMU leaves the capability SR-IOV out of what a guest sees (vfio_add_ext_cap of hw/vfio/pci.c)."""
    made = plan({**FABRIC, "profile": "sriov"}, guests("pf", vfs={"total": 0, "count": 0, "rate": None}))
    assert passed(made)[0] == (
        "the port supports no VFs in the virtual machine, and rdma_fabric.sriov.vfs is 8: hypervisors hide this"
        " capability. Use a network model that needs no VFs"
    )


def test_a_host_that_is_no_guest_is_reported_unless_it_is_a_preset() -> None:
    text = "the host is not a virtual machine, where profile host_device gives pods the same"
    assert passed(plan(FABRIC, fleet(2))) == [text, text]
    preset = plan(FABRIC, presets.hosts("dell_xe9680_h200", 2))
    assert not [one for one in preset["warnings"] if "virtual machine" in one]


def test_the_rate_of_a_vf_may_be_unknown() -> None:
    """Then nothing is expected of it, and the judge has no data without a floor."""
    sides = plan(FABRIC, guests("vf", speed=None, max_speed=None))["expectations"]["rail0"]
    assert {(side["rate"], side["max_rate"]) for side in sides.values()} == {(None, None)}


def test_facts_of_an_earlier_version_are_of_no_guest() -> None:
    hosts = fleet(2)
    for host in hosts.values():
        for port in host["facts"]["ports"]:
            del port["passthrough"]
    assert plan({**FABRIC, "profile": "macvlan"}, hosts)["rails"]
