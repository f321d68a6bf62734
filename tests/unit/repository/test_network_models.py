"""No file but a network model's own may know its name or the kinds of its objects (docs/extending.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tools.environment import REPO

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles.kinds import (
    DEFINITION,
    POOLS,
)

HOME = "module_utils/_fabric/operator/profiles"
# What ansible-doc shows may give examples of models.
DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
# Ansible has a type of options, and the NicClusterPolicy a section, with these names.
COMMON_WORDS = ("raw", "ipoib")


def words() -> list[str]:
    """The kinds that only one model has, and their plurals; pools and definitions are shared."""
    own = [kind for kind in registry.kinds() if kind not in (*POOLS, DEFINITION, *registry.FURTHER)]
    return sorted(word for kind in own for word in (kind.kind, kind.plural))


def texts(tree: ast.AST) -> Iterator[str]:
    """Names and texts of a file, without comments, docstrings and what ansible-doc shows."""
    shown = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and {target.id for target in node.targets if isinstance(target, ast.Name)} & DOCUMENTATION
        for part in ast.walk(node)
    }
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in shown | said:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        for name in ("id", "attr", "name", "arg", "module"):
            if isinstance(getattr(node, name, None), str):
                yield str(getattr(node, name))


def comparisons(tree: ast.AST) -> Iterator[str]:
    """The texts that a file compares something with."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Compare, ast.MatchValue)):
            yield from (part.value for part in ast.walk(node) if isinstance(getattr(part, "value", None), str))


def known_in(path: Path) -> list[str]:
    """The names and kinds of models that a file of Python or YAML knows: a name as a whole text, a kind anywhere."""
    text = path.read_text()
    if path.suffix != ".py":
        parts = compared = [*re.findall(r"['\"]([^'\"]*)['\"]", text), text]
    else:
        tree = ast.parse(text)
        parts, compared = list(texts(tree)), list(comparisons(tree))
    # The section of rdma_fabric with the settings of a model may have its name.
    common = (*registry.sections(), *COMMON_WORDS)
    names = [name for name in registry.names() if name in (compared if name in common else parts)]
    return [*names, *(word for word in words() if any(word in part for part in parts))]


def code() -> list[Path]:
    # What runs on hosts cannot read a plan (test_layering.py); its messages may name objects of the cluster.
    # The tables of release lines and definitions have the fields of all kinds; the rules examine objects of any origin.
    tables = ("_fabric/intent/releases.py", "_fabric/operator/schema_table.py")
    apart = (HOME, "module_utils/_host/", *tables, "_fabric/lint/", "_k8s/checks/lint_objects.py")
    python = [path for path in (REPO / "plugins").rglob("*.py") if not any(part in path.as_posix() for part in apart)]
    roles = [path for path in (REPO / "roles").rglob("*.yml") if path.name != "argument_specs.yml"]
    return sorted([*python, *roles, *(REPO / "playbooks").rglob("*.yml")])


def test_only_its_own_file_knows_a_network_model() -> None:
    assert {str(path.relative_to(REPO)): found for path in code() if (found := known_in(path))} == {}


def test_each_model_has_one_file() -> None:
    folder = REPO / "plugins" / HOME
    for name in registry.names():
        owners = [path.name for path in folder.glob("*.py") if f'name="{name}"' in path.read_text()]
        assert owners == [f"{name}.py"]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.py", 'if profile == "macvlan":\n    pass', ["macvlan"]),
        ("a.py", 'if intent.profile in ("sriov", "other"):\n    pass', ["sriov"]),
        ("a.py", 'reader.section("sriov")', []),
        ("a.py", 'PATH = "/apis/mellanox.com/v1alpha1/macvlannetworks"', ["macvlannetworks"]),
        ("a.py", "from .objects import build_MacvlanNetwork", ["MacvlanNetwork"]),
        ("a.py", 'def f():\n    """MacvlanNetwork"""\n    return 1  # MacvlanNetwork', []),
        ("a.py", 'RETURN = "MacvlanNetwork"', []),
        ("a.yml", "when: item.kind == 'MacvlanNetwork'", ["MacvlanNetwork"]),
        ("a.yml", "when: rdma_fabric.profile == 'macvlan'", ["macvlan"]),
    ],
)
def test_the_gate_sees_a_model(tmp_path: Path, name: str, text: str, found: list[str]) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert known_in(path) == found
