"""A release line is one entry: the rest of the product picks up a new one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import intent, releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.readiness import policy_ready
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks.problems import Aim, Found, problems

LAST = list(releases.LINES)[-1]
# A year later than the last one.
NEXT = f"{int(LAST.split('.')[0]) + 1}.1"
LINE = releases.Line(
    NEXT,
    (1, 99),
    releases.SUPPORTED,
    {},
    images={**releases.LINES[LAST].images, "nv_ipam": "ipam-next"},
    registry="registry.example.com/next",
)
FABRIC: dict[str, Any] = {"supernet": "192.168.0.0/16", "operator": {"release": f"{NEXT}.0"}}
LABEL = {"feature.node.kubernetes.io/pci-15b3.present": "true"}
NODE = {"name": "a", "ready": True, "labels": LABEL}


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(releases.LINES, NEXT, LINE)


def found(version: tuple[int, int]) -> Found:
    return Found("v{}.{}.0".format(*version), version, [NODE], {"h": "a"}, [], [])


def test_without_the_entry_it_is_refused() -> None:
    with pytest.raises(Exception, match=f"{NEXT}.0 is not of a supported release line"):
        plan(FABRIC, fleet(2))
    (said,) = problems(Aim(f"{NEXT}.0", "op", True, {}), found((1, 99)))
    assert said.startswith(f"release {NEXT}.0 of the network operator is not supported")
    policy = {"metadata": {"name": "p", "uid": "1"}, "status": {"state": "ready"}}
    assert "is not supported" in str(
        policy_ready(policy, [], [], nodes=[], pods=[], expected_nodes=[], release=f"{NEXT}.0")
    )


@pytest.mark.usefixtures("added")
def test_the_intent_accepts_it_and_the_policy_is_built_for_it() -> None:
    (policy,) = plan(FABRIC, fleet(2))["objects"]["policy"]
    assert policy["spec"]["global"] == {"repository": LINE.registry, "version": f"network-operator-v{NEXT}.0"}
    assert "ipam-next" in str(policy["spec"])


@pytest.mark.usefixtures("added")
def test_it_has_its_place_in_the_order_of_upgrades() -> None:
    first, *_rest = releases.LINES
    assert releases.upgrade_problem(f"{LAST}.0", f"{NEXT}.0") == ""
    assert f"{LAST} -> {NEXT}" in releases.upgrade_problem(f"{first}.0", f"{NEXT}.0")
    assert "downgrade" in releases.upgrade_problem(f"{NEXT}.0", f"{LAST}.0")


@pytest.mark.usefixtures("added")
def test_the_checks_of_a_cluster_accept_it_with_its_version_of_kubernetes() -> None:
    aim = Aim(f"{NEXT}.0", "op", True, {})
    assert list(problems(aim, found((1, 99)))) == []
    (said,) = problems(aim, found((1, 98)))
    assert "needs 1.99 or newer" in said
    (said,) = problems(dataclasses.replace(aim, release="1.0.0"), found((1, 99)))
    assert said.count(NEXT) == 1


def test_the_default_is_what_an_intent_without_a_release_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intent, "DEFAULT", f"{LAST}.42")
    made = plan({"supernet": "192.168.0.0/16"}, fleet(2))
    assert made["operator"]["release"] == f"{LAST}.42"
