# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How namespaces are written, and which one the testers can have."""

from __future__ import annotations

from ..._common.reader import Form

NAMESPACE = Form(
    r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
    'a namespace such as rdma-networks (lowercase letters, digits and "-" inside, at most 63 characters)',
)
_SYSTEM = "a system namespace of Kubernetes"


def refusal(option: str, namespace: str, *, operator: str | None, networks: str | None) -> str:
    """Return why the testers cannot use a namespace, empty when they can.

    ``option``: what the caller's user sets it by. ``operator``, ``networks``: those in use.
    """
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
