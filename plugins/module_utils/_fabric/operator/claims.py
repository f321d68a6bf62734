# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dynamic Resource Allocation: how pods claim virtual functions (VFs) where no device plugin offers them.

The SR-IOV operator makes what the DRA driver needs of its policies. A template of claims is in the namespace of the
pods that use it, so it is the user's to apply; the plan writes one of each rail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MIN_KUBERNETES = (1, 34)
# The version that is enabled by default since then.
_API, _KIND = "resource.k8s.io/v1", "ResourceClaimTemplate"
_DEVICE_CLASS = "sriovnetwork.k8snetworkplumbingwg.io"
# The driver publishes the resource of a policy as this attribute of each VF, with its prefix.
_ATTRIBUTE = 'device.attributes["k8s.cni.cncf.io"].resourceName'
_REQUEST = "vf"
# Feature gate of the SR-IOV operator's configuration.
GATE = "dynamicResourceAllocation"


def values() -> dict[str, Any]:
    """Return the values of the operator's chart with which the DRA driver replaces the SR-IOV device plugin."""
    gates = {GATE: True}
    return {"sriov-network-operator": {"sriovOperatorConfig": {"featureGates": gates}}}


def of_rail(rail: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return the template of claims for one VF of a rail."""
    selector = {"cel": {"expression": f'{_ATTRIBUTE} == "{rail["resource"]}"'}}
    device = {"deviceClassName": _DEVICE_CLASS, "count": 1, "selectors": [selector]}
    return {
        "apiVersion": _API,
        "kind": _KIND,
        "metadata": {"name": rail["claim"], "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [{"name": _REQUEST, "exactly": device}]}}},
    }


def of_pod(rails: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a container and what its pod say to use the claims of rails."""
    claims = [{"name": rail["name"], "resourceClaimTemplateName": rail["claim"]} for rail in rails]
    return {"claims": [{"name": claim["name"]} for claim in claims]}, {"resourceClaims": claims}
