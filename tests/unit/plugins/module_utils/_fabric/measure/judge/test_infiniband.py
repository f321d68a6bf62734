"""Steps on rails of InfiniBand, with logs as testers write them. Milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import pytest
from tests.unit.support import tester_logs
from tests.unit.support.tester_logs import ROW, frame

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import complete
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.earlier_report import EarlierReport
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step, step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import subject

HOSTS = ["gpu-1", "gpu-2"]
FIVE = [f"gpu-{number}" for number in range(1, 6)]
UNCONFIGURED = (
    "no subnet manager has configured mlx5_0/1 (rail0): its state is INIT and its LID 0x0. Start the subnet manager of"
    " the fabric, or check in its log why it does not activate the port"
)
# What perftest 25.01 prints where the port demands a GRH.
REFUSED = "Failed to modify QP 122273 to RTR\n Unable to Connect the HCA's through the link"


def plan(key: str = "", hosts: Sequence[str] = HOSTS, **tests: Any) -> dict[str, Any]:
    made = tester_logs.plan(hosts, ["rail0"], **tests)
    made["rails"][0].update(link_layer="infiniband", mtu=4092, **({"pkey": {"host": key}} if key else {}))
    return made


def described(name: str, **change: str) -> str:
    port = {
        "address": f"10.0.0.{name[-1]}",
        "rate": '"100 Gb/sec (4X EDR)"',
        "prefix": "fe80:0000:0000:0000",
        "pkeys": '"0:0xffff 1:0x8001"' if name == "gpu-1" else '"0:0xffff 2:0x8001"',
        "vf": "no",
        **change,
    }
    words = " ".join(f"{key}={value}" for key, value in port.items())
    line = f"rail0 device=mlx5_0 port=1 netdev=rail0 gid=0 gid_type=IB mtu=4096 numa=0 cpus=- {words}"
    if "error" in change:
        line = f'rail0 error="{change["error"]}"'
    return tester_logs.described([line], f"perftest=6.24 control=192.0.2.{name[-1]}")


def first(ports: Mapping[str, Mapping[str, str]] | None = None, key: str = "", **tests: Any) -> Step:
    texts = {name: described(name, **(ports or {}).get(name, {})) for name in HOSTS}
    return step(plan(key, **tests), "host", Evidence(texts, {}))


def ends(found: Step) -> dict[str, str]:
    """The line of the first round by host, without round and rail."""
    return {name: " ".join(lines[0].split()[2:]) for name, lines in found.lines.items()}


USUAL = "18500 write_bw -F --report_gbits -c RC -q 4 -s 65536 -t 128 -D 10 -f 2"


@pytest.mark.parametrize(
    ("ports", "key", "tests", "client", "server"),
    [
        ({}, "", {}, "", ""),
        # Each end has the partition at another index.
        ({}, "0x8001", {"service_level": 2}, " --pkey_index=1 -S 2", " --pkey_index=2 -S 2"),
        ({"gpu-2": {"vf": "yes"}}, "", {}, " -x 0", " -x 0"),
        ({"gpu-2": {"prefix": "fec0:0000:0000:0001"}}, "0x8001", {}, " -x 0 --pkey_index=1", " -x 0 --pkey_index=2"),
        ({"gpu-2": {"vf": "yes"}}, "0x8001", {"rdma_cm": True}, " -R", " -R"),
    ],
)
def test_options_of_both_ends(
    ports: dict[str, dict[str, str]], key: str, tests: dict[str, Any], client: str, server: str
) -> None:
    assert ends(first(ports, key, **tests)) == {
        "gpu-1": f"client 10.0.0.2 {USUAL}{client}",
        "gpu-2": f"server 10.0.0.1 {USUAL}{server}",
    }


def test_where_a_port_has_no_address_both_sides_meet_on_the_management_network() -> None:
    assert ends(first({"gpu-2": {"address": "-"}})) == {
        "gpu-1": f"client 192.0.2.2 {USUAL}",
        "gpu-2": f"server 192.0.2.1 {USUAL}",
    }


def test_a_port_without_an_address_changes_only_its_own_tests() -> None:
    seen: list[str] = []

    def answer(line: str) -> tuple[int, str]:
        seen.append(line.split()[3])
        return 0, ROW % "99.2"

    found = outcome(answer, {"gpu-4": {"address": "-"}}, hosts=FIVE)
    assert {one["verdict"] for one in found.results} == {"pass"}
    meets = sum("gpu-4" in (one["client"], one["server"]) for one in found.results)
    # Both sides of each test that has gpu-4 in it.
    assert sum(address.startswith("192.0.2.") for address in seen) == 2 * meets
    assert {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.5"} <= set(seen) and "-" not in seen


def test_rdma_cm_measures_all_ports_but_the_one_without_an_address() -> None:
    def answer(line: str) -> tuple[int, str]:
        return (1, "rdma_resolve_addr failed") if " 192.0.2." in line else (0, ROW % "99.2")

    found = outcome(answer, {"gpu-4": {"address": "-"}}, hosts=FIVE, rdma_cm=True)
    assert {"gpu-4" in (one["client"], one["server"]) for one in found.results if one["verdict"] == "no_data"} == {True}
    assert {"gpu-4" in (one["client"], one["server"]) for one in found.results if one["verdict"] == "pass"} == {False}
    (diagnosis,) = found.summary["diagnoses"]
    assert (diagnosis["kind"], diagnosis["host"]) == ("configuration", "gpu-4")


def test_a_peer_that_cannot_be_reached_from_a_port_without_an_address() -> None:
    texts = {"gpu-1": described("gpu-1", address="-"), "gpu-2": described("gpu-2").replace("control=192.0.2.2", "")}
    found = step(plan(directions="one"), "host", Evidence(texts, {}))
    assert [one["reason"] for one in found.results] == [
        "gpu-1 rail0: rail0 has no IPv4 address, as gpu-2 rail0 needs; gpu-2 rail0: its tester found no IPv4 address of"
        " the default route, which tests with gpu-1 rail0 need, a port without an IPv4 address"
    ]


def outcome(
    answer: Callable[..., tuple[int, str]],
    ports: Any = None,
    key: str = "",
    hosts: Sequence[str] = HOSTS,
    **tests: Any,
) -> Step:
    texts = {name: described(name, **(ports or {}).get(name, {})) for name in hosts}
    passes: list[Pass] = []
    by_host = len(signature(answer).parameters) > 1
    for _turn in range(9):
        found = step(plan(key, hosts, **tests), "host", Evidence(texts, {}, tuple(passes)))
        if found.done:
            return found
        logs = {}
        for name, lines in found.lines.items():
            told = [answer(one, name) if by_host else answer(one) for one in lines[:-1]]
            frames = [frame(one, *own, header=f"seconds=2 exchange={_way(one)}") for one, own in zip(lines, told)]
            logs[name] = tester_logs.log(found.number, lines, frames)
        passes.append(Pass(logs, {}))
    raise AssertionError("the judge never said that it was done")


def _way(line: str) -> str:
    return "cm" if " -R" in line else "plain"


def test_ports_that_demand_a_grh_get_one_after_two_passes_of_two_hosts() -> None:
    found = outcome(lambda line: (0, ROW % "97.0") if " -x 0" in line else (1, REFUSED))
    assert {one["verdict"] for one in found.results} == {"pass"}
    assert [len(one["passes"]) for one in found.results] == [3, 3]
    assert not found.unsteady
    assert sorted(found.warnings) == [
        f"{one} to {other} rail0 write_bw: measured with a GRH, since {one} rail0 refused all 4 queue pairs without one"
        for one, other in (HOSTS, HOSTS[::-1])
    ]


def test_one_of_five_ports_demands_a_grh() -> None:
    """Its own tester prints that, and those of its partners lose the connection: only its tests have a GRH."""
    lines: list[tuple[str, str]] = []

    def answer(line: str, name: str) -> tuple[int, str]:
        lines.append((name, line))
        if "10.0.0.3" not in line and name != "gpu-3":
            return 0, ROW % "99.2"
        if " -x 0" in line:
            return 0, ROW % "98.3"
        return (1, REFUSED) if name == "gpu-3" else (1, "Couldn't read remote address")

    found = outcome(answer, hosts=FIVE)
    assert {one["verdict"] for one in found.results} == {"pass"} and not found.unsteady
    assert {name == "gpu-3" or "10.0.0.3" in line for name, line in lines if " -x 0" in line} == {True}
    low = {round(one["expected"], 1) for one in found.results if "gpu-3" in (one["client"], one["server"])}
    assert low == {93.5}
    assert {round(one["expected"], 1) for one in found.results} == {93.5, 94.4}
    assert len(found.warnings) == 8
    assert {text.partition("since ")[2] for text in found.warnings} == {
        "gpu-3 rail0 refused all 8 queue pairs without one"
    }


@pytest.mark.parametrize("refusals", [1, 2])
def test_a_port_without_a_grh_that_refuses_a_queue_pair_only_sometimes_is_unsteady(refusals: int) -> None:
    """It has accepted one without a GRH, so it does not demand one: no GRH, and the refusals are faults."""
    left, lines = refusals, []

    def answer(line: str, name: str) -> tuple[int, str]:
        nonlocal left
        lines.append(line)
        if left and name == "gpu-1" and " client " in line:
            left -= 1
            return 1, REFUSED
        return 0, ROW % "99.2"

    found = outcome(answer, hosts=FIVE)
    assert {one["verdict"] for one in found.results} == {"pass"}
    assert not [line for line in lines if " -x 0" in line] and not found.warnings
    assert {round(one["expected"], 1) for one in found.results} == {94.4}
    assert sum(one["count"] for one in found.unsteady) == refusals


def test_a_port_refuses_now_and_then_what_it_accepts_later() -> None:
    """The port of a VF has a GRH from the first attempt: a refusal is an intermittent fault."""
    seen: dict[str, int] = {}

    def answer(line: str) -> tuple[int, str]:
        seen[line] = seen.get(line, 0) + 1
        return (1, REFUSED) if len(seen) == 1 and seen[line] == 1 else (0, ROW % "97.0")

    found = outcome(answer, {"gpu-1": {"vf": "yes"}})
    assert {one["verdict"] for one in found.results} == {"pass"}
    assert [one["count"] for one in found.unsteady] == [1]
    assert not found.warnings


@pytest.mark.parametrize("mtu", [512, 1024])
def test_the_grh_that_a_port_demanded_lowers_what_is_expected(mtu: int) -> None:
    reached = 100 * mtu / (mtu + 26 + 40) * 0.98
    found = outcome(lambda line: (0, ROW % reached) if " -x 0" in line else (1, REFUSED), mtu=mtu)
    assert {one["verdict"] for one in found.results} == {"pass"}
    vf = outcome(lambda _line: (0, ROW % reached), {"gpu-1": {"vf": "yes"}}, mtu=mtu)
    assert [one["expected"] for one in found.results] == [one["expected"] for one in vf.results]


def test_a_rail_passes_at_the_rate_of_infiniband() -> None:
    # The ceiling at 4096 bytes is 99.4, that with a GRH 98.4 of 100 Gb/s.
    (one, _other) = outcome(lambda _line: (0, ROW % "99.2")).results
    assert (one["verdict"], round(one["expected"], 1)) == ("pass", 94.4)
    (one, _other) = outcome(lambda _line: (0, ROW % "98.3"), {"gpu-1": {"vf": "yes"}}).results
    assert (one["verdict"], round(one["expected"], 1)) == ("pass", 93.5)


@pytest.mark.parametrize(
    ("ports", "key", "evidence"),
    [
        ({"gpu-2": {"error": UNCONFIGURED}}, "", f"gpu-2 rail0: {UNCONFIGURED}"),
        (
            {"gpu-2": {"pkeys": '"0:0xffff"'}},
            "0x8001",
            "gpu-2 rail0: mlx5_0 is not in the partition 0x0001, it is in 0xffff. Let the administrator of the subnet"
            " manager add the port to the partition",
        ),
        (
            {name: {"pkeys": '"0:0x7fff"'} for name in HOSTS},
            "",
            "gpu-1 rail0: it is a limited member of the partition 0x7fff, and so is gpu-2 rail0. Limited members do not"
            " reach each other. Let the administrator of the subnet manager make them full members",
        ),
        (
            {"gpu-1": {"address": "-"}, "gpu-2": {"address": "-"}},
            "rdma_cm",
            "gpu-1 rail0: rail0 has no IPv4 address, which rdma_cm needs",
        ),
    ],
)
def test_what_is_missing_is_a_diagnosis_of_the_configuration(ports: Any, key: str, evidence: str) -> None:
    tests = {"rdma_cm": True} if key == "rdma_cm" else {}
    found = outcome(lambda _line: (0, ROW % "99.2"), ports, "" if tests else key, **tests)
    assert {one["verdict"] for one in found.results} == {"no_data"}
    (diagnosis,) = found.summary["diagnoses"]
    # What both of two hosts lack can have a cause that only more hosts show.
    one_host = diagnosis["host"] == "gpu-2"
    assert (diagnosis["kind"], diagnosis["confidence"]) == (
        "configuration",
        "confirmed" if one_host else "suspected",
    )
    assert f"Correct the configuration ({evidence}" in diagnosis["text"]


@pytest.mark.parametrize(
    ("ports", "hosts"),
    [
        ({"gpu-3": '"0:0x8123"'}, ["gpu-3"]),
        ({"gpu-3": '"0:0x7fff"', "gpu-4": '"0:0x7fff"'}, ["gpu-3", "gpu-4"]),
    ],
)
def test_ports_apart_by_their_partitions_are_no_faulty_ports(ports: dict[str, str], hosts: list[str]) -> None:
    found = outcome(
        lambda _line: (0, ROW % "99.2"), {name: {"pkeys": keys} for name, keys in ports.items()}, hosts=FIVE
    )
    diagnoses = found.summary["diagnoses"]
    assert {one["kind"] for one in diagnoses} == {"configuration"}
    assert {name for one in diagnoses for name in (one["host"], one["peer"]) if name} == set(hosts)


def test_results_of_another_partition_are_not_taken_over() -> None:
    port = {"kind": "pci", "pci": "0000:01:00.0", "firmware": "1"}
    hosts = {name: {"machine_id": name, "drivers": {"mlx5_core": "1"}, "rails": {"rail0": port}} for name in HOSTS}
    texts = {name: described(name) for name in HOSTS}
    passed = outcome(lambda _line: (0, ROW % "99.2")).results
    rows = {("host", subject(one)): one for one in passed}
    ports = step(plan(), "host", Evidence(texts, {}), hosts=hosts).endpoints["hosts"]
    made = {**complete(plan()["tests"]), "mode": "pairs"}
    earlier = EarlierReport("r", "pass", rows, {"id": "R"}, tests=made, endpoints={"host": ports})
    assert step(plan(), "host", Evidence(texts, {}), earlier=earlier, hosts=hosts).done
    found = step(plan("0x8001"), "host", Evidence(texts, {}), earlier=earlier, hosts=hosts)
    assert not found.done
    assert "gpu-1 rail0: pkey was that of the port, now 0x0001" in found.warnings[0]
    assert found.endpoints["hosts"]["gpu-1"]["rail0"]["pkey"] == "0x0001"


def test_the_switch_port_of_a_bad_port_is_named() -> None:
    made = plan()
    made["switches"] = {"rail0": {"gpu-1": {"switch": "leaf1", "port": "7"}, "gpu-2": {"switch": "leaf1", "port": "8"}}}
    dead = "port 1 of mlx5_0 (rail0) has no link, its physical state is Polling: cable, transceiver or switch port"
    texts = {"gpu-1": described("gpu-1"), "gpu-2": described("gpu-2", error=dead)}
    (diagnosis,) = step(made, "host", Evidence(texts, {})).summary["diagnoses"]
    assert diagnosis["kind"] == "port"
    assert any("gpu-2 rail0 is on leaf1 port 8" in one for one in diagnosis["evidence"])


def test_the_commands_reproduce_the_options() -> None:
    found = outcome(lambda _line: (0, ROW % "20"), {"gpu-2": {"address": "-", "vf": "yes"}}, "0x8001")
    server, client = found.summary["diagnoses"][0]["reproduce"]
    assert " -d mlx5_0 -i 1 -x 0 --pkey_index=" in server and server.startswith("ssh gpu-")
    assert client.split()[-1].startswith("192.0.2.")


def test_counters_that_count_no_further_are_named() -> None:
    found = first({"gpu-2": {"full": "symbol_error,link_downed"}})
    assert found.warnings == [
        "gpu-2 rail0: counters at their largest value, which do not show new errors: symbol_error,link_downed. Reset"
        " them with perfquery -R -C mlx5_0 -P 1"
    ]


def test_an_mtu_below_the_plan_is_that_of_the_link() -> None:
    texts = {name: described(name).replace("mtu=4096", "mtu=2048" if name == "gpu-2" else "mtu=4096") for name in HOSTS}
    (link,) = step(plan(), "host", Evidence(texts, {})).links
    assert link["text"] == (
        "gpu-2 rail0: RDMA MTU 2048, expected 4096: check the MTU that the port (max_mtu of ibv_devinfo) and"
        " its switch port support"
    )


LMC = {name: {"lid": f"0x{number * 16:x}", "lmc": "2"} for number, name in enumerate(FIVE, 1)}


def offset_of(line: str) -> int:
    """By how much the LID of the peer is larger than its first one."""
    words = [word for word in line.split() if word.startswith("--dlid=")]
    return int(words[0].partition("=")[2]) % 16 if words else 0


def test_all_lids_of_ports_are_used() -> None:
    used: dict[int, int] = {}

    def answer(line: str) -> tuple[int, str]:
        used[offset_of(line)] = used.get(offset_of(line), 0) + 1
        return 0, ROW % "99.2"

    found = outcome(answer, LMC, hosts=FIVE)
    assert {one["verdict"] for one in found.results} == {"pass"} and not found.warnings
    assert set(used) == {0, 1, 2, 3}


def test_ports_that_drop_packets_by_other_lids_are_no_fault() -> None:
    def answer(line: str) -> tuple[int, str]:
        return (0, ROW % "99.2") if not offset_of(line) else (1, "Completion with error\n Failed status 12: wr_id 0")

    found = outcome(answer, LMC, hosts=FIVE)
    assert {one["verdict"] for one in found.results} == {"pass"}
    assert not found.unsteady and not found.summary["diagnoses"]
    (warning,) = found.warnings
    assert warning.startswith("rail0: no test passed by another LID of its peer than the first one, so only the first")


def test_a_failure_by_another_lid_is_a_fault_where_others_pass_by_one() -> None:
    def answer(line: str) -> tuple[int, str]:
        return (1, "Completion with error\n Failed status 12: wr_id 0") if offset_of(line) == 3 else (0, ROW % "99.2")

    found = outcome(answer, LMC, hosts=FIVE)
    assert not found.warnings
    assert found.unsteady or found.summary["diagnoses"]
