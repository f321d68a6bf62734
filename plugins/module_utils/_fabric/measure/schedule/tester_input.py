# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What testers are told: perftest's arguments, ports, and the lines of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...intent.kinds import KINDS, USUAL
from ...intent.tests import DATA_DIRECT, DMABUF, PORT_CYCLE, complete
from ...plan.traffic import byte_of
from ..readings.exchange import exchange_args

if TYPE_CHECKING:
    from .schedule import Measurement, Round

# The addresses of a client and a server.
Addresses = tuple[str, str]
# (endpoint, rail) to {bdf, path} of the GPU next to the port.
Gpus = Mapping[tuple[str, str], Mapping[str, str]]


def port(base: int, rails: Sequence[str], number: int, *, rail: str, lane: int = 0, lanes: int = 1) -> int:
    """Return the TCP port of perftest's own exchange in round ``number`` on the client's ``rail``.

    ``lane`` of ``lanes`` tells apart what one server is asked on one rail by several clients.
    """
    return base + ((number % PORT_CYCLE) * lanes + lane) * len(rails) + rails.index(rail)


def message_size(tests: Mapping[str, Any], kind: str, size: int = 0) -> int:
    """Return the bytes of a message: the test's own ``size``, or the one size that ``tests`` give for the kind."""
    tests = complete(tests)
    if size:
        return size
    usual = KINDS[kind].message(tests["memory"])
    if KINDS[kind].latency:
        return int(tests["latency_size"] or usual or tests["size"])
    return int((tests["sizes"] or [usual or tests["size"]])[0])


def perftest_args(tests: Mapping[str, Any], kind: str = USUAL, size: int = 0, *, gpu: str = "", rail: str = "") -> str:
    """Return perftest's options for one side, from the plan's ``tests``.

    ``gpu``: PCI address of this side's GPU; ``rail``: that of the client.

    Both sides get the same but for the GPU, which rules out what perftest does when they differ.
    """
    tests = complete(tests)
    args: list[Any] = ["-F"]
    if KINDS[kind].latency:
        args += ["-c", "RC", "-s", message_size(tests, kind, size), "-n", tests["latency_iterations"]]
    else:
        args += ["--report_gbits", "-c", "RC", "-q", tests["queue_pairs"], "-s", message_size(tests, kind, size)]
        args += ["-t", tests["tx_depth"], *_duration(int(tests["duration"]))]
        args += ["-b"] if tests["directions"] == "together" else []
    args += ["-m", tests["mtu"]] if tests["mtu"] else []
    args += exchange_args(tests["rdma_cm"], byte_of(tests, rail))
    args += ["-I", tests["inline"]] if tests["inline"] is not None else []
    args += ["--use_hugepages"] if tests["hugepages"] else []
    # perftest refuses DMA-BUF when it stands before the GPU.
    args += [f"--use_cuda_bus_id={gpu}"] if gpu else []
    args += ["--use_cuda_dmabuf"] if gpu and tests["memory"] in DMABUF else []
    args += ["--use_data_direct"] if gpu and tests["memory"] == DATA_DIRECT else []
    return " ".join(str(arg) for arg in args)


def _duration(seconds: int) -> list[Any]:
    """Return the options for a run of ``seconds``; perftest's own margin would halve the measured window."""
    return ["-D", seconds, *(["-f", seconds // 5] if seconds >= 5 else [])]


def sides(test: Measurement, addresses: Addresses) -> list[tuple[str, str, str, str]]:
    """Return (role, endpoint, its rail, the peer's address) of both sides of a test, the client first."""
    return [
        ("client", test.client, test.rail, addresses[1]),
        ("server", test.server, test.server_rail, addresses[0]),
    ]


def lines(
    rounds: Sequence[Round],
    rails: Sequence[str],
    tests: Mapping[str, Any],
    *,
    addresses: Callable[[Measurement], Addresses],
    gpus: Gpus | None = None,
    swapped: Collection[Measurement] = (),
    more: Callable[[Measurement, str], str] | None = None,
    flow: Callable[[Measurement, int, str], str] | None = None,
) -> dict[str, list[str]]:
    """Return each endpoint's schedule lines, closed by ``END count``.

    ``swapped``: tests whose sides find each other the other way than ``tests.rdma_cm`` says. ``more``: further options
    of a side ("client" or "server") of a test. ``flow``: the option for its path in a round.

    ``addresses``: where the sides of a test reach each other for perftest's own exchange. ``gpus``: (endpoint, rail) to
    the GPU whose memory is used by tests in other than host memory.
    """
    numbered = [(number, test, lane) for number, round_ in enumerate(rounds) for test, lane in _lanes(round_)]
    lanes = max((lane for _number, _test, lane in numbered), default=0) + 1
    base, rdma_cm = int(tests["port_base"]), bool(tests.get("rdma_cm"))
    # The program and its options, the same in nearly all lines.
    known: dict[tuple[object, ...], str] = {}
    result: dict[str, list[str]] = {}
    for number, test, lane in numbered:
        at = port(base, rails, number, rail=test.rail, lane=lane, lanes=lanes)
        # Mostly none is swapped, and then nothing is looked up.
        other = bool(swapped) and test in swapped
        for role, own, rail, peer in sides(test, addresses(test)):
            gpu = "" if test.memory == "host" else (gpus or {}).get((own, rail), {}).get("bdf", "")
            key = (test.kind, test.size, gpu, other, byte_of(tests, test.rail), more(test, role) if more else "")
            if key not in known:
                way = {**tests, "rdma_cm": rdma_cm != other}
                args = perftest_args(way, test.kind, test.size, gpu=gpu, rail=test.rail)
                words = (KINDS[test.kind].tool, args, key[-1])
                known[key] = " ".join(word for word in words if word)
            path = flow(test, number, role) if flow else ""
            line = f"{number} {rail} {role} {peer} {at} {known[key]}"
            result.setdefault(own, []).append(f"{line} {path}" if path else line)
    for own in result:
        result[own].append(f"END {len(result[own])}")
    return result


def _lanes(round_: Round) -> list[tuple[Measurement, int]]:
    """Return the tests of a round with a number that tells those with the same server and client's rail apart."""
    seen: dict[tuple[str, str], int] = {}
    numbered = []
    for test in round_:
        lane = seen.get((test.server, test.rail), 0)
        seen[test.server, test.rail] = lane + 1
        numbered.append((test, lane))
    return numbered
