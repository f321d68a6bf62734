"""The mesh before a measurement, on fabrics with faults (support/mesh_world.py). Cost: 3 s."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.support import tester_logs
from tests.unit.support.mesh_world import World

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step, step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass

HOSTS = ["gpu-1", "gpu-2", "gpu-3", "gpu-4"]
RAILS = ["rail0", "rail1"]


def run(world: World, most: int = 9, pause: str = "", **tests: Any) -> tuple[list[Step], Step]:
    """All passes of a run, and its end. All tests of perftest that are played pass."""
    plan = tester_logs.plan(world.hosts, world.rails, **{"mesh": True, **tests})
    described = {host: world.described(host) for host in world.hosts}
    passes: list[Pass] = []
    played = []
    while True:
        found = step(plan, "host", Evidence(described, {}, tuple(passes), pause if len(passes) == most else ""))
        if found.done:
            return played, found
        assert len(played) < most
        played.append(found)
        logs = (
            world.logs(found.number, found.lines)
            if any(" mesh " in line for own in found.lines.values() for line in own)
            else {
                host: tester_logs.log(
                    found.number,
                    own,
                    [tester_logs.frame(line, 0, tester_logs.ROW % "97.9") for line in own[:-1]],
                )
                for host, own in found.lines.items()
            }
        )
        passes.append(Pass(logs, {}))


def meshes(steps: list[Step]) -> list[Step]:
    return [one for one in steps if "mesh" in one.announce]


def failed(end: Step) -> set[tuple[str, str, str]]:
    return {
        (result["rail"], *sorted((result["client"], result["server"])))
        for result in end.results
        if result["verdict"] != "pass"
    }


def test_a_healthy_fabric_costs_one_pass_and_one_line() -> None:
    steps, end = run(World(HOSTS, RAILS))
    (mesh,) = meshes(steps)
    assert steps[0] is mesh
    assert mesh.announce == (
        "pass 1 (mesh: which ports reach each other): 20 contacts in 1 round of 7 s, 7 s; with the measurement and all"
        " retries at worst 10 min 56 s beside the start of each pass; failures add up to 72 rounds to locate faults and"
        " up to 90 rounds (budget quick) for ports that read low intermittently, at worst 1 h 15 min"
    )
    assert mesh.worst == 10 * 60 + 56 + (72 + 90) * 28
    assert end.summary["verdict"] == "pass"
    assert end.warnings == []
    assert end.schedule["text"].endswith("; mesh of pairs of ports: 12 reach each other")
    # What is said before the first pass is what is played.
    assert (mesh.schedule["rounds"], end.schedule["rounds"]) == (7, 7)
    assert mesh.schedule["seconds"] == 7 + 6 * 16
    # The slots of the measurement are not shorter because contacts are.
    assert {one.slot for one in steps[1:2]} == {16}


def test_every_line_is_one_that_a_tester_accepts_and_ports_are_used_once() -> None:
    steps, _end = run(World(HOSTS, RAILS))
    for lines in steps[0].lines.values():
        assert lines[-1] == f"END {len(lines) - 1}"
        used = [(line.split()[0], line.split()[1], line.split()[4]) for line in lines[:-1]]
        assert len(set(used)) == len(used)
        servers = [line.split()[4] for line in lines[:-1] if line.split()[2] == "server"]
        assert len(set(servers)) == len(servers)
    assert steps[0].lines["gpu-1"][0] == "0 rail0 server 10.0.0.2 18500 mesh -s 9000 -m 4096"


def port_cut() -> World:
    return World(HOSTS, RAILS, network={("gpu-2", "rail0"): ""})


def test_a_port_without_a_network_is_diagnosed_and_not_measured() -> None:
    steps, end = run(port_cut())
    assert len(meshes(steps)) == 2
    assert meshes(steps)[1].announce.startswith(
        "pass 2 (again what did not pass in the mesh): 3 contacts in 1 round of 7 s"
    )
    assert failed(end) == {("rail0", "gpu-1", "gpu-2"), ("rail0", "gpu-2", "gpu-3"), ("rail0", "gpu-2", "gpu-4")}
    assert not any(
        line.split()[1] == "rail0" and len(line.split()) > 8
        for one in steps[2:]
        for line in one.lines.get("gpu-2", ())
        if not line.startswith("END")
    )
    (found,) = end.summary["diagnoses"]
    assert (found["kind"], found["host"], found["rail"], found["confidence"]) == ("port", "gpu-2", "rail0", "confirmed")
    assert "(the ports do not reach each other: no answer to ARP)" in found["text"]
    assert end.summary["verdict"] == "no_data"
    assert end.schedule["text"].endswith("; mesh of pairs of ports: 9 reach each other, 3 do not")


FAULTS = {
    "swapped": (
        World(HOSTS, RAILS, network={("gpu-2", "rail0"): "rail1", ("gpu-2", "rail1"): "rail0"}),
        {("port", "gpu-2", "rail0", "confirmed"), ("port", "gpu-2", "rail1", "confirmed")},
        "rail1 answers: exchanged cables of rail0 and rail1",
    ),
    "swapped, with hosts that answer on every port": (
        World(HOSTS, RAILS, network={("gpu-2", "rail0"): "rail1", ("gpu-2", "rail1"): "rail0"}, ignore=False),
        {("port", "gpu-2", "rail0", "confirmed"), ("port", "gpu-2", "rail1", "confirmed")},
        "gpu-2 rail0: its link leads to the network of rail1, where gpu-",
    ),
    "a wrong VLAN": (
        World(HOSTS, RAILS, network={("gpu-3", "rail1"): "rail0"}),
        {("port", "gpu-3", "rail1", "confirmed")},
        "rail0 answers: wrong port of a cable, or a wrong VLAN",
    ),
    "an MTU too small for RDMA": (
        World(HOSTS, RAILS, mtu={"rail1": 1500}),
        {("mtu", None, "rail1", "confirmed")},
        "rail1: small messages pass, large ones do not: check the MTU of each port on the path",
    ),
    "loss in one direction": (
        World(HOSTS, RAILS, deaf={("gpu-4", "rail0")}),
        {("port", "gpu-4", "rail0", "confirmed")},
        "frames from gpu-",
    ),
    "no route": (
        World(HOSTS, RAILS, unrouted={("gpu-1", "rail0")}),
        {("configuration", "gpu-1", "rail0", "confirmed")},
        "gpu-1 rail0: no route to the address of gpu-",
    ),
    "an address that something else answers": (
        World(HOSTS, RAILS, answers={"10.0.0.2": "02:ff:00:00:00:01"}),
        {("port", "gpu-2", "rail0", "confirmed")},
        "the address of gpu-2 rail0 is answered by 02:ff:00:00:00:01, which is not a port of this run: a",
    ),
    "RDMA alone": (
        World(HOSTS, RAILS, rdma={("gpu-2", "rail1")}),
        {("port", "gpu-2", "rail1", "confirmed")},
        "ping passes, an RDMA connection does not pass (Failed status transport retry counter exceeded (12))",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_named_before_the_measurement(case: str) -> None:
    world, expected, text = FAULTS[case]
    steps, end = run(world)
    diagnoses = end.summary["diagnoses"]
    assert {(one["kind"], one["host"], one["rail"], one["confidence"]) for one in diagnoses} == expected
    assert any(text in one["text"] for one in diagnoses), [one["text"] for one in diagnoses]
    # One pass of the mesh, one for what failed, and the trial and the rest of the schedule.
    assert [bool(meshes([one])) for one in steps] == [True, True, False, False][: len(steps)]


def test_a_port_in_its_own_network_is_not_named_as_misplaced_where_rails_share_one() -> None:
    flat = {(host, "rail1"): "rail0" for host in HOSTS}
    _steps, end = run(World(HOSTS, RAILS, network=flat, rdma={("gpu-2", "rail0")}))
    (found,) = end.summary["diagnoses"]
    assert (found["kind"], found["host"], found["rail"]) == ("port", "gpu-2", "rail0")
    assert "ping passes, an RDMA connection does not pass" in found["text"]
    assert "its link leads" not in str(end.results)


@pytest.mark.parametrize("routing", ["none", "between_rails"])
@pytest.mark.parametrize("hosts", [HOSTS[:3], HOSTS])
def test_a_cut_cable_is_no_exchanged_one_where_rails_share_a_network(hosts: list[str], routing: str) -> None:
    flat = {(host, rail): "all" for host in hosts for rail in RAILS}
    _steps, end = run(World(hosts, RAILS, network={**flat, ("gpu-2", "rail0"): ""}), routing=routing)
    (found,) = end.summary["diagnoses"]
    assert (found["kind"], found["host"], found["rail"]) == ("port", "gpu-2", "rail0")
    assert "no answer to ARP" in found["text"]
    assert "exchanged" not in str(end.results) + str(end.summary)


def test_a_deaf_port_is_not_misplaced_where_rails_share_a_network() -> None:
    flat = {(host, rail): "all" for host in HOSTS for rail in RAILS}
    _steps, end = run(World(HOSTS, RAILS, network=flat, deaf={("gpu-2", "rail0")}))
    assert "its link leads" not in str(end.results) + str(end.summary)


def test_two_hosts_with_swapped_cables_blame_neither() -> None:
    world = World(HOSTS[:2], RAILS, network={("gpu-2", "rail0"): "rail1", ("gpu-2", "rail1"): "rail0"})
    _steps, end = run(world)
    (found,) = end.summary["diagnoses"]
    assert (found["kind"], found["host"], found["confidence"]) == ("rail", None, "suspected")
    assert "no answer to ARP, but gpu-1 rail0 reaches gpu-2 rail1: exchanged cables or a wrong VLAN" in found["text"]


@pytest.mark.parametrize(
    ("world", "warnings"),
    [
        # What ibv_rc_pingpong asks for may not pass routers.
        (World(HOSTS, RAILS, routed=True, rdma={("gpu-2", "rail1")}), []),
        (
            World(HOSTS, RAILS, mtu={"rail0": 4200}),
            [
                "rail0: packets of 9000 bytes are lost between gpu-1 and gpu-2, gpu-1 and gpu-3, gpu-1 and gpu-4, gpu-2"
                " and gpu-3 and 2 more, small ones are not. Correct the MTU of the hosts and of the switch ports"
            ],
        ),
        (
            World(HOSTS, RAILS, network={(host, "rail1"): "rail0" for host in HOSTS}),
            [
                "rail0 and rail1 are not isolated: gpu-1 rail0 reaches gpu-2 rail1 and 7 more. Separate their networks,"
                " or set rdma_fabric.routing if rails are to reach each other"
            ],
        ),
    ],
)
def test_what_is_no_failure_is_measured(world: World, warnings: list[str]) -> None:
    steps, end = run(world)
    assert (len(meshes(steps)), end.summary["verdict"]) == (1, "pass")
    assert end.warnings == warnings


def test_where_ping_and_tcp_are_filtered_rdma_is_measured() -> None:
    steps, end = run(World(HOSTS, RAILS, filtered=True))
    # Nothing was answered, so the entries of neighbors may have been stale.
    assert (len(meshes(steps)), end.summary["verdict"], end.warnings) == (2, "pass", [])


@pytest.mark.parametrize(
    ("case", "pairs"), [("a cut cable", 3), ("swapped", 6), ("swapped, with hosts that answer on every port", 6)]
)
def test_entries_of_neighbors_that_are_older_than_a_fault_do_not_hide_it(case: str, pairs: int) -> None:
    world = replace(port_cut() if case == "a cut cable" else FAULTS[case][0], stale=True)
    steps, end = run(world)
    assert (len(meshes(steps)), len(failed(end))) == (2, pairs)
    if case != "a cut cable":
        assert any(FAULTS[case][2] in one["text"] for one in end.summary["diagnoses"])


def test_only_the_second_pass_excludes_what_was_stale_in_the_first() -> None:
    world = World(HOSTS, RAILS, filtered=True, stale=True)
    _steps, end = run(world)
    assert end.summary["verdict"] == "pass"


def test_rails_that_should_reach_each_other_and_do_not() -> None:
    _steps, end = run(World(HOSTS, RAILS), routing="between_rails")
    assert end.warnings == [
        f"no packet from {one} to {other} was answered, and rdma_fabric.routing is between_rails. Check the routes of"
        " the hosts and the routers between the rails"
        for one, other in (("rail0", "rail1"), ("rail1", "rail0"))
    ]


@pytest.mark.parametrize(
    ("programs", "text"),
    [
        (
            (),
            "mesh of pairs of ports: 12 are not known to; not checked: RDMA connections (ibv_rc_pingpong is not"
            " installed) on gpu-1, gpu-2, gpu-3, gpu-4, packets of full size (ping of iputils is not installed) on"
            " gpu-1, gpu-2, gpu-3, gpu-4",
        ),
        (
            ("ping",),
            "mesh of pairs of ports: 12 reach each other; not checked: RDMA connections (ibv_rc_pingpong is not"
            " installed) on gpu-1, gpu-2, gpu-3, gpu-4",
        ),
    ],
)
def test_what_was_not_checked_is_reported(programs: tuple[str, ...], text: str) -> None:
    _steps, end = run(World(HOSTS, RAILS, programs=dict.fromkeys(HOSTS, programs)))
    assert end.schedule["text"].endswith(f"; {text}")
    assert end.summary["verdict"] == "pass"


def test_texts_of_testers_are_cut_and_counted() -> None:
    world = World(HOSTS, RAILS, programs={"gpu-2": ("ping",)})
    plan = tester_logs.plan(HOSTS, RAILS, mesh=True)
    described = {host: world.described(host) for host in HOSTS}
    first = step(plan, "host", Evidence(described, {}))
    logs = world.logs(1, first.lines)
    parts = logs["gpu-2"].split("ibv_rc_pingpong is not installed")
    logs["gpu-2"] = "".join(f"{part}{chr(97 + at) * 500}" for at, part in enumerate(parts[:-1])) + parts[-1]
    text = str(step(plan, "host", Evidence(described, {}, (Pass(logs, {}),), "")).schedule["text"])
    told = text.split("; mesh of ")[1]
    assert f"RDMA connections ({'a' * 80}) on gpu-2, " in told and told.endswith(" on gpu-2 and 2 more")


def test_without_a_program_for_rdma_no_answer_to_arp_is_enough() -> None:
    world = port_cut()
    world.programs = dict.fromkeys(HOSTS, ("ping",))
    _steps, end = run(world)
    assert {(one["kind"], one["host"], one["rail"]) for one in end.summary["diagnoses"]} == {("port", "gpu-2", "rail0")}
    assert len(failed(end)) == 3


def test_a_failure_that_is_seen_once_is_measured() -> None:
    world = port_cut()
    plan = tester_logs.plan(HOSTS, RAILS, mesh=True)
    described = {host: world.described(host) for host in HOSTS}
    first = step(plan, "host", Evidence(described, {}))
    passes = [Pass(world.logs(1, first.lines), {})]
    again = step(plan, "host", Evidence(described, {}, tuple(passes)))
    passes.append(Pass(World(HOSTS, RAILS).logs(2, again.lines), {}))
    third = step(plan, "host", Evidence(described, {}, tuple(passes)))
    assert (again.number, third.number) == (2, 3)
    assert any(line.startswith("0 rail0 ") for line in third.lines["gpu-2"])


def test_what_has_no_valid_record_is_tried_again_and_excludes_nothing() -> None:
    plan = tester_logs.plan(HOSTS, RAILS, mesh=True)
    world = port_cut()
    described = {host: world.described(host) for host in HOSTS}
    passes: list[Pass] = []
    for number in (1, 2, 3):
        found = step(plan, "host", Evidence(described, {}, tuple(passes)))
        assert ("mesh" in found.announce, set(found.lines)) == (number < 3, set(HOSTS))
        if number == 2:
            asked = {(line.split()[1], line.split()[2]) for line in found.lines["gpu-3"][:-1]}
            assert asked == {("rail0", "client"), ("rail1", "client")} | {("rail0", "server"), ("rail1", "server")}
        if number == 3:
            break
        logs = world.logs(number, found.lines)
        # Its tester began too late, and what another one printed is damaged.
        logs["gpu-3"] = logs["gpu-3"].replace("seconds=2", "seconds=2 late=1.50")
        logs["gpu-4"] = logs["gpu-4"].replace("seconds=2", "seconds=x")
        del logs["gpu-1"]
        passes.append(Pass(logs, {"gpu-1": "it was slow"}))


def test_a_pair_that_no_test_is_planned_for_still_shows_its_failure() -> None:
    hosts = [f"gpu-{number}" for number in range(1, 9)]
    steps, end = run(World(hosts, ["rail0"], network={("gpu-5", "rail0"): ""}), mode="ring")
    assert len(failed(end)) == 7
    assert {(one["kind"], one["host"]) for one in end.summary["diagnoses"]} == {("port", "gpu-5")}
    assert end.summary["verdict"] == "no_data"
    assert len(meshes(steps)) == 2


@pytest.mark.parametrize("tests", [{"mesh": False}, {"mode": "loopback"}])
def test_without_a_mesh(tests: dict[str, Any]) -> None:
    steps, end = run(World(HOSTS, RAILS), **tests)
    assert meshes(steps) == []
    assert "mesh" not in end.schedule["text"]


def test_a_plan_of_an_earlier_version_has_no_mesh() -> None:
    plan = tester_logs.plan(HOSTS, RAILS)
    world = World(HOSTS, RAILS)
    assert "mesh" not in step(plan, "host", Evidence({host: world.described(host) for host in HOSTS}, {})).announce


def test_an_mtu_that_ports_cannot_use_is_not_tried() -> None:
    world = World(HOSTS, RAILS)
    plan = tester_logs.plan(HOSTS, RAILS, mesh=True, mtu=4096)
    described = {host: world.described(host).replace("mtu=4096", "mtu=1024") for host in HOSTS}
    lines = step(plan, "host", Evidence(described, {})).lines["gpu-1"][:-1]
    assert {line.split(" mesh ")[1] for line in lines} == {"-s 9000 -m 1024"}


def test_only_what_is_measured_is_tried() -> None:
    steps, _end = run(World(HOSTS, RAILS), only={"hosts": [], "rails": ["rail1"], "pairs": [["gpu-1", "gpu-2"]]})
    roles = {host: [line.split()[2] for line in own[:-1]] for host, own in steps[0].lines.items()}
    assert roles == {"gpu-1": ["server"], "gpu-2": ["client"]}


@pytest.mark.parametrize("instead", ['"IB" address=10.1', '"IB" address=- was=10.1', '"RoCE v2" address=- was=10.1'])
def test_rails_of_infiniband_or_without_ipv4_are_left_out(instead: str) -> None:
    world = World(HOSTS, RAILS)
    described = {host: world.described(host).replace('"RoCE v2" address=10.1', instead) for host in HOSTS}
    found = step(tester_logs.plan(HOSTS, RAILS, mesh=True), "host", Evidence(described, {}))
    assert {line.split()[1] for own in found.lines.values() for line in own[:-1]} == {"rail0"}
