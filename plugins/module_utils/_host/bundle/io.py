# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a host for a support bundle: kernel log, state of links and devices, and what this collection wrote there."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

from ..._common import secrets
from ..._common.errors import FabricError
from ..facts import io as facts_io
from ..system import command, files
from ..system.files import Roots

# File -> the programs that print it: the first one that works. What is most useful comes first, since space is limited.
COMMANDS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("kernel.log", (("dmesg", "--time-format", "iso"), ("dmesg",))),
    ("links.txt", (("ip", "-details", "-statistics", "link", "show"),)),
    ("addresses.txt", (("ip", "address", "show"),)),
    ("rules.txt", (("ip", "rule", "show"),)),
    ("routes.txt", (("ip", "route", "show", "table", "all"),)),
    ("rdma.txt", (("rdma", "-d", "link", "show"),)),
    ("rdma-system.txt", (("rdma", "system", "show"),)),
    ("failed-units.txt", (("systemctl", "--failed", "--no-pager", "--plain"),)),
    ("units.log", (("journalctl", "--no-pager", "--boot", "--lines=2000", "--unit=gpufabric*"),)),
    ("kubelet.log", (("journalctl", "--no-pager", "--boot", "--lines=1000", "--unit=kubelet"),)),
)
_FILES = ("modules", "cmdline", "version")
# Folders below /etc whose files of ours are named after this collection.
_FOLDERS = ("modprobe.d", "modules-load.d", "sysctl.d", "systemd/network", "systemd/system", "udev/rules.d", "netplan")
_OWN = "gpufabric"
_SECONDS = 30


@dataclasses.dataclass
class Read:
    """What was read of a host: file -> text, the files of which only the end is there, and what is missing and why."""

    files: dict[str, str] = dataclasses.field(default_factory=dict)
    cut: list[str] = dataclasses.field(default_factory=list)
    missing: dict[str, str] = dataclasses.field(default_factory=dict)


def read(roots: Roots, limit: int) -> Read:
    """Return what a bundle has of this host, ``limit`` characters at most; of a long text the end."""
    found = Read()
    left = limit
    for name, text, why in _texts(roots):
        if why:
            found.missing[name] = why
            continue
        text = secrets.hide(text)
        # Half of what is left: one long log does not take the place of all that follows.
        most = left // 2
        if len(text) > most and name.endswith(".json"):
            found.missing[name] = f"it has {len(text)} characters, and {most} are left for this host"
            continue
        if len(text) > most:
            found.cut.append(name)
            text = text[len(text) - most :]
        found.files[name] = text
        left -= len(text)
    return found


def _texts(roots: Roots) -> Iterator[tuple[str, str, str]]:
    """Yield name, text and the reason why there is no text."""
    try:
        facts = facts_io.read_inventory(roots).to_dict()
        yield "facts.json", json.dumps(secrets.hide_in(facts), sort_keys=True) + "\n", ""
    except Exception as error:  # a damaged host can break any reader, and then the rest is needed most
        yield "facts.json", "", f"the facts cannot be read: {error} ({type(error).__name__})"
    for name, programs in COMMANDS:
        yield (name, *_printed(programs))
    for name in _FILES:
        yield _file(f"proc-{name}.txt", f"{roots.proc}/{name}")
    for name in files.names(roots.state):
        yield _file(f"records/{name}", f"{roots.state}/{name}")
    for name in files.names(f"{roots.run}/gpufabric/reboot.d"):
        yield _file(f"reboot-reasons/{name}", f"{roots.run}/gpufabric/reboot.d/{name}")
    for folder in _FOLDERS:
        for name in files.names(f"{roots.etc}/{folder}"):
            if _OWN in name:
                yield _file(f"etc/{folder.replace('/', '-')}/{name}", f"{roots.etc}/{folder}/{name}")


def _printed(programs: tuple[tuple[str, ...], ...]) -> tuple[str, str]:
    """Return what the first of the programs that works prints, and otherwise what is wrong with the last one."""
    why = f"'{programs[0][0]}' is not installed"
    for argv in programs if command.find(programs[0][0]) else ():
        try:
            return command.run(argv, timeout=_SECONDS).stdout, ""
        except FabricError as error:
            why = str(error)
    return "", why


def _file(name: str, path: str) -> tuple[str, str, str]:
    text = files.read_text(path)
    return (name, "", f"{path} cannot be read") if text is None else (name, text + "\n", "")
