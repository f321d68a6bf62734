"""Who may import whom: the tables of docs/architecture.md, read from the source with ast.

Three rules: packages import only the packages that the table allows; inside a package the folders stand in an order and
import only folders before them, so that there is no circle; and only files named io.py or *_io.py, and _host/system,
touch the system.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
UNIT = Path(__file__).resolve().parents[1]
HOST_MODULES = {
    "host_bundle",
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
    "_common": {"_common"},
    "_fabric": {"_common", "_fabric", "netaddr", "jmespath"},
    "_host": {"_common", "_host", "ansible"},
    "_k8s": {"_common", "_fabric", "_k8s", "ansible"},
    "_controller": {"_common", "_fabric", "_controller"},
    "host module": {"_common", "_host", "ansible"},
    "localhost module": {"_common", "_fabric", "_k8s", "_controller", "ansible"},
    "action": {"_common", "_fabric", "_controller", "plugin_utils", "ansible"},
    "plugin_utils": {"_common", "_controller", "jinja2", "markupsafe"},
    "lookup": {"_fabric", "ansible"},
    "inventory": {"_common", "_k8s", "ansible"},
}
# Folders in their order: each imports only those before it.
FLOORS = {
    "_fabric": (
        "intent",
        "operator",
        "lint",
        "plan",
        "measure/readings",
        "measure/schedule",
        "measure/diagnosis",
        "measure/judge",
        "measure/nccl",
        "report",
    ),
    "_host": (
        "system",
        "facts",
        "kernel",
        "firmware",
        "sriov",
        "naming",
        "rdma_stack",
        "links",
        "qos",
        "gpu_direct",
        "reboot",
        "preflight",
        "bundle",
    ),
    "_k8s": ("client", "objects", "checks", "ready", "drain", "testers", "bundle"),
}
# Nothing in these opens, runs or waits; _host has one door to the system per folder.
PURE = ("_common", "_fabric")
TOOLS = "_host/system"
IMPURE_MODULES = {"subprocess", "time", "random", "logging"}
IMPURE_CALLS = {"open", "print"}
# What reaches the system through a function of the standard library.
SYSTEM_CALLS = {
    "os": {"listdir", "walk", "scandir", "remove", "unlink", "rename", "replace", "mkdir", "makedirs", "rmdir"}
    | {"symlink", "readlink", "stat", "lstat", "chmod", "kill", "open", "popen", "system", "environ"},
    "path": {"exists", "isfile", "isdir", "islink", "realpath", "getsize", "getmtime"},
    "shutil": {"which", "rmtree", "copy", "move"},
    "glob": {"glob", "iglob"},
    "command": {"run", "find"},
    "files": {"read", "put", "read_record", "read_text", "read_bytes", "names", "read_folder", "write_files"},
    "records": {"load", "save", "set_reasons"},
}
# What a controller may lack; whoever imports it must say what to install instead of failing on import.
GUARDED = {"netaddr", "jmespath", "kubernetes", "urllib3", "websocket"}


def layer(path: Path) -> str | None:
    parts = path.relative_to(PLUGINS).parts
    if parts[0] == "module_utils":
        return parts[1]
    if parts[0] == "modules":
        return "host module" if path.stem in HOST_MODULES else "localhost module"
    if parts[0] in ("action", "inventory", "lookup", "plugin_utils"):
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
    parts = reached(path, node)
    inside = [part for part in parts if (part.startswith("_") and part != "__future__") or part == "plugin_utils"]
    return inside[0] if inside else "."


def reached(path: Path, node: ast.ImportFrom) -> tuple[str, ...]:
    base = path.parents[node.level - 1].relative_to(PLUGINS).parts
    return (*base, *(node.module or "").split(".")) if node.module else base


def floor(parts: tuple[str, ...]) -> tuple[str, str] | None:
    """The package and the folder inside it of a path below plugins/."""
    package = parts[1] if parts[0] == "module_utils" and len(parts) > 1 else ""
    inside = "/".join(parts[2:])
    for name in FLOORS.get(package, ()):
        if inside == name or inside.startswith(f"{name}/"):
            return package, name
    return None


def upward(path: Path, tree: ast.AST) -> Iterator[str]:
    """Imports of a folder that stands after that of the file."""
    own = floor(path.relative_to(PLUGINS).parts)
    for node in ast.walk(tree):
        if own is None or not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = reached(path, node)
        for target in (floor((*base, alias.name)) for alias in node.names):
            order = FLOORS[own[0]]
            if target and target[0] == own[0] and order.index(target[1]) > order.index(own[1]):
                yield f"{path.name} ({own[1]}) imports {target[1]}, which comes after it"


def touches_system(path: Path, tree: ast.AST) -> Iterator[str]:
    """Calls that reach the system from a file of _host that is not its folder's door."""
    parts = path.relative_to(PLUGINS).parts
    inside = "/".join(parts[1:])
    if not inside.startswith("_host/") or inside.startswith(f"{TOOLS}/") or path.stem.split("_")[-1] == "io":
        return
    yield from impure(path, tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if node.attr in SYSTEM_CALLS.get(owner, ()):
            yield f"calls {owner}.{node.attr} in line {node.lineno}"


def faults(path: Path) -> list[str]:
    name = layer(path)
    if name is None:
        return []
    tree = ast.parse(path.read_text())
    is_client = path.parts[-3:] == ("_k8s", "client", "connection.py")
    allowed = MAY[name] | ({"kubernetes", "urllib3", "websocket"} if is_client else set())
    found = [
        f"{path.name} ({name}) imports {target}"
        for target in imports(path, tree)
        if target not in allowed and target not in sys.stdlib_module_names and target != "."
    ]
    if name in PURE:
        found += [f"{path.name} ({name}) {what}" for what in impure(path, tree)]
    found += [f"{path.name} ({name}) imports {what} unguarded" for what in unguarded(tree)]
    found += [f"{path.name} ({name}) {what}" for what in touches_system(path, tree)]
    return found + list(upward(path, tree))


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
            "module_utils/_common/x.py",
            "import netaddr",
            ["x.py (_common) imports netaddr", "x.py (_common) imports netaddr unguarded"],
        ),
        ("module_utils/_common/x.py", "from .._fabric.plan import plan", ["x.py (_common) imports _fabric"]),
        (
            "module_utils/_common/x.py",
            "try:\n    import jmespath\nexcept ImportError:\n    pass",
            ["x.py (_common) imports jmespath"],
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
        (
            "module_utils/_fabric/plan/x.py",
            "from ..report import page",
            ["x.py (plan) imports report, which comes after it"],
        ),
        (
            "module_utils/_fabric/measure/readings/x.py",
            "from ..judge.step import step",
            ["x.py (measure/readings) imports measure/judge, which comes after it"],
        ),
        ("module_utils/_fabric/measure/judge/x.py", "from ..readings import perftest", []),
        (
            "module_utils/_host/facts/x.py",
            "from ..links.plan import plan_links",
            ["x.py (facts) imports links, which comes after it"],
        ),
        (
            "module_utils/_host/links/plan.py",
            "import os\nos.listdir('/')\ncommand.run(['ip'])\nopen('a')",
            [
                "plan.py (_host) calls open() in line 4",
                "plan.py (_host) calls os.listdir in line 2",
                "plan.py (_host) calls command.run in line 3",
            ],
        ),
        (
            "module_utils/_host/links/plan.py",
            "import os.path\nos.path.exists('/')",
            ["plan.py (_host) calls path.exists in line 2"],
        ),
        ("module_utils/_host/links/io.py", "import os\nos.listdir('/')", []),
        ("module_utils/_host/system/files.py", "import os\nos.listdir('/')", []),
        ("module_utils/_fabric/x.py", "open('a')", ["x.py (_fabric) calls open() in line 1"]),
        (
            "module_utils/_k8s/x.py",
            "import kubernetes",
            ["x.py (_k8s) imports kubernetes", "x.py (_k8s) imports kubernetes unguarded"],
        ),
        ("action/x.py", "from ..module_utils._host import state", ["x.py (action) imports _host"]),
        ("plugin_utils/x.py", "import jinja2", []),
        ("action/x.py", "import jinja2", ["x.py (action) imports jinja2"]),
        (
            "modules/fabric_report.py",
            "from ..plugin_utils.page import render",
            ["fabric_report.py (localhost module) imports plugin_utils"],
        ),
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
