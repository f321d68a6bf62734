"""Planning firmware settings: what is set needs no further setting, and what was there before us is kept once."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.firmware import mlxconfig
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.firmware import plan as firmware_plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.firmware.mlxconfig import Setting
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.firmware.plan import Card, Have, plan_settings

NAMES = ["SRIOV_EN", "NUM_OF_VFS", "LINK_TYPE_P1"]
PCI = "0000:18:00.0"
VALUE = st.sampled_from(["0", "1", "2", "16", "True(1)", "ETH(2)", "IB(1)"])
HAVE = st.fixed_dictionaries({name: st.builds(Setting, VALUE, st.none() | VALUE, VALUE) for name in NAMES})
WANT = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["0", "1", "2", "16"]))


def card(want: dict[str, str]) -> Card:
    return Card(PCI, PCI, "28.39.1002", ("mlx5_0",), want)


def after(have: dict[str, Setting], sets: dict[str, str]) -> dict[str, Setting]:
    return {n: Setting(s.default, s.current, sets.get(n, s.next)) for n, s in have.items()}


@given(HAVE, WANT)
def test_what_is_set_needs_no_further_setting(have: dict[str, Setting], want: dict[str, str]) -> None:
    first = plan_settings([card(want)], {PCI: Have(have, ())}, {}, boot="boot", present=True)
    sets = dict(first.sets.get(PCI, {}))
    assert all(not mlxconfig.same(want[name], have[name].next) for name in sets)
    second = plan_settings([card(want)], {PCI: Have(after(have, sets), ())}, first.record, boot="boot", present=True)
    assert (second.change.changed, second.sets, second.reasons) == (False, {}, first.reasons)
    assert first.change.changed == bool(sets)


@given(HAVE, WANT, WANT)
def test_values_of_before_come_back(have: dict[str, Setting], one: dict[str, str], two: dict[str, str]) -> None:
    record, now = {}, have
    for want in (one, two):
        plan = plan_settings([card(want)], {PCI: Have(now, ())}, record, boot="boot", present=True)
        record, now = dict(plan.record), after(now, dict(plan.sets.get(PCI, {})))
    entry = record.get(PCI, {"before": {}})
    back = card({name: mlxconfig.plain(name, text) for name, text in entry["before"].items()})
    plan = plan_settings([back], {PCI: Have(now, ())}, record, boot="boot", present=False)
    now = after(now, dict(plan.sets.get(PCI, {})))
    assert all(mlxconfig.same(now[name].next, have[name].next) for name in NAMES)


@given(HAVE, WANT)
def test_a_reboot_that_loads_all_leaves_nothing(have: dict[str, Setting], want: dict[str, str]) -> None:
    first = plan_settings([card(want)], {PCI: Have(have, ())}, {}, boot="boot", present=True)
    loaded = {n: Setting(s.default, s.next, s.next) for n, s in after(have, dict(first.sets.get(PCI, {}))).items()}
    second = plan_settings([card(want)], {PCI: Have(loaded, ())}, first.record, boot="next", present=True)
    assert (second.sets, second.reasons, second.cold) == ({}, (), ())


@given(st.text(), st.text())
def test_any_text_is_a_version_or_an_error_of_ours(found: str, wanted: str) -> None:
    with contextlib.suppress(InputError):
        firmware_plan.version_problems([Card(PCI, PCI, found, (), {})], [wanted], [])


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers())))
def test_any_dict_is_wanted_or_an_error_of_ours(settings: dict[str, object]) -> None:
    with contextlib.suppress(FabricError):
        mlxconfig.wanted_values(settings)
