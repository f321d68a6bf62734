"""The time slots of a measurement: as the product plans them, and as the documentation tells them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.bench import __main__ as bench
from tests.bench import scale

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import summary

PAGE = Path(__file__).resolve().parents[3] / "docs" / "validation.md"


def test_slots_are_those_of_the_circle_method() -> None:
    assert scale.slots() == {
        hosts: {
            "one pair after another": hosts * (hosts - 1),
            "all pairs in rounds": 2 * (hosts - 1 + hosts % 2),
            "3 meetings per host": 6,
        }
        for hosts in (3, 16, 64, 256)
    }


def test_the_documentation_has_them() -> None:
    head, *rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in PAGE.read_text().splitlines()
        if re.match(r"\| (hosts \| one pair|\d+ \| \d+ \| \d+ \| 6 \|)", line)
    ]
    told = {int(row[0]): {way: int(count) for way, count in zip(head[1:4], row[1:4])} for row in rows}
    assert told == scale.slots()


def test_they_are_rows_of_the_benchmark() -> None:
    assert bench.slot_rows({"256": {"all pairs in rounds": 510}}) == [
        ("256 hosts, slots of one kind: all pairs in rounds", 510, "", None)
    ]


def test_the_report_is_given_all_that_is_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(
        scale, "build", lambda *args, **more: given.update(more["parts"]) or summary.build(*args, **more)
    )
    monkeypatch.setattr(scale.gc, "disable", lambda: None)
    scale.main(4, 2, "all_pairs", 1)
    assert json.loads(capsys.readouterr().out)["results"] == 24
    assert {*summary.PARTS} - given.keys() == {"gates", "baseline"}
