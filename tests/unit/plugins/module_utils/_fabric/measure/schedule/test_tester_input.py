"""Arguments of perftest, ports and lines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import (
    Measurement,
    planned,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.tester_input import (
    lines,
    message_size,
    perftest_args,
    port,
)

TESTS = {"duration": 10, "size": 65536, "queue_pairs": 4, "tx_depth": 128, "mtu": None, "port_base": 18500}
BASIC = "-F --report_gbits -c RC -q 4 -s 65536 -t 128 -D 10 -f 2"


def names(count: int) -> list[str]:
    return [f"h{number}" for number in range(count)]


def every_address(test: Measurement) -> tuple[str, str]:
    return f"{test.client}.{test.rail}", f"{test.server}.{test.server_rail}"


def of_two(test: Measurement) -> tuple[str, str]:
    known = {"a": "10.0.0.1", "b": "10.0.0.2"}
    return known[test.client], known[test.server]


@pytest.mark.parametrize(
    ("change", "kind", "expected"),
    [
        ({}, "write_bw", BASIC),
        ({"duration": 4}, "write_bw", "-F --report_gbits -c RC -q 4 -s 65536 -t 128 -D 4"),
        ({"mtu": 4096}, "write_bw", f"{BASIC} -m 4096"),
        ({"directions": "together"}, "read_bw", f"{BASIC} -b"),
        ({"rdma_cm": True}, "write_bw", f"{BASIC} -R"),
        ({"inline": 0}, "write_bw", f"{BASIC} -I 0"),
        ({"traffic_class": 104}, "write_bw", f"{BASIC} --tclass=104"),
        ({"traffic_class": 106, "rdma_cm": True}, "write_bw", f"{BASIC} -R -T 106"),
        ({"hugepages": True}, "write_bw", f"{BASIC} --use_hugepages"),
        ({}, "write_lat", "-F -c RC -s 2 -n 10000"),
        (
            {"latency_size": 8, "latency_iterations": 500, "traffic_class": 0},
            "send_lat",
            "-F -c RC -s 8 -n 500 --tclass=0",
        ),
    ],
)
def test_perftest_args(change: dict[str, Any], kind: str, expected: str) -> None:
    assert perftest_args({**TESTS, **change}, kind) == expected


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        # The order counts: perftest refuses DMA-BUF before the GPU.
        ("cuda:dmabuf", f"{BASIC} --use_cuda_bus_id=0000:1b:00.0 --use_cuda_dmabuf"),
        ("cuda:peermem", f"{BASIC} --use_cuda_bus_id=0000:1b:00.0"),
        ("cuda:data_direct", f"{BASIC} --use_cuda_bus_id=0000:1b:00.0 --use_cuda_dmabuf --use_data_direct"),
    ],
)
def test_gpu_memory(memory: str, expected: str) -> None:
    assert perftest_args({**TESTS, "memory": memory}, gpu="0000:1b:00.0") == expected


@pytest.mark.parametrize(
    ("change", "kind", "size", "expected"),
    [
        ({}, "write_bw", 0, 65536),
        ({"sizes": [4096]}, "write_bw", 0, 4096),
        ({"sizes": [4096, 1 << 20]}, "write_bw", 1 << 20, 1 << 20),
        ({"sizes": [4096]}, "send_lat", 0, 2),
        ({"memory": "cuda:dmabuf"}, "send_lat", 0, 64),
        ({"memory": "cuda:dmabuf", "latency_size": 8}, "send_lat", 0, 8),
    ],
)
def test_message_size(change: dict[str, Any], kind: str, size: int, expected: int) -> None:
    assert message_size({**TESTS, **change}, kind, size) == expected


def test_ports_differ_between_rails_and_neighbouring_rounds() -> None:
    rails = ["r0", "r1", "r2"]
    ports = [port(18500, rails, number, rail=rail) for number in range(8) for rail in rails]
    assert ports == list(range(18500, 18524))
    assert port(18500, rails, 8, rail="r0") == 18500
    assert port(18500, rails, 1, rail="r0", lane=1, lanes=2) == 18500 + 9


@pytest.mark.parametrize(("rdma_cm", "expected"), [(False, "-R -T 106"), (True, "--tclass=106")])
def test_the_other_way_keeps_the_traffic_class(rdma_cm: bool, expected: str) -> None:
    tests = {**TESTS, "traffic_class": 106, "rdma_cm": rdma_cm, "directions": "one"}
    rounds = planned(["a", "b"], ["r0"], tests)
    found = lines(rounds, ["r0"], tests, addresses=of_two, swapped=[test for round_ in rounds for test in round_])
    assert [own[0].partition(BASIC)[2].strip() for own in found.values()] == [expected, expected]


def test_lines_of_both_sides_agree() -> None:
    rounds = planned(["a", "b"], ["r0"], TESTS)
    assert lines(rounds, ["r0"], TESTS, addresses=of_two) == {
        "a": [f"0 r0 client 10.0.0.2 18500 write_bw {BASIC}", f"1 r0 server 10.0.0.2 18501 write_bw {BASIC}", "END 2"],
        "b": [f"0 r0 server 10.0.0.1 18500 write_bw {BASIC}", f"1 r0 client 10.0.0.1 18501 write_bw {BASIC}", "END 2"],
    }


def test_each_side_uses_the_gpu_of_its_own_rail() -> None:
    tests = {**TESTS, "memory": "cuda:peermem", "directions": "one"}
    gpus = {("a", "r0"): {"bdf": "0000:1b:00.0"}, ("b", "r0"): {"bdf": "0000:43:00.0"}}
    made = lines(planned(["a", "b"], ["r0"], tests), ["r0"], tests, addresses=every_address, gpus=gpus)
    assert made["a"][0].endswith("--use_cuda_bus_id=0000:1b:00.0")
    assert made["b"][0].endswith("--use_cuda_bus_id=0000:43:00.0")


def test_inside_a_host_each_side_names_its_own_rail_and_the_address_of_the_other() -> None:
    tests = {**TESTS, "mode": "loopback", "directions": "one"}
    made = lines(planned(["a"], ["r0", "r1"], tests), ["r0", "r1"], tests, addresses=every_address)
    assert made == {
        "a": [f"0 r0 client a.r1 18500 write_bw {BASIC}", f"0 r1 server a.r0 18500 write_bw {BASIC}", "END 2"]
    }


MODES: list[dict[str, Any]] = [
    {"mode": "all_pairs"},
    {"mode": "ring"},
    {"mode": "sampled"},
    {"mode": "incast", "fan": 3},
    {"mode": "one_to_many", "fan": 4},
    {"mode": "loopback"},
    {"mode": "ring", "cross_rail": True},
    {"mode": "all_pairs", "rails_at_once": False},
]


@given(st.integers(3, 14), st.integers(2, 5), st.sampled_from(MODES))
@settings(max_examples=80, deadline=None)
def test_no_port_is_used_twice_on_a_host_in_a_round_and_both_sides_agree(
    hosts: int, rails: int, mode: dict[str, Any]
) -> None:
    rail_names = [f"r{number}" for number in range(rails)]
    tests = {**TESTS, **mode}
    made = lines(planned(names(hosts), rail_names, tests), rail_names, tests, addresses=every_address)
    listening: set[tuple[str, str, str]] = set()
    frames: set[tuple[str, str, str, str]] = set()
    asked = []
    for own, told in made.items():
        assert told[-1] == f"END {len(told) - 1}"
        for line in told[:-1]:
            number, rail, role, peer, at = line.split()[:5]
            # What tells the frames of an endpoint apart.
            assert (own, number, rail, peer) not in frames
            frames.add((own, number, rail, peer))
            if role == "server":
                assert (own, number, at) not in listening
                listening.add((own, number, at))
            else:
                asked.append((peer.split(".")[0], number, at))
    assert sorted(asked) == sorted(listening)
