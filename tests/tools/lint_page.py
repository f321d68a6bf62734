"""`python -m tests.tools.lint_page`: writes the table of docs/lint.md from the registry of rules."""

from __future__ import annotations

import re
import sys

from . import importable  # noqa: F401  (makes the collection importable)

# isort: split
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.lint import registry

from .release_page import table

PAGE = importable.ROOT / "docs" / "lint.md"
BEGIN = "<!-- rules: from _fabric/lint/ by python -m tests.tools.lint_page -->"
END = "<!-- rules: end -->"
PART = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


def written(text: str) -> str:
    """The page with its table as the registry has it now; ValueError when there is no place for it."""
    if not PART.search(text):
        raise ValueError(f"{PAGE} has no lines {BEGIN} and {END}")
    return PART.sub(lambda _match: f"{BEGIN}\n\n{rules()}\n\n{END}", text)


def rules() -> str:
    head = ("rule", "severity", "effect of the problem", "needs", "known from")
    rows = [
        (f"`{rule.name}`", rule.severity, rule.effect, rule.needs or "manifests", rule.source)
        for rule in registry.RULES
    ]
    return table(head, rows)


if __name__ == "__main__":
    sys.exit(main())
