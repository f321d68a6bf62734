# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How network managers take changed files over: the commands that disturb only the rails."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from ..facts.rail_ports import Rail
from . import bonded, netplan, network_manager
from .network_managers import NETPLAN, NETWORKD, NETWORKMANAGER, PREFIX, LinkFile, Manager

GENERATE = ("netplan", "generate")
# Reconfigures the links whose files changed, and no others.
RELOAD = ("networkctl", "reload")
# Seconds that NetworkManager gets to bring a link up.
PATIENCE = "20"
# NetworkManager reads connections that only root can read; netplan warns about others.
SECRET_FOLDERS = ("/NetworkManager/system-connections/", "/netplan/")


def of_managers(
    before: Mapping[str, str],
    after: Mapping[str, str],
    links: tuple[LinkFile, ...],
    *,
    running: tuple[str, ...],
    manager: Manager | None,
    active: tuple[str, ...],
    netdevs: Mapping[str, str],
) -> tuple[tuple[str, ...], ...]:
    """Return the commands for a change of own files (path -> text).

    ``running`` are the services, ``active`` the connections of NetworkManager that are up, ``netdevs`` MAC -> name.
    ``netplan apply`` is not among them: it would take down and up every link whose backend it restarts.
    """
    changed = {posixpath.basename(p): p for p in (*before, *after) if before.get(p) != after.get(p)}
    by_netplan = netplan.FILE in changed
    generate = [GENERATE] if by_netplan else []
    has_networks = by_netplan or any(_is_of_networkd(path) for path in changed.values())
    networkd = [RELOAD] if NETWORKD in running and has_networks else []
    nm: list[tuple[str, ...]] = []
    if NETWORKMANAGER in running:
        nm = _networkmanager(changed, after, links, manager=manager, active=active)
        # Before connections are brought up.
        nm[:0] = _handed_over(network_manager.left_alone(before), network_manager.left_alone(after), netdevs)
    # Who loses a link lets go of it, and flushes it, before the other one takes it.
    last_is_nm = manager is not None and manager.backend == NETWORKMANAGER
    return (*generate, *networkd, *nm) if last_is_nm else (*generate, *nm, *networkd)


def touched(before: Mapping[str, str], after: Mapping[str, str], rails: Iterable[Rail]) -> set[str]:
    """Return the PCI addresses of rails whose definition changes for a network manager, which sets the link anew."""
    names = [posixpath.basename(path) for path in (*before, *after) if before.get(path) != after.get(path)]
    stems = {name.rpartition(".")[0].partition(PREFIX)[2] for name in names}
    whole = netplan.FILE in names
    return {rail.pci for rail in rails if whole or rail.name in stems or rail.vlan_name in stems}


def _is_of_networkd(path: str) -> bool:
    return path.endswith((".network", ".netdev")) or f"{bonded.FOLDER}/" in path


def mode(path: str) -> int:
    """Return the permissions that a file of ours must have."""
    return 0o600 if any(folder in path for folder in SECRET_FOLDERS) else 0o644


def connections(links: tuple[LinkFile, ...], manager: Manager | None) -> dict[str, LinkFile]:
    """Return the connections of NetworkManager that must be up, each with its rail; none with another backend."""
    if manager is None or manager.backend != NETWORKMANAGER:
        return {}
    return {netplan.connection(link) if manager.name == NETPLAN else link.name: link for link in links}


def _handed_over(before: set[str], after: set[str], netdevs: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return what makes NetworkManager let ports go, or take them back, by their MAC addresses."""
    told = {**dict.fromkeys(sorted(before - after), "yes"), **dict.fromkeys(sorted(after - before), "no")}
    return [("nmcli", "device", "set", netdevs[mac], "managed", say) for mac, say in told.items() if mac in netdevs]


def _networkmanager(
    changed: Mapping[str, str],
    after: Mapping[str, str],
    links: tuple[LinkFile, ...],
    *,
    manager: Manager | None,
    active: tuple[str, ...],
) -> list[tuple[str, ...]]:
    commands: list[tuple[str, ...]] = []
    gone = any(name.endswith(network_manager.SUFFIX) and path not in after for name, path in changed.items())
    if network_manager.CONF_FILE in changed:
        commands.append(("nmcli", "general", "reload", "conf"))
    if gone or netplan.FILE in changed:
        commands.append(("nmcli", "connection", "reload"))
    for name, link in connections(links, manager).items():
        path = changed.get(f"{link.name}{network_manager.SUFFIX}")
        if path in after:
            commands.append(("nmcli", "connection", "load", str(path)))
        if path in after or netplan.FILE in changed or name not in active:
            commands.append(_up(link, name))
    return commands


def _up(link: LinkFile, connection: str) -> tuple[str, ...]:
    netdev = link.port.netdev.name if link.port.netdev else ""
    # NetworkManager creates a VLAN interface.
    device = () if link.vlan else ("ifname", netdev)
    return ("nmcli", "--wait", PATIENCE, "connection", "up", "id", connection, *device)
