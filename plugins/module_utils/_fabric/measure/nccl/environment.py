# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of NCCL from the plan; what differs between hosts is added by the script in the pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...intent.nccl import NETWORK
from ...intent.tests import complete
from .units import Collective, options, seconds

# Which lines NCCL logs: the versions, devices and the transport of each connection.
_LOG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV"}
_GIVEN = {
    "NCCL_IB_QPS_PER_CONNECTION": "queue_pairs",
    "NCCL_NET_GDR_LEVEL": "gdr_level",
    "NCCL_IB_SL": "service_level",
    "NCCL_IB_PKEY": "pkey_index",
}


def common(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return what holds for all hosts and collectives.

    Rails are kept apart: a rank never sends from one rail to another, which many fabrics do not route.
    """
    chosen = options(plan)
    found = dict(_LOG)
    tests = complete(plan.get("tests") or {})
    byte = _traffic_class(tests)
    if byte is not None:
        found["NCCL_IB_TC"] = str(byte)
    if tests.get("service_level") is not None:
        found["NCCL_IB_SL"] = str(tests["service_level"])
    found.update({name: str(chosen[key]) for name, key in _GIVEN.items() if chosen[key] is not None})
    if not tests["cross_rail"]:
        found["NCCL_CROSS_NIC"] = "0"
    return found


def _traffic_class(tests: Mapping[str, Any]) -> int | None:
    """Return the traffic class of all rails, that of the tests; None if rails differ, since NCCL has one for all."""
    if tests["traffic_class"] is not None:
        return int(tests["traffic_class"])
    classes = {own["traffic_class"] for own in (tests.get("traffic") or {}).values()}
    return classes.pop() if len(classes) == 1 else None


def of_collective(collective: Collective, gpus: int) -> dict[str, str]:
    """Return what one collective needs besides; ``gpus``: those of each host.

    The mask is understood by versions of nccl-tests that do not know NCCL_TESTS_SPLIT; it needs a power of two.
    """
    if collective.path != NETWORK:
        return {}
    split = {"NCCL_TESTS_SPLIT_MASK": hex(gpus - 1)} if gpus & (gpus - 1) == 0 else {"NCCL_TESTS_SPLIT": f"%{gpus}"}
    # Other algorithms send less than each GPU's data over the network.
    return {**split, "NCCL_ALGO": "RING"}


def line(plan: Mapping[str, Any], number: int, what: Collective, *, hosts: int, gpus: int) -> str:
    """Return the line by which nccl.sh runs one collective: number, seconds, program, settings, --, options."""
    settings = [f"{name}={value}" for name, value in of_collective(what, gpus).items()]
    return " ".join([str(number), str(seconds(plan, hosts)), what.program, *settings, "--", *arguments(plan)])


def arguments(plan: Mapping[str, Any]) -> list[str]:
    """Return the options of a program of nccl-tests: one size, the slowest rank's time, one check of values."""
    chosen = options(plan)
    size = str(chosen["size"])
    return ["-b", size, "-e", size, "-g", "1", "-n", str(chosen["iterations"]), "-w", "5", "-c", "1", "-a", "3"]
