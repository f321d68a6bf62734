# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who manages the network of a host, what a rail asks of a manager, and who else claims a port."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..._common.errors import InputError
from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..system import systemd
from .routing import Route, Rule

TITLE = systemd.title("rail_links")
# How files and connections of ours are told from others.
PREFIX = "gpufabric-"
NETWORKD, NETWORKMANAGER, NETPLAN = "networkd", "networkmanager", "netplan"
CHOICES = ("auto", NETWORKD, NETWORKMANAGER, NETPLAN)
# Service, as an inventory names it -> what it is called here.
_SERVICES = {"NetworkManager": NETWORKMANAGER, "systemd-networkd": NETWORKD}
_RENDERER = re.compile(r"^([ ]+)renderer:\s*['\"]?(\w+)", re.MULTILINE)


class Manager(NamedTuple):
    """Who gets the files (``name``), who brings the links up (``backend``), and all services that run."""

    name: str
    backend: str
    running: tuple[str, ...]


class Vlan(NamedTuple):
    """A VLAN interface: its name, its number, and the rail that carries it."""

    netdev: str
    number: int
    over: str


@dataclasses.dataclass(frozen=True)
class LinkFile:
    """What a manager is asked to keep for one rail.

    ``addresses`` have a prefix; None keeps those that the port has. ``rules`` and ``routes`` of source routing.
    ``carries``: the VLAN interface on this link; ``vlan``: the one that this file is for, ``port`` being its port.
    """

    rail: str
    port: Port
    mtu: int
    addresses: tuple[str, ...] | None
    rules: tuple[Rule, ...] = ()
    routes: tuple[Route, ...] = ()
    carries: str = ""
    vlan: Vlan | None = None

    @property
    def name(self) -> str:
        """The name of the file, connection or definition."""
        return PREFIX + self.rail


class Claim(NamedTuple):
    """A file of somebody else that configures a port: before ours (``first``), or only without ours.

    ``setting`` is how the MTU is written there, up to the number.
    """

    path: str
    first: bool
    setting: str


def services(inventory: HostInventory) -> tuple[str, ...]:
    """Return which of the supported services run: networkd, networkmanager."""
    return tuple(sorted(_SERVICES[name] for name in inventory.managers if name in _SERVICES))


def choose(inventory: HostInventory, asked: str, netplan: Mapping[str, str] | None) -> Manager:
    """Return who gets the rails; InputError says what was found when that is not clear.

    ``netplan`` is path -> text of its files, None where the program is missing.
    """
    running = services(inventory)
    host, found = inventory.hostname, ", ".join(inventory.managers) or "no known manager"
    if not running:
        raise InputError(
            f"the network of {host} is managed by {found}. Supported are systemd-networkd, NetworkManager, and "
            "netplan with one of them. Enable one for the rails, or exclude the host"
        )
    name = asked
    if asked == "auto":
        name = NETPLAN if netplan else running[0]
        if not netplan and len(running) > 1:
            raise InputError(
                f"Both NetworkManager and systemd-networkd are active on {host}. "
                "Set manager to networkd or networkmanager to choose which one configures the rails"
            )
    if name == NETPLAN and netplan is None:
        raise InputError(
            f"manager is netplan, but netplan is not installed on {host} (found: {found}). Install it, or set another "
            "manager"
        )
    if name != NETPLAN and name not in running:
        raise InputError(
            f"manager is {name}, which is not active on {host} (found: {found}). Set manager to one that is active"
        )
    return Manager(name, _backend(running, netplan or {}) if name == NETPLAN else name, running)


def _backend(running: tuple[str, ...], netplan: Mapping[str, str]) -> str:
    if len(running) == 1:
        return running[0]
    # The global renderer has the smallest indentation; the last file wins, and networkd is the default.
    found = [match.groups() for text in netplan.values() for match in _RENDERER.finditer(text)]
    width = min((len(indent) for indent, _name in found), default=0)
    chosen = [name for indent, name in found if len(indent) == width]
    return NETWORKMANAGER if chosen and chosen[-1] == "NetworkManager" else NETWORKD


def ifupdown_claim(files: Mapping[str, str], port: Port) -> Claim | None:
    """Return the file of ifupdown that configures a port; ``files`` is path -> text."""
    names = port_names(port)
    for path, text in files.items():
        stanzas = [line.split() for line in text.splitlines() if line.startswith("iface ")]
        if any(words[1] in names for words in stanzas if len(words) > 1):
            return Claim(path, True, "mtu ")
    return None


def port_names(port: Port) -> tuple[str, ...]:
    """Return the name and the alternative names of a port's network device."""
    return (port.netdev.name, *port.netdev.altnames) if port.netdev else ()


def macs(links: Iterable[LinkFile]) -> list[str]:
    """Return the permanent MAC addresses of the rails, in their order."""
    return list(dict.fromkeys(link.port.netdev.mac for link in links if link.port.netdev))
