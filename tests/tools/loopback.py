"""Hosts that are fixture trees on this machine, so that playbooks run on them without a machine of their own.

    inventory = make_hosts(work, ["gpu-0001", "gpu-0002"])
    make_playbooks(work / "playbooks", path_defaults())

The entries of the inventory have a local connection, and each has a fixture tree of its own: the GPU server of
tests/fixtures/sysfs with 8 rails, their names, MTU and addresses as planned. The plays of playbooks run as they are.

Every path option of every module on hosts leads into the host's tree, programs are stand-ins that print what the tree
says, and tests/tools/guard refuses whatever else a module would change on this machine. So these roles work:
preflight, host_kernel, rail_names, rdma_stack, host_reboot (asking), rail_links, peer_memory. What has to act on a
kernel, a NIC, a boot loader or a package manager cannot: nic_firmware, sriov, pcie_acs, the queues of rail_links, a
reboot, installing packages. A converged host runs none of that unless it is asked for.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from tests.tools.environment import REPO

sys.path[:0] = [str(REPO)]

from tests.tools import importable  # noqa: F401
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import plan as links_plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack import packages_io
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack import plan as rdma_stack_plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import command

# By address: the kernel of this machine does not know the ports of a tree, so nothing tells which rates they support.
RAILS = ("18:00", "40:00", "4f:00", "5e:00", "9a:00", "c0:00", "ce:00", "dc:00")
FABRIC = {
    "supernet": "10.64.0.0/10",
    "rail_prefix": 19,
    "capacity": {"hosts": 1024, "pods_per_host": 1},
    "rails": [{"name": f"rail{number}", "pci": [f"0000:{slot}.0"]} for number, slot in enumerate(RAILS)],
}
MODULES = "ansible_collections.gpufabric.rdma.plugins.modules"
MANIFEST = sysfs_tree.FIXTURES / "gpu-server-8-rails.txt"
# The MTU of the rails' ports, and the beginning of all MAC addresses, in the manifest.
FIXTURE_MTU, FIXTURE_MAC = 4200, "b8:3f:d2:00"
# Prints nothing else than the file of the tree that is called like the command, or like the program alone.
STAND_IN = """#!/bin/sh
said="$HOST_TREE/prints/${0##*/} $*"
[ -f "$said" ] || said="$HOST_TREE/prints/${0##*/}"
[ -f "$said" ] || { echo "the fixture tree does not know this command" >&2; exit 1; }
exec /bin/cat "$said"
"""
PYTHON = """#!/bin/sh
HOST_TREE={tree} HOST_BIN={work}/bin PATH={work}/bin PYTHONPATH={work}/guard \\
TMPDIR={tree}/tmp exec /usr/bin/python3 "$@"
"""
# What a run asks of programs beside the fixture's commands: reloads, routing rules, packages, a module on disk.
PRINTS = {
    "udevadm control --reload": "",
    "networkctl reload": "",
    "systemctl daemon-reload": "",
    "ip -N -j rule show": "[]\n",
    "modinfo --field=filename nvidia_peermem": "/lib/modules/nvidia-peermem.ko\n",
    "ib_write_bw --help": "      --use_cuda_dmabuf Use CUDA DMA-BUF for GPUDirect RDMA testing\n",
}


def path_defaults() -> dict[str, dict[str, Any]]:
    """Return module -> its path options, each led into the tree of the host."""
    # A module with an action of its name is that action's documentation, and runs on no host.
    actions = {path.stem for path in (REPO / "plugins" / "action").glob("*.py")}
    modules = {path.stem for path in (REPO / "plugins" / "modules").glob("*.py")} - actions
    found = {name: specification(name) for name in sorted(modules)}
    return {f"gpufabric.rdma.{name}": into_tree(name, options) for name, options in found.items() if "root" in options}


class _Asked(BaseException):
    """Carries what a module asks for."""


def specification(module: str) -> dict[str, Any]:
    """Return the options that a module takes, from the module itself: no path can be forgotten."""

    def ask(argument_spec: dict[str, Any], **_others: Any) -> None:
        raise _Asked(argument_spec)

    code = importlib.import_module(f"{MODULES}.{module}")
    with patch.object(code, "AnsibleModule", ask):
        try:
            code.main()
        except _Asked as asked:
            return asked.args[0]
    raise SystemExit(f"{module} did not say what options it has")


def into_tree(module: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the path options of a module with the host's tree before each default; exits when one has none."""
    found: dict[str, Any] = {}
    for name, option in options.items():
        if "path" not in (option.get("type"), option.get("elements")):
            continue
        default = option.get("default")
        if (name, default) == ("root", "/"):
            found[name] = "{{ host_tree }}"
            continue
        paths = default if isinstance(default, list) else [default]
        if not all(isinstance(path, str) and path.startswith("/") and path != "/" for path in paths):
            raise SystemExit(
                f"loopback: {module} would leave the fixture tree: option {name} has the default {default}"
            )
        inside = ["{{ host_tree }}" + path for path in paths]
        found[name] = inside if isinstance(default, list) else inside[0]
    return found


def make_playbooks(folder: Path, defaults: Mapping[str, Any]) -> None:
    """Copy the playbooks, each play with these defaults of modules; task files and variables are the checkout's own."""
    folder.mkdir()
    for path in (REPO / "playbooks").iterdir():
        if path.suffix != ".yml":
            (folder / path.name).symlink_to(path)
            continue
        plays = yaml.safe_load(path.read_text())
        made = [{**play, "module_defaults": defaults} if "hosts" in play else play for play in plays]
        (folder / path.name).write_text(json.dumps(made))


def environment(work: Path) -> dict[str, str]:
    """Return the environment in which ansible-playbook keeps its own files below this folder."""
    (work / "tmp").mkdir(exist_ok=True)
    return {
        "ANSIBLE_HOME": f"{work}/ansible",
        "ANSIBLE_REMOTE_TEMP": f"{work}/ansible/remote",
        "TMPDIR": f"{work}/tmp",
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_NO_TARGET_SYSLOG": "true",
    }


def make_hosts(
    work: Path,
    names: list[str],
    fabric: Mapping[str, Any] = FABRIC,
    variables: Mapping[str, Any] | None = None,
    *,
    extra: Callable[[Path, Mapping[str, Any]], dict[str, Any]] | None = None,
    programs: Mapping[str, str] | None = None,
) -> Path:
    """Make a tree for each host, and the stand-ins; return the inventory, which has these variables of all hosts.

    `programs` is what more programs print on each host, and `extra` returns more variables of a host, from its tree and
    its part of the plan.
    """
    manifest = MANIFEST.read_text()
    planned = make_plan(manifest, work / "sample", names, fabric)
    hosts: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(names, 1):
        tree, own = work / "hosts" / name, planned["hosts"][name]
        text = manifest.replace(FIXTURE_MAC, f"b8:3f:{number >> 8:02x}:{number & 255:02x}")
        make_tree(tree, name, text, own)
        for line, said in (programs or {}).items():
            (tree / "prints" / line).write_text(said)
        script(tree / "python", PYTHON.format(tree=tree, work=work))
        hosts[name] = {"host_tree": str(tree), **(extra(tree, {"name": name, **own}) if extra else {})}
    for program in {text.name.split()[0] for text in (work / "hosts" / names[0] / "prints").iterdir()}:
        script(work / "bin" / program, STAND_IN)
    shutil.copytree(Path(__file__).parent / "guard", work / "guard", ignore=shutil.ignore_patterns("__pycache__"))
    group = {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_remote_tmp": "{{ host_tree }}/tmp",
        "ansible_python_interpreter": "{{ host_tree }}/python",
        "rdma_fabric": dict(fabric),
        **(variables or {}),
    }
    inventory = work / "inventory.yml"
    inventory.write_text(json.dumps({"all": {"children": {"rdma_hosts": {"hosts": hosts, "vars": group}}}}))
    return inventory


def make_plan(manifest: str, root: Path, names: Iterable[str], fabric: Mapping[str, Any] = FABRIC) -> dict[str, Any]:
    """Plan a fleet of hosts that are all as the manifest says."""
    sample = sysfs_tree.build(manifest, root)
    with patch.object(command, "run", sample.run), patch.object(command, "find", sample.find):
        facts = sample.inventory().to_dict()
    return plan(
        fabric,
        {
            name: {"facts": {**facts, "hostname": name, "machine_id": machine_id(number)}, "rdma_host": {}}
            for number, name in enumerate(names, 1)
        },
    )


def planned_rails(fabric: Mapping[str, Any], names: Iterable[str], root: Path) -> list[dict[str, Any]]:
    """Return the rails of the plan for a fleet that has no host of its own; the folder must not exist."""
    rails: list[dict[str, Any]] = make_plan(MANIFEST.read_text(), root, names, fabric)["rails"]
    return rails


def machine_id(number: int) -> str:
    return f"{number:032x}"


def make_tree(root: Path, name: str, manifest: str, own: Mapping[str, Any]) -> None:
    """Make a host whose kernel is as planned, and whose files are not written yet."""
    for rail in own["rails"]:
        manifest = manifest.replace(rail["current"], rail["netdev"])
        manifest = manifest.replace(f"mtu = {FIXTURE_MTU}", f"mtu = {rail['mtu']}")
        manifest = manifest.replace(f'"mtu": {FIXTURE_MTU}', f'"mtu": {rail["mtu"]}')
    host = sysfs_tree.build(manifest, root)
    host.idle()
    addresses = {rail["netdev"]: rail["address"].split("/") for rail in own["rails"]}
    links_now = host.links()
    for link in links_now:
        if link["ifname"] in addresses:
            local, prefix = addresses[link["ifname"]]
            link["addr_info"] = [{"family": "inet", "local": local, "prefixlen": int(prefix), "scope": "global"}]
    host.set_links(links_now)
    files = {
        "etc/machine-id": own["machine_id"],
        "proc/sys/kernel/hostname": name,
        "proc/kallsyms": "0 T ib_umem_dmabuf_get\t[ib_uverbs]\n",
        **{
            f"proc/sys/net/ipv4/conf/{rail}/{key}": value
            for rail in addresses
            for key, value in links_plan.SYSCTLS.items()
        },
        **{f"sys/module/{module}/refcnt": "0\n" for module in rdma_stack_plan.MODULES},
        **{f"prints/{command_line}": text for command_line, text in prints(host).items()},
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "tmp").mkdir()


def prints(host: sysfs_tree.Host) -> dict[str, str]:
    """Return command line -> what it prints; programs without their folder."""
    own = {line.rpartition("/")[2] if line.startswith("/") else line: text for line, text in host.prints.items()}
    wanted = sorted(rdma_stack_plan.PACKAGES["debian"])
    dpkg = "".join(f"{package} 1.0 install installed\n" for package in wanted)
    return {**own, **PRINTS, " ".join([*packages_io.DPKG, *wanted]): dpkg}


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
