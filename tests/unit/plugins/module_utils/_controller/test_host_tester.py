"""Texts for the tester of a host, and why there is no log; the commands run in tests/unit/roles/test_hosts_start.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import host_tester


def test_what_the_tester_reads() -> None:
    rails = [{"name": "rail0", "netdev": "eth0"}, {"name": "rail1", "netdev": "eth1"}]
    assert host_tester.rails_text(rails) == "rail rail0 eth0\nrail rail1 eth1"
    assert host_tester.batch_text(3, 16, ["0 rail0 client", "END 1"]) == "BATCH 3 0 16\n0 rail0 client\nEND 1"


def test_a_mark_is_valid_for_two_tasks_on_all_hosts() -> None:
    assert host_tester.hold(120, 200) == 500


def test_no_value_is_left_out_of_a_command() -> None:
    tester = host_tester.Tester("/run/g/tester", "unit", "r1")
    texts = [
        *host_tester.prepare(tester, "rail", 9, now=1.5, continued=""), *host_tester.deliver(tester, 9, 1.5),
        host_tester.start(tester, 1, 60, begin=20.5, now=1.5, hold_for=9), host_tester.collect(tester, 1, 2),
        host_tester.find(tester, 1, True, most=100), host_tester.remove(tester),
    ]  # fmt: skip
    assert [text for text in texts if "@" in text] == []
    assert "RuntimeMaxSec=139 " in texts[-4] and "-le 270336 ]" in texts[-3]


@pytest.mark.parametrize(("deliveries", "seconds"), [
    ([], 15),
    ([{"skipped": True}], 15),
    ([{"began": 10.0, "ended": 24.0, "delivered": True}], 15),
    ([{"began": 12.0, "ended": 40.5, "delivered": True}, {"skipped": True},
      {"began": 10.0, "ended": 11.0, "delivered": True}], 31),
    # The last one did not answer: nobody was behind it.
    ([{"began": 10.0, "ended": 30.0, "delivered": True}, {"began": 29.0, "ended": 149.0, "delivered": False}], 20),
    # One that did not answer delayed another.
    ([{"began": 10.0, "ended": 130.0, "delivered": False}, {"began": 130.0, "ended": 131.0, "delivered": True}], 121),
    ([{"began": 10.0, "ended": 130.0, "delivered": False}], 15),
])  # fmt: skip
def test_the_first_round_waits_for_all_starts(deliveries: list[dict[str, Any]], seconds: int) -> None:
    assert host_tester.lead(15, deliveries) == seconds


@pytest.mark.parametrize(("started", "ended", "fetched", "why"), [
    ("late", {"rc": 0, "stdout": "", "stderr": ""}, {"msg": "no file"}, "late"),
    ("", {"rc": 75, "stdout": "lost\n", "stderr": "e\n"}, {}, "e\nlost\n"),
    ("", {"rc": 0}, {"msg": "no file"}, "no file"),
    ("", {"msg": "no answer within 3 s"}, {}, "no answer within 3 s"),
    ("", {"rc": 0}, {}, "no answer in time"),
    ("x" * 400, {}, {}, "x" * 297 + "..."),
])  # fmt: skip
def test_why_there_is_no_log(started: str, ended: dict[str, Any], fetched: dict[str, Any], why: str) -> None:
    assert host_tester.why_no_log(started, ended, fetched) == why


def test_why_a_host_is_not_prepared() -> None:
    assert host_tester.why_unstarted({"rc": 75, "stderr": "in use", "msg": "non-zero return code"}) == "in use"
    assert host_tester.why_unstarted({"msg": "no answer"}) == "no answer"
    assert host_tester.why_unstarted({}) == ""
