"""The parser against recorded runs of three versions; the fixtures say where they come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.perftest import (
    Run,
    Sample,
    parse_bandwidth,
    reading,
)

FIXTURES = Path(__file__).resolve().parents[5] / "fixtures" / "perftest"
CASES = {path.stem: json.loads(path.read_text())["cases"] for path in sorted(FIXTURES.glob("*.json"))}
VERSIONS = sorted(CASES)


def run(version: str, case: str, side: str) -> Run | None:
    found = CASES[version][case].get(side)
    return Run(found["rc"], found["stdout"] + "\n" + found["stderr"]) if found else None


def read(version: str, case: str) -> tuple[Sample | None, str]:
    return reading(run(version, case, "client"), run(version, case, "server"), 65536)


def test_three_versions_are_there() -> None:
    assert VERSIONS == ["25.01", "4.5", "head"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "case", ["bw_iters", "bw_iters_mb", "bw_duration", "bw_duration_cpu_q2", "bw_counters", "bw_noF", "read_bw"]
)
def test_good_runs_give_a_sample(version: str, case: str) -> None:
    sample, reason = read(version, case)
    assert reason == "" and sample is not None
    assert (sample.size, sample.mtu) == (65536, 4096) and 0.1 < sample.average < 1


@pytest.mark.parametrize(
    ("version", "case", "average"),
    [("25.01", "bw_duration", 0.63), ("25.01", "bw_iters_mb", 0.656), ("4.5", "bw_loss_1pct", 0.15),
     # The first block is the sum; "Local" and "Remote" follow.
     ("25.01", "bw_bidir_both", 0.51),
     # The server of a send test prints 237 Gb/s here: the client's row counts.
     ("25.01", "send_bw", 0.29)],
)
def test_average(version: str, case: str, average: float) -> None:
    sample, _reason = read(version, case)
    assert sample is not None and round(sample.average, 3) == average


SAME = "did not end in time (no answer from the peer)"
GONE = "Couldn't read remote address (the peer went away)"
NEVER = "its server never listened, or the network between them"
REASONS: list[tuple[str, str, str]] = [
    ("*", "bw_output_bandwidth", "client: exit code 0 but no result row"),
    ("*", "err_below_limit", "client: exit code 1: Error: BW result is below bw limit"),
    ("*", "err_nodev", "client: IB device mlx5_9 not found (no such RDMA device); server: no output came back"),
    ("*", "err_port_down", "client: Port number 1 state is Down (link down); server: no output came back"),
    ("*", "err_badport", "client: Unable to query port 2 attributes (no such port); server: no output came back"),
    ("*", "err_refused", f"client: Couldn't connect to 127.0.0.1:20001 ({NEVER}); server: {SAME}"),
    ("*", "err_server_killed", f"server: was killed; client: {GONE}"),
    ("*", "err_tcp_probe", "server: Couldn't read reports (the peer went away); client: no output came back"),
    ("4.5", "err_memlock_server",
     f"server: Couldn't allocate MR (memlock limit, or GPU memory that cannot be registered); client: {GONE}"),
    ("head", "err_memlock_server",
     f"server: Couldn't allocate MR with error=12 (memlock limit, or GPU memory that cannot be registered); "
     f"client: {GONE}"),
    ("25.01", "err_gid_empty",
     "client: Failed to modify QP 72 to RTR (peer's address not reachable on the rail: ARP, route, VLAN or GID); "
     "server: Failed to modify QP 69 to RTR (peer's address not reachable on the rail: ARP, route, VLAN or GID)"),
    ("4.5", "err_blackhole_midrun",
     f"client: Failed status 5: wr_id 0 syndrom 0x0 (queue flushed after an earlier error: link dropped); "
     f"server: {GONE}"),
    ("head", "err_blackhole_midrun",
     f"client: Failed status-Work Request Flushed Error (5): wr_id 0 syndrom 0x0 (queue flushed after an earlier "
     f"error: link dropped); server: {GONE}"),
    ("head", "err_qp_mismatch",
     "client: num_of_qps mismatch: local=4, remote=2 (the two sides were started differently); "
     "server: num_of_qps mismatch: local=2, remote=4 (the two sides were started differently)"),
    ("25.01", "err_tool_mismatch", f"client: {SAME}; server: {SAME}"),
    ("4.5", "err_cuda", f"client: unrecognized option '--use_cuda=0' (this perftest does not know it); server: {SAME}"),
    ("25.01", "err_cuda", f"client: Unsupported memory type (perftest without GPU support); server: {SAME}"),
]


@pytest.mark.parametrize(
    ("version", "case", "reason"),
    [(v, case, reason) for at, case, reason in REASONS for v in VERSIONS if at in ("*", v)],
)
def test_failed_runs_give_a_reason_and_no_sample(version: str, case: str, reason: str) -> None:
    assert read(version, case) == (None, reason)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_failed_run_is_ever_read_as_a_sample(version: str) -> None:
    # A mismatch of -b cannot be seen in the output; both sides are started with the same options.
    bad = [case for case in CASES[version] if case.startswith("err_") and case != "err_bidir_mismatch"]
    assert [case for case in bad if read(version, case)[0]] == []


def row(text: str) -> str:
    return f" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n {text}\n-----\n"


GOOD = row("65536 100 0.00 97.9 0.1")


@pytest.mark.parametrize(
    ("client", "server", "reason"),
    [
        (Run(0, row("65536 100 0.00 0.00 0.000000")), Run(0, GOOD),
         "client: rate of 0 with exit code 0 (clock sampling failed)"),
        # What a black hole for large frames gives: the exchange goes through, the data does not.
        (Run(0, row("65536 0 0.00 0.00 0.000000")), Run(0, GOOD),
         "client: not one message was acknowledged, though both sides met (MTU too large for a hop, or loss)"),
        (Run(0, row("1024 100 0.00 97.9 0.1")), Run(0, GOOD),
         "client: result row is about 1024 bytes, 65536 requested"),
        (Run(0, row("65536 100 0.00 nan 0.1")), Run(0, GOOD), "client: exit code 0 but no result row"),
        (Run(0, ""), Run(0, GOOD), "client: exit code 0 but no result row"),
        (Run(0, GOOD), None, "server: no output came back"),
        (Run(0, GOOD), Run(124, ""), f"server: {SAME}"),
        (Run(0, GOOD), Run(1, ""), "server: exit code 1"),
        (Run(125, "gpufabric: missed the round, 6 s late"), Run(143, ""),
         f"client: missed the round, 6 s late; server: {SAME}"),
    ],
)
def test_a_zero_exit_code_proves_nothing(client: Run | None, server: Run | None, reason: str) -> None:
    assert reading(client, server, 65536) == (None, reason)


def test_a_garbage_row_of_an_old_server_is_no_sample_of_the_requested_size() -> None:
    sample = parse_bandwidth(row("3472328296395452464 3547200640032715875 0.000000 0.000000 0.000000"))
    assert sample is None or sample.size != 65536
