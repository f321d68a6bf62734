"""Every object that we build against the schema of the release line it is built for."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

CRDS = Path(__file__).parents[5] / "fixtures" / "crds"
FILES = {
    "NicClusterPolicy": "mellanox.com_nicclusterpolicies.yaml",
    "NicNodePolicy": "mellanox.com_nicnodepolicies.yaml",
    "HostDeviceNetwork": "mellanox.com_hostdevicenetworks.yaml",
    "IPoIBNetwork": "mellanox.com_ipoibnetworks.yaml",
    "MacvlanNetwork": "mellanox.com_macvlannetworks.yaml",
    "IPPool": "nv-ipam.nvidia.com_ippools.yaml",
    "CIDRPool": "nv-ipam.nvidia.com_cidrpools.yaml",
    "SriovNetwork": "sriovnetwork.openshift.io_sriovnetworks.yaml",
    "SriovIBNetwork": "sriovnetwork.openshift.io_sriovibnetworks.yaml",
    "SriovNetworkNodePolicy": "sriovnetwork.openshift.io_sriovnetworknodepolicies.yaml",
    "SriovOperatorConfig": "sriovnetwork.openshift.io_sriovoperatorconfigs.yaml",
    "SriovNetworkPoolConfig": "sriovnetwork.openshift.io_sriovnetworkpoolconfigs.yaml",
    "NicConfigurationTemplate": "configuration.net.nvidia.com_nicconfigurationtemplates.yaml",
    "NicFirmwareSource": "configuration.net.nvidia.com_nicfirmwaresources.yaml",
    "NicFirmwareTemplate": "configuration.net.nvidia.com_nicfirmwaretemplates.yaml",
    "NetworkAttachmentDefinition": "k8s.cni.cncf.io_networkattachmentdefinitions_crd.yaml",
}
RELEASES = {
    "25.10.0": "v25.10.0",
    "26.1.2": "v26.1.1",
    "26.4.2": "v26.4.1",
    "26.7.1": "v26.7.0-rc.2",
    "26.7.0-rc.2": "v26.7.0-rc.2",
}
FABRIC: dict[str, Any] = {
    "supernet": "192.168.0.0/16",
    "node_selector": {"pool": "gpu"},
    "network_namespace": "team-a",
    "rails": [{"name": "rail-a"}, {"name": "storage0"}],
}


def strict(schema: Any) -> Any:
    """The schema with unknown fields refused, as a server does with strict field validation."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema["properties"]:
        closed.setdefault("additionalProperties", False)
    return closed


@functools.cache
def crd(folder: str, kind: str) -> dict[str, Any]:
    return yaml.load((CRDS / folder / FILES[kind]).read_text(), yaml.CSafeLoader)


@functools.cache
def validator(folder: str, kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(
        strict(crd(folder, kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    )


def objects(release: str, **operator: str) -> list[dict[str, Any]]:
    made = plan({**FABRIC, "operator": {"release": release, **operator}}, fleet(3))["objects"]
    return [*made["policy"], *made["networks"]]


def check(folder: str, item: dict[str, Any]) -> None:
    definition = crd(folder, item["kind"])
    version = definition["spec"]["versions"][0]
    assert item["apiVersion"] == f"{definition['spec']['group']}/{version['name']}"
    assert ("namespace" in item["metadata"]) == (definition["spec"]["scope"] == "Namespaced")
    validator(folder, item["kind"]).validate(item)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("profile", "network"),
    [
        ("macvlan", "MacvlanNetwork"),
        ("host_device", "HostDeviceNetwork"),
        ("nested_vm", "HostDeviceNetwork"),
        ("raw", "NetworkAttachmentDefinition"),
        ("ipoib", "IPoIBNetwork"),
    ],
)
def test_objects_follow_the_schema(release: str, profile: str, network: str) -> None:
    hosts = fleet(3, link_layer=registry.get(profile).link_layer)
    found = plan({**FABRIC, "profile": profile, "operator": {"release": release}}, hosts)["objects"]
    made = [*found["policy"], *found["networks"]]
    assert [item["kind"] for item in made] == ["NicClusterPolicy", *["IPPool"] * 2, *[network] * 2]
    for item in made:
        check(RELEASES[release], item)
        assert item["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "gpufabric"}
        assert "annotations" not in item["metadata"]
        assert "null" not in json.dumps(item)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("profile", ["macvlan", "host_device", "nested_vm", "raw", "ipoib", "sriov"])
@pytest.mark.parametrize(
    "addresses",
    [
        {"gateway": "last", "ipv6": {"supernet": "fd00:10::/48", "gateway": "last"}},
        {"host_prefix": 29, "ipv6": {"supernet": "fd00:10::/48", "host_prefix": 80}},
        {"supernet": None, "ipv6": {"supernet": "fd00:10::/48"}},
    ],
)
def test_pools_of_both_versions_follow_the_schema(release: str, profile: str, addresses: dict[str, Any]) -> None:
    fabric = {**FABRIC, "capacity": {"hosts": 8, "pods_per_host": 1}, "profile": profile, **addresses}
    # An older line has no exclusions per node, which a test of the plan proves.
    if releases.line_of(release).has("IPPool", "spec.perNodeExclusions"):  # type: ignore[union-attr]
        fabric["pools"] = {"per_node_exclusions": ["3"]}
    hosts = fleet(3, link_layer=registry.get(profile).link_layer)
    nodes = [{"name": f"node-{number}", "machine_id": f"{number:032x}"} for number in (1, 2, 3)]
    made = plan({**fabric, "operator": {"release": release}}, hosts, nodes=nodes)["objects"]
    kind = "CIDRPool" if "host_prefix" in addresses else "IPPool"
    pools = [item for item in made["networks"] if item["kind"] == kind]
    assert len(pools) == (2 if "supernet" in addresses else 4)
    for item in made["networks"]:
        check(RELEASES[release], item)
        assert "null" not in json.dumps(item)


def test_every_line_has_its_schemas() -> None:
    lines = [releases.line_of(release) for release in RELEASES]
    assert {line.name for line in lines if line} == set(releases.LINES)


def images(spec: Any) -> list[dict[str, Any]]:
    """The sections of a policy that name an image."""
    if not isinstance(spec, dict):
        return []
    return ([spec] if "image" in spec else []) + [found for part in spec.values() for found in images(part)]


REPOSITORY, TAG = "registry.example.com:5000/mirror", "network-operator-v1"


@pytest.mark.parametrize("release", RELEASES)
def test_a_mirror_and_its_tag_reach_every_component(release: str) -> None:
    mirror = {"image_repository": REPOSITORY, "component_version": TAG}
    policy, *_rest = objects(release, **mirror)
    spec = policy["spec"]
    found = images(spec)
    assert sorted(part["image"] for part in found) == [
        "k8s-rdma-shared-dev-plugin", "multus-cni", "nvidia-k8s-ipam", "plugins"
    ]  # fmt: skip
    for part in found:
        given = {**spec.get("global", {}), **part}
        assert (given["repository"], given["version"]) == (REPOSITORY, TAG)


def paths(schema: Any, prefix: str = "") -> set[str]:
    """Every field of a schema; items of a list as ``name[]``."""
    found: set[str] = set()
    for name, part in (schema.get("properties") or {}).items():
        found |= {prefix + name, *paths(part, f"{prefix}{name}.")}
        if part.get("type") == "array":
            found |= paths(part["items"], f"{prefix}{name}[].")
    return found


def fields(folder: str, kind: str) -> set[str]:
    return paths(crd(folder, kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


# Kinds whose definition is known on some lines only; operator/schema_table.py says on which.
PARTLY = ("NicNodePolicy", "NicConfigurationTemplate", "NicFirmwareSource", "NicFirmwareTemplate")


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind not in PARTLY])
def test_the_table_of_fields_has_what_the_schemas_have(kind: str) -> None:
    varying = releases.varying(kind)
    by_line = {release: fields(folder, kind) for release, folder in RELEASES.items()}
    for release, found in by_line.items():
        line = releases.line_of(release)
        assert line
        assert {path for path in varying if line.has(kind, path)} == found & set(varying)
    differ = set.union(*by_line.values()) - set.intersection(*by_line.values())
    # A field brings the fields inside of it.
    assert differ == {path for path in differ if path.startswith(varying)}


@pytest.mark.parametrize("release", RELEASES)
def test_device_plugin_config_follows_the_webhook(release: str) -> None:
    text = objects(release)[0]["spec"]["rdmaSharedDevicePlugin"]["config"]
    schema = json.loads((CRDS / RELEASES[release] / "webhook-schemas" / "rdma_shared_device_plugin.json").read_text())
    jsonschema.validate(json.loads(text), schema)
    assert "'" not in text
    assert json.loads(text)["configList"] == [
        {"resourceName": "rdma_rail_a", "rdmaHcaMax": 63, "selectors": {"ifNames": ["rail-a"]}},
        {"resourceName": "rdma_storage0", "rdmaHcaMax": 63, "selectors": {"ifNames": ["storage0"]}},
    ]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {
            "vfs": 16,
            "eswitch_mode": "switchdev",
            "externally_managed": True,
            "rdma_mode": "exclusive",
            "max_unavailable": 2,
            "vlan": 100,
            "link_state": "enable",
            "trust": True,
            "spoof_check": False,
        },
    ],
    ids=["defaults", "every setting"],
)
def test_vfs_follow_the_schema(release: str, settings: dict[str, Any]) -> None:
    made = plan({**FABRIC, "profile": "sriov", "sriov": settings, "operator": {"release": release}}, fleet(3))[
        "objects"
    ]
    pools = ["SriovNetworkPoolConfig"] if settings else []
    assert [item["kind"] for item in made["policy"]] == ["NicClusterPolicy", *pools, *["SriovNetworkNodePolicy"] * 2]
    assert [item["kind"] for item in made["networks"]] == [*["IPPool"] * 2, *["SriovNetwork"] * 2]
    for item in [*made["policy"], *made["networks"]]:
        check(RELEASES[release], item)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("NicClusterPolicy", ("spec", "nvIPAM"), {}),
        ("NicClusterPolicy", ("spec", "rdmaSharedDevicePlugin", "configuration"), "{}"),
        ("MacvlanNetwork", ("spec", "mode"), "bridged"),
        ("IPPool", ("spec", "perNodeBlockSize"), "2"),
    ],
)
def test_the_check_itself_refuses(kind: str, path: tuple[str, ...], value: Any) -> None:
    item = next(item for item in objects("26.7.1") if item["kind"] == kind)
    target = item
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        check("v26.7.0-rc.2", item)


EVERYTHING = {
    "cni_plugins": False,
    "image_pull_secrets": ["mirror-login"],
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
    "policy_overrides": {"nicFeatureDiscovery": {"image": "nfd", "repository": "r.example.com", "version": "v1"}},
}


@pytest.mark.parametrize("release", RELEASES)
def test_options_of_the_policy_follow_the_schema(release: str) -> None:
    (policy,) = plan({**FABRIC, "operator": {"release": release, **EVERYTHING}}, fleet(2))["objects"]["policy"]
    check(RELEASES[release], policy)
    spec = policy["spec"]
    assert list(spec["secondaryNetwork"]) == ["multus"]
    holders = [spec["global"]] if "global" in spec else [part for part in images(spec) if part["image"] != "nfd"]
    assert [part["imagePullSecrets"] for part in holders] == [["mirror-login"]] * len(holders)
    assert spec["tolerations"] == EVERYTHING["tolerations"]
    assert spec["nicFeatureDiscovery"]["version"] == "v1"


def test_a_field_is_replaced_or_removed_by_an_override() -> None:
    overrides = {"secondaryNetwork": {"multus": {"version": "v4"}}, "nvIpam": {"enableWebhook": True}, "global": None}
    (policy,) = plan({**FABRIC, "operator": {"policy_overrides": overrides}}, fleet(2))["objects"]["policy"]
    assert policy["spec"]["secondaryNetwork"]["multus"] == {"image": "multus-cni", "version": "v4"}
    assert policy["spec"]["nvIpam"] == {"image": "nvidia-k8s-ipam", "enableWebhook": True}
    assert "global" not in policy["spec"]


def test_a_line_without_a_field_of_an_override_is_named() -> None:
    operator = {"release": "26.1.2", "policy_overrides": {"global": {"version": "v1"}}}
    with pytest.raises(InputError, match="release line 26.1 .* does not have the field spec.global"):
        plan({**FABRIC, "operator": operator}, fleet(2))


def test_a_cluster_with_multus_and_plugins_gets_neither() -> None:
    (policy,) = plan({**FABRIC, "operator": {"multus": False, "cni_plugins": False}}, fleet(2))["objects"]["policy"]
    assert "secondaryNetwork" not in policy["spec"]


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        ({"image_pull_secrets": ["Login"]}, "image_pull_secrets: expected the name of one Secret"),
        ({"tolerations": [{"value": "x"}]}, "tolerations[0].key: missing. Set it, or operator: Exists"),
        (
            {"tolerations": [{"operator": "Exists", "key": "a", "value": "x"}]},
            "value: not possible with operator: Exists",
        ),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, "effect: expected one of NoSchedule,"),
        ({"policy_overrides": {1: 2}}, "policy_overrides: expected names of fields, found 1 (number)"),
        ({"policy_overrides": ["a"]}, "policy_overrides: expected a dict, found a list"),
    ],
)
def test_wrong_options_of_the_policy_are_named(operator: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        plan({**FABRIC, "operator": operator}, fleet(2))
    assert message in str(error.value)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "fabric",
    [
        {"gateway": "last", "routing": "between_rails", "reserved": ["192.168.0.200"]},
        {"host_prefix": 28, "rail_prefix": 20, "pools": {"routes": ["10.0.0.0/8"]}},
    ],
    ids=["router", "subnet per host"],
)
def test_pools_follow_the_schema(release: str, fabric: dict[str, Any]) -> None:
    nodes = [{"name": "a", "machine_id": "1"}]
    hosts = fleet(2)
    hosts["gpu-0001"]["facts"]["machine_id"] = "1"
    made = plan({**FABRIC, **fabric, "operator": {"release": release}}, hosts, nodes=nodes)["objects"]["networks"]
    for item in made:
        check(RELEASES[release], item)
