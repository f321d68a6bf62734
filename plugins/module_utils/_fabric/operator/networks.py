# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MacvlanNetwork: the secondary network of one rail."""

from __future__ import annotations

from typing import Any

from .common import metadata, to_json


def build_macvlan(name: str, master: str, mtu: int, pool: str, namespace: str) -> dict[str, Any]:
    """Return the network ``name`` over the interface ``master``; its NAD goes to ``namespace``."""
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "MacvlanNetwork",
        "metadata": metadata(name),
        "spec": {
            "networkNamespace": namespace,
            "master": master,
            "mode": "bridge",
            "mtu": mtu,
            "ipam": to_json({"type": "nv-ipam", "poolName": pool, "poolType": "ippool"}),
        },
    }
