# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's .link and .network files, and udev rules: which of them reach a port."""

from __future__ import annotations

import fnmatch
import functools
import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..._common.pci import PciAddress
from ..facts.devices import BOND, Port
from ..system import systemd

# What ours sets where no other file would match; systemd's own 99-default.link has the same.
DEFAULTS = (("AlternativeNamesPolicy", "database onboard slot path"), ("MACAddressPolicy", "persistent"))
# Low enough to win against the distribution and netplan (10-netplan-*), and recognisable.
PREFIX = "10-gpufabric-"
# What netplan makes of our definitions.
NETPLAN_PREFIX = "10-netplan-gpufabric-"

# What ethtool, and so udev and systemd, tell of a link that is not like the driver of its PCI function, the key:
# representors (en_rep.c of mlx5), IPoIB (ipoib/ethtool.c of mlx5; ipoib_ethtool.c of the kernel for others).
_REPRESENTOR_DRIVERS = {"mlx5_core": "mlx5e_rep"}
_IPOIB_DRIVERS = {"mlx5_core": "mlx5_core[ib_ipoib]"}
_IPOIB_DRIVER = "ib_ipoib"

_ASSIGNS_NAME = re.compile(r'(?<![\w{])NAME\s*:?=\s*"([^"]*)"')
_RULE_MATCH = re.compile(r'(ATTRS?\{(?:address|phys_port_name)\}|KERNELS|DRIVERS|SUBSYSTEM)\s*==\s*"([^"]*)"')


class Setting(NamedTuple):
    """One assignment of a systemd file."""

    section: str
    key: str
    value: str


class Foreign(NamedTuple):
    """A file of somebody else that names a port; ``name`` is empty when a policy decides."""

    path: str
    name: str


@functools.cache
def parse(text: str) -> tuple[Setting, ...]:
    """Parse a systemd file; comments and lines that are no assignment are left out.

    Remembered, since the same few files are asked about hundreds of VFs.
    """
    found = []
    section = ""
    for line in _logical_lines(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif "=" in line:
            key, _equals, value = line.partition("=")
            found.append(Setting(section, key.strip(), value.strip()))
    return tuple(found)


def _logical_lines(text: str) -> list[str]:
    """Return the lines without comments; a backslash at the end joins the next one, as in config_parse of systemd."""
    lines = []
    open_line = ""
    for line in (line.lstrip() for line in text.splitlines()):
        if line.startswith(("#", ";")):
            continue
        joined = open_line + line
        continues = systemd.is_continued(joined)
        open_line = joined[:-1] + " " if continues else ""
        if not continues:
            lines.append(joined.rstrip())
    return [*lines, open_line.rstrip()]


def format_link(title: str, port: Port, name: str, *, others: Mapping[str, str]) -> str:
    """Return the text of the .link file that gives a port its name.

    Only the first file that matches counts, so everything else that the port would get (from
    the file that is first among ``others``, path -> text) is repeated. The driver is matched
    too: switchdev representors have the PCI path of their port.
    """
    path = first_match(others, port, ".link")
    found = parse(others[path]) if path else ()
    kept = [(s.key, s.value) for s in found if s.section == "Link" and s.key not in ("Name", "NamePolicy")]
    link = [("Name", name), *(kept if path else DEFAULTS)]
    return systemd.file_text(title, {"Match": match_settings(port), "Link": link})


def match_settings(port: Port) -> list[tuple[str, str]]:
    """Return the settings of a [Match] section that hold for this port alone, whatever its name."""
    driver = own_driver(port)
    kind = ("Type", "infiniband") if port.infiniband else ("Driver", driver) if driver else None
    return [("Path", PciAddress.parse(port.pci).id_path), *([kind] if kind else [])]


def own_driver(port: Port) -> str | None:
    """Return the driver that tells a port's link from those of its representors, which have the same PCI path.

    None on InfiniBand: there are no representors, and which driver a link tells depends on how the kernel was built.
    """
    return None if port.infiniband else port.driver


def matches(settings: Iterable[Setting], port: Port) -> bool:
    """Whether the [Match] section of a .link or .network file can hold for a port.

    Conditions that cannot be known here (Property, Host, KernelVersion...) count as holding.
    """
    patterns: dict[str, list[str]] = {}
    for setting in settings:
        if setting.section == "Match":
            # An empty assignment takes the earlier ones back.
            patterns[setting.key] = [*patterns.get(setting.key, []), *setting.value.split()] if setting.value else []
    known = _properties(port)
    return all(_holds(known[key], globs) for key, globs in patterns.items() if key in known and globs)


def first_match(files: Mapping[str, str], port: Port, suffix: str) -> str | None:
    """Return the path of the first file that matches a port in systemd's order, ours left out.

    ``files`` maps path -> text, ordered by rank of folder: of two files of one name the first
    hides the other.
    """
    by_name: dict[str, str] = {}
    for path in files:
        base = posixpath.basename(path)
        if base.endswith(suffix) and not base.startswith((PREFIX, NETPLAN_PREFIX)):
            by_name.setdefault(base, path)
    for _base, path in sorted(by_name.items()):
        settings = parse(files[path])
        if settings and matches(settings, port):
            return path
    return None


def value_of(settings: Iterable[Setting], section: str, key: str) -> str:
    """Return the last value of a key, empty when it is not set."""
    values = [s.value for s in settings if (s.section, s.key) == (section, key)]
    return values[-1] if values else ""


def foreign_names(files: Mapping[str, str], rules: Mapping[str, str], port: Port, *, own: str) -> list[Foreign]:
    """Return who else would name a port: a .link file that comes before ``own``, netplan, udev rules."""
    found = []
    path = first_match(files, port, ".link")
    if path:
        base = posixpath.basename(path)
        name = value_of(parse(files[path]), "Link", "Name")
        # netplan renames by itself too (set-name), whatever the order of the files.
        if base < own or ("netplan" in base and name):
            found.append(Foreign(path, name))
    for path, text in rules.items():
        found += [Foreign(path, name) for name in _rule_names(text, port)]
    return found


def given_names(files: Mapping[str, str], rules: Mapping[str, str], port: Port) -> list[Foreign]:
    """Return who gives a VF or a representor a name in so many words: a .link file, udev rules.

    A policy does not count: our own rule comes before it.
    """
    path = first_match(files, port, ".link")
    name = value_of(parse(files[path]), "Link", "Name") if path else ""
    found = [Foreign(path, name)] if path and name else []
    return found + [Foreign(path, name) for path, text in rules.items() for name in _rule_names(text, port)]


def _rule_names(text: str, port: Port) -> list[str]:
    lines = text.replace("\\\n", "").splitlines()
    rules = [line for line in lines if _ASSIGNS_NAME.search(line) and not line.lstrip().startswith("#")]
    return [_ASSIGNS_NAME.findall(rule)[-1] for rule in rules if _rule_holds(rule, port)]


def _rule_holds(rule: str, port: Port) -> bool:
    mac = port.netdev.mac.lower() if port.netdev else ""
    port_name = port.netdev.phys_port_name if port.netdev else ""
    known = {
        "ATTR{address}": [mac],
        "ATTRS{address}": [mac],
        "ATTR{phys_port_name}": [port_name],
        "ATTRS{phys_port_name}": [port_name],
        "KERNELS": list(port.path),
        "DRIVERS": [port.driver or ""],
        "SUBSYSTEM": ["net"],
    }
    return all(
        any(fnmatch.fnmatchcase(value, glob.lower()) for value in known[key] for glob in globs.split("|"))
        for key, globs in _RULE_MATCH.findall(rule)
    )


def _properties(port: Port) -> dict[str, str | None]:
    link = port.netdev
    mac = link.mac.lower() if link else None
    if link and link.kind == BOND:
        # A bond has no path and no permanent address; its type is what the kernel calls its kind of device.
        own = {"Path": None, "PermanentMACAddress": None, "MACAddress": mac}
        return {**own, "Driver": "bonding", "Name": link.name, "Type": BOND, "Kind": BOND}
    return {
        "Path": PciAddress.parse(port.pci).id_path,
        "Driver": _told_driver(port),
        "MACAddress": mac,
        "PermanentMACAddress": mac,
        # The kernel's name of old is not known any more; a name that udev gave is not it.
        "Name": link.name if link else None,
        "Type": "infiniband" if port.infiniband else "ether",
        "Kind": None,
    }


def _told_driver(port: Port) -> str | None:
    if port.infiniband:
        return _IPOIB_DRIVERS.get(port.driver or "", _IPOIB_DRIVER)
    if port.netdev is not None and port.netdev.is_representor:
        return _REPRESENTOR_DRIVERS.get(port.driver or "")
    return port.driver


def _holds(value: str | None, globs: list[str]) -> bool:
    negated = globs[0].startswith("!")
    plain = [globs[0][1:], *globs[1:]] if negated else globs
    if value is None:
        return negated
    hit = any(fnmatch.fnmatchcase(value.lower(), glob.lower()) for glob in plain)
    return hit != negated
