# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a test cannot be run, by what testers and the mesh have shown of its ports."""

from __future__ import annotations

from ..readings import ib_port
from ..schedule.schedule import Measurement
from .meeting import address_of, bare, over_ipv4, subnet_of
from .session import State, described, gpu_of, partitions

_NO_CONTROL = "its tester found no IPv4 address of the default route"
_BARE = "a port without an IPv4 address"
# How perftest can use GPU memory, as its help shows; each includes those before it.
_CUDA = ("none", "peermem", "dmabuf", "data_direct")
_LACKS = {"peermem": "CUDA", "dmabuf": "DMA-BUF for GPUs", "data_direct": "data direct"}


def blocked(state: State, test: Measurement) -> str:
    """Return why a test cannot be run (again), "" when it can."""
    flaws = flawed(state, test)
    if not flaws and not state.lost:
        return ""
    ends = ((test.client, test.rail), (test.server, test.server_rail))
    reasons = [state.lost[name] for name, _rail in ends if name in state.lost]
    return "; ".join(dict.fromkeys([*reasons, *flaws]))


def flawed(state: State, test: Measurement) -> list[str]:
    """Return what testers themselves reported that keeps a test from being run: a link state, a missing program.

    Also what the mesh has shown of both ports.
    """
    client = _flaw(state, test, test.client, rail=test.rail)
    server = _flaw(state, test, test.server, rail=test.server_rail)
    if client or server:
        return [flaw for flaw in (client, server) if flaw]
    if state.unmet and not test.peer_rail:
        reason = state.unmet.get((test.rail, frozenset((test.client, test.server))))
        return [reason] if reason else []
    return _between(state, test)


def _between(state: State, test: Measurement) -> list[str]:
    """Return why two ports that can be measured cannot reach each other, as each of them would say it."""
    ends = ((test.client, test.rail), (test.server, test.server_rail))
    found: list[str] = []
    for end, peer in (ends, ends[::-1]) if bare(state) else ():
        if end in bare(state) and state.endpoints[peer[0]].host.get("control", "-") == "-":
            own, other = " ".join(end), " ".join(peer)
            found.append(f"{own}: {described(state, *end).get('netdev', 'it')} has no IPv4 address, as {other} needs")
            found.append(f"{other}: {_NO_CONTROL}, which tests with {own} need, {_BARE}")
    if found or not partitions(state):
        return found
    first, second = ((" ".join(end), described(state, *end)) for end in ends)
    partition = partitions(state).get(test.rail)
    return [flaw for flaw in (ib_port.apart(first, second, partition), ib_port.apart(second, first, partition)) if flaw]


def _flaw(state: State, test: Measurement, name: str, *, rail: str) -> str:
    key = (name, rail, test.memory)
    if name not in state.endpoints:
        return ""
    if key not in state.known_flaws:
        state.known_flaws[key] = _new_flaw(state, test, name, rail=rail)
    return state.known_flaws[key]


def _new_flaw(state: State, test: Measurement, name: str, *, rail: str) -> str:
    endpoint = state.endpoints[name]
    if endpoint.host.get("perftest") == "-":
        return f"{name}: perftest is not installed"
    if endpoint.error(rail):
        return f"{name} {rail}: {endpoint.error(rail)}"
    if flaw := _address_flaw(state, name, rail):
        return f"{name} {rail}: {endpoint.rails[rail].get('netdev', 'it')} {flaw}"
    management = state.tests["control"] == "management"
    if (management or (name, rail) in bare(state)) and endpoint.host.get("control", "-") == "-":
        return f"{name}: {_NO_CONTROL}, which {'control: management' if management else _BARE} needs"
    if rail in partitions(state) and (flaw := ib_port.partition_flaw(endpoint.rails[rail], partitions(state)[rail])):
        return f"{name} {rail}: {flaw}"
    if test.memory != "host" and not gpu_of(state, test, name, rail=rail):
        return f"{name} {rail}: the facts name no GPU for it, and {test.memory} is asked for"
    lacks = _cuda_lacks(endpoint.host.get("cuda", "-"), test.memory)
    if lacks:
        return f"{name}: its perftest {endpoint.host['perftest']} is built without {lacks}, which {test.memory} needs"
    return ""


def _cuda_lacks(has: str, memory: str) -> str:
    """Return what perftest lacks for a memory, "" for nothing; ``has``: how it can use GPU memory, "-": not known."""
    if memory == "host" or has not in _CUDA:
        return ""
    needed = _CUDA[1 : _CUDA.index(memory.rpartition(":")[2]) + 1]
    return next((_LACKS[one] for one in needed if _CUDA.index(one) > _CUDA.index(has)), "")


def _address_flaw(state: State, name: str, rail: str) -> str:
    """Return which address a port has or lacks, unlike the plan or other ports of its rail, "" for no difference."""
    without = (name, rail) in bare(state)
    if without and state.tests["rdma_cm"]:
        return "has no IPv4 address, which rdma_cm needs"
    if rail in partitions(state) or without != over_ipv4(state, rail):
        return ""
    if not without:
        own = address_of(state, name, rail)
        return f"has the IPv4 address {own}, and other ports of the rail have only IPv6 addresses"
    subnet = subnet_of(state, rail)
    return (
        f"has no IPv4 address, and the plan has {subnet} for it"
        if subnet
        else "has no IPv4 address, as other ports of the rail have"
    )
