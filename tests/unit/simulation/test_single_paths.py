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


def run(*faults: Fault, replayed: bool = False, **tests: Any) -> Measured:
    return measured(Network(TREE, faults, 5), {"budget": "quick", "mode": "all_pairs", **tests}, replayed=replayed)


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


def test_a_replayed_run_takes_the_same_paths() -> None:
    one, other = run(SPINE), run(SPINE, replayed=True)
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
