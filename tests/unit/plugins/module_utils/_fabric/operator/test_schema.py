"""Objects against the definitions of their kinds, at plan time. Costs about a second."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.releases import LINES
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator import schema, schema_table
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

from .test_conformance import RELEASES, validator

NEWEST = LINES["26.7"]
FABRIC: dict[str, Any] = {"supernet": "192.168.0.0/16", "rails": [{"name": f"rail{n}"} for n in range(2)]}


def policy(**spec: Any) -> dict[str, Any]:
    return {"kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"}, "spec": spec}


def overridden(overrides: dict[str, Any], release: str = "26.7.1") -> str:
    """The message for overrides of the policy, empty when they are taken."""
    operator = {"release": release, "policy_overrides": overrides}
    try:
        plan({**FABRIC, "operator": operator}, fleet(2))
    except InputError as error:
        return str(error)
    return ""


def test_a_typo_in_an_override_is_an_error_with_its_path_and_the_nearest_field() -> None:
    assert overridden({"nvIPAM": {"enableWebhook": True}}) == (
        'NicClusterPolicy nic-cluster-policy: spec.nvIPAM: unknown field; did you mean "nvIpam"? (definition of'
        " 26.7.0-rc.2). Correct rdma_fabric.operator.policy_overrides.nvIPAM"
    )


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"nvIpam": {"enableWebhook": "yes"}}, 'spec.nvIpam.enableWebhook: expected true or false, found "yes" (text)'),
        ({"nvIpam": {"version": 4}}, "spec.nvIpam.version: expected text, found 4 (number)"),
        ({"nvIpam": {"image": ""}}, r'spec.nvIpam.image: expected text that matches [a-zA-Z0-9\-]+, found ""'),
        ({"nicFeatureDiscovery": {"version": "v1"}}, "spec.nicFeatureDiscovery.image: missing"),
        ({"tolerations": {}}, "spec.tolerations: expected a list, found a dict"),
        ({"tolerations": [{"key": "a"}, {"kay": "b"}]}, 'spec.tolerations[1].kay: unknown field; did you mean "key"?'),
        (
            {"ofedDriver": {"image": "doca-driver", "upgradePolicy": {"maxParallelUpgrades": -1}}},
            "spec.ofedDriver.upgradePolicy.maxParallelUpgrades: expected 0 or more, found -1",
        ),
        (
            {"nicConfigurationOperator": {"logLevel": "loud", "operator": {}, "configurationDaemon": {}}},
            'spec.nicConfigurationOperator.logLevel: expected one of info, debug, found "loud" (text)',
        ),
        (
            {"multus": {}, "nvIpam": {"containerResources": [{"name": "a", "limits": {"cpu": 0.5}}]}},
            "spec.nvIpam.containerResources[0].limits.cpu: expected a whole number or text, found 0.5 (number)",
        ),
    ],
)
def test_what_an_override_gets_wrong_is_named(overrides: dict[str, Any], message: str) -> None:
    found = overridden(overrides)
    assert message in found
    assert "rdma_fabric.operator.policy_overrides." in found


@pytest.mark.parametrize("release", ["25.10.0", "26.1.2", "26.4.2", "26.7.1"])
def test_right_overrides_are_taken(release: str) -> None:
    probe = {"initialDelaySeconds": 1, "periodSeconds": 2}
    driver = {"image": "doca-driver", "repository": "r", "version": "v", "livenessProbe": probe}
    limits = {"memory": "1Gi", "cpu": 2}
    assert (
        overridden(
            {
                "ofedDriver": {**driver, "env": [{"name": "A", "value": "b"}]},
                "nvIpam": {"containerResources": [{"name": "nv-ipam-node", "limits": limits}]},
                "deploymentTolerations": [{"operator": "Exists"}],
            },
            release,
        )
        == ""
    )


def test_all_problems_are_told_at_once() -> None:
    found = overridden({"nvIPAM": {}, "psp": {"enabled": True}})
    assert found.count("unknown field") == len(found.splitlines()) == 2


def test_the_tool_that_made_the_object_is_not_blamed_on_the_user() -> None:
    with pytest.raises(InputError, match="found -1 .* Correct the option of rdma_fabric that sets it"):
        schema.check(NEWEST, [{"kind": "MacvlanNetwork", "metadata": {"name": "a"}, "spec": {"mtu": -1}}], {"mtu": 1})


def test_a_kind_whose_definition_is_not_known_on_a_line_is_refused() -> None:
    item = {"kind": "NicConfigurationTemplate", "metadata": {"name": "a"}, "spec": {}}
    with pytest.raises(
        InputError, match=r"on release line 26.1 .* not known here. Lines on which it is known: 26.4, 26.7"
    ):
        schema.check(LINES["26.1"], [item], {})


def test_other_kinds_are_not_checked() -> None:
    schema.check(NEWEST, [{"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}}], {})


def test_every_planned_kind_is_in_the_table() -> None:
    for kind in registry.kinds():
        assert kind.kind in schema_table.KINDS
    assert set(schema_table.SOURCES) == set(LINES)


def accepted(item: dict[str, Any], release: str) -> bool:
    try:
        schema.check(LINES[release.rpartition(".")[0]], [item], {})
    except InputError:
        return False
    return True


_LEAVES = st.one_of(st.booleans(), st.integers(-2, 5), st.sampled_from(["", "info", "100Mi", "a b"]), st.just([]))
_NAMES = ("nvIpam", "image", "version", "enableWebhook", "containerResources", "tolerations", "name", "limits", "cpu")
_TREES = st.recursive(
    _LEAVES,
    lambda below: st.one_of(st.lists(below, max_size=2), st.dictionaries(st.sampled_from(_NAMES), below, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(("nvIpam", "tolerations", "nicFeatureDiscovery", "multus")), _TREES, max_size=2))
def test_it_refuses_what_the_definition_refuses(spec: dict[str, Any]) -> None:
    """The second opinion is jsonschema with the definition itself."""
    item = policy(**json.loads(json.dumps(spec)))
    second = validator(RELEASES["26.7.1"], "NicClusterPolicy").is_valid(item)
    assert accepted(item, "26.7.1") == second


def test_objects_of_eight_rails_are_checked_quickly() -> None:
    """Section of the plan's time: all profiles take 50 ms together."""
    rails = [{"name": f"rail{n}"} for n in range(8)]
    items = []
    for name in registry.names():
        hosts = fleet(2, rails=8, link_layer=registry.get(name).link_layer)
        made = plan({**FABRIC, "rails": rails, "profile": name}, hosts)["objects"]
        items += [*made["policy"], *made["networks"]]
    assert len(items) > 80
    start = time.process_time()
    schema.check(NEWEST, items, {})
    assert time.process_time() - start < 0.05
