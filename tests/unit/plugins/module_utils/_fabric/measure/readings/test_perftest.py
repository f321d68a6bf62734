"""The parser against recorded runs of three versions; the fixtures say where they come from."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import (
    Run,
    Sample,
    parse_rows,
    reading,
)

FIXTURES = Path(__file__).resolve().parents[6] / "fixtures" / "perftest"
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
    assert sample.size == 65536 and 0.1 < sample.average < 1


@pytest.mark.parametrize(
    ("version", "case", "average"),
    [
        ("25.01", "bw_duration", 0.63),
        ("25.01", "bw_iters_mb", 0.656),
        ("4.5", "bw_loss_1pct", 0.15),
        # The first block is the sum; "Local" and "Remote" follow.
        ("25.01", "bw_bidir_both", 0.51),
        # The server of a send test prints 237 Gb/s here: the client's row counts.
        ("25.01", "send_bw", 0.29),
    ],
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
    ("*", "err_nodev", "client: IB device mlx5_9 not found (no such RDMA device); server: no output was returned"),
    ("*", "err_port_down", "client: Port number 1 state is Down (link down); server: no output was returned"),
    ("*", "err_badport", "client: Unable to query port 2 attributes (no such port); server: no output was returned"),
    ("*", "err_refused", f"client: Couldn't connect to 127.0.0.1:20001 ({NEVER}); server: {SAME}"),
    ("*", "err_server_killed", f"server: was killed; client: {GONE}"),
    ("*", "err_tcp_probe", "server: Couldn't read reports (the peer went away); client: no output was returned"),
    (
        "4.5",
        "err_memlock_server",
        f"server: Couldn't allocate MR (memlock limit, or GPU memory that cannot be registered); client: {GONE}",
    ),
    (
        "head",
        "err_memlock_server",
        f"server: Couldn't allocate MR with error=12 (memlock limit, or GPU memory that cannot be registered); "
        f"client: {GONE}",
    ),
    (
        "25.01",
        "err_gid_empty",
        "client: Failed to modify QP 72 to RTR (peer's address not reachable on the rail: ARP, route, VLAN, GID or"
        " partition); "
        "server: Failed to modify QP 69 to RTR (peer's address not reachable on the rail: ARP, route, VLAN, GID or"
        " partition)",
    ),
    (
        "4.5",
        "err_blackhole_midrun",
        f"client: Failed status 5: wr_id 0 syndrom 0x0 (queue flushed after an earlier error: link dropped); "
        f"server: {GONE}",
    ),
    (
        "head",
        "err_blackhole_midrun",
        f"client: Failed status-Work Request Flushed Error (5): wr_id 0 syndrom 0x0 (queue flushed after an earlier "
        f"error: link dropped); server: {GONE}",
    ),
    (
        "head",
        "err_qp_mismatch",
        "client: num_of_qps mismatch: local=4, remote=2 (the two sides were started with different options); server: "
        "num_of_qps mismatch: local=2, remote=4 (the two sides were started with different options)",
    ),
    ("25.01", "err_tool_mismatch", f"client: {SAME}; server: {SAME}"),
    (
        "4.5",
        "err_cuda",
        f"client: unrecognized option '--use_cuda=0' (this version of perftest does not support it); server: {SAME}",
    ),
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
        (
            Run(0, row("65536 100 0.00 0.00 0.000000")),
            Run(0, GOOD),
            "client: rate of 0 with exit code 0 (clock sampling failed)",
        ),
        # What a black hole for large frames gives: the exchange goes through, the data does not.
        (
            Run(0, row("65536 0 0.00 0.00 0.000000")),
            Run(0, GOOD),
            "client: not one message was acknowledged, though both sides met (MTU too large for a hop, or loss)",
        ),
        (
            Run(0, row("1024 100 0.00 97.9 0.1")),
            Run(0, GOOD),
            "client: perftest reported message size 1024; 65536 was requested",
        ),
        (Run(0, row("65536 100 0.00 nan 0.1")), Run(0, GOOD), "client: exit code 0 but no result row"),
        (Run(0, ""), Run(0, GOOD), "client: exit code 0 but no result row"),
        (Run(0, GOOD), None, "server: no output was returned"),
        (Run(0, GOOD), Run(124, ""), f"server: {SAME}"),
        (Run(0, GOOD), Run(1, ""), "server: exit code 1"),
        (
            Run(125, "gpufabric: missed the round, 6 s late"),
            Run(143, ""),
            f"client: missed the round, 6 s late; server: {SAME}",
        ),
    ],
)
def test_a_zero_exit_code_proves_nothing(client: Run | None, server: Run | None, reason: str) -> None:
    assert reading(client, server, 65536) == (None, reason)


def test_a_garbage_row_of_an_old_server_is_no_sample_of_the_requested_size() -> None:
    samples = parse_rows(row("3472328296395452464 3547200640032715875 0.000000 0.000000 0.000000"))
    assert [sample for sample in samples if sample.size == 65536] == []


@pytest.mark.parametrize(
    ("version", "case", "size", "expected"),
    [
        ("4.5", "write_lat", 2, (100, 93.98, 76.64, 69.56, 1778.55, 63.75, 1778.55, 1778.55)),
        ("25.01", "send_lat", 2, (50, 98.34, 75.59, 71.87, 725.81, 80.32, 725.81, 725.81)),
        ("4.5", "read_lat", 2, (50, 92.65, 82.31, 36.87, 461.62, 58.98, 461.62, 461.62)),
        ("head", "write_lat_duration", 2, (6726, 148.71, None, None, None, None, None, None)),
        ("25.01", "write_lat_duration", 2, (6676, 149.83, None, None, None, None, None, None)),
    ],
)
def test_latency(version: str, case: str, size: int, expected: tuple[float | None, ...]) -> None:
    sample, reason = reading(run(version, case, "client"), run(version, case, "server"), size)
    assert reason == "" and sample is not None and sample.unit == "us"
    found = (sample.typical, sample.least, sample.most, sample.deviation, sample.p99, sample.p999)
    assert (sample.iterations, sample.average, *found) == expected
    assert sample.value == (expected[2] if expected[2] is not None else expected[1])
    assert parse_rows(CASES[version][case]["client"]["stdout"]) == [sample]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["write_lat", "write_lat_duration", "read_lat", "send_lat", "lat_json"])
def test_every_version_prints_latency_in_the_same_columns(version: str, case: str) -> None:
    sample, reason = reading(run(version, case, "client"), run(version, case, "server"), 2)
    assert reason == "" and sample is not None and 10 < sample.value < 1000


@pytest.mark.parametrize("version", VERSIONS)
def test_all_sizes_are_read_and_the_requested_one_is_taken(version: str) -> None:
    client, server = run(version, "bw_all", "client"), run(version, "bw_all", "server")
    assert client is not None
    rows = parse_rows(client.text)
    assert [row.size for row in rows] == [2**power for power in range(1, 24)]
    sample, reason = reading(client, server, 8388608)
    assert reason == "" and sample == rows[-1]
    assert reading(client, server, 3)[1] == "client: perftest reported message size 2; 3 was requested"


@pytest.mark.parametrize("version", VERSIONS)
def test_sides_that_were_started_differently_are_no_measurement(version: str) -> None:
    assert read(version, "err_bidir_mismatch") == (
        None,
        "the two sides were started with different options: client: RDMA_Write Bidirectional BW Test; server: "
        "RDMA_Write BW Test",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_what_ends_with_0_on_both_sides_is_one_test(version: str) -> None:
    # Titles that differ between the sides of one test would make every such test useless.
    ended = [
        case
        for case, sides in CASES[version].items()
        if len(sides) == 2 and not sides["client"]["rc"] and not sides["server"]["rc"]
    ]
    assert len(ended) > 15
    assert [case for case in ended if "different options" in read(version, case)[1]] == ["err_bidir_mismatch"]


LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    "   99% percentile[usec]   99.9% percentile[usec] \n {}\n-----\n"
)
DURATION = " #bytes        #iterations       t_avg[usec]    tps average\n {}\n-----\n"
BOTH = "client: exit code 0 but no result row"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # A row that was cut, in the middle or in a number.
        (row("65536 2651 0.00 0.6"), BOTH),
        (row("65536 2651"), BOTH),
        (LATENCY.format("65536 100 69.56 1778.55 76.64 93.98 63.75 1778.55"), BOTH),
        (LATENCY.format("65536 100 69.56 1778.55 76.64 93.98"), BOTH),
        (DURATION.format("65536 6730 148.61"), BOTH),
        (DURATION.format("65536 6730 148.61 3364.42 1 2"), BOTH),
        (row("65536 100 0.00 9x.9 0.1"), BOTH),
        (row("65536 100 0.00 inf 0.1"), BOTH),
        (row("65536 100 0.00 1e999 0.1"), BOTH),
        (LATENCY.format("65536 200 893.30 -nan 4625.81 9040.75 1.0 124316.15 164029.80"), BOTH),
        (LATENCY.format("65536 200 893.30 164029.80 4625.81 9040.75 1.0 -nan 164029.80"), BOTH),
        (LATENCY.replace("usec", "cycles").format("65536 100 1 2 1.5 1.5 1 2 2"), BOTH),
        (row("65536 100 0.00 97.9 0.1").replace("Gb/sec", "furlongs"), BOTH),
        (row("65536 100 0.00 -3 0.1"), "client: rate of 0 with exit code 0 (clock sampling failed)"),
        # What a black hole for large frames gives: the exchange goes through, the data does not.
        (
            row("65536 0 0.00 0.00 0.0"),
            "client: not one message was acknowledged, though both sides met (MTU too large for a hop, or loss)",
        ),
        (DURATION.format("65536 6730 0.00 0.00"), "client: latency of 0 with exit code 0 (clock sampling failed)"),
        (LATENCY.format("65536 100 9 5 7 7 1 8 9"), "client: impossible latencies: least, typical, most of 9, 7, 5 us"),
        (LATENCY.format("65536 100 0 5 2 2 1 4 5"), "client: impossible latencies: least, typical, most of 0, 2, 5 us"),
    ],
)
def test_rows_that_cannot_be_used(text: str, reason: str) -> None:
    assert reading(Run(0, text), Run(0, ""), 65536) == (None, reason)


def test_latency_without_a_deviation_is_a_latency() -> None:
    """perftest 25.01 printed -nan on an emulated processor; all other columns were right."""
    text = LATENCY.format("2 200 893.30 164029.80 4625.81 9040.75 -nan 124316.15 164029.80")
    sample, reason = reading(Run(0, text), Run(0, ""), 2)
    assert sample and reason == ""
    assert (sample.value, sample.average, sample.deviation, sample.p999) == (4625.81, 9040.75, None, 164029.80)


ALLOCATED = "allocated GPU buffer of a 131072 address at 0x7ffd1 for type CUDA_MEM_DEVICE\n"
DMABUF = "using DMA-BUF for GPU buffer address at 0x7f2e aligned at 0x7f2e with aligned size 131072\n"
ASKED = "GPU memory was asked for, but perftest "


@pytest.mark.parametrize(
    ("memory", "said", "missing"),
    [
        ("host", "", ""),
        ("", "", ""),
        ("cuda:peermem", ALLOCATED, ""),
        ("cuda:dmabuf", DMABUF + ALLOCATED, ""),
        # Perftest before 25.04.
        ("cuda:peermem", "allocated GPU buffer address at 00007f2e pointer=0x7f2e\n", ""),
        ("cuda:peermem", "", ASKED + "does not report that it used it"),
        ("cuda:peermem", "deallocating GPU buffer 00007f2e\n", ASKED + "does not report that it used it"),
        ("cuda:dmabuf", ALLOCATED, ASKED + "does not report that it used DMA-BUF"),
        ("cuda:peermem", ALLOCATED.replace("DEVICE", "MANAGED"), ASKED + "measured the host's: CUDA_MEM_MANAGED"),
        (
            "cuda:peermem",
            "Host allocation selected, calling memalign\n" + ALLOCATED,
            ASKED + "measured the host's: Host allocation selected",
        ),
        (
            "cuda:peermem",
            "CUDA device integrated: 1\n" + ALLOCATED,
            ASKED + "measured the host's: CUDA device integrated: 1",
        ),
    ],
)
def test_gpu_memory_is_proven_or_it_is_no_result(memory: str, said: str, missing: str) -> None:
    proven, asked = Run(0, said + GOOD, memory=memory), Run(0, GOOD)
    assert reading(proven, asked, 65536)[1] == (f"client: {missing}" if missing else "")
    assert reading(asked, proven, 65536)[1] == (f"server: {missing}" if missing else "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Couldn't allocate MR with error=14", "GPU memory cannot be registered: is nvidia-peermem loaded?"),
        ("Couldn't allocate MR with error=95", "kernel, driver or rdma-core without DMA-BUF"),
        ("cuInit(0) returned 100", "the CUDA driver refused"),
        ("cuMemGetHandleForAddressRange error=801", "the CUDA driver refused"),
        ("There are no available device(s) that support CUDA", "no GPU is visible here"),
        ("Received 10 times ADDR_ERROR", "rdma_cm found no way"),
    ],
)
def test_causes(text: str, reason: str) -> None:
    assert reading(Run(1, text), Run(143, ""), 65536)[1] == f"client: {text} ({reason}); server: {SAME}"


WORDS = st.one_of(
    st.floats().map(str),
    st.integers().map(str),
    st.text(max_size=8),
    st.sampled_from(["9" * 5000, "65536", "-", "1e999", "0x10", "nan", "٣", "²"]),
)
LINES = st.one_of(
    st.lists(WORDS, max_size=11).map(" ".join),
    st.text(max_size=40),
    st.sampled_from(
        [
            GOOD.splitlines()[0],
            LATENCY.splitlines()[0],
            DURATION.splitlines()[0],
            "-----",
            "Failed status-",
            " Mtu : 4096[B]",
            " Mtu : " + "9" * 5000 + "[B]",
            "Failed status " + "9" * 5000,
            ALLOCATED.strip(),
            " RDMA_Write BW Test",
            "num_of_qps mismatch: local=4, remote=2",
        ]
    ),
)
OUTPUTS = st.lists(LINES, max_size=12).map("\n".join)
RUNS = st.one_of(
    st.none(),
    st.builds(
        Run,
        st.sampled_from([0, 0, 0, 1, 124, 125, 137, 143]),
        OUTPUTS,
        memory=st.sampled_from(["", "host", "cuda:peermem", "cuda:dmabuf"]),
    ),
)


@given(RUNS, RUNS)
def test_any_output_is_a_usable_sample_or_a_reason(client: Run | None, server: Run | None) -> None:
    sample, reason = reading(client, server, 65536)
    assert (sample is None) == bool(reason)
    if sample is not None:
        assert client is not None and server is not None and client.rc == server.rc == 0
        assert sample.size == 65536 and sample.iterations > 0 and math.isfinite(sample.value) and sample.value > 0
