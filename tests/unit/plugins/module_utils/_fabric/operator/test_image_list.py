"""The images that nodes pull."""

from __future__ import annotations

import re

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.digests import known, parsed, with_digest
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.releases import LINES, line_of
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.chart_images import chart_images
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


def test_the_table_of_digests() -> None:
    found = known()
    assert all(re.fullmatch(r"nvcr\.io/nvidia/[a-z-]+/[a-z0-9_-]+:[a-z0-9.-]+", name) for name in found)
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in found.values())
    # A row that was copied twice would pin the wrong image.
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("release", ["25.10.0", "26.1.2", "26.4.1", "26.7.0"])
def test_the_images_of_the_releases_that_the_page_names_have_digests(release: str) -> None:
    """All that a plan can pull but drivers, in every network model; documented in docs/manifests.md."""
    line, pinned = line_of(release), known()
    assert line
    names = {name for name in line.images.values() if name not in ("doca-driver", "doca_telemetry")}
    assert {
        name for name in names if f"nvcr.io/nvidia/mellanox/{name}:network-operator-v{release}" not in pinned
    } == set()
    values = {
        "nfd": {"enabled": False},
        "sriovNetworkOperator": {"enabled": True},
        "sriov-network-operator": {"operator": {"admissionControllers": {"enabled": True}}},
        "maintenanceOperator": {"enabled": True},
    }
    of_chart, _unknown = chart_images(line, release, values, driver=True)
    assert [name for name in of_chart if name not in pinned and "injector" not in name] == []
    assert f"nvcr.io/nvidia/doca/doca_telemetry:{line.telemetry[release]}" in pinned


def test_digests_of_a_file() -> None:
    one, two = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
    text = f"""| Repository | Image Name | Tag | Digest |
|---|---|---|---|
| nvcr.io/nvidia/mellanox | multus-cni | network-operator-v26.7.1 | {one} |
nvcr.io/nvidia/mellanox\tplugins\tnetwork-operator-v26.7.1\t{two}
- image: registry.example.com:5000/m/ipam:v1@{one} # of {two}
registry.example.com/m/nfd:v2 {two}
# without an image {one}
nvcr.io/nvidia/mellanox/plain:v1
"""
    assert parsed(text) == {
        "nvcr.io/nvidia/mellanox/multus-cni:network-operator-v26.7.1": one,
        "nvcr.io/nvidia/mellanox/plugins:network-operator-v26.7.1": two,
        "registry.example.com:5000/m/ipam:v1": one,
        "registry.example.com/m/nfd:v2": two,
    }


def test_a_digest_follows_the_tag_in_the_list_and_replaces_it_in_the_mirror() -> None:
    digest = f"sha256:{'1' * 64}"
    digests = {"nvcr.io/nvidia/mellanox/ipam:v1": digest}
    assert with_digest("nvcr.io/nvidia/mellanox/ipam:v1", digests) == f"nvcr.io/nvidia/mellanox/ipam:v1@{digest}"
    assert with_digest("nvcr.io/nvidia/mellanox/ipam:v2", digests) == "nvcr.io/nvidia/mellanox/ipam:v2"
    for name in ("nvcr.io/nvidia/mellanox/ipam:v1", "m.example.com/m/ipam:v1"):
        (pair,) = mirror([name], "m.example.com/m", "26.7.1", digests=digests)
        assert pair == (f"nvcr.io/nvidia/mellanox/ipam@{digest}", "m.example.com/m/ipam:v1")
