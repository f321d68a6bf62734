# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tester reports about itself, checked by type before anything uses it.

A tester runs on a machine that may be broken or hostile. Its addresses, device names and numbers become arguments of
commands that run as root on other hosts, and words of commands that people copy.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from functools import lru_cache

from ...intent.typed import (
    MACHINE_ID,
    Type,
    Unfit,
    digits,
    ipv4_address,
    ipv4_addresses,
    matching,
    name,
    optional,
    plain,
)

#: perftest refuses larger GID indexes.
LARGEST_GID = 64
_LARGEST_PORT = 255
_CPUS = re.compile(r"[0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?){0,511}")
_PKEYS = re.compile(r"(?:[0-9]{1,3}:0x[0-9a-f]{4}(?: [0-9]{1,3}:0x[0-9a-f]{4}){0,127})?")
# InfiniBand has 16 bits, others up to 24; testers refuse numbers of more than 9 digits.
_LID = optional(matching(re.compile(r"0x[0-9a-f]{1,6}"), "a LID"), "-")
_CPU_LIST = optional(matching(_CPUS, "a list of CPUs"), "-")
_RAIL: Mapping[str, Type] = {
    "device": name("the name of an RDMA device"),
    "port": digits(1, _LARGEST_PORT),
    "netdev": name("the name of a network device"),
    "gid": digits(0, LARGEST_GID, ", since perftest refuses larger GID indexes"),
    "gid_type": matching(re.compile("RoCE v2|IB"), "RoCE v2 or IB"),
    "address": optional(ipv4_address, "-"),
    "addresses": ipv4_addresses,
    "address6": matching(re.compile(r"[0-9a-f]{4}(?::[0-9a-f]{4}){7}"), "an IPv6 address"),
    "mtu": optional(digits(1, 65536), "-"),
    "rate": matching(re.compile(r"[A-Za-z0-9 ./()+-]{0,64}"), "a rate"),
    "numa": matching(re.compile(r"-|-?[0-9]{1,4}"), "a NUMA node"),
    "cpus": _CPU_LIST,
    "local_cpus": _CPU_LIST,
    # Of InfiniBand ports alone (ib_port.py).
    "lid": _LID,
    "sm_lid": _LID,
    "lmc": digits(0, 7),
    "prefix": matching(re.compile(r"[0-9a-f]{4}(?::[0-9a-f]{4}){3}"), "the prefix of a subnet"),
    "pkeys": matching(_PKEYS, "partition keys with their indexes"),
    "vf": matching(re.compile("yes|no"), "yes or no"),
    "full": optional(matching(re.compile(r"[a-z_]{1,40}(?:,[a-z_]{1,40}){0,15}"), "names of counters"), "-"),
}
_NEEDED = ("device", "port", "gid", "address")
_HOST: Mapping[str, Type] = {
    "memlock": optional(matching(re.compile(r"unlimited|[0-9]{1,20}"), "a limit"), "-"),
    "perftest": matching(re.compile(r"[A-Za-z0-9_.+~?-]{1,64}"), "a version"),
    "control": optional(ipv4_address, "-"),
    "clock": name("a clock source"),
    "machine_id": MACHINE_ID,
    "binds": matching(re.compile("yes|no"), "yes or no"),
    "labels": matching(re.compile("none|one|list"), "none, one or list"),
    # CPUs of the machine, those that the tester may use, and its limit in CPUs.
    "online": _CPU_LIST,
    "allowed": _CPU_LIST,
    "quota": optional(matching(re.compile(r"[0-9]{1,6}\.[0-9]{2}"), "a number of CPUs"), "-"),
    "cuda": optional(
        matching(re.compile("none|peermem|dmabuf|data_direct"), "none, peermem, dmabuf or data_direct"), "-"
    ),
}


def checked_rail(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the known pairs of a rail; {"error": reason} when the tester reports an error, or no valid rail."""
    if "error" in pairs:
        return {"error": plain(pairs["error"]) or "its tester reports an error without a reason"}
    missing = [key for key in _NEEDED if key not in pairs]
    if missing:
        return {"error": f"not described: its tester did not report {', '.join(missing)}"}
    found = {}
    for key in (key for key in _RAIL if key in pairs):
        try:
            found[key] = _checked(key, pairs[key])
        except Unfit as error:
            return {"error": f"not described: {key}={plain(pairs[key], 60)!r} is invalid; expected {error.expected}"}
    # InfiniBand is measured without an address, and others by one of IPv6.
    if found["address"] == "-" and found.get("gid_type") != "IB" and "address6" not in found:
        return {"error": "not described: address='-' is invalid; expected an IPv4 address"}
    return found


# The ports of a fleet say the same of nearly all but their addresses.
@lru_cache(maxsize=4096)
def _checked(key: str, value: str) -> str:
    return _RAIL[key](value)


def checked_host(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the known pairs of a host whose values are valid; the others count as not reported."""
    found = {}
    for key in (key for key in _HOST if key in pairs):
        with contextlib.suppress(Unfit):
            found[key] = _HOST[key](pairs[key])
    return found
