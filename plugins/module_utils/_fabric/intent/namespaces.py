# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How namespaces are written, and which one the testers can have."""

from __future__ import annotations

from ..._common.reader import Form
from . import platforms

NAMESPACE = Form(
    r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
    'a namespace such as rdma-networks (lowercase letters, digits and "-" inside, at most 63 characters)',
)
_SYSTEM = "a system namespace of Kubernetes"


def refusal(option: str, namespace: str, *, operator: str | None, networks: str | None, platform: str = "") -> str:
    """Return why the testers cannot use a namespace, empty when they can.

    ``option``: what the caller's user sets it by. ``operator``, ``networks``: those in use. ``platform``: the kind of
    cluster. Where pods need networks of their own namespace, the testers use that one, and it is not deleted.
    """
    own = platforms.get(platform)
    wrong = own.network_problem(networks, namespace) if networks else ""
    if wrong:
        return (
            f"{option} is {namespace}. {wrong}. Set {option} to {networks}, or rdma_fabric.network_namespace to default"
        )
    if networks == namespace and own.shared_namespaces and namespace not in own.shared_namespaces:
        return ""
    uses = {
        operator: "the namespace of the network operator",
        networks: "the namespace of the secondary networks",
        "default": _SYSTEM,
    }
    use = uses.get(namespace, _SYSTEM if namespace.startswith("kube-") else "")
    return (
        f"{option} is {namespace}, which is {use}. The testers need a namespace of their own, because it"
        f" is deleted after the measurement. Set {option} to another name, such as gpufabric-validate"
        if use
        else ""
    )
