# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run takes over from an earlier report.

That is what passed there, between the same ports, measured in the same way, and passes by today's rules; and what could
be measured today. Everything else is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ...intent.kinds import KINDS
from ...intent.tests import STARS, complete
from ...plan.traffic import bytes_of
from ..readings import identity
from ..readings.perftest import Sample
from ..schedule.schedule import Measurement, star_of, subject
from ..schedule.tester_input import message_size
from . import results, verdict
from .earlier_report import EarlierReport
from .expectation import Expectation
from .flaws import blocked
from .session import State, expectation_of, partitions

Result = Mapping[str, Any]
# Host -> rail -> what identity.described returns of a port.
Ports = Mapping[str, Mapping[str, Mapping[str, Any]]]
# Options of rdma_fabric.tests that decide what a test reads; who is measured and where is in the test itself.
_ALWAYS = ("mtu", "rdma_cm", "hugepages", "inline", "service_level", "rails_at_once", "repeats")
_OF_BANDWIDTH = ("duration", "queue_pairs", "tx_depth")
_UNTOLD = "the earlier report does not record how they were measured"


def ports_of(state: State, hosts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the ports of today, as ``identity.described`` returns them; ``hosts``: the result of read_hosts."""
    return identity.described(state.where, state.endpoints, hosts, partitions=partitions(state))


def manner(tests: Mapping[str, Any], kind: str, size: int) -> dict[str, Any]:
    """Return what decides a reading of a test of ``kind`` and ``size`` (0: the only one): option to value."""
    tests = complete(tests)
    keys = (*_ALWAYS, "latency_iterations") if KINDS[kind].latency else (*_ALWAYS, *_OF_BANDWIDTH)
    found = {key: tests[key] for key in keys}
    found["traffic_class"] = bytes_of(tests)
    found["size"] = message_size(tests, kind, size)
    found["directions"] = "together" if tests["directions"] == "together" else "one way"
    found["mode"] = f"{tests['mode']} of {tests['fan']}" if tests["mode"] in STARS else "pairs"
    return found


def take_over(
    state: State, wanted: Collection[Measurement], report: EarlierReport, *, ports: Ports
) -> tuple[dict[Measurement, dict[str, Any]], str]:
    """Return results of an earlier report by test, with today's expectations, and why others that passed are not kept.

    A report without ``tests`` does not show how it was measured, one without ``endpoints`` not between which ports.
    ``ports``: those of today. The tests of a star are taken over together or not at all, since the share of one shows
    nothing without the others.
    """
    before = report.passed()
    if not before:
        return {}, ""
    passed = {test: before[state.where, test] for test in sorted(wanted) if (state.where, test) in before}
    then: Ports = (report.endpoints or {}).get(state.where, {})
    refused = _absent(state, passed, then, today=ports)
    rest = {test: result for test, result in passed.items() if test not in refused}
    refused.update(_refused(state, rest, report.tests))
    broken = {_group(test) for test in wanted if test not in passed or test in refused}
    members = Counter(_group(test) for test in wanted)
    kept = {
        test: {**_today(expectation_of(state, test), result, members[_group(test)]), "resumed": report.run_id}
        for test, result in passed.items()
        if _group(test) not in broken
    }
    return kept, _why(refused, len(passed) - len(kept))


def joined(
    kept: Sequence[dict[str, Any]],
    measured: Sequence[dict[str, Any]],
    faulty: Callable[[Measurement], Sequence[bool]],
) -> list[dict[str, Any]]:
    """Return the results of a run and those that it took over, each test once: isolation measures some again.

    ``faulty``: which attempts of this run at a test showed a fault.
    """
    before = {subject(result): result for result in kept}
    both = {subject(result): result for result in measured if subject(result) in before}
    again = {test: _of_both(before.pop(test), result, faulty(test)) for test, result in both.items()}
    return [*(again.get(subject(result), result) for result in measured), *before.values()]


def _of_both(before: Result, result: dict[str, Any], faulty: Sequence[bool]) -> dict[str, Any]:
    """Return the result of a test with all of its readings, also those of the earlier run: most of them decide."""
    passes = [*before["passes"], *result["passes"]]
    low = sum(one["verdict"] == verdict.FAIL for one in passes)
    usable = sum(one["verdict"] != verdict.NO_DATA for one in passes)
    if result["verdict"] == verdict.PASS or 2 * low > usable:
        return {**result, "passes": passes}
    own = [{**one, "fault": True} if fault else one for one, fault in zip(result["passes"], faulty)]
    return {**before, "passes": [*before["passes"], *own]}


def _absent(state: State, passed: Mapping[Measurement, Result], then: Ports, *, today: Ports) -> dict[Measurement, str]:
    """Return why the ports of tests cannot be measured now, or are not those that were measured."""
    found: dict[Measurement, str] = {}
    for test in passed:
        if flaw := blocked(state, test):
            found[test] = f"cannot be measured now: {flaw}"
            continue
        for name, rail in ((test.client, test.rail), (test.server, test.server_rail)):
            why = identity.another(then.get(name, {}).get(rail), today.get(name, {}).get(rail))
            if why:
                found[test] = f"measured on another port: {name} {rail}: {why}"
                break
    return found


def _refused(
    state: State, passed: Mapping[Measurement, Result], options: Mapping[str, Any] | None
) -> dict[Measurement, str]:
    """Return why tests that passed in a run with these options say nothing today."""
    totals: Counter[tuple[object, ...]] = Counter()
    for test, result in passed.items():
        totals[_group(test)] += result["value"]
    kinds = {(test.kind, test.size) for test in passed}
    otherwise = {how: _difference(state.tests, options, how[0], size=how[1]) for how in kinds}
    found = {test: otherwise[test.kind, test.size] or _below(state, test, totals[_group(test)]) for test in passed}
    return {test: why for test, why in found.items() if why}


def _group(test: Measurement) -> tuple[object, ...]:
    """Return what is judged together: a star, or a test alone."""
    return star_of(test) if test.star else tuple(test)


def _difference(today: Mapping[str, Any], before: Mapping[str, Any] | None, kind: str, *, size: int) -> str:
    if before is None:
        return _UNTOLD
    now, then = manner(today, kind, size), manner(before, kind, size)
    told = [f"{key} {then[key]}, now {now[key]}" for key in now if now[key] != then[key]]
    return f"measured with other settings: {'; '.join(told)}" if told else ""


def _below(state: State, test: Measurement, value: float) -> str:
    """Return why a value is no pass by today's rules, "" when it is one."""
    expectation = expectation_of(state, test)
    outcome, reason = verdict.judge(Sample(test.size, 1, value, expectation.unit), "", expectation)
    return "" if outcome == verdict.PASS else f"below the current thresholds: {test.client} to {test.server} {reason}"


def _today(expectation: Expectation, result: Result, around: int) -> dict[str, Any]:
    expected = results.expected(expectation, around)
    # What single paths showed then is no evidence of today.
    kept = {key: value for key, value in result.items() if key != "paths"}
    return {**kept, "expected": expected, "bound_by": expectation.bound_by, "basis": expectation.why}


def _why(refused: Mapping[Measurement, str], count: int) -> str:
    """Return how many results that passed are not kept and why, with one example of each kind of reason."""
    if not count:
        return ""
    kinds: dict[str, list[str]] = {}
    for why in refused.values():
        kinds.setdefault(why.split(":")[0], []).append(why)
    told = [f"{len(same)} {same[0]}" for same in kinds.values()]
    told += [f"{count - len(refused)} in the same stars"] if count > len(refused) else []
    return f"{count} more passed in that run and are measured again ({'; '.join(told)})"
