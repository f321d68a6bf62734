"""docs/lint.md has the table of the rules."""

from __future__ import annotations

from tests.tools import lint_page


def test_the_page_has_the_rules_of_the_registry() -> None:
    text = lint_page.PAGE.read_text()
    assert lint_page.written(text) == text, "run python -m tests.tools.lint_page"
