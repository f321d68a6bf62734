"""The table of network models in README.md has every profile and every release line. About 1 s."""

from __future__ import annotations

import dataclasses

import pytest
from tests.tools import gallery, support_matrix
from tests.tools.support_matrix import PROVEN, WORDS, Proven

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry


def cells(text: str) -> list[list[str]]:
    """The rows of a table, its head first."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "---" not in line]


def test_the_readme_has_the_table_of_the_registries() -> None:
    text = support_matrix.PAGE.read_text()
    assert support_matrix.written(text) == text, "run python -m tests.tools.support_matrix"


def test_every_profile_and_line_has_its_place() -> None:
    head, *rows = cells(support_matrix.matrix())
    assert head[2:-2] == list(releases.LINES)[::-1]
    assert {row[0] for row in rows} == set(registry.PROFILES)
    assert len(rows) == len(gallery.ENTRIES)
    for row in rows:
        assert set(row[2:]) <= set(WORDS)


def test_a_refused_line_is_shown_as_refused() -> None:
    row = next(row for row in cells(support_matrix.matrix()) if "nic_configuration.md" in row[1])
    assert row[2:-2] == ["stand-in", "API server", "refused", "refused"]


def test_a_new_page_and_a_new_line_are_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = list(releases.LINES.values())[-1]
    monkeypatch.setitem(releases.LINES, "99.1", dataclasses.replace(newest, name="99.1", releases={"99.1.0": ""}))
    monkeypatch.setitem(gallery.ENTRIES, "toy", gallery.Entry("A toy", "", "profile: macvlan"))
    monkeypatch.setitem(PROVEN, "toy", Proven({"99.1": "stand-in"}, measured="lab"))
    head, *rows = cells(support_matrix.matrix())
    assert head[2] == "99.1"
    (row,) = [row for row in rows if "toy.md" in row[1]]
    assert row[2:] == ["stand-in", *["API server"] * 4, "unit tests", "lab"]


def test_every_profile_is_applied_with_the_stand_in_on_every_line() -> None:
    assert {support_matrix.profile(name) for name in support_matrix.MODELS} == set(registry.PROFILES)
    assert {*support_matrix.MODELS, *support_matrix.VARIANTS} <= set(gallery.ENTRIES)


def test_what_is_proven_is_proven_of_pages_that_exist() -> None:
    assert set(PROVEN) <= set(gallery.ENTRIES)
