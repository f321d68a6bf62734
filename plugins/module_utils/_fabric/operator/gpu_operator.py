# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU Operator beside the network operator: settings of its ClusterPolicy that contradict who brings NIC drivers.

Its driver pods load nvidia-peermem, which is built against the headers of DOCA-OFED, and wait until the NIC drivers
are loaded: for those of the host with ``useHostMofed``, otherwise for the driver container.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

API, PLURAL = "nvidia.com/v1", "clusterpolicies"
_CONTAINER, _INBOX = "container", ("inbox", "soft_roce")
_DMABUF = "GPU memory needs no nvidia-peermem where DMA-BUF works"


def summary(policy: Mapping[str, Any], provider: str) -> dict[str, Any]:
    """Return what a ClusterPolicy states about RDMA, and its problems with the ``provider`` of NIC drivers.

    Only what it states counts; without ``provider`` nothing is judged.
    """
    name = str((policy.get("metadata") or {}).get("name"))
    driver = _dict(_dict(policy.get("spec")).get("driver"))
    rdma = _dict(driver.get("rdma"))
    # A driver that is installed on the hosts is none of the operator's.
    enabled = driver.get("enabled") is not False and rdma.get("enabled") is True
    host = rdma.get("useHostMofed") is True
    return {
        "name": name,
        "rdma": enabled,
        "use_host_mofed": host,
        "problem": _problem(name, provider, host) if enabled and provider else "",
    }


def values(container: bool, nfd: bool) -> str:
    """Return values of the GPU Operator's chart that fit a plan, as YAML with comments.

    ``container``: the driver container brings the NIC drivers; ``nfd``: the network operator's chart brings Node
    Feature Discovery.
    """
    lines = ["---", "# Values of the GPU Operator's chart beside this fabric."]
    if nfd:
        lines += ["nfd:", "  enabled: false # the chart of the network operator brings Node Feature Discovery"]
    lines += ["driver:", "  rdma:"]
    if container:
        lines += ["    enabled: true", "    useHostMofed: false # the driver container brings the NIC drivers"]
    else:
        lines += [
            "    # With in-tree drivers on the hosts, GPU memory is reached by DMA-BUF, without nvidia-peermem.",
            "    # With DOCA-OFED on the hosts, set both to true if nvidia-peermem is required.",
            "    enabled: false",
            "    useHostMofed: false",
        ]
    return "".join(f"{line}\n" for line in lines)


def _problem(name: str, provider: str, host: bool) -> str:
    place = f"ClusterPolicy {name} of the GPU Operator: spec.driver.rdma"
    if provider in _INBOX:
        return (
            f"{place}.enabled is true, but the hosts have in-tree drivers (nic_drivers: {provider}),"
            f" against which nvidia-peermem cannot be built. {_DMABUF}: set it to false, or use drivers of DOCA-OFED"
        )
    if provider == _CONTAINER and host:
        return (
            f"{place}.useHostMofed is true, but the driver container brings the NIC drivers. Set it to false, so that"
            " nvidia-peermem is loaded after them"
        )
    if provider != _CONTAINER and not host:
        return (
            f"{place}.useHostMofed is not true, but the NIC drivers are installed on the hosts (nic_drivers:"
            f" {provider}): its pods wait for a driver container that does not exist. Set it to true"
        )
    return ""


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
