# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of what pods use of a rail, and what is set on their interfaces: the section ``rdma_fabric.networks``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..._common.reader import Form, Reader

_RAIL = "{rail}"
# Kubernetes: at most 63 characters, of which a rail's name takes 15.
_OBJECT = Form(
    r"(?=.{6,54}$)([a-z0-9][a-z0-9-]*)?\{rail\}([a-z0-9-]*[a-z0-9])?",
    'lowercase letters, digits and "-" with "{rail}" among them, such as "gpu-{rail}"',
)
# What device plugins take in names of resources.
_RESOURCE = Form(
    r"(?=.{6,46}$)[A-Za-z0-9_]*\{rail\}[A-Za-z0-9_]*",
    'letters, digits and "_" with "{rail}" among them, such as "gpu_{rail}"',
)
_VRF = Form(r"[A-Za-z0-9_.-]*\{rail\}[A-Za-z0-9_.-]*", 'a name with "{rail}" in it, such as "vrf-{rail}"')
_LONGEST_NETDEV = 15
PLAN, INHERIT = "plan", "inherit"
# The plugin tuning sets what is below the interface of the pod, and puts its name in place of IFNAME.
_SYSCTL = re.compile(r"net\.ipv[46]\.(conf|neigh)\.IFNAME\.[a-z0-9_]+")


@dataclass(frozen=True)
class Networks:
    """Names as templates of a rail's name; None where the rail's own name is used.

    ``sysctls``: setting with IFNAME -> value, for the interface of a pod. ``source_routing``: the plugin sbr.
    ``mtu``: whether objects name the MTU of the plan, or leave that of the port on each node.
    """

    name: str
    pool: str
    resource: str
    source_routing: bool
    vrf: str | None
    sysctls: Mapping[str, str]
    mtu: str = PLAN

    @property
    def pinned_mtu(self) -> bool:
        """Whether objects name the MTU of the rails."""
        return self.mtu == PLAN

    @property
    def chains(self) -> bool:
        """Whether plugins follow the one that makes the interface."""
        return bool(self.source_routing or self.vrf or self.sysctls)


def of_rail(template: str, rail: str) -> str:
    """Return a name for a rail."""
    return template.replace(_RAIL, rail)


def read_networks(reader: Reader) -> Networks:
    """Read the section; problems are noted in the reader."""
    networks = Networks(
        name=reader.text("name", _RAIL, form=_OBJECT),
        pool=reader.text("pool", _RAIL, form=_OBJECT),
        resource=reader.text("resource", _RAIL, form=_RESOURCE),
        source_routing=reader.flag("source_routing", False),
        vrf=reader.text("vrf", None, form=_VRF),
        sysctls=_sysctls(reader),
        mtu=reader.text("mtu", PLAN, choices=(PLAN, INHERIT)),
    )
    if networks.vrf and networks.source_routing:
        reader.refuse("vrf", "a VRF has its own routing table, which source_routing would bypass. Remove one of both")
    reader.close()
    return networks


def vrf_problem(networks: Networks, rail: str) -> str:
    """Return why the VRF of a rail cannot have its name; empty text when it can."""
    name = of_rail(networks.vrf, rail) if networks.vrf else ""
    if len(name) <= _LONGEST_NETDEV:
        return ""
    return f"rdma_fabric.networks.vrf: {name} has {len(name)} characters, at most {_LONGEST_NETDEV} are possible"


def _sysctls(reader: Reader) -> dict[str, str]:
    found = reader.mapping("sysctls")
    for key, value in found.items():
        if not (isinstance(key, str) and _SYSCTL.fullmatch(key)):
            reader.refuse("sysctls", f'expected names such as net.ipv4.conf.IFNAME.arp_ignore, found "{key}"')
        elif isinstance(value, bool) or not re.fullmatch(r"-?[0-9]{1,10}", str(value)):
            reader.refuse("sysctls", f'{key}: expected a whole number, found "{value}"')
    return {str(key): str(found[key]) for key in sorted(found, key=str)}
