"""The images of the operator's chart. Costs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.releases import line_of
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.chart_images import chart_images

VENDOR, OWN = "nvcr.io/nvidia/mellanox", "r.example.com/m"
OPERATOR = "nvcr.io/nvidia/cloud-native/network-operator:v26.7.1"
NO_NFD: dict[str, Any] = {"nfd": {"enabled": False}}


def found(values: dict[str, Any], release: str = "26.7.1", driver: bool = False) -> tuple[list[str], list[str]]:
    line = line_of(release)
    assert line
    result: tuple[list[str], list[str]] = chart_images(line, release, values, driver=driver)
    return result


@pytest.mark.parametrize(
    ("values", "driver", "names", "unknown"),
    [
        ({}, False, [OPERATOR], ["node-feature-discovery"]),
        (NO_NFD, False, [OPERATOR], []),
        (NO_NFD, True, [OPERATOR, f"{VENDOR}/network-operator-init-container:network-operator-v26.7.1"], []),
        ({**NO_NFD, "operator": {"ofedDriver": {"initContainer": {"enable": False}}}}, True, [OPERATOR], []),
        ({**NO_NFD, "operator": {"repository": OWN, "tag": "v9"}}, False, [f"{OWN}/network-operator:v9"], []),
        (
            {"node-feature-discovery": {"image": {"repository": f"{OWN}/nfd", "tag": "v1"}}},
            False,
            [OPERATOR, f"{OWN}/nfd:v1"],
            [],
        ),
        (
            {**NO_NFD, "maintenanceOperator": {"enabled": True}},
            False,
            [OPERATOR, f"{VENDOR}/maintenance-operator:network-operator-v26.7.1"],
            [],
        ),
        ({**NO_NFD, "operator": "text", "sriovNetworkOperator": None}, False, [OPERATOR], []),
    ],
)
def test_images(values: dict[str, Any], driver: bool, names: list[str], unknown: list[str]) -> None:
    assert found(values, driver=driver) == (names, unknown)


def test_images_of_the_sriov_operator() -> None:
    values = {**NO_NFD, "sriovNetworkOperator": {"enabled": True}}
    names, unknown = found(values)
    tail = ":network-operator-v26.7.1"
    assert names == [
        OPERATOR,
        f"{VENDOR}/ib-sriov-cni{tail}",
        f"{VENDOR}/ovs-cni-plugin{tail}",
        f"{VENDOR}/rdma-cni{tail}",
        f"{VENDOR}/sriov-cni{tail}",
        f"{VENDOR}/sriov-network-device-plugin{tail}",
        f"{VENDOR}/sriov-network-operator-config-daemon{tail}",
        f"{VENDOR}/sriov-network-operator{tail}",
    ]
    assert unknown == []
    chart = {"operator": {"admissionControllers": {"enabled": True}}, "images": {"sriovCni": f"{OWN}/cni:v1"}}
    names, unknown = found({**values, "sriov-network-operator": chart})
    assert f"{OWN}/cni:v1" in names and f"{VENDOR}/sriov-cni{tail}" not in names
    assert f"{VENDOR}/sriov-network-operator-webhook{tail}" in names
    assert unknown == ["network-resources-injector"]


def test_a_prerelease_is_in_the_staging_registry() -> None:
    assert found(NO_NFD, "26.7.0-rc.2")[0] == ["nvcr.io/nvstaging/mellanox/network-operator:v26.7.0-rc.2"]
