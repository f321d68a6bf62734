# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nodes
short_description: Hosts of the fabric from the Nodes of the Kubernetes cluster
version_added: "0.1.0"
description:
  - Makes a host of every selected Node. Labels of Nodes become groups, addresses of Nodes become addresses of hosts.
  - The file must be named C(rdma_nodes.yml) or C(rdma_nodes.yaml), or end in that, such as C(prod.rdma_nodes.yml).
  - Hosts are in the order in which their Nodes were created. The addresses of new hosts follow the order of the group, so those of
    new Nodes come last.
  - The result can be cached. Nodes that are added, or whose labels change, appear when the cache is older than O(cache_timeout) or with
    C(--flush-cache). If the cluster, O(selector) or O(control_plane) changes, the cache is not used.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
extends_documentation_fragment:
  - constructed
  - inventory_cache
requirements:
  - kubernetes >= 29.0.0 (Python)
notes:
  - The kubelet of a Node can change most of its labels. Select Nodes by labels that only administrators can set.
  - The account needs only the permission to list Nodes.
options:
  plugin:
    description: Name of this plugin.
    required: true
    choices: [gpufabric.rdma.nodes]
  selector:
    description: Label selector of the Nodes, such as C(nvidia.com/gpu.present=true,rack in (a,b)). Without it, all Nodes.
    type: str
    default: ''
  control_plane:
    description: Whether Nodes of the control plane or of etcd are hosts as well.
    type: bool
    default: false
  group:
    description: Group of all hosts. Plays of this collection use C(rdma_hosts) unless C(rdma_group) names another group.
    type: str
    default: rdma_hosts
  addresses:
    description:
      - Types of addresses in the order in which they are tried for C(ansible_host).
      - With an empty list, or if a Node has none of these, C(ansible_host) is not set, and the name of the Node must be resolvable.
    type: list
    elements: str
    choices: [InternalIP, ExternalIP, Hostname, InternalDNS, ExternalDNS]
    default: [InternalIP]
  kubeconfig:
    description:
      - Path of the kubeconfig. Separate multiple files with colons.
      - Without this option and O(host), C(~/.kube/config) is used, or the service account if the inventory is read in a pod.
    type: path
    env: [{name: K8S_AUTH_KUBECONFIG}, {name: KUBECONFIG}]
  context:
    description: Context of the kubeconfig.
    type: str
    env: [{name: K8S_AUTH_CONTEXT}]
  host:
    description: URL of the API server.
    type: str
    env: [{name: K8S_AUTH_HOST}]
  api_key:
    description: Bearer token.
    type: str
    env: [{name: K8S_AUTH_API_KEY}]
  username:
    description: User name for HTTP basic authentication.
    type: str
    env: [{name: K8S_AUTH_USERNAME}]
  password:
    description: Password of O(username).
    type: str
    env: [{name: K8S_AUTH_PASSWORD}]
  validate_certs:
    description: Whether to verify the certificate of the API server.
    type: bool
    aliases: [verify_ssl]
    env: [{name: K8S_AUTH_VERIFY_SSL}]
  ca_cert:
    description: Path of the CA certificate file.
    type: path
    aliases: [ssl_ca_cert]
    env: [{name: K8S_AUTH_SSL_CA_CERT}]
  client_cert:
    description: Path of the client certificate.
    type: path
    aliases: [cert_file]
    env: [{name: K8S_AUTH_CERT_FILE}]
  client_key:
    description: Path of the key of the client certificate.
    type: path
    aliases: [key_file]
    env: [{name: K8S_AUTH_KEY_FILE}]
  proxy:
    description: URL of an HTTP proxy.
    type: str
    env: [{name: K8S_AUTH_PROXY}]
  impersonate_user:
    description: User to impersonate.
    type: str
    env: [{name: K8S_AUTH_IMPERSONATE_USER}]
  impersonate_groups:
    description: Groups to impersonate.
    type: list
    elements: str
    env: [{name: K8S_AUTH_IMPERSONATE_GROUPS}]
"""

EXAMPLES = r"""
# inventories/prod/rdma_nodes.yml: all Nodes with a GPU
plugin: gpufabric.rdma.nodes
selector: nvidia.com/gpu.present=true

---
# Groups by model of GPU, to be named in classes of rdma_fabric, and a group of Nodes that are ready. The result is cached for ten minutes.
plugin: gpufabric.rdma.nodes
selector: feature.node.kubernetes.io/pci-15b3.present=true
addresses: [InternalIP, Hostname]
keyed_groups:
  - key: rdma_node.labels['nvidia.com/gpu.product']
    prefix: gpu
groups:
  ready: rdma_node.ready
compose:
  rdma_host: "{'node_name': rdma_node.name}"
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/gpufabric-nodes
cache_timeout: 600
"""

from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ..module_utils._common.errors import FabricError
from ..module_utils._k8s.client.connection import AUTH_SPEC, reach
from ..module_utils._k8s.client.node_description import address_of, described

# What decides which Nodes are read, of which none is secret.
_DECIDE = ("kubeconfig", "context", "host", "selector", "control_plane")
_SUFFIXES = ("rdma_nodes.yml", "rdma_nodes.yaml")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Every Node is read with one list; nothing is asked of the hosts themselves."""

    NAME = "gpufabric.rdma.nodes"

    def verify_file(self, path: str) -> bool:
        """Whether the name of the file says that it is for this plugin."""
        return super().verify_file(path) and path.endswith(_SUFFIXES)

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Add the hosts, from the cache if it is in use and holds them."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        key, use = self.get_cache_key(path), self.get_option("cache")
        # The key is that of the file alone: what was read with other options, or from another cluster, is not used.
        made = {option: self.get_option(option) for option in _DECIDE}
        kept = self._cache.get(key) if use and cache else None
        nodes = kept["nodes"] if isinstance(kept, dict) and kept.get("options") == made else self._read(path)
        if use:
            self._cache[key] = {"options": made, "nodes": nodes}
        for node in nodes:
            self._add(node)

    def _read(self, path: str) -> list[dict[str, Any]]:
        selector = self.get_option("selector")
        try:
            api = reach({option: self.get_option(option) for option in AUTH_SPEC})
            found = list(api.items("/api/v1/nodes", labelSelector=selector or None))
        except FabricError as error:
            raise AnsibleParserError(f"{path}: {error}") from None
        nodes = described(found, self.get_option("control_plane"))
        if not nodes:
            chosen = (
                f"the selector {selector} selects {len(found)} Nodes"
                if selector
                else f"the cluster has {len(found)} Nodes"
            )
            raise AnsibleParserError(
                f"{path}: no host: {chosen}, all of the control plane. Correct selector, or set control_plane: true"
                if found
                else f"{path}: no host: {chosen}. Correct selector, and check that the kubeconfig names the right cluster"
            )
        return nodes

    def _add(self, node: dict[str, Any]) -> None:
        name = node["name"]
        group = self.inventory.add_group(self.get_option("group"))
        self.inventory.add_host(name, group=group)
        self.inventory.set_variable(name, "rdma_node", node)
        address = address_of(node, self.get_option("addresses"))
        if address:
            self.inventory.set_variable(name, "ansible_host", address)
        facts, strict = {"rdma_node": node}, self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), facts, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), facts, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), facts, name, strict=strict)
