"""The images that nodes pull."""

from __future__ import annotations

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.releases import LINES
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.image_list import drivers, images, mirror
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

POLICY = {
    "spec": {
        "global": {"repository": "nvcr.io/nvidia/mellanox", "version": "v1"},
        "nvIpam": {"image": "ipam"},
        "ofedDriver": {"image": "doca", "repository": "registry.example.com/drivers", "version": "v2"},
        "secondaryNetwork": {"multus": {"image": "multus"}, "cniPlugins": {"image": "plugins"}},
    }
}


def test_each_component_has_its_own_repository_or_the_common_one() -> None:
    assert images([POLICY, {"kind": "ConfigMap"}]) == [
        "nvcr.io/nvidia/mellanox/ipam:v1",
        "nvcr.io/nvidia/mellanox/multus:v1",
        "nvcr.io/nvidia/mellanox/plugins:v1",
    ]
    # Their tags are not complete.
    assert drivers([POLICY, {"kind": "ConfigMap"}]) == ["registry.example.com/drivers/doca:v2"]


def test_a_mirror_is_filled_from_the_vendors_registry() -> None:
    names = ["mirror.example.com/m/ipam:v1", "registry.example.com/drivers/doca:v2"]
    pairs = mirror(names, "mirror.example.com/m", "26.7.1")
    assert pairs == [("nvcr.io/nvidia/mellanox/ipam:v1", "mirror.example.com/m/ipam:v1")]
    assert mirror(["nvcr.io/nvidia/mellanox/ipam:v1"], "nvcr.io/nvidia/mellanox", "26.7.1") == []
    (pair, _other) = mirror([*names[:1], "mirror.example.com/m/x:v1"], "mirror.example.com/m", "26.7.0-rc.2")
    assert pair[0] == "nvcr.io/nvstaging/mellanox/ipam:v1"


def test_images_of_the_chart_and_of_other_teams_are_mirrored_from_where_they_are() -> None:
    digest = f"sha256:{'0' * 64}"
    names = ["nvcr.io/nvidia/cloud-native/network-operator:v26.7.1", "m.example.com/m/doca_telemetry:1"]
    names += ["ghcr.io/another/image:v1", f"m.example.com/m/multus-cni@{digest}"]
    assert mirror(names, "m.example.com/m", "26.7.1") == [
        ("nvcr.io/nvidia/cloud-native/network-operator:v26.7.1", "m.example.com/m/network-operator:v26.7.1"),
        ("nvcr.io/nvidia/doca/doca_telemetry:1", "m.example.com/m/doca_telemetry:1"),
        (f"nvcr.io/nvidia/mellanox/multus-cni@{digest}", f"m.example.com/m/multus-cni@{digest}"),
    ]


def test_a_component_can_be_pinned_by_its_digest() -> None:
    digest = f"sha256:{'a' * 64}"
    fabric = {"supernet": "192.168.0.0/16", "operator": {"components": [{"name": "multus", "version": digest}]}}
    found = images(plan(fabric, fleet(2))["objects"]["policy"])
    assert f"nvcr.io/nvidia/mellanox/multus-cni@{digest}" in found


@pytest.mark.parametrize("release", [release for line in LINES.values() for release in line.releases])
def test_every_line_pulls_the_same_images_with_its_own_tag(release: str) -> None:
    fabric = {"supernet": "192.168.0.0/16", "operator": {"release": release}}
    names = ("k8s-rdma-shared-dev-plugin", "multus-cni", "nvidia-k8s-ipam", "plugins")
    found = images(plan(fabric, fleet(2))["objects"]["policy"])
    assert found == [f"nvcr.io/nvidia/mellanox/{name}:network-operator-v{release}" for name in names]
