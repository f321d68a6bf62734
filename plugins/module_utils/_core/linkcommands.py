# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How network managers take changed files over: the commands that disturb only the rails."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from . import netplan, networkmanager
from .managers import NETPLAN, NETWORKD, NETWORKMANAGER, LinkFile, Manager

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
    running: tuple[str, ...],
    manager: Manager | None,
) -> tuple[tuple[str, ...], ...]:
    """Return the commands for a change of own files (path -> text); ``running`` are the services.

    ``netplan apply`` is not among them: it would take down and up every link whose backend it restarts.
    """
    changed = {posixpath.basename(p): p for p in (*before, *after) if before.get(p) != after.get(p)}
    commands: list[tuple[str, ...]] = []
    by_netplan = netplan.FILE in changed
    if by_netplan:
        commands.append(GENERATE)
    if NETWORKD in running and (by_netplan or any(name.endswith(".network") for name in changed)):
        commands.append(RELOAD)
    if NETWORKMANAGER in running:
        commands += _networkmanager(changed, after, links, manager)
    return tuple(commands)


def mode(path: str) -> int:
    """Return the permissions that a file of ours must have."""
    return 0o600 if any(folder in path for folder in SECRET_FOLDERS) else 0o644


def _networkmanager(
    changed: Mapping[str, str], after: Mapping[str, str], links: tuple[LinkFile, ...], manager: Manager | None
) -> list[tuple[str, ...]]:
    commands: list[tuple[str, ...]] = []
    gone = any(name.endswith(networkmanager.SUFFIX) and path not in after for name, path in changed.items())
    if networkmanager.CONF_FILE in changed:
        commands.append(("nmcli", "general", "reload", "conf"))
    if gone or netplan.FILE in changed:
        commands.append(("nmcli", "connection", "reload"))
    below_netplan = manager is not None and (manager.name, manager.backend) == (NETPLAN, NETWORKMANAGER)
    for link in links:
        path = changed.get(f"{link.name}{networkmanager.SUFFIX}")
        if below_netplan and netplan.FILE in changed:
            commands.append(_up(link, netplan.connection(link)))
        elif path and path in after:
            commands += [("nmcli", "connection", "load", path), _up(link, link.name)]
    return commands


def _up(link: LinkFile, connection: str) -> tuple[str, ...]:
    netdev = link.port.netdev.name if link.port.netdev else ""
    return ("nmcli", "--wait", PATIENCE, "connection", "up", "id", connection, "ifname", netdev)
