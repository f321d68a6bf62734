"""Every object that we build against the schema of the release line it is built for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

CRDS = Path(__file__).parents[5] / "fixtures" / "crds"
FILES = {
    "NicClusterPolicy": "mellanox.com_nicclusterpolicies.yaml",
    "MacvlanNetwork": "mellanox.com_macvlannetworks.yaml",
    "IPPool": "nv-ipam.nvidia.com_ippools.yaml",
}
RELEASES = {"26.4.2": "v26.4.1", "26.7.1": "v26.7.0-rc.2"}
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


def crd(folder: str, kind: str) -> dict[str, Any]:
    return yaml.safe_load((CRDS / folder / FILES[kind]).read_text())


def objects(release: str) -> list[dict[str, Any]]:
    made = plan({**FABRIC, "operator": {"release": release}}, fleet(3))["objects"]
    return [*made["policy"], *made["networks"]]


def check(folder: str, item: dict[str, Any]) -> None:
    definition = crd(folder, item["kind"])
    version = definition["spec"]["versions"][0]
    assert item["apiVersion"] == f"{definition['spec']['group']}/{version['name']}"
    assert ("namespace" in item["metadata"]) == (definition["spec"]["scope"] == "Namespaced")
    jsonschema.validate(item, strict(version["schema"]["openAPIV3Schema"]))


@pytest.mark.parametrize("release", RELEASES)
def test_objects_follow_the_schema(release: str) -> None:
    made = objects(release)
    assert [item["kind"] for item in made] == ["NicClusterPolicy", *["IPPool"] * 2, *["MacvlanNetwork"] * 2]
    for item in made:
        check(RELEASES[release], item)
        assert item["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "gpufabric"}
        assert "annotations" not in item["metadata"]
        assert "null" not in json.dumps(item)


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
