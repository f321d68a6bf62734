"""`python -m tests.tools.lint_page`: writes the table of docs/lint.md from the registry of rules."""

from __future__ import annotations

import sys

from . import importable  # noqa: F401  (makes the collection importable)

# isort: split
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.lint import registry

from .release_page import filled, table

PAGE = importable.ROOT / "docs" / "lint.md"
BEGIN = "<!-- rules: from _fabric/lint/ by python -m tests.tools.lint_page -->"
END = "<!-- rules: end -->"


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


def written(text: str) -> str:
    """The page with its table as the registry has it now; ValueError when there is no place for it."""
    return filled(text, BEGIN, END, rules())


def rules() -> str:
    head = ("rule", "severity", "effect of the problem", "needs", "known from")
    rows = [
        (f"`{rule.name}`", rule.severity, rule.effect, rule.needs or "manifests", rule.source)
        for rule in registry.RULES
    ]
    return table(head, rows)


if __name__ == "__main__":
    sys.exit(main())
