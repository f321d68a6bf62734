"""The inventory of Nodes, read by ansible-inventory from an API server of this test. About 8 s."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support.real_play import ROOT, ansible_inventory

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.connection import AUTH_SPEC
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.node_description import address_of, described

GPU = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def node(name: str, created: str = "2026-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": created, "labels": more.get("labels", {})},
        "spec": {},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.7"}], **more.get("status", {})},
    }


CONTROL = node("cp", labels={"node-role.kubernetes.io/control-plane": ""})


class Server:
    """Answers every list of Nodes with ``nodes``; ``asked`` has the selectors, ``status`` another answer than 200."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                outer.asked.append(parse_qs(parts.query).get("labelSelector", [""])[0])
                page = {"kind": "NodeList", "metadata": {}, "items": outer.nodes}
                said = {"kind": "Status", "message": "nodes is forbidden"}
                self.send_response(outer.status)
                self.end_headers()
                self.wfile.write(json.dumps(page if outer.status == 200 else said).encode())

            def log_message(self, *_args: Any) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.http.shutdown()
    found.http.server_close()


class Inventory:
    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server

    def run(self, *nodes: dict[str, Any], flags: tuple[str, ...] = (), **options: Any) -> tuple[int, Any, str]:
        """Return the exit code, what is listed and what is said. An inventory that cannot be read is an error."""
        self.server.nodes = list(nodes)
        source = self.folder / "prod.rdma_nodes.yml"
        source.write_text(yaml.safe_dump({"plugin": "gpufabric.rdma.nodes", "host": self.server.url, **options}))
        settings = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1", "COLUMNS": "2000"}
        done = ansible_inventory(self.folder, "-i", source, "--list", *flags, **settings)
        return done.returncode, json.loads(done.stdout) if not done.returncode else None, done.stderr


@pytest.fixture
def inventory(tmp_path: Path, server: Server) -> Inventory:
    return Inventory(tmp_path, server)


def test_nodes_become_hosts_and_groups_oldest_first(inventory: Inventory) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    rc, listed, said = inventory.run(
        node("gpu-10"),
        node("gpu-2", status=ready),
        node("gpu-1", created="2026-02-01T00:00:00Z", labels=GPU),
        CONTROL,
        selector="a in (b,c)",
        group="fleet",
        keyed_groups=[{"key": "rdma_node.labels['nvidia.com/gpu.product']", "prefix": "gpu"}],
        groups={"up": "rdma_node.ready"},
        compose={"rdma_host": "{'node_name': rdma_node.name}"},
    )
    assert rc == 0, said
    assert inventory.server.asked == ["a in (b,c)"]
    assert listed["fleet"]["hosts"] == ["gpu-2", "gpu-10", "gpu-1"]
    assert listed["up"]["hosts"] == ["gpu-2"]
    assert listed["gpu_NVIDIA_H100_80GB_HBM3"]["hosts"] == ["gpu-1"]
    variables = listed["_meta"]["hostvars"]["gpu-1"]
    # What a kubelet reports is marked: no template may come from it.
    assert variables["ansible_host"] == {"__ansible_unsafe": "10.0.0.7"}
    assert variables["rdma_host"] == {"node_name": {"__ansible_unsafe": "gpu-1"}}


@pytest.mark.parametrize(
    "nodes, options, words",
    [
        ([], {}, "no host: the cluster has 0 Nodes. Correct selector, and check that the kubeconfig"),
        ([CONTROL], {"selector": "a=b"}, "the selector a=b selects 1 Nodes, all of the control plane"),
        ([node("a")], {"addresses": ["Internal"]}, "addresses"),
    ],
)
def test_no_host_or_a_wrong_option_is_an_error(
    inventory: Inventory, nodes: list[dict[str, Any]], options: dict[str, Any], words: str
) -> None:
    rc, _listed, said = inventory.run(*nodes, **options)
    assert rc != 0
    assert words in said
    assert "Traceback" not in said


def test_a_refused_list_is_an_error_with_the_file_and_the_permission(inventory: Inventory) -> None:
    inventory.server.status = 403
    rc, _listed, said = inventory.run()
    assert rc != 0
    assert "prod.rdma_nodes.yml: the API server" in said
    assert "nodes is forbidden. Grant this permission" in said


def test_the_cache_answers_without_the_cluster_and_a_flush_asks_again(inventory: Inventory, tmp_path: Path) -> None:
    options = {"cache": True, "cache_plugin": "jsonfile", "cache_connection": str(tmp_path / "cache")}
    inventory.run(node("a"), **options)
    assert inventory.run(node("b"), **options)[1]["rdma_hosts"]["hosts"] == ["a"]
    assert len(inventory.server.asked) == 1
    assert inventory.run(node("b"), **options, flags=("--flush-cache",))[1]["rdma_hosts"]["hosts"] == ["b"]


@pytest.mark.parametrize("change", [{"selector": "a=b"}, {"control_plane": True}, {"context": "other"}])
def test_what_was_read_with_other_options_is_read_again(
    inventory: Inventory, tmp_path: Path, change: dict[str, Any]
) -> None:
    options = {"cache": True, "cache_plugin": "jsonfile", "cache_connection": str(tmp_path / "cache")}
    inventory.run(node("a"), **options)
    config = tmp_path / "config"
    contexts = [{"name": "other", "context": {"cluster": "one", "user": "one"}}]
    clusters = [{"name": "one", "cluster": {"server": inventory.server.url}}]
    config.write_text(
        yaml.safe_dump({"contexts": contexts, "clusters": clusters, "users": [{"name": "one", "user": {}}]})
    )
    more = {**change, "kubeconfig": str(config)} if "context" in change else change
    assert inventory.run(node("b"), **options, **more)[1]["rdma_hosts"]["hosts"] == ["b"]


def test_options_of_the_cluster_are_those_of_the_modules() -> None:
    text = (ROOT / "plugins/inventory/nodes.py").read_text()
    options = yaml.safe_load(text.split('r"""')[1].split('"""')[0])["options"]
    for name, spec in AUTH_SPEC.items():
        assert [one["name"] for one in options[name]["env"]] == list(spec["fallback"][1]), name
        assert options[name]["type"] == spec["type"]
        assert options[name].get("aliases", []) == spec.get("aliases", [])


@pytest.mark.parametrize(
    "kind, address",
    [
        ("Hostname", "-oProxyCommand=reboot"),
        ("Hostname", "a b"),
        ("InternalIP", "{{ lookup('pipe', 'id') }}"),
        ("InternalIP", "fe80::1%eth0"),
        ("InternalDNS", "a..b"),
        ("Hostname", "x" * 300),
        ("Other", "10.0.0.1"),
    ],
)
def test_an_address_that_ssh_could_misread_is_left_out(kind: str, address: str) -> None:
    found = described([node("a", status={"addresses": [{"type": kind, "address": address}]})], False)
    assert address_of(found[0], [kind]) == ""


def test_addresses_in_the_order_of_the_option() -> None:
    both = [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": "gpu-1.lan"}]
    found = described([node("a", status={"addresses": both})], False)[0]
    assert address_of(found, ["ExternalIP", "Hostname", "InternalIP"]) == "gpu-1.lan"
    assert address_of(found, ["InternalIP", "Hostname"]) == "10.0.0.7"
    assert address_of(found, []) == ""


def test_the_control_plane_is_a_host_on_request_only() -> None:
    assert described([CONTROL], False) == []
    assert [one["name"] for one in described([CONTROL], True)] == ["cp"]


NAMES = st.lists(st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True), unique=True, max_size=6)
JUNK = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda x: st.lists(x, max_size=3))


@given(NAMES, JUNK, JUNK, JUNK)
def test_whatever_kubelets_report_every_node_is_described_once(
    names: list[str], info: Any, taints: Any, more: Any
) -> None:
    status = {"nodeInfo": {"kernelVersion": info, "machineID": info}, "allocatable": more}
    nodes = [{"metadata": {"name": one}, "spec": {"taints": taints}, "status": status} for one in names]
    found = described(nodes, True)
    assert sorted(one["name"] for one in found) == sorted(names)
    assert found == described(nodes[::-1], True)
