"""The size budgets of docs/architecture.md, measured."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
FUNCTION_MEDIAN, FUNCTION_MAX = 8, 52
UTIL_LINES, MODULE_LINES, MAIN_LINES = 340, 130, 28
TASK_FILE_LINES, TASK_FILE_TASKS = 60, 8

UTILS = sorted(
    path
    for folder in ("module_utils", "plugin_utils", "action", "inventory", "lookup")
    for path in (PLUGINS / folder).rglob("*.py")
)
MODULES = sorted((PLUGINS / "modules").glob("*.py"))
TASK_FILES = sorted((ROOT / "roles").glob("*/tasks/*.yml"))


# Its length follows from the tables of docs/inventory.md.
GENERATED = PLUGINS / "module_utils" / "_fabric" / "intent" / "options.py"


def functions(path: Path) -> dict[str, int]:
    tree = ast.parse(path.read_text())
    return {
        f"{path.name}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


def lines_after_docs(path: Path) -> int:
    """Lines of a module after its DOCUMENTATION, EXAMPLES and RETURN."""
    last = 0
    for node in ast.parse(path.read_text()).body:
        names = [t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)]
        if set(names) & {"DOCUMENTATION", "EXAMPLES", "RETURN"}:
            last = node.end_lineno or last
    return len(path.read_text().splitlines()) - last


def count_tasks(tasks: list[dict[str, Any]]) -> int:
    return sum(
        1 + sum(count_tasks(task.get(part) or []) for part in ("block", "rescue", "always")) - ("block" in task)
        for task in tasks
    )


def test_functions_are_short() -> None:
    sizes = {name: size for path in [*UTILS, *MODULES] for name, size in functions(path).items()}
    assert len(sizes) > 1000
    assert {name: size for name, size in sizes.items() if size > FUNCTION_MAX} == {}
    assert statistics.median(sizes.values()) <= FUNCTION_MEDIAN


@pytest.mark.parametrize(
    "path", [path for path in UTILS if path != GENERATED], ids=lambda p: str(p.relative_to(PLUGINS))
)
def test_util_files_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= UTIL_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.stem)
def test_modules_are_borders(path: Path) -> None:
    assert lines_after_docs(path) <= MODULE_LINES
    assert functions(path).get(f"{path.name}:main", 0) <= MAIN_LINES


@pytest.mark.parametrize("path", TASK_FILES, ids=lambda p: str(p.relative_to(ROOT / "roles")))
def test_task_files_are_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= TASK_FILE_LINES
    assert count_tasks(yaml.safe_load(text) or []) <= TASK_FILE_TASKS


def test_no_shell_and_no_public_function_without_docstring() -> None:
    shells = [
        str(path.relative_to(ROOT))
        for folder in ("roles", "playbooks")
        for path in (ROOT / folder).rglob("*.yml")
        if "ansible.builtin.shell" in path.read_text()
    ]
    assert shells == []
    silent = [
        f"{path.relative_to(PLUGINS)}:{node.name}"
        for path in UTILS
        for node in ast.parse(path.read_text()).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert silent == []
