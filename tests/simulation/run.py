"""A whole measurement of a simulated fabric by the judge, pass after pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unittest import mock

from tests.tools import importable  # noqa: F401
from tests.unit.support import tester_logs

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import step as judge_step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings import tester_log
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import Run
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import (
    Evidence,
    Log,
    Pass,
)

from .fabric import Tree
from .testers import Key, Network, Told, address

#: A measurement that is not over after this many passes does not end.
_MOST_PASSES = 60
_BEFORE = "ran=11.20 exchange=plain memory=host"


@dataclass(frozen=True)
class Measured:
    """What the judge made of a fabric: its last step, and what it cost."""

    step: judge_step.Step
    slots: int
    seconds: float


def plan(tree: Tree, tests: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of a fabric, with its leaves as groups."""
    own = {"groups": tree.groups(), **({"parents": tree.parents()} if tree.parents() else {})}
    return tester_logs.plan(tree.names, tree.rail_names, **{**own, **tests})


def measured(network: Network, tests: Mapping[str, Any], *, replayed: bool = False) -> Measured:
    """Measure a fabric.

    ``replayed``: as the collection does, from the text of the logs of all passes at each step. That takes many times as
    long as going on from the step before, and gives the same, which a test compares.
    """
    made, described = plan(network.tree, tests), _described(network.tree)
    passes: list[Pass] = []
    slots = 0
    with nullcontext() if replayed else _going_on():
        for _pass in range(_MOST_PASSES):
            found = judge_step.step(made, "host", Evidence(described, {}, tuple(passes)))
            if found.done:
                return Measured(found, slots, network.clock)
            slots += found.rounds
            told = network.play(found.lines, found.slot)
            number = int(found.schedule["passes"])
            if replayed:
                passes.append(Pass({name: _text(number, found.lines[name], own) for name, own in told.items()}, {}))
            else:
                passes = [Pass({name: _record(number, own) for name, own in told.items()}, {})]
    raise AssertionError(f"the measurement did not end after {_MOST_PASSES} passes")


@contextmanager
def _going_on() -> Iterator[None]:
    """Let each step go on with the course of the one before: it gets the last pass only, whose logs are records."""
    kept: dict[str, Any] = {"absorbed": 0}
    begin, absorb, following = judge_step._begin, judge_step._absorb, judge_step.next_rounds
    parse = tester_log.parse_batch

    def begun(*args: Any, **options: Any) -> Any:
        if "course" in kept:
            kept["again"] = True
        else:
            kept["course"] = begin(*args, **options)
        return kept["course"]

    def next_rounds(course: Any) -> Any:
        if not kept.pop("again", False):
            kept["rounds"] = following(course)
        return kept["rounds"]

    def absorbed(course: Any, rounds: Any, _number: int, **options: Any) -> None:
        kept["absorbed"] += 1
        absorb(course, rounds, kept["absorbed"], **options)

    def known(text: str, number: int) -> Log:
        return text.log if isinstance(text, _Record) else parse(text, number)

    own = mock.patch.multiple(judge_step, _begin=begun, next_rounds=next_rounds, _absorb=absorbed)
    with own, mock.patch.object(tester_log, "parse_batch", known):
        yield


class _Record(str):
    """Stands for the log of a tester, whose tests it has."""

    log: Log


def _record(number: int, told: Mapping[Key, Told]) -> str:
    record = _Record(f"pass {number}")
    record.log = Log({key: _run(one) for key, one in told.items()}, True)
    return record


@lru_cache(maxsize=8192)
def _run(told: Told) -> Run:
    return Run(
        told.rc,
        told.text,
        started=1,
        seconds=told.seconds,
        late=told.late,
        ran=11.2,
        counters=dict(told.counters),
        exchange="plain",
        memory="host",
    )


def _text(number: int, lines: list[str], told: Mapping[Key, Told]) -> str:
    """What a tester prints of a pass."""
    frames = []
    for line in lines[:-1]:
        at, rail, _role, peer = line.split()[:4]
        one = told[int(at), rail, peer]
        grown = "".join(f" {name}=+{count}" for name, count in one.counters)
        text = f"counters{grown}\n{one.text}" if grown else one.text
        frames.append(tester_logs.frame(line, one.rc, text, f"seconds={one.seconds:g} late={one.late:g} {_BEFORE}"))
    return tester_logs.log(number, lines, frames)


@lru_cache(maxsize=16)
def _described(tree: Tree) -> Mapping[str, str]:
    """What the testers report of themselves."""
    found = {}
    for number, name in enumerate(tree.names):
        rails = [
            f'{rail} device=mlx5_{at} port=1 netdev={rail} gid=3 gid_type="RoCE v2" address={address(number, rail)} '
            'mtu=4096 rate="100 Gb/sec (4X EDR)" numa=0 cpus=0'
            for at, rail in enumerate(tree.rail_names)
        ]
        host = f"memlock=unlimited perftest=25.01 control=- machine_id={number:x} labels=list"
        found[name] = tester_logs.described(rails, host)
    return found
