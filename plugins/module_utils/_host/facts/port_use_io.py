# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what uses the network of a host: each table once, for all ports."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

from ..system import command
from . import disruption, kubelet_io
from .tcp import Connections, fold_connections, sockets

# A table that is longer is not judged by its beginning.
MAX_BYTES = 16 << 20


def read(sysfs: str, proc: str, has_rdma: bool) -> dict[str, Any]:
    """Return what ``_core.portuse.Activity.from_raw`` takes; None for what cannot be read."""
    return {
        "mounts": _text(f"{proc}/mounts"),
        "nvme": _nvme(f"{sysfs}/class/nvme"),
        "tcp": _connections(proc),
        "queue_pairs": _queue_pairs() if has_rdma else "[]",
    }


def connection_holders(proc: str, addresses: Collection[str]) -> dict[str, set[str]] | None:
    """Return address -> who holds its established connections; None when it cannot be read.

    A connection that no program has open belongs to the kernel, as those of mounts.
    """
    found: list[tuple[str, str]] = []
    try:
        for path in _tables(proc) if addresses else ():
            with open(path, encoding="ascii") as lines:
                found += sockets(lines, addresses)
    except (OSError, ValueError):
        return None
    programs = _programs(proc, {inode for _address, inode in found})
    held: dict[str, set[str]] = {}
    for address, inode in found:
        held.setdefault(address, set()).add(programs.get(inode, disruption.KERNEL_SOCKET))
    return held


def places(proc: str, holders: Iterable[str]) -> dict[str, str]:
    """Return holder -> where it runs, see ``_core.disruption``."""
    node = (*kubelet_io.PROGRAMS, *kubelet_io.CONTROL_PROGRAMS, *kubelet_io.RUNTIMES)
    return {one: disruption.place(one, _text(f"{proc}/{_pid(one)}/cgroup") or "", node) for one in holders}


def _pid(holder: str) -> str:
    return holder.rpartition("[")[2].rstrip("]")


def _programs(proc: str, inodes: Collection[str]) -> dict[str, str]:
    """Return inode of a socket -> a program that has it open."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[str, str] = {}
    for pid in (name for name in _names(proc) if name.isdigit() and wanted):
        links = [_link(f"{proc}/{pid}/fd/{name}") for name in _names(f"{proc}/{pid}/fd")]
        held = [wanted[link] for link in links if link in wanted]
        if held:
            comm = (_text(f"{proc}/{pid}/comm") or "?").strip()
            found.update(dict.fromkeys(held, f"{comm}[{pid}]"))
    return found


def _names(folder: str) -> list[str]:
    """Return the names in a folder of a process, none when it has ended."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError:
        return None
    return text if len(text) <= MAX_BYTES else None


def _nvme(folder: str) -> dict[str, str | None]:
    """Return controller -> address; local ones have that of their PCI function."""
    try:
        return {name: _text(f"{folder}/{name}/address") for name in sorted(os.listdir(folder))}
    except FileNotFoundError:
        return {}


def _tables(proc: str) -> list[str]:
    # Without IPv6 there is no second table.
    return [f"{proc}/net/tcp", *(path for path in [f"{proc}/net/tcp6"] if os.path.exists(path))]


def _connections(proc: str) -> dict[str, Connections] | None:
    """Return the established connections by local address."""
    found: dict[str, Connections] = {}
    try:
        for path in _tables(proc):
            with open(path, encoding="ascii") as lines:
                fold_connections(lines, found)
    except (OSError, ValueError):
        return None
    return found


def _queue_pairs() -> str | None:
    if not command.find("rdma"):
        return None
    result = command.run(["rdma", "-j", "resource", "show", "qp"], check=False)
    return result.stdout if result.rc == 0 else None
