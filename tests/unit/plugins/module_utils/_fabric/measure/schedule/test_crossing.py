"""Which uplinks a path crosses, and what it must then reach. Cost: below a second."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import complete
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.session import State, expectation_of
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule import crossing
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import Measurement
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

PARENTS = {"rack1": ["pod1"], "rack2": ["pod1"], "rack3": ["pod2"]}


@pytest.mark.parametrize(
    ("ratios", "one", "other", "found"),
    [
        ([2.0, 4.0], "rack1", "rack1", ("", 1.0)),
        ([2.0, 4.0], "rack1", "", ("", 1.0)),
        ([2.0, 4.0], "rack1", "rack2", ("rack1 and rack2", 2.0)),
        ([2.0, 4.0], "rack2", "rack3", ("pod1 and pod2", 4.0)),
        # A single ratio is that of all levels.
        ([3.0], "rack2", "rack3", ("pod1 and pod2", 3.0)),
        # A rack in no pod.
        ([2.0, 4.0], "rack9", "rack1", ("rack9 and pod1", 4.0)),
        ([2.0, 4.0], "rack8", "rack9", ("rack8 and rack9", 2.0)),
    ],
)
def test_uplinks(ratios: list[float], one: str, other: str, found: tuple[str, float]) -> None:
    assert crossing.uplinks({"oversubscription": ratios, "parents": PARENTS}, one, other) == found


def intent(**tests: Any) -> dict[str, Any]:
    return {"supernet": "192.168.0.0/16", "tests": tests}


@pytest.mark.parametrize("mode", ["all_pairs", "topology"])
def test_a_pair_across_oversubscribed_groups_must_reach_its_share(mode: str) -> None:
    groups = {"rack1": ["gpu-0001", "gpu-0002"], "rack2": ["gpu-0003", "gpu-0004"]}
    made = plan(intent(mode=mode, groups=groups, oversubscription=[2]), fleet(4))
    state = State(made, "host", complete(made["tests"]), mode, [rail["name"] for rail in made["rails"]])
    inside = expectation_of(state, Measurement("rail0", "gpu-0001", "gpu-0002", "write_bw"))
    across = expectation_of(state, Measurement("rail0", "gpu-0002", "gpu-0003", "write_bw"))
    assert (inside.bound_by, round(inside.least or 0, 1), round(inside.ceiling or 0)) == ("link", 372.5, 392)
    # The link's own rate stays possible: nobody else may use the uplinks.
    assert (across.bound_by, round(across.least or 0, 1), round(across.ceiling or 0)) == ("uplinks", 186.3, 392)
    assert across.why == "95 % of the 196 Gb/s that uplinks oversubscribed 2:1 between rack1 and rack2 leave"


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        ({"oversubscription": [2]}, "rdma_fabric.tests.oversubscription: applies to paths between groups of hosts"),
        ({"oversubscription": [0.5]}, "rdma_fabric.tests.oversubscription: expected numbers from 1 to 100"),
        ({"oversubscription": ["x"]}, "rdma_fabric.tests.oversubscription: expected numbers from 1 to 100"),
    ],
)
def test_what_cannot_be_is_refused(tests: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem.replace(".", r"\.")):
        plan(intent(**tests), fleet(2))
