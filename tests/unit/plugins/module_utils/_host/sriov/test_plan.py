"""Planning VFs: what is reached needs no further change, and every way to it is one that the kernel takes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common import vf_identity
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ConflictError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.devices import Port
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.network import parse_interfaces
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.sriov import boot_unit, vf
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.sriov import plan as sriov_plan

PF = "0000:18:00.0"
FOLDERS = boot_unit.Folders("/units", "/rules", "/scripts", "/sys")
INTERFACES = parse_interfaces('[{"ifname": "rail0", "address": "b8:3f:d2:00:18:00", "mtu": 1500}]')


def make_port(up: bool) -> Port:
    raw = {
        "class": "0x020000",
        "vendor": "0x15b3",
        "device": "0x1021",
        "driver": "mlx5_core",
        "sriov_totalvfs": "16",
        "net": {"rail0": {"flags": "0x1003" if up else "0x1002", "dev_id": "0x0", "type": "1"}},
    }
    return Port.from_raw(PF, raw, INTERFACES, rdma_devices=[], bridges={})


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "trust": st.booleans(),
        "spoof_check": st.booleans(),
        "max_tx_rate": st.integers(0, 1000),
        "mtu": st.sampled_from([1500, 9000]),
    },
)


@st.composite
def targets(draw: st.DrawFn) -> boot_unit.Target:
    common, derive = draw(SETTINGS), draw(st.booleans())
    number = draw(st.integers(0, 16))
    vfs = tuple(
        {**({"mac": vf_identity.vf_mac("b8:3f:d2:00:18:00", index)} if derive else {}), **common}
        for index in range(number)
    )
    return boot_unit.Target(make_port(draw(st.booleans())), PF, vfs, draw(st.booleans()))


HAVE = st.lists(SETTINGS, max_size=16).map(
    lambda found: tuple(make_vf(index, settings) for index, settings in enumerate(found))
)


def make_vf(index: int, settings: dict[str, Any]) -> vf.Vf:
    told = {key: value for key, value in settings.items() if key != "mtu"}
    return vf.Vf(index, f"0000:18:00.{index + 1}", None, mtu=settings.get("mtu"), settings=told)


def plan(target: boot_unit.Target, have: tuple[vf.Vf, ...], files: dict[str, str], present: bool) -> sriov_plan.VfPlan:
    return sriov_plan.plan_vfs([target], {PF: have}, files, record={}, folders=FOLDERS, present=present)


@given(targets(), HAVE, st.booleans())
def test_what_is_reached_needs_no_further_change(
    target: boot_unit.Target, have: tuple[vf.Vf, ...], present: bool
) -> None:
    first = plan(target, have, {}, present)
    reached = tuple(
        make_vf(index, {**(dict(have[index].settings) if PF not in first.anew else {}), **want})
        for index, want in enumerate(target.vfs)
    )
    there = dataclasses.replace(target, port=make_port(target.up))
    second = plan(there, reached, first.change.after["files"], present)
    assert (second.change.changed, second.anew) == (False, ())


@given(targets(), HAVE)
def test_vfs_go_only_when_the_number_or_an_address_changes(target: boot_unit.Target, have: tuple[vf.Vf, ...]) -> None:
    anew = bool(plan(target, have, {}, True).anew)
    derived = any("mac" in want for want in target.vfs)
    assert anew == (len(have) != len(target.vfs) or (derived and bool(have)))


@given(targets(), HAVE, st.integers(0, 15))
def test_a_vf_in_use_is_never_taken_away(target: boot_unit.Target, have: tuple[vf.Vf, ...], which: int) -> None:
    if not have:
        return
    index = which % len(have)
    used = (*have[:index], dataclasses.replace(have[index], driver=vf.VFIO), *have[index + 1 :])
    if plan(target, have, {}, True).anew:
        with pytest.raises(ConflictError, match=f"VF {index} .* is bound to vfio-pci"):
            plan(target, used, {}, True)
    else:
        assert plan(target, used, {}, True).anew == ()


@given(targets())
def test_a_boot_is_served_where_there_are_vfs(target: boot_unit.Target) -> None:
    files = plan(target, (), {}, True).change.after["files"]
    assert len(files) == (3 if target.vfs else 0)
    assert plan(target, (), files, False).change.after["files"] == {}
