"""Every refusal on a host is foreseen by preflight, or stated here with the reason why it cannot be.

preflight runs the plans of the roles, so a refusal is foreseen where its ``raise`` is reached from what preflight
calls. The calls are followed through the source: a name leads to the function that it is imported or defined as, an
attribute of something else to every method of that name. `tests/unit/plugins/modules/test_preflight_roles.py` compares
the messages.

Cost: about 2 s.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
UTILS = PLUGINS / "module_utils"
ERRORS = {"FabricError", "InputError", "ParseError", "ConflictError", "InUseError", "CommandError"}
MODULES = ("kernel_cmdline", "kernel_settings", "netdev_names", "nic_firmware", "pcie_acs", "peer_memory", "preflight",
           "rail_links", "rail_qos", "rdma_stack", "sriov_vfs")  # fmt: skip

DURING = "the kernel, a program or the file system refuses the change itself, which only the attempt shows"
AFTER = "it compares the host with the plan after the change, or after the reboot"
BUSY = "it is about another run or a measurement at the time of the change"
# Function that refuses -> why preflight cannot foresee it.
LATER = {
    "module_utils/_common/reader.py::raise_problems": "input of the controller, read before any host is contacted",
    "module_utils/_host/gpu_direct/peer_memory.py::prove": AFTER,
    "module_utils/_host/kernel/boot_loader_io.py::_check_menu": AFTER,
    "module_utils/_host/kernel/boot_loader_io.py::_make_menu": DURING,
    "module_utils/_host/kernel/settings_io.py::_set_pages": DURING,
    "module_utils/_host/links/io.py::apply": AFTER,
    "module_utils/_host/qos/io.py::_take": DURING,
    "module_utils/_host/rdma_stack/io.py::_load": DURING,
    "module_utils/_host/reboot/reasons.py::check_users": "work on the host at the time of the reboot, after a drain",
    "module_utils/_host/reboot/reasons.py::verify": AFTER,
    "module_utils/_host/system/converge.py::verify": AFTER,
    "module_utils/_host/system/files.py::remove": DURING,
    "module_utils/_host/system/files.py::set_kernel": DURING,
    "module_utils/_host/system/files.py::tell_kernel": DURING,
    "module_utils/_host/system/lock.py::_measured_for": BUSY,
    "module_utils/_host/system/lock.py::_open": BUSY,
    "module_utils/_host/system/lock.py::_take": BUSY,
    # Its conditions are those of preflight/checks.py, which tests/unit/plugins/modules/test_pcie_acs.py compares.
    "modules/pcie_acs.py::Acs.read_plan": "an IOMMU that translates now may not do so after the reboot of this run",
}


class Function(NamedTuple):
    """A function or method: its file, its name with that of its class, and its code."""

    path: Path
    name: str
    node: ast.AST

    @property
    def key(self) -> str:
        return f"{self.path.relative_to(PLUGINS)}::{self.name}"


class File(NamedTuple):
    """Functions by name, and name -> file or function that an import gives it."""

    functions: dict[str, Function]
    imports: dict[str, tuple[Path, str]]


@functools.cache
def read(path: Path) -> File:
    tree = ast.parse(path.read_text())
    functions: dict[str, Function] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = Function(path, node.name, node)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    functions[f"{node.name}.{inner.name}"] = Function(path, f"{node.name}.{inner.name}", inner)
    top = ast.Module([node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))], [])
    functions[""] = Function(path, "", top)
    return File(functions, dict(imported(path, tree)))


def imported(path: Path, tree: ast.Module) -> Iterator[tuple[str, tuple[Path, str]]]:
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
        for alias in node.names:
            own = folder / f"{alias.name}.py"
            target = (own, "") if own.is_file() else (folder.with_suffix(".py"), alias.name)
            yield alias.asname or alias.name, target


@functools.cache
def methods() -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for path in sources():
        for function in read(path).functions.values():
            if "." in function.name:
                found.setdefault(function.name.rpartition(".")[2], []).append(function)
    return found


def sources() -> list[Path]:
    return [*sorted((UTILS / "_host").rglob("*.py")), *sorted((UTILS / "_common").rglob("*.py"))]


def calls(function: Function) -> Iterator[Function]:
    """Everything that a function names."""
    file = read(function.path)
    for node in ast.walk(function.node):
        if isinstance(node, ast.Name):
            yield from named(file, node.id)
        elif isinstance(node, ast.Attribute):
            owner = file.imports.get(node.value.id) if isinstance(node.value, ast.Name) else None
            if owner and not owner[1]:
                yield from named(read(owner[0]), node.attr)
            else:
                yield from methods().get(node.attr, ())


def named(file: File, name: str) -> Iterator[Function]:
    if name in file.imports:
        path, inside = file.imports[name]
        if inside and path.is_file():
            yield from named(read(path), inside)
        return
    for key, function in file.functions.items():
        if key == name or key in (f"{name}.__init__", f"{name}.__post_init__"):
            yield function


def reached(first: list[Function], without: str = "") -> set[str]:
    """Return what these functions reach, where nothing leads into the file ``without``."""
    todo, seen = list(first), set()
    while todo:
        function = todo.pop()
        if function.key not in seen and function.path.stem != without:
            seen.add(function.key)
            # Tables of a file, such as those of settings, lead to functions too.
            todo += [*calls(function), read(function.path).functions[""]]
    return seen


def refusals() -> set[str]:
    """Return the functions that raise an error for a user."""
    paths = [*sources(), *(PLUGINS / "modules" / f"{name}.py" for name in MODULES)]
    return {
        function.key
        for path in paths
        for function in read(path).functions.values()
        for node in ast.walk(function.node)
        if isinstance(node, ast.Raise) and raised(node) in ERRORS
    }


def raised(node: ast.Raise) -> str:
    called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return called.id if isinstance(called, ast.Name) else ""


def foreseen(without: str = "") -> set[str]:
    return reached([read(PLUGINS / "modules/preflight.py").functions["main"]], without)


def test_every_refusal_is_foreseen_or_has_its_reason() -> None:
    assert sorted(refusals() - foreseen()) == sorted(LATER)


def test_a_plan_that_preflight_does_not_run_is_found() -> None:
    key = "module_utils/_host/sriov/plan.py::wanted"
    assert key in foreseen() and key in refusals() - foreseen(without="roles_io")
