"""The layers of rdma_fabric: merged as Ansible's filter merges them, and named in messages. Less than a second."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.layers import (
    attributed,
    layer_problem,
    merged,
)

BASE, OVER, JOB = "rdma_fabric", "rdma_fabric_overrides", "rdma_fabric_job"


def test_dicts_are_merged_and_all_else_replaced() -> None:
    layers = {
        BASE: {"mtu": 1500, "tests": {"kinds": ["a", "b"], "budget": "quick"}},
        OVER: {"mtu": 9000, "tests": {"kinds": ["c"]}},
        JOB: {"tests": {"budget": "deep"}, "vlan": 5},
    }
    assert merged(layers) == {"mtu": 9000, "vlan": 5, "tests": {"kinds": ["c"], "budget": "deep"}}
    assert layers[BASE]["tests"] == {"kinds": ["a", "b"], "budget": "quick"}


@pytest.mark.parametrize("wrong", ["text", 5, ["a"]])
def test_a_layer_that_is_no_dict_is_refused_with_the_way_to_give_it(wrong: Any) -> None:
    assert f"{JOB}: expected a dict with keys of rdma_fabric, found" in layer_problem(JOB, wrong)
    assert """-e '{"rdma_fabric_job": {"tests": {"budget": "quick"}}}'""" in layer_problem(JOB, wrong)
    assert not layer_problem(JOB, None)


@pytest.mark.parametrize("wrong", ["text", None, ["a"]])
def test_a_base_that_is_no_dict_stays_what_it_is_for_its_own_message(wrong: Any) -> None:
    assert merged({BASE: wrong, JOB: {"mtu": 9000}}) == wrong


@pytest.mark.parametrize(
    "text, expected",
    [
        ("rdma_fabric.tests.budget: expected", f"{JOB}.tests.budget: expected"),
        ("rdma_fabric.tests.budgets: unknown", "rdma_fabric.tests.budgets: unknown"),
        ("rdma_fabric.rails[0].pci: wrong", f"{OVER}.rails[0].pci: wrong"),
        ("rdma_fabric.mtu, rdma_fabric.vlan", f"rdma_fabric.mtu, {JOB}.vlan"),
        ("set rdma_fabric.vlan.", f"set {JOB}.vlan."),
    ],
)
def test_a_path_has_the_name_of_the_layer_that_sets_it(text: str, expected: str) -> None:
    layers = {BASE: {"mtu": 1}, OVER: {"rails": [], "vlan": 4}, JOB: {"tests": {"budget": "x"}, "vlan": 5}}
    assert attributed(text, layers) == expected


def test_a_key_with_a_backslash_is_a_key() -> None:
    assert attributed(r"rdma_fabric.te\gsts: unknown", {BASE: {}, JOB: {r"te\gsts": 1}}) == rf"{JOB}.te\gsts: unknown"


KEYS = st.sampled_from("abc")
VALUES = st.recursive(
    st.integers() | st.lists(st.integers(), max_size=2), lambda x: st.dictionaries(KEYS, x, max_size=3)
)
DICTS = st.dictionaries(KEYS, VALUES, max_size=3)


@given(DICTS, DICTS)
def test_one_layer_after_the_other_is_both_at_once(over: dict[str, Any], job: dict[str, Any]) -> None:
    base = {"a": {"b": 1}}
    assert merged({BASE: base, OVER: over, JOB: job}) == merged({BASE: merged({BASE: base, OVER: over}), JOB: job})
    assert merged({BASE: over, JOB: over}) == over
