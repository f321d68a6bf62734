"""Every role has a page in docs/roles: its inputs from its argument specs, and the sections of HEADINGS."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools import role_pages

HEADINGS = ("## What it changes", "## Restore the original state", "## Inputs")


@pytest.mark.parametrize("role", role_pages.roles(), ids=lambda p: p.name)
def test_the_page_is_whole(role: Path) -> None:
    text = role_pages.page(role).read_text()
    assert [heading for heading in HEADINGS if heading not in text.splitlines()] == []
    assert role_pages.written(text, role) == text, "run python -m tests.tools.role_pages"


def test_a_table_shows_types_defaults_and_choices(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta/argument_specs.yml").write_text(
        """
argument_specs:
  main:
    options:
      a_count: {type: int, required: true, description: How many.}
      a_mode: {choices: [x, y], default: x, description: [First., Second.]}
      a_set:
        type: dict
        default: {}
        description: A | B.
        options:
          one: {type: list, elements: str, description: Names.}
"""
    )
    assert role_pages.table(tmp_path).splitlines()[2:] == [
        "| `a_count` | int | required | How many. |",
        "| `a_mode` | str | `x` | First. Second. One of `x`, `y`. |",
        "| `a_set` | dict | `{}` | A \\| B. |",
        "| `a_set.one` | list of str |  | Names. |",
    ]


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    role = role_pages.roles()[0]
    with pytest.raises(ValueError, match="has no lines"):
        role_pages.written("# text\n", role)
