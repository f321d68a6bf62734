"""The testers' namespace: never one that something else uses, and nothing of others is changed or removed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeClock, FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects.apply import Options
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers import namespace as testers_namespace
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers import steps as testers_steps
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers.manifests import Testers as Pods

MANAGED = {"app.kubernetes.io/managed-by": "gpufabric"}
ENFORCE = "pod-security.kubernetes.io/enforce"
OPERATOR = {"namespace": "op", "network_namespace": "nets"}


def pods() -> Pods:
    return Pods("tests", "t", "i", "", [], True, 100, 10)


def namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def prepare(cluster: FakeCluster) -> Any:
    testers_namespace.prepare(cluster.api(), pods(), FakeClock().clock())
    return cluster.objects["/api/v1/namespaces/tests"]["metadata"].get("labels")


def remove(cluster: FakeCluster) -> bool:
    return testers_namespace.remove(cluster.api(), pods(), Options(), clock=FakeClock().clock())


def test_a_namespace_of_ours_for_something_else_is_never_removed() -> None:
    """The role network_operator gives its namespace the same mark."""
    cluster = FakeCluster(namespace("tests", **MANAGED))
    assert remove(cluster) is False
    assert "/api/v1/namespaces/tests" in cluster.objects


def test_the_testers_namespace_comes_and_goes() -> None:
    cluster = FakeCluster()
    assert prepare(cluster)[ENFORCE] == "privileged"
    assert remove(cluster) is True
    assert cluster.objects == {}
    assert remove(cluster) is False


@pytest.mark.parametrize("labels", [{}, {ENFORCE: "privileged", "team": "x"}, MANAGED])
def test_a_namespace_of_others_is_used_as_it_is(labels: dict[str, str]) -> None:
    cluster = FakeCluster(namespace("tests", **labels))
    assert prepare(cluster) == labels
    assert remove(cluster) is False
    assert [method for method, _path in cluster.calls if method != "GET"] == []


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_namespace_of_others_that_does_not_admit_testers_is_refused(level: str) -> None:
    cluster = FakeCluster(namespace("tests", **{ENFORCE: level}))
    with pytest.raises(InputError) as caught:
        prepare(cluster)
    assert str(caught.value) == (
        f"namespace tests was not created for the testers, and its label {ENFORCE} is {level}. The testers need"
        " privileged. Set that label, or set namespace to a name that is not used"
    )
    assert [method for method, _path in cluster.calls if method != "GET"] == []


def test_a_namespace_with_another_use_ends_the_start(tmp_path: Any) -> None:
    (tmp_path / "tester.sh").touch()
    params = {"script": str(tmp_path / "tester.sh"), "namespace": "op", "plan": {"operator": OPERATOR}}
    cluster = FakeCluster()
    with pytest.raises(InputError, match="namespace is op"):
        testers_steps.started(cluster.api(), params, False, clock=FakeClock().clock())
    assert cluster.calls == []


@pytest.mark.parametrize("labels", [MANAGED, {}])
def test_a_namespace_that_is_being_deleted_is_waited_for(labels: dict[str, str]) -> None:
    """As after an abort: nothing can be created in it any more."""
    old, clock = namespace("tests", **labels), FakeClock()
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = FakeCluster(old)
    clock.at(12, lambda: cluster.objects.clear())
    testers_namespace.prepare(cluster.api(), pods(), clock.clock())
    made = cluster.objects["/api/v1/namespaces/tests"]["metadata"]
    assert (clock.time, "deletionTimestamp" in made, MANAGED.items() <= made["labels"].items()) == (12, False, True)


def test_a_pull_secret_that_is_absent_ends_the_start() -> None:
    cluster = FakeCluster(namespace("tests"))
    testers = dataclasses.replace(pods(), pull_secrets=["login"])
    with pytest.raises(InputError, match="pull secret login, named by image_pull_secret, does not exist"):
        testers_namespace.prepare(cluster.api(), testers, FakeClock().clock())
    cluster.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "tests"}})
    testers_namespace.prepare(cluster.api(), testers, FakeClock().clock())
    testers_namespace.prepare(FakeCluster().api(), testers, FakeClock().clock())
