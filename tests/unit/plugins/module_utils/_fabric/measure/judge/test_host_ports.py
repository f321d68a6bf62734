"""Counters that hosts read for tests in pods, by hand. Below a second."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support import tester_logs
from tests.unit.support.tester_logs import ROW, frame

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step, step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass

HOSTS = ["gpu-1", "gpu-2"]
# 97 Gb/s in both directions for 10 s.
SENT = int(97e9 / 8 * 10)
HIDDEN = 'seconds=12 ran=11.5 exchange=plain memory=host\namounts error="the port of net1 is not visible to its tester"'
TRAFFIC = {"rail0": {"traffic_class": 106, "dscp": 26, "priority": 3, "pfc": [3]}}


def reading(uptime: int, **counters: int) -> str:
    lines = "".join(f"{name}: {value}\n" for name, value in counters.items())
    return f"=== gpufabric port rail0 eth0\nuptime: {uptime}\n{lines}"


def run(before: str, after: str, where: str = "pod") -> Step:
    """Both directions between two pods, whose testers do not see the ports, or hosts, whose testers show them."""
    plan = tester_logs.plan(HOSTS, ["rail0"], traffic=TRAFFIC)
    line = "rail0 device=mlx5_0 port=1 netdev=net1 gid=3 address=10.0.0.{} mtu=4096"
    texts = {name: tester_logs.described([line.format(name[-1])], "perftest=6.24") for name in HOSTS}
    ports: tuple[Any, ...] = ({name: before for name in HOSTS}, {name: after for name in HOSTS})
    if where == "host":
        texts, ports = {name: text + before for name, text in texts.items()}, ()
    passes: list[Pass] = []
    for _turn in range(9):
        found = step(plan, where, Evidence(texts, {}, tuple(passes), ports=ports))
        if found.done:
            return found
        logs = {}
        for name, lines in found.lines.items():
            frames = [frame(one, 0, ROW % "97.0", header=HIDDEN) for one in lines[:-1]]
            frames += [after.rstrip()] if where == "host" else []
            logs[name] = tester_logs.log(found.number, lines, frames)
        passes.append(Pass(logs, {}))
    raise AssertionError("the judge never said that it was done")


def test_the_class_of_pods_is_proven_on_their_hosts() -> None:
    found = run(
        reading(100, tx_prio3_bytes=5, rx_prio3_bytes=9, tx_prio0_bytes=7),
        reading(190, tx_prio3_bytes=5 + SENT, rx_prio3_bytes=9 + SENT, tx_prio0_bytes=900),
    )
    assert found.summary["verdict"] == "pass"
    assert found.schedule["traffic"] == ["traffic class proven by counters of its priority at 2 of 2 ports"]
    assert not found.links


def test_packets_of_pods_in_another_priority_and_errors_are_findings() -> None:
    found = run(
        reading(100, tx_prio0_bytes=5, rx_prio0_bytes=9, tx_prio3_bytes=7, rx_prio3_bytes=0, rx_crc_errors_phy=1),
        reading(190, tx_prio0_bytes=SENT, rx_prio0_bytes=SENT, tx_prio3_bytes=7, rx_prio3_bytes=0, rx_crc_errors_phy=4),
    )
    assert [(one["host"], one["kind"]) for one in found.links if one["kind"] == "signal"] == [
        ("gpu-1", "signal"),
        ("gpu-2", "signal"),
    ]
    assert "rx_crc_errors_phy +3" in found.links[-1]["text"]
    assert {(one["host"], one["found"]) for one in found.links if one["kind"] == "class"} == {
        (name, "priority 0") for name in HOSTS
    }


def test_bits_are_those_of_the_time_between_the_readings() -> None:
    """1e-5 of the bits of 23 s of tests, in 230 s: few enough."""
    corrected = int(2e-5 * 100e9 * 20)
    found = run(
        reading(100, tx_prio3_bytes=0, rx_corrected_bits_phy=0),
        reading(330, tx_prio3_bytes=SENT, rx_corrected_bits_phy=corrected),
    )
    assert "fec" not in {one["kind"] for one in found.links}


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        # Not read, a counter that is gone or was cleared, the host rebooted.
        ("", "", "the port of net1 is not visible to its tester"),
        (reading(100, tx_prio3_bytes=5), "", "the port of net1 is not visible to its tester"),
        (
            reading(100, tx_prio3_bytes=5),
            reading(190, rx_prio3_bytes=5),
            "the port of net1 is not visible to its tester",
        ),
        (
            reading(100, tx_prio3_bytes=5),
            reading(190, tx_prio3_bytes=4),
            "the port of net1 is not visible to its tester",
        ),
        (
            reading(100, tx_prio3_bytes=5),
            reading(20, tx_prio3_bytes=SENT),
            "the port of net1 is not visible to its tester",
        ),
        # A driver without counters by priority.
        (reading(100), reading(190), "the port of net1 is not visible to its tester"),
        (
            reading(100) + "unread=ethtool is not installed",
            reading(190) + "unread=ethtool is not installed",
            "on its host, ethtool is not installed",
        ),
    ],
)
def test_what_hosts_do_not_show_is_told(before: str, after: str, why: str) -> None:
    found = run(before, after)
    assert f"traffic class not proven at 2 of 2 ports (gpu-1, gpu-2): {why}" in found.schedule["traffic"]
    assert not found.links


WARM = """Module temperature : 71.00 degrees C
Module temperature high warning threshold : 70.00 degrees C
Module temperature low warning threshold : 0.00 degrees C
"""


def test_transceivers_of_hosts_are_read_with_descriptions_and_logs() -> None:
    found = run(reading(100) + WARM, reading(190) + WARM + "switch 7 0x01 leaf1", where="host")
    assert found.summary["verdict"] == "pass"
    assert [one["text"] for one in found.links] == [
        f"{name} rail0: the transceiver has 71 degrees C, expected at most 70 degrees C (warning threshold of the"
        " module) before and after the tests. Check the airflow at the port and the fans of the host"
        for name in HOSTS
    ]
    assert found.schedule["traffic"][-1] == "transceivers read at 2 of 2 ports"


def test_hosts_that_show_no_port_are_no_finding() -> None:
    found = run("", "", where="host")
    assert not found.links and not [text for text in found.schedule["traffic"] if "transceivers" in text]
