"""Every refusal is found by preflight or by the check of the cluster, or stated here with the reason why it cannot be.

preflight runs the plans of the roles, so a refusal is foreseen where its ``raise`` is reached from what preflight
calls. The calls are followed through the source: a name leads to the function that it is imported or defined as, an
attribute of something else to every method of that name. `tests/unit/plugins/modules/test_preflight_roles.py` compares
the messages. For the roles of the cluster, the same holds of the check of the cluster before the first change.

Cost: about 4 s.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PLUGINS = Path(__file__).resolve().parents[3] / "plugins"
UTILS = PLUGINS / "module_utils"
ERRORS = {"FabricError", "InputError", "ParseError", "ConflictError", "InUseError", "CommandError", "ClusterError",
          "ApiError"}  # fmt: skip
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


HOST, CLUSTER = ("_host", "_common"), ("_k8s", "_common")
CLUSTER_MODULES = ("cluster_info", "fabric_objects", "fabric_olm", "fabric_wait", "node_drain", "fabric_testers")
DRAIN = "pods, budgets and nodes at the time of a reboot; the drain is refused before the host is touched"
TESTERS = "what testers and their logs do while they measure"
SAME = "the check runs its condition and says the same: "
LATER_ON_THE_CLUSTER = {
    "module_utils/_common/pci.py::PciAddress.parse": "facts of hosts, which the plan has read",
    "module_utils/_common/reader.py::raise_problems": "input of the controller, read before any host is contacted",
    "module_utils/_common/vf_identity.py::_check": "input of the controller, which the plan has read",
    "module_utils/_common/vf_identity.py::_octets": "input of the controller, which the plan has read",
    "module_utils/_k8s/client/api.py::Api.execute": TESTERS,
    "module_utils/_k8s/client/nodes.py::_confirm": DRAIN,
    "module_utils/_k8s/client/nodes.py::node_of_host": DRAIN,
    "module_utils/_k8s/client/nodes.py::refuse_unconfigured": DRAIN,
    "module_utils/_k8s/drain/cordon.py::_read": DRAIN,
    "module_utils/_k8s/drain/cordon.py::check_control_plane": DRAIN,
    "module_utils/_k8s/drain/cordon.py::wait_ready": DRAIN,
    "module_utils/_k8s/drain/drain.py::check_permissions": DRAIN,
    "module_utils/_k8s/drain/drain.py::drain": DRAIN,
    "module_utils/_k8s/drain/drain.py::pods_of": DRAIN,
    "module_utils/_k8s/drain/drain.py::refuse": DRAIN,
    "module_utils/_k8s/ready/olm.py::_wait": AFTER,
    "module_utils/_k8s/ready/olm.py::install": "an InstallPlan that OLM makes of the Subscription of this run",
    "module_utils/_k8s/ready/wait.py::check": "kinds that no plan has",
    "module_utils/_k8s/testers/jobs.py::_wait_no_pods": TESTERS,
    "module_utils/_k8s/testers/lease.py::Lease.take": BUSY,
    "module_utils/_k8s/testers/logs.py::describe_part": TESTERS,
    "module_utils/_k8s/testers/logs.py::read_log": TESTERS,
    "module_utils/_k8s/testers/namespace.py::prepare": SAME + "test_the_namespace_of_the_testers_is_judged_first",
    "module_utils/_k8s/testers/nccl.py::_start": TESTERS,
    "module_utils/_k8s/testers/nccl.py::measured": "options that the role of collectives always gives",
    "module_utils/_k8s/testers/passes.py::read_kept": TESTERS,
    "module_utils/_k8s/testers/steps.py::_run": "an option that the action plugin makes",
    "module_utils/_k8s/testers/steps.py::check_namespace": SAME + "info.py calls the same function for test_namespace",
    "module_utils/_k8s/testers/steps.py::endpoints_of": "an empty plan, which run_scope refuses first",
    "module_utils/_k8s/testers/steps.py::read_script": "a file of the collection",
    "modules/fabric_objects.py::run": SAME + "test_the_check_before_the_first_change_finds_what_a_role_would_refuse",
    "modules/fabric_olm.py::aim": "options that the role of the operator never gives",
    "modules/fabric_olm.py::run": SAME + "test_what_stands_in_the_way_is_foreseen_and_left",
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
def methods(folders: tuple[str, ...]) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for path in sources(folders):
        for function in read(path).functions.values():
            if "." in function.name:
                found.setdefault(function.name.rpartition(".")[2], []).append(function)
    return found


def sources(folders: tuple[str, ...]) -> list[Path]:
    return [path for folder in folders for path in sorted((UTILS / folder).rglob("*.py"))]


def calls(function: Function, folders: tuple[str, ...]) -> Iterator[Function]:
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
                yield from methods(folders).get(node.attr, ())


def named(file: File, name: str) -> Iterator[Function]:
    if name in file.imports:
        path, inside = file.imports[name]
        if inside and path.is_file():
            yield from named(read(path), inside)
        return
    for key, function in file.functions.items():
        if key == name or key in (f"{name}.__init__", f"{name}.__post_init__"):
            yield function


def reached(first: list[Function], folders: tuple[str, ...], without: str = "") -> set[str]:
    """Return what these functions reach, where nothing leads into the file ``without``."""
    todo, seen = list(first), set()
    while todo:
        function = todo.pop()
        if function.key not in seen and function.path.stem != without:
            seen.add(function.key)
            # Tables of a file, such as those of settings, lead to functions too.
            todo += [*calls(function, folders), read(function.path).functions[""]]
    return seen


def refusals(folders: tuple[str, ...], modules: tuple[str, ...]) -> set[str]:
    """Return the functions that raise an error for a user."""
    paths = [*sources(folders), *(PLUGINS / "modules" / f"{name}.py" for name in modules)]
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
    return reached([read(PLUGINS / "modules/preflight.py").functions["main"]], HOST, without)


def test_every_refusal_is_foreseen_or_has_its_reason() -> None:
    assert sorted(refusals(HOST, MODULES) - foreseen()) == sorted(LATER)


def test_a_plan_that_preflight_does_not_run_is_found() -> None:
    key = "module_utils/_host/sriov/plan.py::wanted"
    assert key in foreseen() and key in refusals(HOST, MODULES) - foreseen(without="roles_io")


def test_every_refusal_of_the_cluster_is_found_by_its_check_or_has_its_reason() -> None:
    """The check is that of playbooks/tasks/cluster.yml, which runs before the first host is changed."""
    found = reached([read(PLUGINS / "modules/cluster_info.py").functions["main"]], CLUSTER)
    assert sorted(refusals(CLUSTER, CLUSTER_MODULES) - found) == sorted(LATER_ON_THE_CLUSTER)
