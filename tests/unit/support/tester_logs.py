"""What the judge reads in tests: a plan of equal ports, and the logs of testers in the form of tester.sh.

log(1, lines, [frame("0 rail0 client 10.0.0.2", 0, ROW % "97.9")])    # a pass in which one test reached 97.9 Gb/s
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings import frames

# What a program for bandwidth prints; the place is for the average in Gb/s.
ROW = " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 65536 100 0.00 %s 0.1"
# What a program for latency prints: 1.11 us.
LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec]\n 2 10000 1.01 9.10 1.11 1.12 0.10 1.90 4.10"
)
OUTLIERS = {"severity": "warning", "deviations": 5.0, "margin": 0.05, "latency_margin": 0.25}


def plan(hosts: Sequence[str], rails: Sequence[str], **tests: Any) -> dict[str, Any]:
    """What the judge reads of a plan: ports of 100 Gb/s, one kind of test, on hosts and in pods."""
    side = {"rate": 100.0, "mtu": 4096, "floor": None, "tolerance": 0.95, "bidirectional": 0.9}
    return {
        "rails": [{"name": name, "index": i, "link_layer": "ethernet", "mtu": 9000} for i, name in enumerate(rails)],
        "endpoints": {"host": list(hosts), "pod": list(hosts)},
        "expectations": {rail: {name: dict(side) for name in hosts} for rail in rails},
        "thresholds": {"gpu_paths": {}, "outliers": OUTLIERS, "unsteady": {"severity": "failure", "background": 0.001}},
        "tests": {
            "duration": 10,
            "size": 65536,
            "queue_pairs": 4,
            "tx_depth": 128,
            "mtu": None,
            "port_base": 18500,
            "kinds": ["write_bw"],
            "budget": "quick",
            "control": "rail",
            "retries": 2,
            **tests,
        },
    }


def described(rails: Iterable[str], host: str) -> str:
    """The description of a tester: the lines of its rails without their first word, then that of the host."""
    lines = [f"rail {rail}" for rail in rails]
    return "\n".join([frames.DESCRIBE, *lines, f"host {host}", f"{frames.DESCRIBED}{len(lines)}"]) + "\n"


def frame(line: str, rc: int, text: str, header: str = "seconds=2") -> str:
    """What a tester records of the test that ``line`` of its schedule asks for. ``header``: more words of its mark."""
    words = " ".join(line.split()[:4])
    return f"{frames.MARK}{frames.TEST}{words} rc={rc} start=1 {header}\n{text}\n{frames.MARK}{frames.END}"


def log(number: int, lines: Sequence[str], played: Iterable[str], done: bool = True) -> str:
    """The log of pass ``number``. ``lines``: the schedule of the tester; ``done``: whether it has its last mark."""
    tests = len(lines) - 1
    end = [f"{frames.done(number)}{tests} 0"] if done else []
    return "\n".join([f"{frames.begin(number)}{tests}", *played, *end]) + "\n"
