# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What perftest printed: its result row, or why there is none."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_HEADER = re.compile(r"^\s*#bytes.*?BW average\[(?P<unit>[^\]]+)\]")
_ROW = re.compile(r"^\s*\d+(\s+\S+){3,9}\s*$")
_MTU = re.compile(r"^\s*Mtu\s*:\s*(\d+)\[B\]", re.MULTILINE)
# To Gb/s. perftest's MB and MiB are both 2^20 bytes.
_UNITS = {"Gb/sec": 1.0, "MB/sec": 8 * 2**20 / 1e9, "MiB/sec": 8 * 2**20 / 1e9}

# Exit codes of an expired timeout: GNU 124, busybox 143 (TERM), 137 when it had to be killed.
TIMED_OUT = (124, 143)
KILLED = 137
REFUSED = 125

# Texts of a failed run in the order of how much they explain, each with what it usually means.
# Upstream source and recorded runs of 4.5, 25.01 and mid-2026; the last group only echoes the peer's failure.
CAUSES = (
    (r"gpufabric: (?P<text>.*)", ""),
    (r"Port number \d+ state is \w+", "link down"),
    (r"IB device \S+ not found", "no such RDMA device"),
    (r"Did not detect devices.*", "no usable RDMA device"),
    (r"Unable to query port \d+ attributes", "no such port"),
    (r"Couldn't allocate MR.*", "memlock limit, or GPU memory that cannot be registered"),
    (r"Failed to allocate hugepages.*", "hugepages missing"),
    (r"unrecognized option '[^']*'", "this perftest does not know it"),
    (r"Unsupported memory type", "perftest without GPU support"),
    (r"dlerror: .*", "GPU libraries missing"),
    (r"Found Incompatibility issue with GID types\.?", "GID families or types of the two sides differ"),
    (r"Failed to modify QP \S+ to RTR", "peer's address not reachable on the rail: ARP, route, VLAN or GID"),
    (r"\w+ mismatch: local=\S+ remote=\S+", "the two sides were started differently"),
    (r"Failed status[ -].*", ""),
    (r"Requested QP size might be too big.*", "queue depth too large for this device"),
    (r"rdma_resolve_route failed|Unexpected CM event.*", "rdma_cm found no way"),
    (r"Unable to access performance counters", ""),
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
_STATUS_NUMBER = re.compile(r"Failed status(?: (\d+)|.*?\((\d+)\))")


@dataclass(frozen=True)
class Sample:
    """A result row: message ``size`` in bytes, ``iterations``, ``average`` in Gb/s, RDMA ``mtu`` when printed."""

    size: int
    iterations: int
    average: float
    mtu: int | None


@dataclass(frozen=True)
class Run:
    """One side of a test as its tester framed it."""

    rc: int
    text: str


def parse_bandwidth(text: str) -> Sample | None:
    """Return the first result row of perftest's text output, None when there is no acceptable one.

    Only the first block counts: ``--report-both`` repeats the table for each direction.
    """
    factor: float | None = None
    for line in text.splitlines():
        header = _HEADER.match(line)
        if header:
            factor = _UNITS.get(header["unit"])
        elif factor is not None and line.lstrip().startswith("---"):
            return None
        elif factor is not None and _ROW.match(line):
            return _sample(line.split(), factor, text)
    return None


def _sample(fields: list[str], factor: float, text: str) -> Sample | None:
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        return None
    if not all(math.isfinite(number) for number in numbers):
        return None
    mtu = _MTU.search(text)
    return Sample(int(fields[0]), int(numbers[1]), numbers[3] * factor, int(mtu.group(1)) if mtu else None)


def reading(client: Run | None, server: Run | None, size: int) -> tuple[Sample | None, str]:
    """Return a valid sample and "", or None and the reason why a test gave none.

    Exit code 0 alone proves nothing, and a client whose server was killed prints a plausible row: both sides must
    have ended with 0, and the client's row must be about the requested size and above zero.
    """
    if client is None or server is None or client.rc or server.rc:
        return None, failure(client, server)
    sample = parse_bandwidth(client.text)
    if sample is None:
        return None, "client: exit code 0 but no result row"
    if sample.size != size:
        return None, f"client: result row is about {sample.size} bytes, {size} requested"
    if sample.iterations <= 0:
        why = "not one message was acknowledged, though both sides met (MTU too large for a hop, or loss)"
        return None, f"client: {why}"
    if sample.average <= 0:
        return None, "client: rate of 0 with exit code 0 (clock sampling failed)"
    return sample, ""


def failure(client: Run | None, server: Run | None) -> str:
    """Return why a test failed; the side that explains most comes first."""
    told = []
    for name, run in (("client", client), ("server", server)):
        if run is None:
            told.append((len(_CAUSES), f"{name}: no output came back"))
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
        return "did not end in time (no answer from the peer)"
    if run.rc == KILLED:
        return "was killed"
    last = [line.strip() for line in run.text.splitlines() if line.strip(" -*\t")][-1:]
    return f"exit code {run.rc}" + (f": {last[0]}" if last else "")
