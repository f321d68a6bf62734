# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation shared by all cluster modules."""

from __future__ import annotations


class ModuleDocFragment:
    """Connection options, with names and environment variables as in kubernetes.core."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of the kubeconfig; also E(K8S_AUTH_KUBECONFIG) or E(KUBECONFIG). Separate multiple files with colons.
      - Without this option and O(host), C(~/.kube/config) is used, or the service account if the module runs in a pod.
    type: path
  context:
    description: Context of the kubeconfig; also E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description: URL of the API server; also E(K8S_AUTH_HOST).
    type: str
  api_key:
    description: Bearer token; also E(K8S_AUTH_API_KEY).
    type: str
  username:
    description: User name for HTTP basic authentication; also E(K8S_AUTH_USERNAME).
    type: str
  password:
    description: Password of O(username); also E(K8S_AUTH_PASSWORD).
    type: str
  validate_certs:
    description: Whether to verify the certificate of the API server; also E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  ca_cert:
    description: Path of the CA certificate file; also E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  client_cert:
    description: Path of the client certificate; also E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description: Path of the key of the client certificate; also E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  proxy:
    description: URL of an HTTP proxy; also E(K8S_AUTH_PROXY).
    type: str
  impersonate_user:
    description: User to impersonate; also E(K8S_AUTH_IMPERSONATE_USER). Not supported for commands in pods.
    type: str
  impersonate_groups:
    description: Groups to impersonate; also E(K8S_AUTH_IMPERSONATE_GROUPS). Not supported for commands in pods.
    type: list
    elements: str
requirements:
  - kubernetes >= 29.0.0 (Python)
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Returns the state before and after.
    support: full
  idempotent:
    description: When run twice in a row outside check mode with the same arguments, the second run reports no change.
    support: full
  action_group:
    description: Use C(group/gpufabric.rdma.cluster) in C(module_defaults) to set defaults for all cluster modules.
    support: full
    membership: [gpufabric.rdma.cluster]
  platform:
    description: Where the module can run.
    details: Runs on the controller and accesses the cluster through its API.
    platforms: posix
    support: full
"""
