"""chart_values through its main(): drift is shown, what the user gave is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.support.module_run import run


@pytest.mark.parametrize(
    ("before", "after", "own", "shown"),
    [
        ({"nfd": {"enabled": True}}, {"nfd": {"enabled": True}}, {}, None),
        (
            {"nfd": {"enabled": True}, "old": 1},
            {"nfd": {"enabled": False}},
            {},
            ({"nfd": {"enabled": True}, "old": "<hidden>"}, {"nfd": {"enabled": False}}),
        ),
        # What a user gave earlier and no longer gives is a value of the user still.
        (
            {"proxy": {"basic": "a:s3cret"}, "nfd": {"basic": "a:s3cret", "enabled": True}},
            {"nfd": {"enabled": False}},
            {"nfd": {"enabled": False}},
            (
                {"proxy": "<hidden>", "nfd": {"basic": "<hidden>", "enabled": "<hidden>"}},
                {"nfd": {"enabled": "<hidden, changed>"}},
            ),
        ),
        (
            {"login": {"key": "s3cret", "plain": 1}, "same": "s3cret", "password": "s3cret"},
            {"login": {"key": "s3cret2", "plain": 2}, "same": "s3cret", "new": "s3cret", "password": "s3cret3"},
            {"login": {"key": "s3cret2"}, "same": "s3cret", "new": "s3cret"},
            (
                {"login": {"key": "<hidden>", "plain": 1}, "same": "<hidden>", "password": "<removed>"},
                {
                    "login": {"key": "<hidden, changed>", "plain": 2},
                    "same": "<hidden>",
                    "new": "<hidden, changed>",
                    "password": "<removed>",
                },
            ),
        ),
    ],
)
def test_drift(capsys: pytest.CaptureFixture[str], before: Any, after: Any, own: Any, shown: Any) -> None:
    found = run("chart_values", capsys, check=True, before=before, after=after, own=own)
    assert found["changed"] is (shown is not None)
    assert "s3cret" not in json.dumps(found)
    if shown:
        assert (found["diff"]["before"], found["diff"]["after"]) == shown
