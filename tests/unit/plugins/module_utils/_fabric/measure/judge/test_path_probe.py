"""Which tests are repeated on single paths, and when no more. Milliseconds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support import tester_logs

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import complete
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.components import VIEW
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import path_probe
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.session import Attempt, State
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import Run
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import parse_describe
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import subject

HOSTS = ["gpu-1", "gpu-2"]
REFUSED = Run(1, "Couldn't connect to 10.0.0.2:18500", exchange="plain")


def mixed() -> dict[str, Any]:
    """A test that read low on one of its single paths."""
    same = {"where": "host", "rail": "rail0", "client": "gpu-1", "server": "gpu-2", "test": "write_bw"}
    row = {"pass": 2, "value": 50.0, "reason": ""}
    paths = [{**row, "verdict": one, "flow_labels": [at]} for at, one in enumerate(("pass", "fail"), 1)]
    return {**same, "passes": [], "verdict": "fail", "paths": paths}


def again(attempts: list[Attempt], lost: dict[str, str], probed: bool = True) -> list[Any]:
    """The rounds after single paths of a test differed."""
    made = tester_logs.plan(HOSTS, ["rail0"])
    state = State(made, "host", complete(made["tests"]), "all_pairs", ["rail0"], lost=lost)
    for name in HOSTS:
        port = f"rail0 device=mlx5_0 port=1 netdev=rail0 gid=3 address=10.0.0.{name[-1]}"
        text = tester_logs.described([port], "perftest=25.01 control=- labels=list")
        state.endpoints[name] = parse_describe(text)
    test = subject(mixed())
    other = test._replace(client="gpu-2", server="gpu-1")
    state.attempts = {test: attempts, other: []}
    state.probes = {test if probed else other: [Attempt(2, 0, None, "")]}
    return path_probe.planned(state, [mixed()], VIEW, left=90)


@pytest.mark.parametrize(("attempts", "lost", "probed", "rounds"), [
    ([], {}, True, 12),
    # A host whose tester ended meanwhile is not used again.
    ([], {"gpu-2": "gpu-2: its tester ended before the end of the pass"}, True, 0),
    # The next attempt finds its peer by RDMA-CM, which ignores the path.
    ([Attempt(1, 0, None, "", REFUSED, REFUSED)], {}, True, 0),
    # Single paths of an earlier report.
    ([], {}, False, 0),
])  # fmt: skip
def test_which_tests_are_repeated_where_their_paths_differ(
    attempts: list[Attempt], lost: dict[str, str], probed: bool, rounds: int
) -> None:
    assert len(again(attempts, lost, probed)) == rounds
