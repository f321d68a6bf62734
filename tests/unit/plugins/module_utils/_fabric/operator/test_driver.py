"""The driver container: its section on every line, its options, and who owns the drivers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plugins.module_utils._fabric.operator.test_conformance import RELEASES, check
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.releases import line_of
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.role_variables import driver_problems
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.image_list import drivers
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

TAG = "doca3.5.0-26.07-0.7.7.0-1"
DRAIN = {"enable": True, "force": False, "deleteEmptyDir": False, "timeoutSeconds": 300}
EVERYTHING = {
    "precompiled": True,
    "env": {"UNLOAD_STORAGE_MODULES": "true", "BIND_DELAY_SEC": 4},
    "cert_config": "certificates",
    "repo_config": "sources",
    "startup_minutes": 25,
    "upgrade": {
        "auto": True,
        "max_parallel": 4,
        "safe_load": True,
        "drain_force": True,
        "drain_empty_dir": True,
        "drain_timeout": 60,
        "wait_selector": "job=training",
        "wait_timeout": 3600,
    },
}


def planned(release: str = "26.7.0", operator: Any = None, **driver: Any) -> dict[str, Any]:
    own = {"release": release, "driver": {"enabled": True, **driver}, **(operator or {})}
    return plan({"supernet": "192.168.0.0/16", "operator": own}, fleet(2))


def section(**given: Any) -> dict[str, Any]:
    return dict(planned(**given)["objects"]["policy"][0]["spec"]["ofedDriver"])


def test_the_defaults() -> None:
    assert section() == {
        "image": "doca-driver",
        "version": TAG,
        "startupProbe": {"initialDelaySeconds": 10, "periodSeconds": 20, "failureThreshold": 90},
        "upgradePolicy": {"autoUpgrade": False, "maxParallelUpgrades": 1, "safeLoad": False, "drain": DRAIN},
    }
    assert "ofedDriver" not in planned(enabled=False)["objects"]["policy"][0]["spec"]


def test_every_option() -> None:
    found = section(**EVERYTHING)
    assert found["startupProbe"]["failureThreshold"] == 75
    assert found["forcePrecompiled"] is True
    assert found["env"] == [
        {"name": "BIND_DELAY_SEC", "value": "4"},
        {"name": "UNLOAD_STORAGE_MODULES", "value": "true"},
    ]
    assert (found["certConfig"], found["repoConfig"]) == ({"name": "certificates"}, {"name": "sources"})
    assert found["upgradePolicy"] == {
        "autoUpgrade": True,
        "maxParallelUpgrades": 4,
        "safeLoad": True,
        "drain": {"enable": True, "force": True, "deleteEmptyDir": True, "timeoutSeconds": 60},
        "waitForCompletion": {"podSelector": "job=training", "timeoutSeconds": 3600},
    }


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["defaults", "every option"])
def test_every_line_takes_it(release: str, options: dict[str, Any]) -> None:
    line = line_of(release)
    assert line
    known = line.releases.get(release)
    known = line.precompiled.get(release, known) if options.get("precompiled") else known
    (policy,) = planned(release, **options, **({} if known else {"version": TAG}))["objects"]["policy"]
    check(RELEASES[release], policy)
    assert policy["spec"]["ofedDriver"]["version"] == (known or TAG)
    repository = line.repository(release)
    assert f"{repository}/doca-driver:{known or TAG}" in drivers([policy])


def test_images_with_compiled_drivers_can_have_a_tag_of_their_own() -> None:
    assert section(precompiled=True)["version"] == "doca3.5.0-26.07-0.7.7.0-0"
    assert section(precompiled=True, version=TAG)["version"] == TAG
    assert section(release="26.4.0", precompiled=True)["version"] == "doca3.4.0-26.04-0.8.6.0-0"


@pytest.mark.parametrize(
    ("release", "driver", "message"),
    [
        (
            "26.4.1",
            {"precompiled": True},
            "version: missing. The tag of the driver with precompiled images for release 26.4.1 is not known here",
        ),
        ("26.7.1", {}, "version: missing. The tag of the driver for release 26.7.1 is not known here"),
        (
            "26.7.0",
            {"version": TAG + "-ubuntu24.04-amd64"},
            "version: doca3.5.0-26.07-0.7.7.0-1-ubuntu24.04-amd64 has the",
        ),
        ("26.7.0", {"env": {"A-B": "1"}}, "env: expected names of variables such as UNLOAD_STORAGE_MODULES"),
        ("26.7.0", {"env": {"A": True}}, 'env: A: expected text. Quote the value, such as "true"'),
        ("26.7.0", {"upgrade": {"safe_load": True}}, "upgrade.safe_load: has an effect with auto: true only"),
        ("26.7.0", {"cert_config": "A_B"}, "cert_config: expected the name of a ConfigMap"),
    ],
)
def test_what_is_refused(release: str, driver: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(release, **driver)
    assert str(caught.value).startswith(f"rdma_fabric.operator.driver.{message}")


def test_nodes_need_the_labels_of_nfd() -> None:
    labels = {"feature.node.kubernetes.io/pci-15b3.present": "true"}
    own = {"release": "26.7.0", "nfd": False, "driver": {"enabled": True}}
    made = plan({"supernet": "192.168.0.0/16", "node_labels": labels, "operator": own}, fleet(2))
    assert [text for text in made["warnings"] if "the labels of NFD for operating system and kernel" in text]


@pytest.mark.parametrize(
    ("provider", "enabled", "problem"),
    [
        (None, None, ""),
        ("doca_ofed", False, ""),
        ("container", True, ""),
        ("container", "yes", ""),
        ("container", None, "rdma_stack_provider is container, but nothing deploys the driver container"),
        (None, True, "replaces the drivers of the hosts, but rdma_stack_provider is inbox. Set"),
        ("doca_ofed", "true", "replaces the drivers of the hosts, but rdma_stack_provider is doca_ofed. Set"),
    ],
)
def test_hosts_and_policy_agree(provider: str | None, enabled: Any, problem: str) -> None:
    given = {} if provider is None else {"rdma_stack_provider": provider}
    fabric = {"operator": {"driver": {"enabled": enabled}}}
    found = driver_problems(given, fabric)
    assert bool(found) == bool(problem)
    assert problem in " ".join(found)


@pytest.mark.parametrize("fabric", [None, "text", {"operator": None}, {"operator": {"driver": 1}}])
def test_a_fabric_that_cannot_be_read_is_no_matter_of_drivers(fabric: Any) -> None:
    assert driver_problems({}, fabric) == []


CLASSES: dict[str, Any] = {"name": "b", "hosts": ["gpu-0002"], "supernet": "10.0.0.0/16", "profile": "host_device"}
OTHER = "doca3.2.2-25.10-2.4.1.0-4"


def of_classes(release: str, version: str | None = OTHER, **driver: Any) -> dict[str, Any]:
    own = {"release": release, "driver": {"enabled": True, "version": TAG, **driver}}
    classes = [{**CLASSES, **({"driver_version": version} if version else {})}]
    return plan({"supernet": "192.168.0.0/16", "operator": own, "classes": classes}, fleet(2))


@pytest.mark.parametrize(
    "release", [release for release in RELEASES if (line := line_of(release)) and line.has("NicNodePolicy")]
)
def test_a_class_can_have_a_driver_of_another_version(release: str) -> None:
    cluster, *nodes = of_classes(release, env={"A": "1"})["objects"]["policy"]
    assert "ofedDriver" not in cluster["spec"]
    found = [item["spec"]["ofedDriver"] for item in nodes]
    assert [one["version"] for one in found] == [TAG, OTHER]
    assert all(one["repository"] and one["env"] == [{"name": "A", "value": "1"}] for one in found)
    for item in (cluster, *nodes):
        check(RELEASES[release], item)


def test_classes_with_one_version_have_one_driver() -> None:
    for version in (None, TAG):
        cluster, *nodes = of_classes("26.7.0", version)["objects"]["policy"]
        assert cluster["spec"]["ofedDriver"]["version"] == TAG
        assert not [item for item in nodes if "ofedDriver" in item["spec"]]


def test_each_version_is_pulled_for_the_systems_of_its_hosts() -> None:
    hosts = fleet(2)
    for host, system in zip(hosts.values(), (("ubuntu", "24.04"), ("rhel", "9.4"))):
        host["facts"]["os"] = {"id": system[0], "version": system[1], "name": "any"}
    own = {"release": "26.7.0", "driver": {"enabled": True, "version": TAG}}
    made = plan(
        {"supernet": "192.168.0.0/16", "operator": own, "classes": [{**CLASSES, "driver_version": OTHER}]}, hosts
    )
    names = manifests(made, Chart())["images.txt"].splitlines()
    repository = "nvcr.io/nvidia/mellanox/doca-driver"
    assert [name for name in names if "doca-driver" in name] == [
        f"{repository}:{OTHER}-rhel9.4-amd64",
        f"{repository}:{TAG}-ubuntu24.04-amd64",
    ]


@pytest.mark.parametrize(
    ("release", "version", "driver", "message"),
    [
        (
            "26.1.2",
            OTHER,
            {},
            "classes[].driver_version: release line 26.1 of the network operator has one driver for all",
        ),
        (
            "26.7.0",
            OTHER,
            {"enabled": False},
            "classes[0].driver_version: has an effect with rdma_fabric.operator.driver",
        ),
        (
            "26.7.0",
            f"{OTHER}-rhel9.4-amd64",
            {},
            "classes[b].driver_version: doca3.2.2-25.10-2.4.1.0-4-rhel9.4-amd64 has",
        ),
    ],
)
def test_what_is_refused_of_classes(release: str, version: str, driver: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        of_classes(release, version, **driver)
    assert message in str(caught.value)
