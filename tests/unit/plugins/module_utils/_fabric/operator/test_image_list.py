"""The images that nodes pull."""

from __future__ import annotations

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.image_list import images, mirror

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
