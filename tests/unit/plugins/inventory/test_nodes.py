"""The inventory of Nodes, read by ansible-core's own loader and inventory manager. About 1 s."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible import constants
from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import fragment_loader
from ansible.utils.plugin_docs import get_docstring
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support.cluster_fake import FakeCluster

from ansible_collections.gpufabric.rdma.plugins.inventory import nodes as plugin_file
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.connection import AUTH_SPEC
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.node_description import described

NAME = "gpufabric.rdma.nodes"
GPU = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def node(
    name: str, created: str = "2026-01-01T00:00:00Z", labels: dict[str, str] | None = None, **status: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": created, "labels": labels or {}},
        "spec": {},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.7"}], **status},
    }


CONTROL = node("cp", labels={"node-role.kubernetes.io/control-plane": ""})


def new_plugin() -> Any:
    """Return the plugin with its options, as ansible-core loads it from an installed collection."""
    options = get_docstring(plugin_file.__file__, fragment_loader)[0]["options"]
    constants.config.initialize_plugin_configuration_definitions("inventory", NAME, options)
    plugin = plugin_file.InventoryModule()
    plugin._load_name, plugin._redirected_names = NAME, []
    return plugin


class Inventory:
    """A file of the plugin, and the cluster that it asks."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.monkeypatch = tmp_path / "rdma_nodes.yml", monkeypatch
        self.cluster = FakeCluster()
        self.options: list[dict[str, Any]] = []

    def read(self, *nodes: dict[str, Any], flush: bool = False, **options: Any) -> InventoryData:
        self.cluster = FakeCluster(*nodes)

        def reach(given: dict[str, Any]) -> Any:
            self.options.append(given)
            return self.cluster.api()

        plugin = new_plugin()
        self.monkeypatch.setattr(plugin_file, "reach", reach)
        self.path.write_text(json.dumps({"plugin": NAME, **options}))
        data = InventoryData()
        assert plugin.verify_file(str(self.path))
        plugin.parse(data, DataLoader(), str(self.path), cache=not flush)
        if options.get("cache"):
            plugin.update_cache_if_changed()
        return data


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inventory:
    return Inventory(tmp_path, monkeypatch)


def variables(data: InventoryData, host: str) -> dict[str, Any]:
    return dict(data.hosts[host].vars)


def test_nodes_become_hosts_of_the_group_oldest_first(inventory: Inventory) -> None:
    data = inventory.read(
        node("gpu-10"), node("gpu-2"), node("gpu-1", created="2026-02-01T00:00:00Z", labels=GPU), CONTROL
    )
    assert [host.name for host in data.groups["rdma_hosts"].hosts] == ["gpu-2", "gpu-10", "gpu-1"]
    assert variables(data, "gpu-1")["ansible_host"] == "10.0.0.7"
    assert variables(data, "gpu-1")["rdma_node"]["labels"] == GPU


def test_groups_variables_and_keyed_groups_as_in_other_inventories(inventory: Inventory) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    data = inventory.read(
        node("a", labels=GPU, **ready),
        node("b"),
        group="fleet",
        keyed_groups=[{"key": "rdma_node.labels['nvidia.com/gpu.product']", "prefix": "gpu"}],
        groups={"up": "rdma_node.ready"},
        compose={"rdma_host": "{'node_name': rdma_node.name}"},
    )
    groups = {name: [host.name for host in group.hosts] for name, group in data.groups.items()}
    assert groups["fleet"] == ["a", "b"]
    assert groups["up"] == ["a"]
    assert groups["gpu_NVIDIA_H100_80GB_HBM3"] == ["a"]
    assert variables(data, "b")["rdma_host"] == {"node_name": "b"}


def test_a_control_plane_is_taken_on_request(inventory: Inventory) -> None:
    assert list(inventory.read(CONTROL, control_plane=True).hosts) == ["cp"]


def test_addresses_in_the_order_of_the_option(inventory: Inventory) -> None:
    both = [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": "gpu-1.lan"}]
    assert (
        variables(inventory.read(node("a", addresses=both), addresses=["Hostname"]), "a")["ansible_host"] == "gpu-1.lan"
    )
    assert "ansible_host" not in variables(inventory.read(node("a", addresses=both), addresses=[]), "a")


@pytest.mark.parametrize(
    "kind, address",
    [
        ("Hostname", "-oProxyCommand=reboot"),
        ("Hostname", "a b"),
        ("InternalIP", "{{ lookup('pipe', 'id') }}"),
        ("InternalIP", "fe80::1%eth0"),
        ("InternalDNS", "a..b"),
        ("Hostname", "x" * 300),
    ],
)
def test_an_address_that_ssh_could_misread_is_left_out(inventory: Inventory, kind: str, address: str) -> None:
    data = inventory.read(node("a", addresses=[{"type": kind, "address": address}]), addresses=[kind])
    assert "ansible_host" not in variables(data, "a")


@pytest.mark.parametrize(
    "nodes, options, words",
    [
        ([], {}, "the cluster has 0 Nodes. Correct selector, and check that the kubeconfig"),
        ([CONTROL], {}, "the cluster has 1 Nodes, all of the control plane"),
        ([], {"selector": "a=b"}, "the selector a=b selects 0 Nodes"),
    ],
)
def test_no_host_is_an_error(
    inventory: Inventory, nodes: list[dict[str, Any]], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(AnsibleParserError, match=words):
        inventory.read(*nodes, **options)


def test_a_refused_list_is_one_error_with_the_file(inventory: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = inventory.path.parent / "absent.kubeconfig"
    inventory.path.write_text(json.dumps({"plugin": NAME, "kubeconfig": str(missing)}))
    plugin = new_plugin()
    with pytest.raises(
        AnsibleParserError, match=f"rdma_nodes.yml: kubeconfig {missing}: it cannot be read: No such file"
    ):
        plugin.parse(InventoryData(), DataLoader(), str(inventory.path))


def test_the_cache_answers_without_the_cluster_and_a_flush_asks_again(inventory: Inventory, tmp_path: Path) -> None:
    options = {"cache": True, "cache_plugin": "jsonfile", "cache_connection": str(tmp_path / "cache")}
    inventory.read(node("a"), **options)
    assert list(inventory.read(node("b"), **options).hosts) == ["a"]
    assert not inventory.cluster.calls
    assert list(inventory.read(node("b"), **options, flush=True).hosts) == ["b"]


def test_options_of_the_cluster_are_those_of_the_modules() -> None:
    import yaml

    options = yaml.safe_load(plugin_file.DOCUMENTATION)["options"]
    for name, spec in AUTH_SPEC.items():
        assert [one["name"] for one in options[name]["env"]] == list(spec["fallback"][1]), name
        assert options[name]["type"] == spec["type"]
        assert options[name].get("aliases", []) == spec.get("aliases", [])


def test_other_files_are_left_to_other_plugins(tmp_path: Path) -> None:
    other = tmp_path / "hosts.yml"
    other.write_text("{}")
    assert not new_plugin().verify_file(str(other))


NAMES = st.lists(st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True), unique=True, max_size=6)
JUNK = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda x: st.lists(x, max_size=3))


@given(NAMES, JUNK, JUNK, JUNK)
def test_whatever_kubelets_report_every_node_is_described_once(
    names: list[str], info: Any, taints: Any, more: Any
) -> None:
    status = {"nodeInfo": {"kernelVersion": info, "machineID": info}, "allocatable": more}
    found = described(
        [{"metadata": {"name": one}, "spec": {"taints": taints}, "status": status} for one in names], True
    )
    assert sorted(one["name"] for one in found) == sorted(names)
    assert found == described(
        [{"metadata": {"name": one}, "spec": {"taints": taints}, "status": status} for one in names[::-1]], True
    )
