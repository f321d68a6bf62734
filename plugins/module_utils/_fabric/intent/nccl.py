# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collectives of NCCL as users run them: ``rdma_fabric.tests.nccl`` with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._common.reader import Reader

COLLECTIVES = ("all_reduce", "alltoall")
# Two hosts at a time, and all hosts of a group.
SCOPES = ("pairs", "groups")
# One GPU of each host in a communicator, so that all data crosses the network; all GPUs, which use NVLink too.
NETWORK = "network"
PATHS = (NETWORK, "all")
# Up to which distance from NIC to GPU NCCL uses GPUDirect RDMA.
GDR_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
MINIMA = ("all_reduce_network", "alltoall_network", "all_reduce", "alltoall")

DEFAULTS: Mapping[str, Any] = {
    "enabled": False,
    "collectives": list(COLLECTIVES),
    "scopes": list(SCOPES),
    "paths": list(PATHS),
    "size": 4 << 30,
    "iterations": 20,
    "queue_pairs": None,
    "gdr_level": None,
    "service_level": None,
    "pkey_index": None,
    "network_share": 0.9,
    "minimum": dict.fromkeys(MINIMA),
}


def read_nccl(reader: Reader) -> dict[str, Any]:
    """Return ``tests.nccl`` complete and checked; problems go to the reader."""
    found = {
        "enabled": reader.flag("enabled", DEFAULTS["enabled"]),
        "collectives": list(reader.texts("collectives", COLLECTIVES, choices=COLLECTIVES)),
        "scopes": list(reader.texts("scopes", SCOPES, choices=SCOPES)),
        "paths": list(reader.texts("paths", PATHS, choices=PATHS)),
        "size": reader.integer("size", DEFAULTS["size"], 1 << 20, high=32 << 30),
        "iterations": reader.integer("iterations", DEFAULTS["iterations"], 1, high=500),
        "queue_pairs": reader.integer("queue_pairs", None, 1, high=128),
        "gdr_level": reader.text("gdr_level", None, choices=GDR_LEVELS),
        "service_level": reader.integer("service_level", None, 0, high=15),
        "pkey_index": reader.integer("pkey_index", None, 0, high=127),
        "network_share": reader.number("network_share", DEFAULTS["network_share"], 0.01, high=1.0),
        "minimum": _minima(reader.section("minimum")),
    }
    for key in ("collectives", "scopes", "paths"):
        if not found[key]:
            reader.refuse(key, "empty: nothing would be measured")
        elif len(set(found[key])) < len(found[key]):
            reader.refuse(key, "an item is listed twice")
    reader.close()
    return found


def _minima(reader: Reader) -> dict[str, float | None]:
    found = {key: reader.number(key, None, 0.1, high=100000.0) for key in MINIMA}
    reader.close()
    return found
