"""`python -m tests.tools.role_pages`: writes the table of inputs in docs/roles/ROLE.md from the role's argument specs.

The rest of a page is written by hand: what the role changes, and how to restore the original state.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "<!-- inputs: from meta/argument_specs.yml by python -m tests.tools.role_pages -->"
END = "<!-- inputs: end -->"
TABLE = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def main() -> int:
    for role in roles():
        path = page(role)
        path.write_text(written(path.read_text(), role))
    return 0


def roles() -> list[Path]:
    """The folders of all roles."""
    return sorted(path.parent.parent for path in ROOT.glob("roles/*/meta/argument_specs.yml"))


def page(role: Path) -> Path:
    return ROOT / "docs" / "roles" / f"{role.name}.md"


def written(text: str, role: Path) -> str:
    """The page with its table as the argument specs have it now; ValueError when there is no place for it."""
    if not TABLE.search(text):
        raise ValueError(f"{page(role)} has no lines {BEGIN} and {END}")
    return TABLE.sub(lambda _match: f"{BEGIN}\n{table(role)}\n{END}", text)


def table(role: Path) -> str:
    """The inputs of a role as a table; those of a dict follow it with their path."""
    spec = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    rows = rows_of(spec["argument_specs"]["main"]["options"])
    return "\n".join(["| input | type | default | meaning |", "| --- | --- | --- | --- |", *rows])


def rows_of(options: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for name, option in options.items():
        found.append(f"| `{prefix}{name}` | {kind(option)} | {default(option)} | {meaning(option)} |")
        found += rows_of(option.get("options", {}), f"{prefix}{name}.")
    return found


def kind(option: dict[str, Any]) -> str:
    elements = f" of {option['elements']}" if "elements" in option else ""
    return f"{option.get('type', 'str')}{elements}"


def default(option: dict[str, Any]) -> str:
    if option.get("required"):
        return "required"
    value = option.get("default")
    text = value if isinstance(value, str) and value else json.dumps(value)
    return "" if value is None else f"`{text}`".replace("|", "\\|")


def meaning(option: dict[str, Any]) -> str:
    """Description in one line, with what may be chosen."""
    text = option["description"]
    text = " ".join(text if isinstance(text, list) else [text])
    choices = ", ".join(f"`{choice}`" for choice in option.get("choices", ()) if choice is not None)
    return (" ".join(text.split()) + (f" One of {choices}." if choices else "")).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
