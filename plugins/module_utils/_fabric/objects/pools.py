# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPPool of nv-ipam: where pods of one rail get their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .common import metadata, node_selector


def build_pool(name: str, namespace: str, subnet: str, block_size: int, selector: Mapping[str, str]) -> dict[str, Any]:
    """Return the pool ``name``; every node that ``selector`` matches gets ``block_size`` addresses."""
    spec: dict[str, Any] = {"subnet": subnet, "perNodeBlockSize": block_size}
    if selector:
        spec["nodeSelector"] = node_selector(selector)
    return {
        "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
        "kind": "IPPool",
        "metadata": metadata(name, namespace),
        "spec": spec,
    }
