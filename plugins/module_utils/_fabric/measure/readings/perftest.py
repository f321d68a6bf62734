# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What perftest printed: its result row, or why there is none."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ...intent.tests import DMABUF

# From this lateness on, in seconds, a tester leaves a round out, and its client's delay no longer makes up for it.
MISSED = 1.0
# The least lateness that matters, in seconds: of a host that missed a round in the same minutes.
STRAINED = 0.3

_BANDWIDTH = re.compile(r"BW average\[(?P<unit>[^\]]+)\]")
_TITLE = re.compile(r"\s*((?:\w+ ){1,5}Test)\s*")
# To Gb/s. perftest's MB and MiB are both 2^20 bytes.
_UNITS = {"Gb/sec": 1.0, "MB/sec": 8 * 2**20 / 1e9, "MiB/sec": 8 * 2**20 / 1e9}
# Columns after size and iterations. perftest may add columns to bandwidth (--cpu_util), never to latency.
_OF_BANDWIDTH = ("peak", "average", "rate")
_OF_ITERATIONS = ("least", "most", "typical", "average", "deviation", "p99", "p999")
_OF_DURATION = ("average", "rate")
# More than any number of a row. Sums and means of such numbers are finite.
_LARGEST = 1e18
_LATENCIES = ("least", "most", "typical", "p99", "p999")

# Exit codes of an expired timeout: GNU 124, busybox 143 (TERM), 137 when it had to be killed.
TIMED_OUT = (124, 143)
KILLED = 137
# The reason of a side that ran out of time and printed nothing that explains it.
NO_END = "did not end in time (no answer from the peer)"

# Texts of a failed run in the order of how much they explain, each with what it usually means.
# Upstream source and recorded runs of 4.5, 25.01 and mid-2026. First what a side fails on by itself.
OWN_CAUSES = (
    (r"gpufabric: (?P<text>.*)", ""),
    (r"Port number \d+ state is \w+", "link down"),
    (r"IB device \S+ not found", "no such RDMA device"),
    (r"Did not detect devices.*", "no usable RDMA device"),
    (r"Unable to query port \d+ attributes", "no such port"),
    (r"Gid index should be between \d+ and \d+", "the port has too many GIDs; remove unused addresses"),
    (r"Couldn't allocate MR with error=14\b", "GPU memory cannot be registered: is nvidia-peermem loaded?"),
    (r"Couldn't allocate MR with error=9[35]\b", "kernel, driver or rdma-core without DMA-BUF"),
    (r"Couldn't allocate MR.*", "memlock limit, or GPU memory that cannot be registered"),
    (r"Failed to allocate hugepages.*", "hugepages missing"),
    (r"unrecognized option '[^']*'", "this version of perftest does not support it"),
    (r"Unsupported memory type", "perftest without GPU support"),
    (r"dlerror: .*", "GPU libraries missing"),
    (r"DMA-BUF is not supported on this GPU|CUDA DMA-BUF cannot be used without CUDA", ""),
    (r"There are no available device\(s\) that support CUDA", "no GPU is visible here"),
    (r"No such device ID.*|cuDeviceGetByPCIBusId failed.*", "that GPU is not visible here"),
    (r"cu[A-Z]\w{2,60}(?:\(\d*\))? (?:returned |error=)\d+", "the CUDA driver refused"),
    (r"Requested QP size might be too big.*", "queue depth too large for this device"),
    (r"Unable to access performance counters", ""),
)
# The last group only echoes the peer's failure.
CAUSES = (
    *OWN_CAUSES,
    (r"Found Incompatibility issue with GID types\.?", "GID families or types of the two sides differ"),
    (r"Failed to modify QP \S+ to RTR", "peer's address not reachable on the rail: ARP, route, VLAN, GID or partition"),
    (r"\w+ mismatch: local=\S+ remote=\S+", "the two sides were started with different options"),
    (r"Failed status[ -].*", ""),
    (r"rdma_resolve_\w+ failed|Unexpected CM event.*|Received \d+ times ADDR_ERROR", "rdma_cm found no way"),
    (r"Did not get Message for \d+ Seconds", "peer stopped"),
    (r"Can't produce a report", "clock calibration failed"),
    (r".*[Nn]ame resolution.*", "name does not resolve"),
    (r"Couldn't connect to \S+", "its server never listened, or the network between them"),
    (r"Couldn't read remote address|Couldn't read reports|Failed to exchange data.*", "the peer went away"),
)
_CAUSES = tuple((re.compile(pattern), meaning) for pattern, meaning in CAUSES)
# From here on a cause says only that the other side failed.
_ECHO = len(CAUSES) - 2

_STATUS = {
    4: "local memory not accessible",
    5: "queue flushed after an earlier error: link dropped",
    8: "local access flags",
    9: "remote side refused the request",
    10: "remote key or range wrong",
    11: "remote side could not complete",
    12: "no acknowledgement: path broken one way, MTU too large for a hop, or loss",
    13: "receiver not ready",
}
_STATUS_NUMBER = re.compile(r"Failed status(?: (\d{1,3})|.*?\((\d{1,3})\))")
# perftest says the first for memory of any kind; these kinds are the host's, or come and go.
_GPU_BUFFER = re.compile(r"allocated GPU buffer.*")
_NOT_THE_GPU = re.compile(r"CUDA_MEM_(?:MANAGED|MALLOC|HOST\w+)|Host allocation selected|CUDA device integrated: 1")
_DMABUF = "using DMA-BUF for GPU buffer"


class Sample(NamedTuple):
    """A result row: message ``size`` in bytes, ``iterations``, ``average`` in ``unit``.

    ``unit`` is "Gb/s" (of both directions together where both were measured) or "us" (latency: half a round trip of
    write and send, a whole one of read). The rest is latency in us, None where perftest did not print it: in a run
    by duration it prints no more than the average. ``typical`` is the median.
    """

    size: int
    iterations: int
    average: float
    unit: str = "Gb/s"
    typical: float | None = None
    least: float | None = None
    most: float | None = None
    deviation: float | None = None
    p99: float | None = None
    p999: float | None = None

    @property
    def value(self) -> float:
        """The number to judge: average bandwidth, typical latency (its average when nothing else is known)."""
        return self.average if self.typical is None else self.typical


# Runs without them share one of each: there are hundreds of thousands of runs.
_NO_GROWTH: Mapping[str, int] = {}
_NO_LINK: Mapping[str, str] = {}


class Run(NamedTuple):
    """One side of a test as its tester framed it. What a frame does not say stays at its default.

    ``text``: perftest's own output. ``started``: seconds on the host's clock; ``seconds``: from then to the end of
    the test; ``late``: seconds behind the round's begin; ``ran``: seconds of the last perftest.
    ``counters``: name to growth. ``amounts``: the same of what grows on a healthy port too, such as bytes by priority,
    and of the CPU limit of the tester (tester_cpu.py); ``unread``: why there are none of the port. ``link``: rate,
    state, carrier, mtu, pcie after the test, ``link_before`` the same before it, only when it differs. ``exchange``:
    "cm" or "plain". ``memory``: "host" or a kind of GPU memory, as it was asked for.
    """

    rc: int
    text: str
    started: int | None = None
    seconds: float | None = None
    late: float | None = None
    ran: float | None = None
    counters: Mapping[str, int] = _NO_GROWTH
    link: Mapping[str, str] = _NO_LINK
    link_before: Mapping[str, str] = _NO_LINK
    exchange: str = ""
    memory: str = ""
    amounts: Mapping[str, int] = _NO_GROWTH
    unread: str = "its tester does not report them"


def parse_rows(text: str) -> list[Sample]:
    """Return the result rows of perftest's text output, bandwidth or latency; those before an unusable one.

    Only the first block counts: ``--report-both`` repeats the table for each direction.
    """
    columns: tuple[str, ...] = ()
    factor = 0.0
    samples: list[Sample] = []
    # Most of the output stands before the table.
    head = text.find("#bytes")
    if head < 0:
        return samples
    for line in map(str.lstrip, text[text.rfind("\n", 0, head) + 1 :].splitlines()):
        if line.startswith("#bytes"):
            if columns:
                break
            columns, factor = _table(line)
        elif columns and line.startswith("---"):
            break
        elif columns and line[:1].isdecimal() and line.split(None, 1)[0].isdecimal():
            sample = _sample(line.split(), columns, factor)
            if sample is None:
                break
            samples.append(sample)
    return samples


@lru_cache(maxsize=64)
def _table(header: str) -> tuple[tuple[str, ...], float]:
    """Return the columns of a table and the factor to our unit; no columns when the unit is not known."""
    bandwidth = _BANDWIDTH.search(header)
    if bandwidth:
        factor = _UNITS.get(bandwidth["unit"], 0.0)
        return (_OF_BANDWIDTH if factor else ()), factor
    if "t_avg[usec]" not in header:
        return (), 0.0
    return (_OF_ITERATIONS if "t_typical[usec]" in header else _OF_DURATION), 1.0


def _sample(words: list[str], columns: tuple[str, ...], factor: float) -> Sample | None:
    missing = len(columns) + 2 - len(words)
    # A row that was cut has less columns; nothing is ever added to latency.
    if missing > 0 or (missing < 0 and columns is not _OF_BANDWIDTH):
        return None
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    if columns is _OF_BANDWIDTH:
        return _bandwidth(numbers[: len(columns) + 2], factor)
    known = dict(zip(columns, numbers[2:]))
    # perftest's own arithmetic, and nothing is judged by it: -nan was seen beside a latency that was measured well.
    deviation = known.pop("deviation", math.nan)
    if not _plausible([*numbers[:2], *known.values()]):
        return None
    return Sample(
        int(numbers[0]),
        int(numbers[1]),
        known["average"] * factor,
        unit="us",
        deviation=deviation if math.isfinite(deviation) else None,
        **{name: known[name] for name in _LATENCIES if name in known},
    )


def _plausible(numbers: list[float]) -> bool:
    """Return whether all are finite and of a size that perftest prints; one that is not makes the sum so."""
    return sum(map(abs, numbers)) <= _LARGEST


def _bandwidth(numbers: list[float], factor: float) -> Sample | None:
    """Return a row of bandwidth; None when a value is none that perftest prints."""
    if not _plausible(numbers):
        return None
    size, iterations, _peak, average, _rate = numbers
    return Sample(int(size), int(iterations), average * factor)


def _title(text: str) -> str | None:
    """Return "RDMA_Write Bidirectional BW Test" or the like, None when it is not there."""
    for line in text.splitlines():
        match = _TITLE.fullmatch(line) if "Test" in line else None
        if match:
            return match.group(1)
    return None


def reading(client: Run | None, server: Run | None, size: int) -> tuple[Sample | None, str]:
    """Return a valid sample and "", or None and the reason why a test gave none.

    Exit code 0 alone proves nothing, and a client whose server was killed prints a plausible row: both sides must
    have ended with 0 and played the same test, a side that asked for GPU memory must show that it used it, and the
    client's row must be about the requested size, possible in itself and above zero.
    """
    if client is None or server is None or client.rc or server.rc:
        return None, failure(client, server)
    titles = [_title(run.text) for run in (client, server)]
    if all(titles) and titles[0] != titles[1]:
        return None, f"the two sides were started with different options: client: {titles[0]}; server: {titles[1]}"
    for name, run in (("client", client), ("server", server)):
        missing = memory_missing(run)
        if missing:
            return None, f"{name}: {missing}"
    samples = parse_rows(client.text)
    if not samples:
        return None, "client: exit code 0 but no result row"
    sample = next((sample for sample in samples if sample.size == size), samples[0])
    flaw = _flaw(sample, size)
    return (None, f"client: {flaw}") if flaw else (sample, "")


def _flaw(sample: Sample, size: int) -> str:
    """Return what makes a row unusable, "" when nothing does. Which rates are possible only the judge can know."""
    if sample.size != size:
        return f"perftest reported message size {sample.size}; {size} was requested"
    if sample.iterations <= 0:
        return "not one message was acknowledged, though both sides met (MTU too large for a hop, or loss)"
    if sample.average <= 0:
        latency = "latency of 0 with exit code 0 (clock sampling failed)"
        return latency if sample.unit == "us" else "rate of 0 with exit code 0 (clock sampling failed)"
    return _disorder(sample) if sample.unit == "us" else ""


def _disorder(sample: Sample) -> str:
    """Return what is impossible in the latencies of a row, "" when nothing is."""
    order = [value for value in (sample.least, sample.typical, sample.most) if value is not None]
    if order != sorted(order) or any(value <= 0 for value in order):
        return f"impossible latencies: least, typical, most of {', '.join(f'{value:g}' for value in order)} us"
    return ""


def memory_missing(run: Run) -> str:
    """Return why a run that asked for GPU memory is none of it, "" when it used it or never asked."""
    if not run.memory.startswith("cuda"):
        return ""
    asked = "GPU memory was asked for, but "
    other = _NOT_THE_GPU.search(run.text)
    if other:
        return f"{asked}perftest measured the host's: {other.group()}"
    if not _GPU_BUFFER.search(run.text):
        return f"{asked}perftest does not report that it used it"
    if run.memory in DMABUF and _DMABUF not in run.text:
        return f"{asked}perftest does not report that it used DMA-BUF"
    return ""


def failure(client: Run | None, server: Run | None) -> str:
    """Return why a test failed; the side that explains most comes first."""
    told = []
    for name, run in (("client", client), ("server", server)):
        if run is None:
            told.append((len(_CAUSES), f"{name}: no output was returned"))
        elif run.rc:
            rank, text = _cause(run)
            told.append((rank, f"{name}: {text}"))
    return "; ".join(text for _rank, text in sorted(told, key=lambda item: item[0]))


def _cause(run: Run) -> tuple[int, str]:
    for rank, (pattern, meaning) in enumerate(_CAUSES):
        match = pattern.search(run.text)
        if match:
            text = match.groupdict().get("text") or match.group().strip()
            meaning = meaning or _status_meaning(text)
            return rank, f"{text} ({meaning})" if meaning else text
    # A side that waited in vain explains less than anything else.
    return len(_CAUSES) if run.rc in TIMED_OUT else _ECHO - 1, _exit(run)


def _status_meaning(text: str) -> str:
    match = _STATUS_NUMBER.search(text)
    return _STATUS.get(int(match.group(1) or match.group(2)), "") if match else ""


def _exit(run: Run) -> str:
    if run.rc in TIMED_OUT:
        return NO_END
    if run.rc == KILLED:
        return "was killed"
    last = [line.strip() for line in run.text.splitlines() if line.strip(" -*\t")][-1:]
    return f"exit code {run.rc}" + (f": {last[0]}" if last else "")
