# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How to measure: ``rdma_fabric.tests`` with its defaults, and what does not go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._common.reader import Reader, converted, describe
from ..._common.units import IB_MTUS
from .budgets import BUDGETS
from .host_groups import read_groups
from .kinds import KINDS, USUAL
from .nccl import DEFAULTS as NCCL
from .nccl import read_nccl

_MOST_OVERSUBSCRIBED = 100
# Ports repeat after this many rounds: long enough for sockets of an earlier round to be gone.
PORT_CYCLE = 8
# Kubernetes forwards node ports, the kernel lends ephemeral ones.
_FIRST_NODE_PORT = 30000

# Several at once on one port: the sum is judged.
STARS = ("incast", "one_to_many")
MODES = ("auto", "all_pairs", "ring", "sampled", "topology", *STARS, "loopback")
# Rails that share a PCIe link take turns or go in opposite directions; all others are measured at once.
AUTO = "auto"
# How switches spread packets over parallel paths: the packets of a flow on one of them, or each on any.
HASH, ADAPTIVE = "hash", "adaptive"
DIRECTIONS = ("swap", "together", "one")
DATA_DIRECT = "cuda:data_direct"
MEMORY = ("host", "cuda:dmabuf", "cuda:peermem", DATA_DIRECT)
# Those that use DMA-BUF.
DMABUF = ("cuda:dmabuf", DATA_DIRECT)

DEFAULTS: Mapping[str, Any] = {
    "mode": "auto",
    "budget": AUTO,
    "rounds": None,
    "seed": 1,
    "groups": {},
    "oversubscription": [],
    "load_balancing": HASH,
    "fan": 8,
    "directions": "swap",
    "rails_at_once": AUTO,
    "mesh": True,
    "cross_rail": False,
    "only": {"hosts": [], "rails": [], "pairs": []},
    "kinds": [USUAL],
    "duration": 10,
    "size": 65536,
    "sizes": [],
    "queue_pairs": 4,
    "tx_depth": 128,
    "mtu": None,
    "latency_size": None,
    "latency_iterations": 10000,
    "rdma_cm": False,
    "memory": "host",
    "compare_host_memory": True,
    "hugepages": False,
    "inline": None,
    "traffic_class": None,
    "service_level": None,
    "control": "rail",
    "port_base": 18500,
    "repeats": None,
    "retries": 2,
    "isolation": 3,
    "nccl": NCCL,
}


def port_problems(tests: Mapping[str, Any], rails: int) -> Iterator[str]:
    """Yield why the TCP ports from ``port_base`` do not suffice for a number of rails."""
    last = tests["port_base"] + PORT_CYCLE * (tests["fan"] if tests["mode"] in STARS else 1) * rails
    if last > _FIRST_NODE_PORT:
        yield f"ports up to {last} needed for {rails} rails, but they must stay below {_FIRST_NODE_PORT}"


def complete(tests: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``tests`` with the defaults for what is not there."""
    return {**DEFAULTS, **tests}


def read_tests(reader: Reader) -> dict[str, Any]:
    """Return ``rdma_fabric.tests`` complete and checked; problems go to the reader."""
    tests = {**_who(reader), **_what(reader), **_how(reader), "nccl": read_nccl(reader.section("nccl"))}
    for key, message in _conflicts(tests):
        reader.refuse(key, message)
    reader.close()
    return tests


def read_only(reader: Reader) -> dict[str, Any]:
    """Return ``only``: hosts, rails, and pairs as lists of two names."""
    only: dict[str, list[Any]] = {key: list(reader.texts(key)) for key in ("hosts", "rails")}
    only["pairs"] = []
    for pair in reader.items("pairs"):
        names = isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(name, str) for name in pair)
        if not names or pair[0] == pair[1]:
            reader.refuse("pairs", f"expected lists of two hosts such as [gpu-1, gpu-2], found {describe(pair)} in it")
        else:
            only["pairs"].append(list(pair))
    reader.close()
    return only


def _who(reader: Reader) -> dict[str, Any]:
    groups, parents = read_groups(reader)
    return {
        "mode": reader.text("mode", DEFAULTS["mode"], choices=MODES),
        "budget": reader.text("budget", DEFAULTS["budget"], choices=(AUTO, *BUDGETS)),
        "rounds": reader.integer("rounds", DEFAULTS["rounds"], 1, high=1000),
        "seed": reader.integer("seed", DEFAULTS["seed"], 0, high=1 << 31),
        "groups": groups,
        **({"parents": parents} if parents else {}),
        "oversubscription": _ratios(reader),
        "load_balancing": reader.text("load_balancing", DEFAULTS["load_balancing"], choices=(HASH, ADAPTIVE)),
        "fan": reader.integer("fan", DEFAULTS["fan"], 2, high=32),
        "directions": reader.text("directions", DEFAULTS["directions"], choices=DIRECTIONS),
        "rails_at_once": _rails_at_once(reader),
        "mesh": reader.flag("mesh", DEFAULTS["mesh"]),
        "cross_rail": reader.flag("cross_rail", DEFAULTS["cross_rail"]),
        "only": read_only(reader.section("only")),
    }


def _ratios(reader: Reader) -> list[float]:
    """Return by how much the uplinks of groups are oversubscribed, those of the smallest groups first."""
    ratios = []
    for value in reader.items("oversubscription"):
        number = converted(value, float)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not 1 <= number <= _MOST_OVERSUBSCRIBED:
            reader.refuse(
                "oversubscription", f"expected numbers from 1 to {_MOST_OVERSUBSCRIBED}, found {describe(value)} in it"
            )
        else:
            ratios.append(float(number))
    return ratios


def _rails_at_once(reader: Reader) -> Any:
    """Return True, False or AUTO."""
    given = converted(reader.rest(("rails_at_once",)).get("rails_at_once", DEFAULTS["rails_at_once"]), bool)
    if given != AUTO and not isinstance(given, bool):
        reader.refuse("rails_at_once", f"expected true, false or {AUTO}, found {describe(given)}")
        return AUTO
    return given


def _what(reader: Reader) -> dict[str, Any]:
    tests = {
        "kinds": list(reader.texts("kinds", DEFAULTS["kinds"], choices=tuple(KINDS))),
        "duration": reader.integer("duration", DEFAULTS["duration"], 1, high=3600),
        "size": reader.integer("size", DEFAULTS["size"], 2, high=1 << 30),
        "sizes": reader.integers("sizes", 2, 1 << 30),
        "queue_pairs": reader.integer("queue_pairs", DEFAULTS["queue_pairs"], 1, high=1024),
        "tx_depth": reader.integer("tx_depth", DEFAULTS["tx_depth"], 1, high=8192),
        "mtu": reader.integer("mtu", DEFAULTS["mtu"], 256, high=4096),
        "latency_size": reader.integer("latency_size", DEFAULTS["latency_size"], 1, high=1 << 23),
        "latency_iterations": reader.integer("latency_iterations", DEFAULTS["latency_iterations"], 100, high=1000000),
    }
    if tests["mtu"] is not None and tests["mtu"] not in IB_MTUS:
        reader.refuse("mtu", f"expected one of 256, 512, 1024, 2048, 4096, found {tests['mtu']}")
    for key in ("kinds", "sizes"):
        if len(set(tests[key])) < len(tests[key]):
            reader.refuse(key, "an item is listed twice. Set repeats to measure it several times")
    if "kinds" in reader and not tests["kinds"]:
        reader.refuse("kinds", "empty: nothing would be measured")
    return tests


def _how(reader: Reader) -> dict[str, Any]:
    return {
        "rdma_cm": reader.flag("rdma_cm", DEFAULTS["rdma_cm"]),
        "memory": reader.text("memory", DEFAULTS["memory"], choices=MEMORY),
        "compare_host_memory": reader.flag("compare_host_memory", DEFAULTS["compare_host_memory"]),
        "hugepages": reader.flag("hugepages", DEFAULTS["hugepages"]),
        "inline": reader.integer("inline", DEFAULTS["inline"], 0, high=1024),
        "traffic_class": reader.integer("traffic_class", DEFAULTS["traffic_class"], 0, high=255),
        "service_level": reader.integer("service_level", DEFAULTS["service_level"], 0, high=15),
        "control": reader.text("control", DEFAULTS["control"], choices=("rail", "management")),
        "port_base": reader.integer("port_base", DEFAULTS["port_base"], 1024, high=65535),
        "repeats": reader.integer("repeats", DEFAULTS["repeats"], 1, high=20),
        "retries": reader.integer("retries", DEFAULTS["retries"], 0, high=10),
        "isolation": reader.integer("isolation", DEFAULTS["isolation"], 0, high=10),
    }


def _conflicts(tests: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for options that perftest or the mode cannot do together."""
    kinds = [KINDS[name] for name in tests["kinds"]]
    latency = [kind.name for kind in kinds if kind.latency]
    whole = [kind.name for kind in kinds if not kind.inline]
    on_host = [kind for kind in kinds if not kind.gpu_memory]
    cuda, mode = tests["memory"] != "host", tests["mode"]
    if cuda and on_host:
        others = [kind.name for kind in KINDS.values() if kind.gpu_memory and kind.unit == on_host[0].unit]
        yield (
            "kinds",
            f"{on_host[0].name} cannot use memory {tests['memory']}. Use {' or '.join(others)}, or set memory: host",
        )
    if cuda and tests["inline"]:
        yield "inline", f"messages in {tests['memory']} memory cannot be inline. Omit inline, or set memory: host"
    if cuda and tests["hugepages"]:
        yield "hugepages", f"the buffers are in {tests['memory']} memory. Omit hugepages, or set memory: host"
    if tests["inline"] and whole:
        yield (
            "inline",
            (f"{whole[0]} does not support inline messages. Omit inline, or measure {whole[0]} in a separate run"),
        )
    if tests["rdma_cm"] and tests["control"] == "management":
        yield "control", "rdma_cm connects over the rail itself. Set control: rail, or rdma_cm: false"
    if tests["directions"] == "together" and latency:
        yield "directions", f"together measures bandwidth, but {latency[0]} measures round trips. Set swap or one"
    if mode in STARS and tests["directions"] == "together":
        yield "directions", f"mode {mode} sends in one direction only. Set swap or one"
    if mode in STARS and latency:
        yield (
            "kinds",
            f"mode {mode} shares the bandwidth of one port, so {latency[0]} would not be valid. Use *_bw",
        )
    if mode in (*STARS, "loopback") and tests["cross_rail"]:
        yield "cross_rail", f"mode {mode} selects its rails itself. Set another mode, or cross_rail: false"
    if tests["oversubscription"] and not tests["groups"]:
        yield (
            "oversubscription",
            (
                "applies to paths between groups of hosts, and groups is not set. Set groups, such as {rack1: [gpu-1,"
                " gpu-2], rack2: [gpu-3, gpu-4]}"
            ),
        )
    if mode == "topology" and not tests["groups"]:
        yield (
            "groups",
            (
                "missing. Mode topology measures inside and across groups of hosts. Set them, such as {rack1: [gpu-1, "
                "gpu-2]}"
            ),
        )
