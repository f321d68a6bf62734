# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what uses the network of a host: each table once, for all ports."""

from __future__ import annotations

import os
from typing import Any

from .._core.portuse import Connections, fold_connections, parse_queue_pairs
from . import command

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


def holders(sysfs: str, proc: str, with_pods: bool) -> list[str] | None:
    """Return who holds queue pairs, on request without processes of Kubernetes pods; None when it cannot be read."""
    has_rdma = os.path.isdir(f"{sysfs}/class/infiniband") and bool(os.listdir(f"{sysfs}/class/infiniband"))
    known = parse_queue_pairs(_queue_pairs() if has_rdma else "[]")
    if known is None:
        return None
    found = sorted({holder for pairs in known.values() for holder in pairs})
    return [one for one in found if with_pods or "kubepods" not in (_text(f"{proc}/{_pid(one)}/cgroup") or "")]


def _pid(holder: str) -> str:
    return holder.rpartition("[")[2].rstrip("]")


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


def _connections(proc: str) -> dict[str, Connections] | None:
    """Return the established connections by local address."""
    found: dict[str, Connections] = {}
    # Without IPv6 there is no second table.
    tables = [f"{proc}/net/tcp", *(path for path in [f"{proc}/net/tcp6"] if os.path.exists(path))]
    try:
        for path in tables:
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
