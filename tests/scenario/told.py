"""How a report tells the faults that were planted."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tests.scenario import FABRIC, Run, validate
from tests.scenario.planted import FAULTS, Told


@dataclass(frozen=True)
class Judged:
    """What a report says of a planted fault.

    found: the run did not pass, and host or rail of the fault are named. named: as `expected`, and nothing else is
    diagnosed but the other faults of the run. wrong: confirmed diagnoses that belong to none of these.
    """

    found: bool
    named: bool
    expected: set[Told]
    wrong: list[str]
    all: list[Told]
    text: str


def judged(planted: Mapping[str, tuple[str, int]], rc: int, result: Mapping[str, Any]) -> dict[str, Judged]:
    """How a report tells the faults that were planted, each with its host and rail."""
    expected = {name: FAULTS[name].told(place, f"rail{rail}") for name, (place, rail) in planted.items()}
    said = told(result)
    belongs = set().union(*expected.values())
    others = [one for one in said if one not in belongs]
    wrong = [
        diagnosis["text"]
        for diagnosis in result.get("diagnoses", ())
        if diagnosis["confidence"] == "confirmed" and _key(diagnosis) not in belongs
    ]
    return {
        name: Judged(
            found=bool(rc) and any(_touches(one, *planted[name]) for one in said),
            named=bool(rc) and own <= set(said) and not others,
            expected=own,
            wrong=wrong,
            all=list(said),
            text="; ".join(said[one] for one in said if one in own),
        )
        for name, own in expected.items()
    }


def told(result: Mapping[str, Any]) -> dict[Told, str]:
    """What a report names, with its sentence: diagnoses, and ports that were not measured."""
    found: dict[Told, str] = {_key(diagnosis): diagnosis["text"] for diagnosis in result.get("diagnoses", ())}
    for one in result.get("unmeasured", ()):
        found["unmeasured", one["host"], one["rail"]] = f"{one['host']} {one['rail']}: not measured: {one['reason']}"
    return found


def _key(diagnosis: Mapping[str, Any]) -> Told:
    return diagnosis["kind"], diagnosis["host"], diagnosis["rail"]


def _touches(one: Told, name: str, rail: int) -> bool:
    return one[1] == name or (one[1] is None and one[2] in (None, f"rail{rail}"))


def measured(planted: Mapping[str, tuple[str, int]]) -> tuple[Run, dict[str, Any], dict[str, Judged]]:
    """Plant faults (host and rail by name), measure the bare hosts, heal; the run, its report, how it tells them."""
    fabric: dict[str, Any] = {}
    for name in planted:
        fabric.update(FAULTS[name].fabric)
    mesh = any(FAULTS[name].mesh for name in planted)
    fabric["tests"] = {**FABRIC["tests"], "retries": 1, "mesh": mesh, **fabric.get("tests", {})}
    with ExitStack() as stack:
        for name, place in planted.items():
            stack.enter_context(FAULTS[name].plant(*place))
        run, result = validate("host", fabric=fabric)
    return run, result, judged(planted, run.rc, result)
