"""The simulated fabrics, and what the judge makes of a few of them. Costs about 15 s, most of it in the last test."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests import simulation
from tests.simulation import cells, run, testers
from tests.simulation.cells import ALL_PAIRS, CELLS, EXACT, PASSES
from tests.simulation.fabric import Tree
from tests.simulation.faults import ALWAYS, FLOW, TIME, Fault
from tests.simulation.run import measured
from tests.simulation.score import guilty, names
from tests.simulation.testers import Network, address

TREE = Tree(hosts=64, rails=2, levels=3, leaf=8, fan=4, spines=4)
ARGUMENTS = "18500 write_bw -F --report_gbits -c RC -q 4 -s 65536 -t 128 -D 10 -f 2"


def lines(
    *pairs: tuple[int, int], rail: str = "rail0", at: int = 0, arguments: str = ARGUMENTS
) -> dict[str, list[str]]:
    """One round of the schedule in which the first of each pair sends to the second."""
    own: dict[str, list[str]] = {}
    for client, server in pairs:
        for host, role, peer in ((client, "client", server), (server, "server", client)):
            line = f"{at} {rail} {role} {address(peer, rail)} {arguments}"
            own.setdefault(TREE.names[host], []).append(line)
    return {name: [*given, f"END {len(given)}"] for name, given in own.items()}


def sent(network: Network, client: int, server: int, **more: Any) -> testers.Told:
    """What the client records of one test."""
    rail = more.get("rail", "rail0")
    told = network.play(lines((client, server), **more), 14)
    return told[TREE.names[client]][more.get("at", 0), rail, address(server, rail)]


def rate(told: testers.Told) -> float:
    found = re.search(r"^ 65536 \d+ 0\.00 (\S+)", told.text, re.MULTILINE)
    assert found, told
    return float(found[1])


def quiet(*faults: Fault, seed: int = 1) -> Network:
    return Network(TREE, faults, seed, background=0.0)


def test_the_simulation_knows_nothing_of_the_diagnosis() -> None:
    sources = {path.name: path.read_text() for path in Path(simulation.__file__).parent.glob("*.py")}
    own = [name for name, text in sources.items() if "ansible_collections" in text]
    assert sorted(own) == ["run.py", "score.py"] and len(sources) > len(own)
    assert not [name for name, text in sources.items() if "measure.diagnosis" in text]


def test_a_tree_has_leaves_blocks_and_pods() -> None:
    assert [TREE.size(level) for level in range(3)] == [8, 32, 64]
    assert [TREE.climb(0, other) for other in (7, 8, 31, 32)] == [0, 1, 1, 2]
    assert len(TREE.groups()) == 8 and set(TREE.parents()) == set(TREE.groups())
    assert Tree(8, 1).groups() == {} and Tree(32, 1, 2).parents() == {}


def test_a_path_is_fixed_for_a_port_and_spread_over_ports() -> None:
    chosen = [TREE.choice(0, 9, 0xC000 | port, 0) for port in range(4000)]
    assert chosen == [TREE.choice(0, 9, 0xC000 | port, 0) for port in range(4000)]
    assert set(Counter(chosen)) == {0, 1, 2, 3} and min(Counter(chosen).values()) > 900


@pytest.mark.parametrize("pairs", [1, 4])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_a_fault_by_flow_hits_its_share_of_tests_whatever_the_number_of_queue_pairs(share: float, pairs: int) -> None:
    network = quiet(Fault("port", "rail0", host=3, share=share, by=FLOW, factor=0.3, salt=5))
    arguments = ARGUMENTS.replace("-q 4", f"-q {pairs}")
    low = sum(rate(sent(network, 3, 4, arguments=arguments)) < 93 for _test in range(1000)) / 1000
    assert abs(low - share) < 0.04


def test_a_flow_label_keeps_the_path_of_a_test() -> None:
    network = quiet(Fault("spine", "rail0", group=0, index=0, factor=0.3))
    labels = [f"{ARGUMENTS} --flow_label {label}" for label in range(1, 30)]
    first = [rate(sent(network, 1, 9, arguments=text)) < 93 for text in labels]
    assert [rate(sent(network, 1, 9, arguments=text)) < 93 for text in labels] == first
    # All queue pairs of a test take one path, of four.
    assert 0 < sum(first) < len(first) / 2


def test_a_fault_by_time_hits_seconds_and_a_test_reads_their_mean() -> None:
    network = quiet(Fault("port", "rail0", host=3, share=0.2, by=TIME, factor=0.0001, burst=2.0, salt=5))
    rates = [rate(sent(network, 3, 4)) / testers.USUAL for _test in range(500)]
    assert abs(sum(rates) / len(rates) - 0.8) < 0.04 and len({round(value, 1) for value in rates}) > 3


@pytest.mark.parametrize(
    ("fault", "hit", "missed"),
    [
        (Fault("host", host=3), ((3, 4), (9, 3)), ((4, 5),)),
        (Fault("send", "rail0", host=3), ((3, 4),), ((4, 3),)),
        (Fault("receive", "rail0", host=3), ((4, 3),), ((3, 4),)),
        (Fault("port", "rail1", host=3), (), ((3, 4),)),
        (Fault("rail", "rail0"), ((3, 4), (0, 63)), ()),
        (Fault("leaf", "rail0", group=1), ((8, 9), (0, 8)), ((0, 1), (0, 16))),
        (Fault("uplinks", "rail0", group=1), ((0, 8), (8, 40)), ((8, 9), (0, 16))),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else None,
)
def test_a_fault_slows_what_needs_it(
    fault: Fault, hit: tuple[tuple[int, int], ...], missed: tuple[tuple[int, int], ...]
) -> None:
    network = quiet(fault)
    assert all(rate(sent(network, *ends)) < 60 for ends in hit)
    assert all(rate(sent(network, *ends)) > 93 for ends in missed)


@pytest.mark.parametrize(("kind", "inside"), [("spine", (0, 7)), ("uplink", (0, 7))])
def test_one_of_several_paths_slows_some_tests_by_its_queue_pairs(kind: str, inside: tuple[int, int]) -> None:
    network = quiet(Fault(kind, "rail0", group=0, index=2, factor=0.6))
    across = [rate(sent(network, 0, 9)) for _test in range(200)]
    assert {round(value / testers.USUAL, 1) for value in across} == {0.6, 0.7, 0.8, 0.9, 1.0} or len(set(across)) > 4
    assert 0.2 < sum(value > 93 for value in across) / 200 < 0.45
    assert min(rate(sent(network, *inside)) for _test in range(20)) > 93


def test_a_flapping_port_ends_tests_and_its_counter_grows_at_its_own_end() -> None:
    network = quiet(Fault("port", "rail0", host=3, share=1.0, by=TIME, factor=0.0, counter="link_down_events_phy"))
    told = network.play(lines((4, 3)), 14)
    client, server = (next(iter(told[TREE.names[host]].values())) for host in (4, 3))
    assert client.rc and "Failed status 12" in client.text and not client.counters
    assert dict(server.counters)["link_down_events_phy"] > 0


def test_a_late_host_misses_the_rounds_before_it_comes() -> None:
    network = quiet(Fault("late", host=3), seed=4)
    told = network.play(lines((3, 4)), 2)
    assert told[TREE.names[3]][0, "rail0", address(4, "rail0")].rc == 125
    other = told[TREE.names[4]][0, "rail0", address(3, "rail0")]
    assert other.rc == 124 and other.late < 1


def test_tests_read_low_without_a_cause_at_the_background_rate() -> None:
    network = Network(TREE, (), 3, background=0.02)
    low = sum(" 0.00\n" not in one.text and rate(one) < 93 for one in (sent(network, 0, 9) for _test in range(2000)))
    assert 20 <= low <= 60


@pytest.mark.parametrize("name", ["port in 10 % of its tests, 8", "flapping port, 32"])
def test_going_on_from_step_to_step_gives_what_the_whole_evidence_gives(name: str) -> None:
    cell, seed = CELLS[name], 1
    went, replayed = (
        measured(Network(cell.tree, cell.faults(seed), seed), cell.tests, replayed=way) for way in (False, True)
    )
    assert went.step.results == replayed.step.results and went.step.summary == replayed.step.summary
    assert went.step.unsteady == replayed.step.unsteady and went.slots == replayed.slots
    assert replayed.step.summary["diagnoses"] or replayed.step.unsteady


def test_a_measurement_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_MOST_PASSES", 1)
    with pytest.raises(AssertionError, match="did not end after 1"):
        measured(Network(Tree(8, 1)), ALL_PAIRS)


def finding(kind: str, host: str | None = None, rail: str | None = "rail0", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "host": host, "rail": rail, "peer": None, "direction": None, **more}


PORT, SEND = Fault("port", "rail0", host=3), Fault("send", "rail0", host=3)
UPLINKS, SPINE = Fault("uplinks", "rail0", group=1), Fault("spine", "rail0", group=0, index=1)
H3, H8, H9 = "gpu-0003", "gpu-0008", "gpu-0009"


@pytest.mark.parametrize(
    ("fault", "found", "named", "is_guilty"),
    [
        (PORT, finding("port", H3), True, True),
        (PORT, finding("port", H3, "rail1"), False, False),
        (PORT, finding("port", H8), False, False),
        (PORT, finding("host", H3, None), False, True),
        (PORT, finding("pair", H3, peer=H8), False, True),
        (PORT, finding("pair", H8, peer=H9), False, False),
        (PORT, finding("rail"), False, False),
        (PORT, finding("unknown"), False, True),
        (SEND, finding("direction", H3, direction="send"), True, True),
        (SEND, finding("direction", H3, direction="receive"), False, False),
        (SEND, finding("port", H3, readings=[]), True, True),
        (SEND, finding("port", H3), False, True),
        (UPLINKS, finding("uplinks", group="leaf001"), True, True),
        (UPLINKS, finding("uplinks", group="leaf002"), False, False),
        (UPLINKS, finding("port", H8), False, False),
        (UPLINKS, finding("pair", H3, peer=H8), False, True),
        (UPLINKS, finding("rail", readings=[]), False, True),
        (UPLINKS, finding("rail"), False, False),
        (SPINE, finding("paths"), True, True),
        (SPINE, finding("port", H8), False, False),
        (SPINE, finding("uplinks", group="leaf003"), False, True),
        (SPINE, finding("uplinks", group="leaf004"), False, False),
        (SPINE, finding("group", group="leaf003"), False, False),
        (UPLINKS, finding("paths"), False, True),
        (UPLINKS, finding("group", group="leaf001"), False, True),
        (Fault("overloaded", host=3), finding("overload", H3, None), True, True),
        (Fault("overloaded", host=3), finding("overload", H8, None), False, True),
    ],
)
def test_a_finding_names_what_was_planted_or_accuses_what_is_healthy(
    fault: Fault, found: dict[str, Any], named: bool, is_guilty: bool
) -> None:
    assert names(TREE, fault, found) is named
    assert guilty(TREE, (fault,), found) is is_guilty


def test_the_table_has_at_most_60_cells_whose_names_are_unique() -> None:
    assert len(CELLS) == len(cells._cells()) <= 60
    hosts = [cell.tree.hosts for cell in CELLS.values()]
    assert {min(hosts), max(hosts)} == {8, 1024} and {cell.tree.levels for cell in CELLS.values()} == {1, 2, 3, 4}
    assert all(one.by == ALWAYS for cell in CELLS.values() if cell.claim == EXACT for one in cell.faults(1))


# Of small fabrics, since they are played in each run of the tests; `make bench` plays the whole table.
PLAYED = [name for name, cell in CELLS.items() if cell.tree.hosts <= 32]


@pytest.mark.parametrize("name", PLAYED)
def test_nothing_healthy_is_confirmed_and_what_is_permanent_is_found(name: str) -> None:
    cell = CELLS[name]
    for seed in range(1 if cell.tree.hosts > 8 else 4):
        one = cell.run(seed)
        assert not one.accused, (seed, cell.faults(seed))
        assert cell.claim not in (PASSES, EXACT) or cell.reached(one), (seed, cell.faults(seed), one)
