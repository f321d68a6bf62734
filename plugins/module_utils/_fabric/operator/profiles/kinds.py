# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds that several network models use."""

from __future__ import annotations

from collections.abc import Collection

from .. import attachments
from ..network_ready import pool_ready
from ..readiness import Readiness
from .profile import Kind, Object


def _ready(pool: Object, _nad: Object | None, nodes: Collection[str]) -> Readiness:
    return pool_ready("IPPool", pool, nodes)


def _cidr_ready(pool: Object, _nad: Object | None, nodes: Collection[str]) -> Readiness:
    return pool_ready("CIDRPool", pool, nodes)


def exists(item: Object, _nad: Object | None, _nodes: Collection[str]) -> Readiness:
    """Judge what has no status of its own: that it exists is all that can be seen of it."""
    return Readiness.of([])


# The device plugins of a class of hosts. Its readiness is that of the NicClusterPolicy (readiness.policy_ready).
NODE_POLICY = Kind("mellanox.com/v1alpha1", "NicNodePolicy", "nicnodepolicies", exists, step="policy", optional=True)
IP_POOL = Kind("nv-ipam.nvidia.com/v1alpha1", "IPPool", "ippools", _ready, namespaced=True)
CIDR_POOL = Kind("nv-ipam.nvidia.com/v1alpha1", "CIDRPool", "cidrpools", _cidr_ready, namespaced=True, optional=True)
POOLS = (IP_POOL, CIDR_POOL)
DEFINITION = Kind(
    attachments.API, attachments.KIND, attachments.PLURAL, exists, namespaced=True, for_pods=True, optional=True
)
