# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the plan warns of: what it cannot know, and what does not work as an operator may expect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..._common.fold import fold
from ..._common.reader import some
from ..intent.addressing import NV_IPAM, PLANNED, V6
from ..intent.intent import Intent
from ..intent.releases import warnings as release_warnings
from ..operator.nodes import NIC_LABEL, NIC_LABEL_NAME
from ..operator.profiles import registry
from . import bonds, missing, routers
from .layout import Layout
from .review import differences


def warnings(layout: Layout, nodes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the warnings of a layout (``nodes``: host -> Node name)."""
    intent = layout.intent
    for host in layout.hosts:
        answer = f"returned invalid facts ({host.invalid})" if host.invalid else "returned no facts"
        if host.absent:
            yield f"{host.name} {answer}; it is reported as no_data"
        elif host.invalid:
            yield f"{host.name}, which is outside of this run, {answer}; it is planned without them"
    absent = [host.name for host in layout.hosts if host.absent and not host.facts]
    new = sorted({name for name, _index in layout.new})
    if absent and new:
        yield f"{fold(new)} get new addresses, and those of {fold(absent)} are unknown: check for duplicate addresses"
    yield from release_warnings(intent.operator.release)
    yield from differences(layout.rails)
    yield from _ports(layout)
    yield from _frames(layout)
    yield from bonds.warnings(layout.rails.names, layout.rails.ports)
    yield from missing.warnings(layout.hosts, layout.rails.missing)
    for host in layout.hosts:
        kept = layout.seats[host.name].rails
        if host.number and any(number != host.number for number in kept):
            yield f"{host.name} keeps an address that it has, although rdma_host.number is {host.number}"
    own = intent.operator
    brought = own.nfd or "nfd" in own.platform.brings
    if not brought and not NIC_LABEL.items() <= {**intent.node_labels, **intent.node_selector}.items():
        yield f"no NFD, and rdma_fabric.node_labels does not set {NIC_LABEL_NAME}: others must, or nothing runs"
    if own.driver.enabled and not brought:
        yield (
            "the chart installs no NFD: the driver container runs only on nodes with the labels of NFD for operating"
            " system and kernel, so NFD must run in the cluster"
        )
    if layout.intent.routing != "none" and any(routers.routes(layout, own) for own in layout.ranges[1:]):
        yield from _pods_without_tables(layout.intent)
    yield from _partition(intent)
    if registry.by_claims(intent):
        yield (
            "pods claim their VFs (rdma_fabric.sriov.assigned_by: dra), which requires Kubernetes 1.34 or newer. The"
            " playbook validate makes no claims: measure on the hosts only"
        )
    yield from _unfixed(layout, nodes)
    if intent.version == V6 and intent.tests["rdma_cm"]:
        yield (
            "the rails have IPv6 addresses only, and tests.rdma_cm needs IPv4 addresses: validate reports them as"
            " no_data. Set rdma_cm: false, or set rdma_fabric.supernet in addition"
        )
    if not layout.ranges and intent.pools.ipam in PLANNED:
        yield "rdma_fabric.supernet is not given, so no networks for pods are planned"


def _partition(intent: Intent) -> Iterator[str]:
    key = intent.pkey or intent.sriov.pkey
    if key and not intent.sriov.ib_kubernetes.ufm_secret:
        yield (
            f"the partition {key} is set by the administrator of the subnet manager: playbook plan with"
            " rdma_manifests_dir writes its lines to infiniband/partitions.conf"
        )


def _unfixed(layout: Layout, nodes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the hosts whose Nodes would get subnets of others, as pools cannot name them."""
    intent = layout.intent
    unknown = [host.name for host in layout.hosts if host.limited and not nodes[host.name]]
    if intent.host_prefix is not None and intent.pools.ipam == NV_IPAM and unknown:
        yield (
            f"the Nodes of {fold(unknown)} are unknown, so their pods would get addresses of other subnets than these"
            " hosts have. Run with access to the cluster, or set rdma_host.node_name"
        )


def _pods_without_tables(intent: Intent) -> Iterator[str]:
    if intent.pools.ipam in PLANNED and not (intent.networks.source_routing or intent.networks.vrf):
        yield (
            "pods with several rails reach other rails through their first rail only: the routes of all rails are the"
            " same. Set rdma_fabric.networks.source_routing or vrf"
        )


def _ports(layout: Layout) -> Iterator[str]:
    """Yield what the network model warns of about ports of the rails, once for all hosts of which it holds."""
    warns = registry.get(layout.intent.profile).warns
    found: dict[tuple[str, str], list[str]] = {}
    for host in layout.hosts:
        for rail, port in layout.rails.of(host.name):
            text = warns(layout.intent, port)
            if text:
                found.setdefault((rail, text), []).append(host.name)
    for (rail, text), hosts in found.items():
        yield f"{fold(hosts)} {rail}: {text}"


def _frames(layout: Layout) -> Iterator[str]:
    """Yield the switch ports that certainly drop full frames of their rail, as LLDP reports their largest frame.

    Switches count the header or do not, so a port is named only when not even the payload fits.
    """
    mtu = registry.mtu_of(layout.intent)
    found: dict[tuple[str, int], dict[str, str]] = {}
    for host in layout.hosts:
        for rail, port in layout.rails.of(host.name):
            most = (port["switch"] or {}).get("max_frame")
            if most and most < mtu:
                switch = f"{port['switch']['system'] or port['switch']['chassis']} port {port['switch']['port']}"
                found.setdefault((rail, most), {})[host.name] = switch
    for (rail, most), switches in found.items():
        yield (
            f"{fold([*switches])} {rail}: the MTU of the rail is {mtu}, and the switch ports accept frames of at most"
            f" {most} bytes ({some([*switches.values()])}, by LLDP). Raise the MTU of these ports, or lower"
            " rdma_fabric.mtu"
        )
