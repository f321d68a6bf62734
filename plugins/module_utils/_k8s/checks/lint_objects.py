# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a cluster that rules look at: one list per kind, nothing secret."""

from __future__ import annotations

from typing import Any

from ..client.api import Api
from ..client.kinds import NICS, POOLS, collection

_SRIOV = "sriovnetwork.openshift.io/v1"
KINDS = (
    (NICS, "NicClusterPolicy", "nicclusterpolicies"),
    (NICS, "NicNodePolicy", "nicnodepolicies"),
    (NICS, "MacvlanNetwork", "macvlannetworks"),
    (NICS, "HostDeviceNetwork", "hostdevicenetworks"),
    (NICS, "IPoIBNetwork", "ipoibnetworks"),
    (POOLS, "IPPool", "ippools"),
    (POOLS, "CIDRPool", "cidrpools"),
    (_SRIOV, "SriovNetwork", "sriovnetworks"),
    (_SRIOV, "SriovIBNetwork", "sriovibnetworks"),
    (_SRIOV, "SriovNetworkNodePolicy", "sriovnetworknodepolicies"),
    (_SRIOV, "SriovNetworkPoolConfig", "sriovnetworkpoolconfigs"),
    (_SRIOV, "SriovNetworkNodeState", "sriovnetworknodestates"),
    (_SRIOV, "SriovOperatorConfig", "sriovoperatorconfigs"),
    ("nvidia.com/v1", "ClusterPolicy", "clusterpolicies"),
    ("apps/v1", "Deployment", "deployments"),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("v1", "Node", "nodes"),
)


def read(api: Api) -> list[dict[str, Any]]:
    """Return all objects of these kinds; kinds that the cluster does not serve have none.

    Raise ApiError when one of them cannot be listed: what is not seen must not count as absent.
    """
    return [
        {"apiVersion": version, "kind": kind, **item}
        for version, kind, plural in KINDS
        for item in api.items(collection(version, plural))
    ]
