# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The peer memory module of a host and its unit: read and change."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ..facts.inventory import HostInventory
from ..rdma_stack import packages_io
from ..system import command, systemd
from ..system import files as system_files
from ..system.files import Roots
from . import peer_memory


def folder(roots: Roots) -> str:
    """Return the folder of units."""
    return f"{roots.etc}/systemd/system"


def read(roots: Roots, inventory: HostInventory, legacy: Iterable[str]) -> peer_memory.Have:
    """Read the host's side; without a GPU only our own files. ``legacy``: packages of the old module."""
    units = folder(roots)
    wants = [target for target in peer_memory.TARGETS if os.path.lexists(f"{units}/{target}.wants/{peer_memory.UNIT}")]
    files = system_files.read_folder(units, ".service", peer_memory.UNIT)
    if not inventory.gpus:
        return peer_memory.Have(files, tuple(wants), False, None, None, ())
    return peer_memory.Have(
        files=files,
        wants=tuple(wants),
        on_disk=command.run(["modinfo", "--field=filename", peer_memory.MODULE], check=False).rc == 0,
        symbols=_symbols(f"{roots.proc}/kallsyms"),
        perftest=_perftest(inventory),
        packages=tuple(packages_io.installed(legacy)),
    )


def _symbols(path: str) -> tuple[str, ...] | None:
    """Return those symbols of the kernel that decide; None when it shows none."""
    found = None
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            for line in stream:
                found = found or []
                # Address, kind, name, and the module in brackets.
                name = line.split(None, 3)[2:3]
                if name and name[0] in peer_memory.SYMBOLS:
                    found.append(name[0])
    except OSError:
        return None
    return None if found is None else tuple(sorted(set(found)))


def _perftest(inventory: HostInventory) -> tuple[str, ...] | None:
    if not inventory.perftest:
        return None
    # It prints its options and exits with status 1.
    shown = command.run([inventory.perftest["path"], "--help"], check=False)
    words = (shown.stdout + shown.stderr).replace(",", " ").replace("=", " ").split()
    return tuple(dict.fromkeys(word for word in words if word.startswith("--use_cuda")))


def apply(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Bring unit and modules there; CommandError when the kernel refuses a module."""
    if before["wants"] and not after["wants"]:
        # While its file is still there.
        command.run(["systemctl", "disable", peer_memory.UNIT])
    if before["legacy"] and not after["legacy"]:
        command.run(["modprobe", "--remove", peer_memory.LEGACY])
    if before["loaded"] and not after["loaded"]:
        command.run(["modprobe", "--remove", peer_memory.MODULE])
    systemd.write_units(before["files"], after["files"])
    if before["files"] and not after["files"]:
        # Without its file it stops without removing a module that others may have loaded.
        command.run(["systemctl", "stop", peer_memory.UNIT], check=False)
    if after["loaded"] and not before["loaded"]:
        # By itself, so that the kernel's own words are in the message.
        command.run(["modprobe", peer_memory.MODULE])
    if after["wants"] and after["wants"] != before["wants"]:
        command.run(["systemctl", "enable", peer_memory.UNIT])
    if after["wants"]:
        command.run(["systemctl", "start", peer_memory.UNIT])
