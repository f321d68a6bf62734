"""Addresses that two hosts have, and those that nobody planned."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support import tester_logs
from tests.unit.support.tester_logs import ROW, frame

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis import duplicates, follow_up
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step, step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import (
    Endpoint,
    Evidence,
    Pass,
)

HOSTS = ["lab-1", "lab-2", "lab-3"]


def plan() -> dict[str, Any]:
    made = tester_logs.plan(HOSTS, ["rail0"], retries=1)
    made["rails"][0]["subnet"] = "10.0.0.0/24"
    hosts = {name: {"rails": [{"rail": "rail0", "address": f"10.0.0.{name[-1]}/24"}]} for name in HOSTS}
    return {**made, "hosts": hosts}


def described(name: str, *more: str, own: str = "") -> str:
    own = own or f"10.0.0.{name[-1]}"
    rail = f"rail0 device=mlx5_0 port=1 netdev=rail0 gid=3 address={own} mtu=4096 cpus=0"
    addresses = " ".join(sorted([own, *more]))
    return tester_logs.described([f'{rail} addresses="{addresses}"'], "perftest=6.24 control=192.0.2.1")


def measured(
    extra: dict[str, tuple[str, ...]], bad: set[str], where: str = "host", own: dict[str, str] | None = None
) -> Step:
    """The last step when tests with the hosts of ``bad`` fail. ``own``: other addresses than those of the plan."""
    used = {f"10.0.0.{name[-1]}": name for name in HOSTS}
    used.update({address: name for name, address in (own or {}).items()})
    texts = {name: described(name, *extra.get(name, ()), own=(own or {}).get(name, "")) for name in HOSTS}
    passes: list[Pass] = []
    while True:
        found = step(plan(), where, Evidence(texts, {}, tuple(passes)))
        if found.done:
            return found
        logs = {}
        for name, lines in found.lines.items():
            out = []
            for line in lines[:-1]:
                hit = bad & {name, used[line.split()[3]]}
                rc, text = (1, "Couldn't connect to 10.0.0.3:18500") if hit else (0, ROW % "97.9")
                out.append(frame(line, rc, text, "seconds=2 late=0.00 ran=1"))
            logs[name] = tester_logs.log(found.number, lines, out)
        passes.append(Pass(logs, {}))


def test_a_secondary_duplicate_address_does_not_explain_tests_with_another_one() -> None:
    """lab-2 has lab-3's address besides its own; its tests with lab-1 fail for another reason."""
    found = measured({"lab-2": ("10.0.0.3",)}, {"lab-2"})
    told = [(one["kind"], one["host"], one["failed"]) for one in found.summary["diagnoses"]]
    assert ("address", "lab-2", 2) in told and any(kind != "address" and failed == 2 for kind, _host, failed in told)


def test_a_duplicate_address_that_no_test_uses_is_a_warning() -> None:
    found = measured({"lab-1": ("10.0.0.3",), "lab-2": ("10.0.0.3", "10.0.0.9"), "lab-3": ("10.0.0.9",)}, {"lab-3"})
    assert [one["text"][:33] for one in found.summary["diagnoses"]] == ["rail0: duplicate address 10.0.0.3"]
    assert any("duplicate address 10.0.0.9 on lab-2 and lab-3" in text for text in found.warnings)


@pytest.mark.parametrize("where", ["host", "pod"])
def test_an_address_of_two_hosts_is_named_as_such(where: str) -> None:
    found = measured({"lab-2": ("10.0.0.3",)}, {"lab-3"}, where)
    (diagnosis,) = found.summary["diagnoses"]
    assert [diagnosis[key] for key in ("kind", "rail", "host", "peer", "confidence", "failed")] == [
        "address",
        "rail0",
        "lab-2",
        "lab-3",
        "confirmed",
        4,
    ]
    action = "lab-2" if where == "host" else "all but one of them"
    assert diagnosis["text"] == (
        f"rail0: duplicate address 10.0.0.3 on lab-2 and lab-3. Remove it from {action}; 4 tests with these hosts did "
        "not pass"
    )
    assert found.warnings == []


def test_a_pod_with_the_planned_address_of_another_host_is_named_as_such() -> None:
    made = {
        name: Endpoint({"rail0": {"address": f"10.0.0.{last}"}}, {}) for name, last in zip(HOSTS, ("101", "1", "3"))
    }
    (found,) = duplicates.found_twice(plan(), "pod", made)
    assert found["hosts"] == ["lab-2", "lab-1"]
    assert found["text"] == (
        "rail0: duplicate address 10.0.0.1 on the pod of lab-2 and on host lab-1. Exclude the addresses of hosts from "
        "the network of the pods"
    )
    last = measured({}, {"lab-2"}, "pod", {"lab-2": "10.0.0.1", "lab-1": "10.0.0.101"})
    assert [(one["kind"], one["host"], one["peer"], one["confidence"]) for one in last.summary["diagnoses"]] == [
        ("address", "lab-2", "lab-1", "confirmed")
    ]
    assert last.summary["diagnoses"][0]["evidence"] == [
        "the tester in the pod of lab-2 reports 10.0.0.1 on rail0, which the plan assigns to lab-1"
    ]


def test_a_duplicate_address_whose_tests_pass_is_a_warning() -> None:
    found = measured({"lab-2": ("10.0.0.3",)}, set())
    assert found.summary["verdict"] == "pass"
    assert found.warnings == ["rail0: duplicate address 10.0.0.3 on lab-2 and lab-3. Remove it from lab-2"]


def test_an_unplanned_address_is_a_warning() -> None:
    found = measured({"lab-2": ("10.0.0.77",)}, set())
    assert found.warnings == [
        "lab-2 rail0: unplanned address 10.0.0.77; the plan has 10.0.0.2. Remove it from the port"
    ]


def test_what_no_duplicate_explains_is_blamed_as_before() -> None:
    results = measured({}, {"lab-3"}).results
    assert duplicates.split(results) == (results, [])
    assert [one.kind for one in follow_up.diagnose(results)] == ["port"]


def test_an_older_tester_reports_one_address() -> None:
    made = {name: Endpoint({"rail0": {"address": "10.0.0.2"}}, {}) for name in HOSTS[:2]}
    (found,) = duplicates.found_twice(plan(), "host", made)
    assert (found["hosts"], found["address"]) == (["lab-1", "lab-2"], "10.0.0.2")
