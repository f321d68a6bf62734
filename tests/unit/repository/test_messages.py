"""Messages of modules name options of modules, not the variables of the roles that call those modules.

A module can be used without its role. The pages in docs/roles state which variable is which option. Keys of the
intent, such as rdma_fabric.tests.kinds, are the user's input on every layer and are named as they are.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
MODULES = {path.stem for path in (PLUGINS / "modules").glob("*.py")}
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if (path / "meta" / "argument_specs.yml").is_file())
DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
# They read the variables of roles before the modules of these roles do, so these are what they report on.
READERS = {
    PLUGINS / "action" / "role_options.py",
    PLUGINS / "module_utils" / "_fabric" / "intent" / "role_variables.py",
    PLUGINS / "module_utils" / "_fabric" / "plan" / "traffic.py",
    PLUGINS / "module_utils" / "_host" / "preflight" / "roles_io.py",
}
FILES = sorted(
    path
    for folder in ("module_utils", "modules", "action", "plugin_utils")
    for path in (PLUGINS / folder).rglob("*.py")
    if path not in READERS
)
# Variables that no option of a module of the cluster stands for: what roles and playbooks do themselves.
WITHOUT_OPTION = {"host_kernel_hugepages", "host_reboot_drain", "rdma_validate_where"}
NAME = re.compile(rf"\b(?:{'|'.join(ROLES)})_[a-z_]*")


def variables() -> set[str]:
    """The inputs of all roles."""
    found = set()
    for role in ROLES:
        specs = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())
        found |= set(specs["argument_specs"]["main"]["options"])
    return found


VARIABLES = variables()


def documentation(tree: ast.Module) -> set[int]:
    """The nodes of docstrings, and of texts that ansible-doc shows."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            found.add(id(node.value))
        if isinstance(node, ast.Assign):
            targets = {one.id for one in node.targets if isinstance(one, ast.Name)}
            found |= {id(node.value)} if targets & DOCUMENTATION else set()
    return found


def named(text: str) -> list[str]:
    """The variables of roles that a text names; with a trailing underscore, the start of one that is filled in."""
    # The name of a module alone is that module: sriov_vfs is also a variable.
    found = [] if text in MODULES else NAME.findall(text)
    return [
        name
        for name in found
        if name in VARIABLES or (name.endswith("_") and any(one.startswith(name) for one in VARIABLES))
    ]


def found(source: str) -> list[str]:
    """The variables of roles that the string literals of a file name."""
    tree = ast.parse(source)
    apart = documentation(tree)
    return [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart
        for name in named(node.value)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PLUGINS)))
def test_messages_name_options(path: Path) -> None:
    allowed = WITHOUT_OPTION if "_k8s" in path.parts else set()
    assert set(found(path.read_text())) - allowed == set(), "name the option of the module instead"


def test_an_exception_is_still_needed() -> None:
    cluster = {name for path in FILES if "_k8s" in path.parts for name in found(path.read_text())}
    assert WITHOUT_OPTION - cluster == set()
    assert [path for path in READERS if not found(path.read_text())] == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('raise InputError("Set rail_links_manager to networkd")\n', ["rail_links_manager"]),
        ('text = f"{port}: lower sriov_vfs{raised}"\n', ["sriov_vfs"]),
        ('text = f"rdma_stack_doca_{name}"\n', ["rdma_stack_doca_"]),
        ('text = ("set "\n    "host_reboot_allowed: true")\n', ["host_reboot_allowed"]),
        ('module.warn("set rail_names_rdma: keep")\n', ["rail_names_rdma"]),
    ],
)
def test_the_gate_sees_a_variable(source: str, names: list[str]) -> None:
    assert found(source) == names


@pytest.mark.parametrize(
    "source",
    [
        '"""Set rail_links_manager."""\n\n\ndef f():\n    """Set sriov_vfs."""\n',
        'DOCUMENTATION = r"""rail_links_manager"""\n',
        'NAME = "sriov_vfs"\n',
        'path = f"{pf}/sriov_numvfs"\n',
        'text = "set rdma_disrupt_users: true, or rdma_fabric.rails"\n',
        "# rail_links_manager\nrail_links_manager = 1\n",
    ],
)
def test_the_gate_accepts(source: str) -> None:
    assert found(source) == []
