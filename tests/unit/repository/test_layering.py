"""Who may import whom: the table of docs/architecture.md, read from the source with ast."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
UNIT = Path(__file__).resolve().parents[1]
HOST_MODULES = {
    "kernel_cmdline",
    "kernel_settings",
    "netdev_names",
    "nic_firmware",
    "pcie_acs",
    "peer_memory",
    "preflight",
    "rail_links",
    "rail_qos",
    "rdma_facts",
    "rdma_stack",
    "reboot_reasons",
    "sriov_vfs",
}
MAY = {
    "_core": {"_core"},
    "_fabric": {"_core", "_fabric", "netaddr", "jmespath"},
    "_host": {"_core", "_host", "ansible"},
    "_k8s": {"_core", "_fabric", "_k8s", "ansible"},
    "_controller": {"_core", "_fabric", "_controller"},
    "host module": {"_core", "_host", "ansible"},
    "localhost module": {"_core", "_fabric", "_k8s", "_controller", "ansible"},
    "action": {"_core", "_fabric", "_controller", "ansible"},
    "lookup": {"ansible"},
}
IMPURE_MODULES = {"subprocess", "time", "random", "logging"}
IMPURE_CALLS = {"open", "print"}
# What a controller may lack; whoever imports it must say what to install instead of failing on import.
GUARDED = {"netaddr", "jmespath", "kubernetes", "urllib3", "websocket"}


def layer(path: Path) -> str | None:
    parts = path.relative_to(PLUGINS).parts
    if parts[0] == "module_utils":
        return parts[1]
    if parts[0] == "modules":
        return "host module" if path.stem in HOST_MODULES else "localhost module"
    if parts[0] in ("action", "lookup"):
        return parts[0]
    return None


def imports(path: Path, tree: ast.AST) -> Iterator[str]:
    """What each import statement reaches: a package of ours, ansible, or a top-level name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            yield relative(path, node)


def relative(path: Path, node: ast.ImportFrom) -> str:
    base = path.parents[node.level - 1].relative_to(PLUGINS).parts
    parts = (*base, *(node.module or "").split("."))
    inside = [part for part in parts if part.startswith("_") and part != "__future__"]
    return inside[0] if inside else "."


def faults(path: Path) -> list[str]:
    name = layer(path)
    if name is None:
        return []
    tree = ast.parse(path.read_text())
    is_client = path.parts[-2:] == ("_k8s", "client.py")
    allowed = MAY[name] | ({"kubernetes", "urllib3", "websocket"} if is_client else set())
    found = [
        f"{path.name} ({name}) imports {target}"
        for target in imports(path, tree)
        if target not in allowed and target not in sys.stdlib_module_names and target != "."
    ]
    if name in ("_core", "_fabric"):
        found += [f"{path.name} ({name}) {what}" for what in impure(path, tree)]
    found += [f"{path.name} ({name}) imports {what} unguarded" for what in unguarded(tree)]
    return found


def unguarded(tree: ast.AST) -> Iterator[str]:
    """Packages that a controller may lack, imported outside of ``try: ... except ImportError``."""
    tried = [node for node in ast.walk(tree) if isinstance(node, ast.Try) and catches_import_error(node)]
    guarded = {id(inner) for node in tried for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or getattr(node, "level", 0) or id(node) in guarded:
            continue
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        yield from (top for top in (name.split(".")[0] for name in names) if top in GUARDED)


def catches_import_error(node: ast.Try) -> bool:
    return any(isinstance(handler.type, ast.Name) and handler.type.id == "ImportError" for handler in node.handlers)


def impure(path: Path, tree: ast.AST) -> Iterator[str]:
    yield from (f"imports {t}" for t in imports(path, tree) if t in IMPURE_MODULES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield f"calls {node.func.id}() in line {node.lineno}"
        if isinstance(node, ast.Attribute) and node.attr == "environ":
            yield f"reads os.environ in line {node.lineno}"


@pytest.mark.parametrize("path", sorted(PLUGINS.rglob("*.py")), ids=lambda p: str(p.relative_to(PLUGINS)))
def test_imports_stay_in_their_layer(path: Path) -> None:
    assert faults(path) == []


@pytest.mark.parametrize(
    ("where", "source", "expected"),
    [
        (
            "module_utils/_core/x.py",
            "import netaddr",
            ["x.py (_core) imports netaddr", "x.py (_core) imports netaddr unguarded"],
        ),
        ("module_utils/_core/x.py", "from .._fabric.plan import plan", ["x.py (_core) imports _fabric"]),
        (
            "module_utils/_core/x.py",
            "try:\n    import jmespath\nexcept ImportError:\n    pass",
            ["x.py (_core) imports jmespath"],
        ),
        ("module_utils/_fabric/x.py", "import jmespath", ["x.py (_fabric) imports jmespath unguarded"]),
        (
            "module_utils/_fabric/x.py",
            "try:\n    import jmespath\nexcept ImportError:\n    import netaddr",
            ["x.py (_fabric) imports netaddr unguarded"],
        ),
        (
            "module_utils/_fabric/x.py",
            "try:\n    from jmespath import ast\nexcept ValueError:\n    pass",
            ["x.py (_fabric) imports jmespath unguarded"],
        ),
        ("module_utils/_fabric/x.py", "import time", ["x.py (_fabric) imports time"]),
        ("module_utils/_fabric/x.py", "open('a')", ["x.py (_fabric) calls open() in line 1"]),
        (
            "module_utils/_k8s/x.py",
            "import kubernetes",
            ["x.py (_k8s) imports kubernetes", "x.py (_k8s) imports kubernetes unguarded"],
        ),
        ("action/x.py", "from ..module_utils._host import state", ["x.py (action) imports _host"]),
        (
            "modules/rdma_facts.py",
            "from ..module_utils._fabric import plan",
            ["rdma_facts.py (host module) imports _fabric"],
        ),
    ],
)
def test_the_gate_sees_a_wrong_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, source: str, expected: list[str]
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PLUGINS", tmp_path)
    path = tmp_path / where
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert faults(path) == expected


def test_unit_tests_do_not_import_the_controller() -> None:
    """Once it is in the process, Ansible's module_utils behave as on a controller, for all tests that follow."""
    found = [
        f"{path.name}: {name}"
        for path in sorted(UNIT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        for name in imported(node)
        if name.startswith("ansible.") and not name.startswith("ansible.module_utils")
    ]
    assert not found


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
