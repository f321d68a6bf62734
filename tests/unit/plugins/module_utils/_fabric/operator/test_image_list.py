"""The images that nodes pull."""

from __future__ import annotations

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.releases import LINES
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.image_list import images, mirror
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
        "registry.example.com/drivers/doca:v2",
    ]


def test_a_mirror_is_filled_from_the_vendors_registry() -> None:
    names = ["mirror.example.com/m/ipam:v1", "registry.example.com/drivers/doca:v2"]
    pairs = mirror(names, "mirror.example.com/m", "26.7.1")
    assert pairs == [("nvcr.io/nvidia/mellanox/ipam:v1", "mirror.example.com/m/ipam:v1")]
    assert mirror(["nvcr.io/nvidia/mellanox/ipam:v1"], "nvcr.io/nvidia/mellanox", "26.7.1") == []
    (pair, _other) = mirror([*names[:1], "mirror.example.com/m/x:v1"], "mirror.example.com/m", "26.7.0-rc.2")
    assert pair[0] == "nvcr.io/nvstaging/mellanox/ipam:v1"


@pytest.mark.parametrize("release", [release for line in LINES.values() for release in line.releases])
def test_every_line_pulls_the_same_images_with_its_own_tag(release: str) -> None:
    fabric = {"supernet": "192.168.0.0/16", "operator": {"release": release}}
    names = ("k8s-rdma-shared-dev-plugin", "multus-cni", "nvidia-k8s-ipam", "plugins")
    found = images(plan(fabric, fleet(2))["objects"]["policy"])
    assert found == [f"nvcr.io/nvidia/mellanox/{name}:network-operator-v{release}" for name in names]
