"""Time-outs of single links among tests that gave readings. Costs below a second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.absence import Conduct
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.stalled import in_round, is_stalled
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import Run

EXPIRED = Run(124, "")
NOT_MET = Run(1, "Couldn't connect to 10.0.0.2:18515")
NEAR = Conduct({}, 0, 60, measured={"a", "b"})
GOOD = [("a", "b", True)] * 7 + [(f"c{n}", f"d{n}", True) for n in range(12)]
OWN = ("a", "b", False)


@pytest.mark.parametrize(
    ("runs", "others", "near", "told"),
    [
        ((EXPIRED, EXPIRED), GOOD, NEAR, True),
        ((NOT_MET, EXPIRED), GOOD, NEAR, True),
        # The only test of both hosts, beside others.
        ((EXPIRED, EXPIRED), GOOD[7:], NEAR, True),
        # One other link may stand still too, and not more than a tenth of them.
        ((EXPIRED, EXPIRED), [*GOOD, ("c1", "d2", False)], NEAR, True),
        ((EXPIRED, EXPIRED), [*GOOD, *[("c1", "d2", False)] * 3], NEAR, False),
        # Nothing to compare with, or the host stands still and not its link.
        ((EXPIRED, EXPIRED), [], NEAR, False),
        ((EXPIRED, EXPIRED), [*GOOD, ("a", "b", False)], NEAR, False),
        ((EXPIRED, EXPIRED), [*GOOD, ("c1", "b", False)], NEAR, False),
        # Its own error, a killed tester, a lost log, or nobody who waited is something else.
        ((Run(1, "Failed status 12"), EXPIRED), GOOD, NEAR, False),
        ((Run(137, ""), EXPIRED), GOOD, NEAR, False),
        ((None, EXPIRED), GOOD, NEAR, False),
        ((NOT_MET, NOT_MET), GOOD, NEAR, False),
        ((EXPIRED, EXPIRED), GOOD, replace(NEAR, lost=frozenset("a")), False),
        # A host that measured nothing, or was late.
        ((EXPIRED, EXPIRED), GOOD, replace(NEAR, measured={"a"}), False),
        (
            (EXPIRED, EXPIRED),
            GOOD,
            Conduct({("b", 3): 2.0}, 0, 60, measured={"a", "b"}, overloaded=frozenset("b")),
            False,
        ),
    ],
)
def test_a_time_out_counts_where_the_link_alone_stood_still(runs: Any, others: Any, near: Conduct, told: bool) -> None:
    here = in_round([OWN, *others])
    assert is_stalled(list(zip("ab", runs)), here, near, at=3) is told
