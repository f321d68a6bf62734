# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rails that the user names: ``rdma_fabric.rails``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..._common.reader import Form, Reader
from .addressing import V4, V6, Address, Network, read_subnet

LAST_VLAN = 4094
# A rail's name becomes a network interface (15 characters), a Kubernetes object and a device plugin resource.
_RAIL_NAME = Form(
    r"[a-z]([a-z0-9-]{0,13}[a-z0-9])?",
    'a name such as rail0 (lowercase letters, digits and "-" inside, first a letter, at most 15 characters)',
)
_PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
# As the names of all interfaces that the modules on hosts accept.
_BOND = Form(r"[a-zA-Z][a-zA-Z0-9_-]{0,14}", "the name of a bond such as bond0")


@dataclass(frozen=True)
class RailIntent:
    """A rail that the user names, with its own subnet and router, if any.

    Without ``pci`` and ``bond`` a port is found for it.
    """

    name: str
    pci: tuple[str, ...]
    subnet: Network | None = None
    gateway: Address | None = None
    vlan: int | None = None
    subnet_ipv6: Network | None = None
    gateway_ipv6: Address | None = None
    bond: str = ""


def read_rails(reader: Reader) -> tuple[RailIntent, ...]:
    """Read the rails; problems are noted in the reader."""
    rails = []
    for item in reader.sections("rails"):
        name = item.text("name", None, form=_RAIL_NAME)
        pci = tuple(address.lower() for address in item.texts("pci"))
        if "name" not in item:
            item.refuse("name", "missing; every rail needs a name")
        for address in pci:
            if not re.fullmatch(_PCI, address):
                item.refuse("pci", f'expected PCI addresses such as 0000:18:00.0, found "{address}"')
        own = read_subnet(item, V4, subnet="subnet", gateway="gateway")
        own_ipv6 = read_subnet(item, V6, subnet="subnet_ipv6", gateway="gateway_ipv6")
        vlan = item.integer("vlan", None, 0, high=LAST_VLAN)
        bond = item.text("bond", "", form=_BOND)
        if bond and pci:
            item.refuse("bond", "a rail is a bond or a port, but pci is set too. Remove one")
        item.close()
        rails.append(RailIntent(name or "", pci, *own, vlan, *own_ipv6, bond))
    names = [rail.name for rail in rails]
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        reader.refuse("rails", f'the name "{name}" is given to more than one rail')
    return tuple(rails)
