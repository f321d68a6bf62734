# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network model sriov: each pod gets a virtual function (VF) of each rail. Ethernet only.

The SR-IOV operator, a part of the network operator's chart, makes the VFs, or uses those of the role sriov. Without it,
the SR-IOV device plugin of the policy and networks as of whole ports give pods the VFs of the role.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ...._common.errors import InputError
from ...._common.pci import NIC_VENDOR
from ...intent import platforms
from ...intent.addressing import STATIC
from ...intent.intent import Intent
from ...intent.releases import LINES, Line
from ...intent.sriov import DEVICE_PLUGIN, DRA
from .. import claims, sections
from ..attachments import chained
from ..common import metadata, mtu_field, to_json
from ..nodes import fabric_selector
from ..pools import address_source, pools
from ..readiness import Readiness
from . import host_device, sriov_log, sriov_ready
from .kinds import DEFINITION, POOLS, exists
from .profile import Kind, NodeReport, Object, Profile, Rails

API = "sriovnetwork.openshift.io/v1"
# The name after the prefix tells them from GPUs, which have it as well.
_PREFIX = platforms.get("").sriov_domain + "vf_"
# The weakest: the policy of an administrator for the same port wins. Without a number it would be the strongest.
_PRIORITY = 99
_POOL_CONFIG = "gpufabric"
# The SR-IOV operator ignores a policy of this name.
_RESERVED = "default"


def lacks_vfs(port: Object) -> str:
    """Return that a port can have no VFs since it is one itself; empty text for another port."""
    if port["passthrough"] != "vf":
        return ""
    return "is a virtual function (VF) that the hypervisor passed through, so it has no VFs"


def _refuses(port: Object) -> str:
    return "is an InfiniBand port" if port["link_layer"] == "infiniband" else lacks_vfs(port)


def warns(intent: Intent, port: Object) -> str:
    """Return how the number of VFs differs from what the port supports, and what the operator would do about it."""
    desired, most = intent.sriov.vfs, port["vfs"]["total"]
    # The SR-IOV operator wants exactly this number in the firmware of a port of NVIDIA whose VFs it makes.
    exact = port["vendor"] == NIC_VENDOR and not intent.sriov.made_on_hosts
    # A port whose facts were not read from a host has no address.
    if not port["mac"] or desired == most or (desired < most and not exact):
        return ""
    if port["passthrough"] and not most:
        return (
            f"the port supports no VFs in the virtual machine, and rdma_fabric.sriov.vfs is {desired}: hypervisors hide"
            " this capability. Use a network model that needs no VFs"
        )
    effect = " The SR-IOV operator would change the firmware, and drain and reboot the node." if exact else ""
    return f"the port supports {most} VFs, and rdma_fabric.sriov.vfs is {desired}.{effect} {_remedy(port, desired)}"


def _remedy(port: Object, desired: int) -> str:
    most = port["vfs"]["total"]
    if port["vendor"] != NIC_VENDOR:
        return f"Set rdma_fabric.sriov.vfs to {most} or less" if most else "Enable SR-IOV in the settings of the BIOS"
    firmware = f"Set NUM_OF_VFS to {desired} and SRIOV_EN to true with role nic_firmware, before playbook deploy"
    return firmware + (f", or set rdma_fabric.sriov.vfs to {most}" if most else "")


def _resource(rail: str) -> str:
    """Return the resource of a rail; the SR-IOV operator takes letters, digits and underscore only."""
    return _PREFIX + rail.replace("-", "_")


def _devices(intent: Intent) -> int:
    return intent.sriov.vfs


def network_sections(intent: Intent, line: Line, rails: Rails) -> dict[str, Any]:
    """Return the sections of the policy that VFs in pods need."""
    return {**sections.nv_ipam(intent, line), **sections.secondary_network(intent, line)}


def without_operator(intent: Intent) -> bool:
    """Return whether the device plugin of the policy gives pods their VFs, and not the SR-IOV operator."""
    return intent.sriov.assigned_by == DEVICE_PLUGIN


def _sections(intent: Intent, line: Line, rails: Rails) -> dict[str, Any]:
    if without_operator(intent):
        return host_device.device_sections(intent, line, rails, vfs=intent.sriov.vfs)
    if intent.sriov.assigned_by == DRA and not line.dra:
        lines = ", ".join(name for name, one in LINES.items() if one.dra)
        raise InputError(
            f"rdma_fabric.sriov.assigned_by: the SR-IOV operator of release line {line.name} has no DRA driver. Lines"
            f" that have it: {lines}. Set rdma_fabric.operator.release to a release of one of them, or remove"
            " assigned_by"
        )
    return network_sections(intent, line, rails)


def _values(intent: Intent) -> dict[str, Any]:
    own = {"sriovNetworkOperator": {"enabled": not without_operator(intent)}}
    return {**own, **(claims.values() if intent.sriov.assigned_by == DRA else {})}


def policies(intent: Intent, rails: Rails, link_type: str = "eth") -> list[dict[str, Any]]:
    """Return the pool of the fabric's nodes where it is needed, and the policy of each rail."""
    if without_operator(intent):
        return []
    _check(intent, rails)
    return [*_operator_config(intent), *_pool_config(intent), *(_policy(intent, rail, link_type) for rail in rails)]


def _check(intent: Intent, rails: Rails) -> None:
    """InputError for what only the rails show."""
    if any(rail["name"] == _RESERVED for rail in rails):
        raise InputError(
            f"rdma_fabric.rails: the SR-IOV operator ignores a policy with the name {_RESERVED}. Rename the rail"
        )
    platform = intent.operator.platform
    if intent.sriov.assigned_by == DRA and platform.sriov_namespace:
        raise InputError(
            f"rdma_fabric.sriov.assigned_by: {DRA} is not supported with platform {platform.name}, which has an SR-IOV"
            " operator of its own. Remove assigned_by"
        )
    own = [rail["name"] for rail in rails if NIC_VENDOR in rail["vendors"]]
    if intent.sriov.device_type != "netdevice" and own:
        raise InputError(
            f"rdma_fabric.sriov.device_type is {intent.sriov.device_type}, but {', '.join(own)} have ports of NVIDIA,"
            " whose VFs need their own driver, also for DPDK. Set rdma_fabric.sriov.device_type to netdevice"
        )


def namespace(intent: Intent) -> str:
    """Return the namespace of the SR-IOV operator, in which its objects must be."""
    return intent.operator.platform.sriov_in(intent.operator.namespace)


def _operator_config(intent: Intent) -> list[dict[str, Any]]:
    """Return the settings of the platform's SR-IOV operator; the object exists and is not ours, so it has no label."""
    if not intent.sriov.operator_config:
        return []
    platform = intent.operator.platform
    if not platform.sriov_namespace:
        raise InputError(
            f"rdma_fabric.sriov.operator_config: with platform {platform.name}, the chart installs the SR-IOV operator."
            " Set sriov-network-operator.sriovOperatorConfig in the values of the chart instead"
        )
    return [
        {
            "apiVersion": API,
            "kind": "SriovOperatorConfig",
            "metadata": {"name": "default", "namespace": namespace(intent)},
            "spec": dict(intent.sriov.operator_config),
        }
    ]


def _pool_config_name(intent: Intent) -> str:
    # Each class of hosts has its own.
    return f"{_POOL_CONFIG}-{intent.class_name}" if intent.class_name else _POOL_CONFIG


def _pool_config(intent: Intent) -> list[dict[str, Any]]:
    spec = _given(maxUnavailable=intent.sriov.max_unavailable, rdmaMode=intent.sriov.rdma_mode)
    if not spec:
        return []
    return [
        {
            "apiVersion": API,
            "kind": "SriovNetworkPoolConfig",
            "metadata": metadata(_pool_config_name(intent), namespace(intent)),
            "spec": {"nodeSelector": {"matchLabels": fabric_selector(intent.node_selector)}, **spec},
        }
    ]


def _policy(intent: Intent, rail: Mapping[str, Any], link_type: str) -> dict[str, Any]:
    vendors = rail["vendors"]
    return {
        "apiVersion": API,
        "kind": "SriovNetworkNodePolicy",
        "metadata": metadata(rail["name"], namespace(intent)),
        "spec": {
            "resourceName": resource_name(rail),
            "nodeSelector": fabric_selector(intent.node_selector),
            "nicSelector": {"pfNames": [rail["netdev"]], **({"vendor": vendors[0]} if len(vendors) == 1 else {})},
            "numVfs": intent.sriov.vfs,
            **mtu_field(intent, rail),
            "priority": _PRIORITY,
            "linkType": link_type,
            "deviceType": intent.sriov.device_type,
            "isRdma": intent.sriov.device_type == "netdevice" and intent.sriov.rdma,
            "eSwitchMode": intent.sriov.eswitch_mode,
            "externallyManaged": intent.sriov.externally_managed,
        },
    }


def _networks(intent: Intent, rails: Rails) -> list[dict[str, Any]]:
    if intent.sriov.pkey:
        raise InputError(
            "rdma_fabric.sriov.pkey: only InfiniBand has partitions. Remove pkey, or set profile: sriov_ib"
        )
    if without_operator(intent):
        return host_device.networks(intent, rails)
    return [_network(intent, rail) for rail in rails]


def _network(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the network of a rail; its NetworkAttachmentDefinition goes to the namespace of networks."""
    own = intent.sriov
    return {
        "apiVersion": API,
        "kind": "SriovNetwork",
        "metadata": metadata(rail["network"], namespace(intent)),
        "spec": {
            "networkNamespace": intent.network_namespace,
            "resourceName": resource_name(rail),
            "vlan": own.vlan,
            "ipam": to_json(address_source(intent, rail)),
            **_given(trust=_switch(own.trust), spoofChk=_switch(own.spoof_check)),
            **common_settings(intent, rail),
        },
    }


def isolation(intent: Intent) -> list[dict[str, Any]]:
    """Return the plugin that moves the RDMA device of a VF into the pod; it fails where the nodes share devices."""
    return [{"type": "rdma"}] if intent.sriov.rdma_mode == "exclusive" else []


def common_settings(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that networks of VFs have on either link layer, without those that are not set."""
    own = intent.sriov
    plugins = [*isolation(intent), *chained(intent, rail)]
    return _given(
        linkState=own.link_state,
        capabilities=to_json({"ips": True}) if intent.pools.ipam == STATIC else "",
        metaPlugins=",".join(map(to_json, plugins)),
    )


def resource_name(rail: Mapping[str, Any]) -> str:
    """Return the resource of a rail as policies and networks name it, without the prefix."""
    return str(rail["resource"]).rpartition("/")[2]


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}


def _switch(value: bool | None) -> str:
    return "" if value is None else "on" if value else "off"


def _network_ready(network: Object, nad: Object | None, nodes: Collection[str]) -> Readiness:
    return sriov_ready.network_ready(network, nad)


_STATES = NodeReport(
    API,
    "sriovnetworknodestates",
    sriov_ready.node_ready,
    sriov_ready.node_released,
    lacks=sriov_ready.lacks,
    works=sriov_ready.works,
    boots=sriov_ready.boots,
    complaint=sriov_log.complaint,
    agent="sriov-network-config-daemon",
    after="the SR-IOV operator gives ports the MTU that they had when it first started. Playbooks then configure the"
    " rails of the hosts of this run again; for other hosts, run the playbook prepare with the tag rail_links. Its"
    " daemon leaves files and labels on the nodes, which docs/inventory.md lists under Virtual functions",
    marks=("sriovnetwork.openshift.io/device-plugin", "sriovnetwork.openshift.io/state"),
)

POLICY_KINDS = (
    Kind(
        API,
        "SriovOperatorConfig",
        "sriovoperatorconfigs",
        exists,
        namespaced=True,
        by_sriov=True,
        optional=True,
        patched=True,
        step="policy",
    ),
    Kind(
        API, "SriovNetworkPoolConfig", "sriovnetworkpoolconfigs", exists, namespaced=True, by_sriov=True, step="policy"
    ),
    Kind(
        API,
        "SriovNetworkNodePolicy",
        "sriovnetworknodepolicies",
        exists,
        namespaced=True,
        by_sriov=True,
        step="policy",
        report=_STATES,
    ),
)

PROFILE = Profile(
    name="sriov",
    refuses=_refuses,
    warns=warns,
    shares_port=False,
    operator_makes_vfs=lambda intent: not intent.sriov.made_on_hosts,
    host_vfs=lambda intent: intent.sriov.vfs if intent.sriov.made_on_hosts else None,
    resource=_resource,
    resource_prefix=_PREFIX,
    devices=_devices,
    sections=_sections,
    values=_values,
    policies=policies,
    pools=pools,
    networks=_networks,
    kinds=(
        *POLICY_KINDS,
        *POOLS,
        Kind(API, "SriovNetwork", "sriovnetworks", _network_ready, namespaced=True, by_sriov=True, attaches=True),
        replace(host_device.NETWORK, optional=True),
        DEFINITION,
    ),
    own_sections=("sriov",),
)
