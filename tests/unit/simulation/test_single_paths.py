"""Single paths of a simulated fabric with one slow spine of four. About 6 s."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.fabric import Tree
from tests.simulation.faults import TIME, Fault
from tests.simulation.run import Measured, measured
from tests.simulation.testers import Network

TREE = Tree(hosts=16, rails=1, levels=2, leaf=4, spines=4)
SPINE = Fault("spine", "rail0", group=0, index=1, factor=0.5)
PATH = "one of several paths between them is bad. Look up on the switches which path packets with the UDP source port "


def run(*faults: Fault, tree: Tree = TREE, replayed: bool = False, **tests: Any) -> Measured:
    return measured(Network(tree, faults, 5), {"budget": "quick", "mode": "all_pairs", **tests}, replayed=replayed)


def told(found: Measured) -> list[str]:
    return [one["text"] for one in [*found.step.summary["diagnoses"], *found.step.unsteady] if PATH in one["text"]]


def single(found: Measured) -> list[dict[str, Any]]:
    return [result for result in found.step.results if result.get("paths")]


def test_one_slow_spine_is_a_path_by_its_labels() -> None:
    found = run(SPINE)
    assert {one["kind"] for one in found.step.summary["diagnoses"]} == {"paths"}
    assert told(found)
    # The labels that it names are those of the slow spine, in the pair's own direction.
    for result in single(found):
        ends = [TREE.names.index(result[side]) for side in ("client", "server")]
        slow = {row["flow_labels"][0]: row["verdict"] == "fail" for row in result["paths"]}
        assert slow == {label: TREE.choice(*ends, 0xC000 | label, 0) == 1 for label in slow}


def test_pairs_that_read_low_on_each_path_are_tested_no_further() -> None:
    found = run(Fault("uplinks", "rail0", group=1, factor=0.5))
    assert found.step.summary["diagnoses"] and not told(found)
    texts = [text for one in found.step.summary["diagnoses"] for text in one["evidence"] if "single paths" in text]
    assert texts and all("low on each of 6 single paths, so it is not one of several paths" in text for text in texts)
    assert {len(result["paths"]) for result in single(found)} == {6}


@pytest.mark.parametrize(("hosts", "leaf", "expected"), [(4, 4, False), (8, 8, True), (8, 4, False)])
def test_only_hosts_that_may_be_on_several_switches(hosts: int, leaf: int, expected: bool) -> None:
    # One direction of one pair is slow; without groups nobody knows where the hosts are.
    class Slow(Network):
        def _rate(self, sender: int, receiver: int, *rest: Any) -> tuple[float, Any]:
            return 0.5 if (sender, receiver) == (0, 1) else 1.0, ()

    found = measured(Slow(Tree(hosts=hosts, rails=1, levels=1 if leaf == hosts else 2, leaf=leaf)), {})
    assert found.step.summary["verdict"] == "fail"
    assert bool(single(found)) is expected


def test_a_replayed_run_takes_the_same_paths() -> None:
    tree = Tree(hosts=8, rails=1, levels=2, leaf=4, spines=4)
    one, other = run(SPINE, tree=tree), run(SPINE, tree=tree, replayed=True)
    assert single(one)
    assert one.step.results == other.step.results and told(one) == told(other)


@pytest.mark.parametrize(("faults", "tests"), [
    # A port that comes and goes is not taken for a path.
    ((Fault("port", "rail0", host=3, share=0.5, by=TIME, factor=0.5),), {}),
    ((Fault("port", "rail0", host=3, factor=0.5),), {}),
    ((), {}),
])  # fmt: skip
def test_other_faults_are_no_paths(faults: tuple[Fault, ...], tests: dict[str, Any]) -> None:
    assert not told(run(*faults, **tests))


def test_no_path_is_a_suspect_where_labels_mean_nothing() -> None:
    found = run(SPINE, load_balancing="adaptive")
    assert not single(found) and not told(found)
    assert not any("flow_labels" in row for result in found.step.results for row in result["passes"])
