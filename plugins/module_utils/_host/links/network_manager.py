# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NetworkManager: the keyfile connection of a rail, and what it must leave alone."""

from __future__ import annotations

import configparser
import fnmatch
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping

from ..._common.pci import PciAddress
from ..facts.devices import Port
from ..naming.systemd_files import own_driver
from .network_managers import PREFIX, TITLE, Claim, LinkFile, macs, port_names

CONF_FILE = "90-gpufabric-devices.conf"
SUFFIX = ".nmconnection"
# Ours wins against connections that hold for every port; the default of a connection is 0.
PRIORITY = 100
# The most that IPoIB carries without a connection: the largest frame of InfiniBand, 4096, less its header.
_DATAGRAM_MTU = 4092
# NetworkManager heeds it when it starts; until then it is told by nmcli.
_LEAVE = "managed=0"
# A namespace of our own for UUIDs that depend on host and rail alone.
_NAMESPACE = uuid.UUID("8c4e1b64-93a5-5d0e-9f0b-6a1f3f5d2c11")


def folder(etc: str) -> str:
    """Return the folder of connections."""
    return f"{etc}/NetworkManager/system-connections"


def files(links: tuple[LinkFile, ...], etc: str, machine: str) -> dict[str, str]:
    """Return path -> text: a connection a rail, and one file for the devices themselves.

    ``machine`` is the host's machine id.
    """
    found = {f"{folder(etc)}/{link.name}{SUFFIX}": text(link, machine) for link in links}
    # Without this, a rail without a cable would have no address.
    return {**found, **_device_file(links, etc, "ignore-carrier=1")}


def unmanaged(links: tuple[LinkFile, ...], etc: str) -> dict[str, str]:
    """Return path -> text of the file by which NetworkManager leaves the rails to somebody else.

    Nothing is added to ``unmanaged-devices``: beside an ``except:`` of the host that would hand over other ports, and
    not keep the rails.
    """
    return _device_file(links, etc, _LEAVE)


def left_alone(own: Mapping[str, str]) -> set[str]:
    """Return the MAC addresses of the ports that the file of unmanaged() among ``own`` (path -> text) names."""
    texts = [content for path, content in own.items() if path.endswith(f"/{CONF_FILE}") and _LEAVE in content]
    return {mac for content in texts for mac in re.findall(r"mac:([^;]+);", content)}


def text(link: LinkFile, machine: str) -> str:
    """Return the text of a rail's connection; the port is matched by PCI path and driver.

    No address of the rail comes from anybody else, and the rail never becomes a default route.
    """
    media = "infiniband" if link.port.infiniband else "ethernet"
    mode = "datagram" if link.mtu <= _DATAGRAM_MTU else "connected"
    transport = [f"transport-mode={mode}"] if link.port.infiniband else []
    parts = {is_ipv6: list(_addressing(link, is_ipv6)) for is_ipv6 in (False, True)}
    return _sections(
        f"# {TITLE}",
        {
            "connection": [
                f"id={link.name}",
                f"uuid={_uuid(machine, link.rail)}",
                f"type={'vlan' if link.vlan else media}",
                f"autoconnect-priority={PRIORITY}",
                *([f"interface-name={link.vlan.netdev}"] if link.vlan else []),
            ],
            **_place(link, machine),
            media: [f"mtu={link.mtu}", *transport],
            "ipv4": parts[False],
            "ipv6": parts[True],
        },
    )


def _place(link: LinkFile, machine: str) -> dict[str, list[str]]:
    """Return what the connection is for: a port by PCI path and driver, or a VLAN of the connection of a port."""
    if link.vlan:
        return {"vlan": [f"id={link.vlan.number}", f"parent={_uuid(machine, link.vlan.over)}"]}
    driver = own_driver(link.port)
    path = f"path={PciAddress.parse(link.port.pci).id_path};"
    return {"match": [path, *([f"driver={driver};"] if driver else [])]}


def _uuid(machine: str, rail: str) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, f"{machine}/{rail}")


def claim(connections: Mapping[str, str], port: Port, priority: int = PRIORITY) -> Claim | None:
    """Return a connection of somebody else that names a port, or holds for all and comes before ours.

    ``connections`` is path -> text of keyfiles and ifcfg files, ``priority`` that of ours. Connections
    that NetworkManager made by itself, or that do not start by themselves, claim nothing.
    """
    for path, content in connections.items():
        settings = _ifcfg(content) if "/ifcfg-" in path else _keyfile(content)
        if settings and _starts(settings) and _claims(settings, port, priority):
            return Claim(path, True, "mtu=")
    return None


def parse_active(text: str) -> tuple[str, ...]:
    """Return the names of connections of ours in ``nmcli -t -f NAME connection show --active``."""
    return tuple(line for line in text.splitlines() if line.startswith((PREFIX, f"netplan-{PREFIX}")))


def _claims(settings: Mapping[str, str], port: Port, priority: int) -> bool:
    names = port_names(port)
    mac = port.netdev.mac.lower() if port.netdev else ""
    wanted = [
        (settings.get("connection.interface-name"), names),
        (settings.get("match.interface-name"), names),
        (settings.get("match.path"), (PciAddress.parse(port.pci).id_path,)),
        (settings.get("match.driver"), (port.driver or "",)),
        (settings.get("ethernet.mac-address", "").lower() or None, (mac,)),
        (settings.get("infiniband.mac-address", "").lower() or None, (mac,)),
    ]
    given = [(globs, values) for globs, values in wanted if globs]
    if not given:
        return _priority(settings) >= priority
    return all(any(_matches(globs, value) for value in values) for globs, values in given)


def _matches(globs: str, value: str) -> bool:
    return any(fnmatch.fnmatchcase(value, glob.strip().lstrip("|&")) for glob in globs.split(";") if glob.strip())


def _starts(settings: Mapping[str, str]) -> bool:
    kind = settings.get("connection.type", "")
    return (
        kind in ("ethernet", "802-3-ethernet", "infiniband")
        and settings.get("connection.autoconnect", "true").lower() not in ("false", "no", "0")
        and settings.get(".nmmeta.nm-generated", "false") != "true"
    )


def _priority(settings: Mapping[str, str]) -> int:
    value = settings.get("connection.autoconnect-priority", "0")
    return int(value) if re.fullmatch(r"-?[0-9]{1,9}", value) else 0


def _keyfile(content: str) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=",))
    try:
        parser.read_string(content)
    except (configparser.Error, AttributeError):
        # NetworkManager does not read it either. AttributeError: a key without a value and an indented line below it.
        return {}
    return {f"{name}.{key}": value or "" for name in parser.sections() for key, value in parser.items(name)}


def _ifcfg(content: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in content.splitlines() if "=" in line and not line.startswith("#"))
    values = {key.strip(): value.strip().strip("'\"") for key, _equals, value in pairs}
    return {
        "connection.type": "infiniband" if values.get("TYPE") == "InfiniBand" else "ethernet",
        "connection.interface-name": values.get("DEVICE", ""),
        "ethernet.mac-address": values.get("HWADDR", ""),
        "connection.autoconnect": values.get("ONBOOT", "yes"),
    }


def _device_file(links: tuple[LinkFile, ...], etc: str, setting: str) -> dict[str, str]:
    devices = "".join(f"mac:{mac};" for mac in macs(links))
    content = _sections(f"# {TITLE}", {"device-gpufabric-rails": [f"match-device={devices}", setting]})
    return {f"{etc}/NetworkManager/conf.d/{CONF_FILE}": content} if links else {}


def _addressing(link: LinkFile, is_ipv6: bool) -> Iterator[str]:
    """Yield the lines of one version of IP."""
    own = [address for address in link.addresses or () if (":" in address) == is_ipv6]
    yield f"method={'manual' if own else 'link-local' if is_ipv6 else 'disabled'}"
    yield from (f"address{number}={address}" for number, address in enumerate(own, 1))
    yield "never-default=true"
    routes = [route for route in link.routes if (":" in route.network) == is_ipv6]
    for number, route in enumerate(routes, 1):
        yield f"route{number}={route.network}{',' if route.gateway else ''}{route.gateway}"
        yield f"route{number}_options=src={route.source},table={route.table}"
    rules = [rule for rule in link.rules if (":" in f"{rule.source}{rule.destination}") == is_ipv6]
    for number, rule in enumerate(rules, 1):
        what = f"from {rule.source}" if rule.source else f"to {rule.destination}"
        yield f"routing-rule{number}=priority {rule.table} {what} table {rule.table}"


def _sections(title: str, sections: Mapping[str, Iterable[str]]) -> str:
    parts = ["\n".join([f"[{name}]", *lines]) for name, lines in sections.items()]
    return f"{title}\n" + "\n\n".join(parts) + "\n"
