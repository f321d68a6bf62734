"""`python -m tests.tools.lint_page`: writes the tables of docs/lint.md, from the rules and known_problems.py."""

from __future__ import annotations

import sys

from . import importable  # noqa: F401  (makes the collection importable)

# isort: split
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.lint import registry

from .known_problems import PROBLEMS
from .release_page import filled, table

PAGE = importable.ROOT / "docs" / "lint.md"
BEGIN = "<!-- rules: from _fabric/lint/ by python -m tests.tools.lint_page -->"
END = "<!-- rules: end -->"
PROBLEMS_BEGIN = "<!-- problems: from tests/tools/known_problems.py by python -m tests.tools.lint_page -->"
PROBLEMS_END = "<!-- problems: end -->"


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


def written(text: str) -> str:
    """The page with its tables as they are now; ValueError when there is no place for them."""
    return filled(filled(text, BEGIN, END, rules()), PROBLEMS_BEGIN, PROBLEMS_END, problems())


def rules() -> str:
    head = ("rule", "severity", "effect of the problem", "needs", "known from")
    rows = [
        (f"`{rule.name}`", rule.severity, rule.effect, rule.needs or "manifests", rule.source)
        for rule in registry.RULES
    ]
    return table(head, rows)


def problems() -> str:
    rows = [
        (one.text, one.threads, ", ".join([*(f"`{name}`" for name in one.rules), *([one.place] if one.place else [])]))
        for one in PROBLEMS
    ]
    return table(("problem", "reported in", "found or prevented by"), rows)


if __name__ == "__main__":
    sys.exit(main())
