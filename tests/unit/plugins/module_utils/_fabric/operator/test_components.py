"""Components beside those of network models, and what single ones have of their own. Costs two seconds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.components import amount
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.releases import LINES
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.role_variables import (
    TWO_FIRMWARES,
    TWO_QOS,
    nic_problems,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.nic_configuration import source_ready
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.order import delete_order
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

from .test_conformance import FILES, RELEASES, check

FABRIC: dict[str, Any] = {"supernet": "192.168.0.0/16"}
TEMPLATE = {"name": "cx7", "nic_type": "1021", "settings": {"numVfs": 8, "linkType": "Ethernet"}}
FIRMWARE = {"name": "cx7", "nic_type": "1021", "urls": ["https://example.com/fw.zip"]}
WITH_TEMPLATES = ["26.4.2", "26.7.1"]


def planned(release: str = "26.7.1", profile: str = "macvlan", **operator: Any) -> dict[str, Any]:
    made: dict[str, Any] = plan(
        {**FABRIC, "profile": profile, "node_selector": {"pool": "gpu"}, "operator": {"release": release, **operator}},
        fleet(2),
    )
    return made


def spec(release: str = "26.7.1", **operator: Any) -> Any:
    return planned(release, **operator)["objects"]["policy"][0]["spec"]


def refused(**operator: Any) -> str:
    with pytest.raises(InputError) as caught:
        planned(**operator)
    return str(caught.value)


@pytest.mark.parametrize("release", RELEASES)
def test_further_components_follow_the_definition(release: str) -> None:
    telemetry = {"name": "doca_telemetry", "version": "1.2.3-host"}
    multus = {
        "name": "multus",
        "repository": "registry.example.com/own",
        "version": "v9",
        "resources": [{"container": "kube-multus", "requests": {"cpu": "50m"}, "limits": {"cpu": 1, "memory": "1Gi"}}],
    }
    policy, *_rest = planned(
        release,
        nic_feature_discovery=True,
        telemetry={"enabled": True, "config_map": "dts"},
        nic_configuration={"enabled": True, "env": {"A": "b"}},
        components=[telemetry, multus],
        deployment_node_selector={"infra": "yes"},
        deployment_tolerations=[{"operator": "Exists"}],
    )["objects"]["policy"]
    check(RELEASES[release], policy)
    found = policy["spec"]
    assert found["nicFeatureDiscovery"]["image"] == "nic-feature-discovery"
    assert found["docaTelemetryService"]["version"] == "1.2.3-host"
    assert found["docaTelemetryService"]["config"] == {"fromConfigMap": "dts"}
    assert found["nicConfigurationOperator"]["env"] == [{"name": "A", "value": "b"}]
    part = found["secondaryNetwork"]["multus"]
    assert (part["repository"], part["version"]) == ("registry.example.com/own", "v9")
    assert part["containerResources"] == [
        {"name": "kube-multus", "requests": {"cpu": "50m"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    ]
    term = {"matchExpressions": [{"key": "infra", "operator": "In", "values": ["yes"]}]}
    assert found["deploymentNodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
    }
    assert found["deploymentTolerations"] == [{"operator": "Exists"}]
    assert "tolerations" not in found


@pytest.mark.parametrize("release", [release for line in LINES.values() for release in line.telemetry])
def test_telemetry_has_its_own_tag_and_registry_for_each_release(release: str) -> None:
    found = spec(release, telemetry={"enabled": True})["docaTelemetryService"]
    assert found["repository"] == "nvcr.io/nvidia/doca"
    assert found["version"].endswith("-host")
    mirrored = spec(release, telemetry={"enabled": True}, image_repository="r.example.com/m")
    own = {**mirrored.get("global", {}), **mirrored["docaTelemetryService"]}
    assert (own["repository"], own["version"]) == ("r.example.com/m", found["version"])


@pytest.mark.parametrize("release", WITH_TEMPLATES)
def test_objects_of_the_nic_configuration_operator_follow_the_definition(release: str) -> None:
    storage = {"create": False, "claim": "fw", "storage_class": "nfs"}
    other = {**TEMPLATE, "name": "cx8", "nic_type": "1023", "reset": True, "serial_numbers": ["A1"]}
    made = planned(
        release,
        nic_configuration={
            "enabled": True, "templates": [TEMPLATE, other], "firmware": [FIRMWARE], "storage": storage,
        },
    )["objects"]["policy"]  # fmt: skip
    assert [(item["kind"], item["metadata"]["name"]) for item in made] == [
        ("NicClusterPolicy", "nic-cluster-policy"),
        ("NicConfigurationTemplate", "cx7"),
        ("NicConfigurationTemplate", "cx8"),
        ("NicFirmwareSource", "cx7"),
        ("NicFirmwareTemplate", "cx7"),
    ]
    for item in made:
        check(RELEASES[release], item)
    policy, first, second, source, firmware = (item["spec"] for item in made)
    assert policy["nicConfigurationOperator"]["nicFirmwareStorage"] == {
        "create": False, "pvcName": "fw", "storageClassName": "nfs", "availableStorageSize": "1Gi",
    }  # fmt: skip
    assert first == {
        "nodeSelector": {"pool": "gpu"},
        "nicSelector": {"nicType": "1021"},
        "template": {"numVfs": 8, "linkType": "Ethernet"},
    }
    assert second["resetToDefault"] is True
    assert second["nicSelector"] == {"nicType": "1023", "serialNumbers": ["A1"]}
    assert source == {"binUrlSources": ["https://example.com/fw.zip"]}
    assert firmware["template"] == {"nicFirmwareSourceRef": "cx7", "updatePolicy": "Validate"}
    assert delete_order(made)[-1]["kind"] == "NicClusterPolicy"


@pytest.mark.parametrize("kind", ["NicConfigurationTemplate", "NicFirmwareSource", "NicFirmwareTemplate"])
def test_the_kinds_have_definitions_here(kind: str) -> None:
    assert kind in FILES


@pytest.mark.parametrize("release", ["25.10.0", "26.1.2"])
def test_templates_are_refused_on_lines_whose_definition_is_not_known(release: str) -> None:
    text = refused(release=release, nic_configuration={"enabled": True, "templates": [TEMPLATE]})
    assert "Lines on which it is known: 26.4, 26.7" in text


def test_a_field_of_the_newest_line_is_refused_on_the_one_before() -> None:
    settings = {**TEMPLATE["settings"], "runtimePerformanceOptimized": {"enabled": True}}
    template = {**TEMPLATE, "settings": settings}
    assert planned("26.7.1", nic_configuration={"enabled": True, "templates": [template]})
    text = refused(release="26.4.2", nic_configuration={"enabled": True, "templates": [template]})
    assert "spec.template.runtimePerformanceOptimized: unknown field" in text


def test_the_chart_brings_the_maintenance_operator_and_one_owner_of_the_firmware() -> None:
    assert planned()["operator"]["chart_values"] == {}
    values = planned(profile="sriov", nic_configuration={"enabled": True})["operator"]["chart_values"]
    assert values == {
        "maintenanceOperator": {"enabled": True},
        "maintenance-operator-chart": {"operatorConfig": {"deploy": True}},
        "sriovNetworkOperator": {"enabled": True},
        "sriov-network-operator": {
            "sriovOperatorConfig": {
                "configDaemonNodeSelector": {"network.nvidia.com/operator.nic-configuration.wait": "false"},
                "disablePlugins": ["mellanox"],
            }
        },
    }
    others = {"enabled": True, "maintenance_operator": False}
    assert planned(nic_configuration=others)["operator"]["chart_values"] == {}


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        ({"components": [{"name": "multas"}]}, "components[0].name: expected one of cni_plugins, doca_driver,"),
        ({"components": [{"version": "v1"}]}, "components[0].name: missing"),
        ({"components": [{"name": "ipoib_cni", "version": "v1"}]}, "ipoib_cni is not among the components"),
        (
            {"components": [{"name": "multus", "version": "v1"}, {"name": "multus"}]},
            "multus is listed more than once. Merge the entries",
        ),
        (
            {"components": [{"name": "doca_driver", "version": "v1"}]},
            "components[0].version: the tag of the driver is operator.driver.version. Set it there",
        ),
        ({"components": [{"name": "multus", "resources": [{}]}]}, "resources[0].container: missing"),
        (
            {"components": [{"name": "multus", "resources": [{"container": "a", "limits": {"gpu": 1}}]}]},
            'limits: expected cpu and memory, found "gpu"',
        ),
        (
            {"components": [{"name": "multus", "resources": [{"container": "a", "limits": {"cpu": "0"}}]}]},
            'limits: cpu: expected an amount such as 100m or 256Mi, found "0" (text)',
        ),
        (
            {
                "components": [
                    {
                        "name": "nv_ipam",
                        "resources": [{"container": "a", "requests": {"cpu": 1}, "limits": {"cpu": "500m"}}],
                    }
                ]
            },
            "resources[0].requests: cpu 1 is more than the limit 500m",
        ),
        ({"telemetry": {"enabled": True}, "release": "26.4.2"}, "Add an entry with name: doca_telemetry"),
        ({"nic_configuration": {"templates": [TEMPLATE]}}, "templates: has an effect with enabled: true only"),
        (
            {"nic_configuration": {"enabled": True, "templates": [{**TEMPLATE, "settings": {}}]}},
            "templates[0].settings: missing",
        ),
        (
            {"nic_configuration": {"enabled": True, "templates": [TEMPLATE, {**TEMPLATE, "name": "b"}]}},
            "cx7 and b can match the same NIC, and the operator then applies neither",
        ),
        (
            {"nic_configuration": {"enabled": True, "templates": [{**TEMPLATE, "nic_type": "ConnectX-7"}]}},
            'nic_type: expected the PCI device id of the NICs, such as "1021"',
        ),
        (
            {"nic_configuration": {"enabled": True, "firmware": [{**FIRMWARE, "urls": ["https://a:b@c/d"]}]}},
            "firmware[0].urls: expected an address that begins with https:// or http://, without user and password",
        ),
        (
            {"nic_configuration": {"enabled": True, "firmware": [{**FIRMWARE, "urls": []}]}},
            "firmware[0].urls: missing",
        ),
        (
            {
                "nic_configuration": {
                    "enabled": True,
                    "templates": [
                        {**TEMPLATE, "settings": {"gpuDirectOptimized": {"enabled": True, "env": "Baremetal"}}}
                    ],
                }
            },
            "settings: gpuDirectOptimized requires pciPerformanceOptimized.enabled: true",
        ),
        (
            {"nic_configuration": {"enabled": True, "templates": [{**TEMPLATE, "settings": {"numVFs": 1}}]}},
            'spec.template.numVFs: unknown field; did you mean "numVfs"?',
        ),
    ],
)
def test_wrong_options_are_named(operator: dict[str, Any], message: str) -> None:
    assert message in refused(**operator)


def test_templates_of_different_ports_of_one_kind_are_taken() -> None:
    first = {**TEMPLATE, "pci_addresses": ["0000:18:00.0"]}
    second = {**TEMPLATE, "name": "b", "pci_addresses": ["0000:19:00.0"]}
    assert planned(nic_configuration={"enabled": True, "templates": [first, second]})


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("500m", 0.5), ("1Ki", 1024), ("2Gi", 2 << 30), ("1.5k", 1500), ("x", 0), ("0", 0)]
)
def test_amounts(text: str, value: float) -> None:
    assert amount(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("status", "ready", "failed", "reasons"),
    [
        ({"state": "Success"}, True, False, ()),
        ({}, False, False, ("NicFirmwareSource a: the operator has not reported a status yet",)),
        ({"state": "Downloading"}, False, False, ("NicFirmwareSource a: Downloading",)),
        (
            {"state": "DownloadFailed", "reason": "404"},
            False,
            True,
            ("NicFirmwareSource a: DownloadFailed: 404",),
        ),
    ],
)
def test_a_source_is_ready_when_its_files_were_accepted(
    status: dict[str, str], ready: bool, failed: bool, reasons: tuple[str, ...]
) -> None:
    found = source_ready({"metadata": {"name": "a"}, "status": status}, None, ())
    assert (found.ready, found.failed, found.reasons) == (ready, failed, reasons)


ROCE = {"settings": {"numVfs": 0, "roceOptimized": {"enabled": "true"}}}


@pytest.mark.parametrize(
    ("given", "section", "problems"),
    [
        ({"nic_firmware_settings": {"SRIOV_EN": True}}, {"enabled": True}, [TWO_FIRMWARES]),
        ({"nic_firmware_settings": {"SRIOV_EN": True}}, {"enabled": False}, []),
        ({"nic_firmware_settings": {}, "rail_links_qos": {"trust": "dscp"}}, {"enabled": "yes"}, []),
        ({"rail_links_qos": {"trust": "dscp"}}, {"enabled": True, "templates": [TEMPLATE, ROCE]}, [TWO_QOS]),
        ({"rail_links_qos": {}}, {"enabled": True, "templates": [ROCE]}, []),
        ({"rail_links_qos": {"trust": "dscp"}}, {"enabled": True, "templates": "text"}, []),
        ({"rail_links_qos": {"trust": "dscp"}}, {"enabled": True, "templates": [None, {"settings": 1}]}, []),
        ({"nic_firmware_settings": {"SRIOV_EN": True}}, None, []),
    ],
)
def test_firmware_has_one_owner(given: dict[str, Any], section: Any, problems: list[str]) -> None:
    assert nic_problems(given, {"operator": {"nic_configuration": section}}) == problems


@pytest.mark.parametrize("fabric", [None, "text", {"operator": None}])
def test_a_fabric_that_cannot_be_read_is_reported_elsewhere(fabric: Any) -> None:
    assert nic_problems({"nic_firmware_settings": {"A": 1}}, fabric) == []
