"""The README's installation commands, line by line, in clean folders, with each supported ansible-core.

Only remote addresses are replaced: the repository is this checkout's last commit, kubernetes.core the copy of the
tests, and so galaxy works offline. Costs about a minute; a gate of its own (installation).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.tools import environment

REMOTE = "https://github.com/gpufabric/gpufabric.rdma.git"
BLOCK = re.compile(r"```sh\n# (?P<title>.*)\n(?P<lines>(?:.+\n)+?)```")
WAYS = {
    m["title"]: m["lines"].splitlines()
    for m in BLOCK.finditer((ROOT / "README.md").read_text().partition("## Installation")[2].partition("\n## ")[0])
}
CORES = {name: environment.core(name) for name in ("2.19", *environment.NEW_CORES)}
SYSTEM = Path("/usr/share/ansible/collections")


KUBERNETES_CORE = environment.COLLECTIONS / "ansible_collections/kubernetes/core"


class Place:
    """An empty folder with a home of its own, where one ansible-core is on the PATH."""

    def __init__(self, folder: Path, core: Path) -> None:
        self.folder, self.home, self.core = folder, folder / "home", core
        self.home.mkdir()
        shutil.copytree(KUBERNETES_CORE, self.home / ".ansible/collections/ansible_collections/kubernetes/core")
        (folder / "bin").mkdir()
        # pip of a fresh environment: what it installs is not mixed with what the tests have.
        options = f'--quiet --no-compile --target "{folder}/packages"'
        pip = f'#!/bin/bash\nexec "{core}/bin/python" -m pip "$1" {options} "${{@:2}}"\n'
        (folder / "bin" / "pip").write_text(pip)
        (folder / "bin" / "pip").chmod(0o755)

    def run(self, line: str, cwd: Path | None = None) -> str:
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("ANSIBLE_", "PYTHON", "VIRTUAL_ENV"))}
        path = f"{self.folder}/bin:{self.core}/bin:/usr/bin:/bin"
        env = {
            **keep,
            "HOME": str(self.home),
            "PATH": path,
            "PYTHONPATH": str(self.folder / "packages"),
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(
            ["bash", "-ec", line],
            cwd=cwd or self.folder,
            env=env,
            text=True,
            timeout=300,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout}"
        return done.stdout


def local(lines: list[str]) -> list[str]:
    """The lines with the repository of this checkout in place of the remote one."""
    lines = [line.replace(f"git+{REMOTE}", f"git+file://{ROOT}") for line in lines]
    lines = [line.replace(REMOTE, f"file://{ROOT} gpufabric.rdma") for line in lines]
    return [f"{line} --offline" if "collection install" in line else line for line in lines]


def works(place: Place) -> None:
    """The playbooks and modules are found from an empty folder that has nothing to do with the installation."""
    empty = place.folder / "elsewhere"
    empty.mkdir()
    place.run("ansible-playbook --syntax-check -i localhost, gpufabric.rdma.site", empty)
    assert "fabric_plan" in place.run("ansible-doc gpufabric.rdma.fabric_plan", empty)
    place.run("python -c 'import kubernetes, jmespath, netaddr'", empty)
    assert sorted(path.name for path in empty.iterdir()) == []


@pytest.fixture(params=CORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    core = CORES[request.param]
    if not (core / "bin" / "ansible-galaxy").is_file():
        pytest.skip(f"no ansible-core {request.param} here: it needs a newer Python")
    return Place(tmp_path, core)


def test_the_readme_has_the_ways_that_are_tried() -> None:
    assert list(WAYS) == ["for one user", "for all users of this machine, as root", "from a clone"]


def test_for_one_user(place: Place) -> None:
    for line in local(WAYS["for one user"]):
        place.run(line)
    works(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts an empty folder over the system's, which takes root")
def test_for_all_users(tmp_path: Path) -> None:
    """In a mount namespace, so that this machine's own folder stays as it is; one ansible-core shows it."""
    place = Place(tmp_path, environment.VENV)
    made = [path for path in (SYSTEM, *SYSTEM.parents) if not path.exists()]
    SYSTEM.mkdir(parents=True, exist_ok=True)
    try:
        lines = [
            f"mount -t tmpfs tmpfs {SYSTEM}",
            f"mv {place.home}/.ansible/collections/ansible_collections {SYSTEM}/",
            *local(WAYS["for all users of this machine, as root"]),
            "mkdir elsewhere; cd elsewhere; ansible-playbook --syntax-check -i localhost, gpufabric.rdma.site",
        ]
        (place.folder / "lines.sh").write_text("\n".join(["set -e", *lines, ""]))
        place.run("unshare --mount bash lines.sh")
    finally:
        for path in made:
            path.rmdir()
    assert not (place.home / ".ansible/collections/ansible_collections/gpufabric").exists()


@pytest.mark.parametrize("demo", ["before", "after"])
def test_from_a_clone(tmp_path: Path, demo: str) -> None:
    """Also where `make demo` made its tree of collections before, or makes it after; one ansible-core shows it."""
    place = Place(tmp_path, environment.VENV)
    clone, *others = local(WAYS["from a clone"])
    place.run(clone)
    folder = place.folder / "gpufabric.rdma"
    if demo == "before":
        make_tree(place, folder)
    first, *rest = others
    assert first == "cd gpufabric.rdma"
    for line in rest:
        place.run(line, folder)
    if demo == "after":
        make_tree(place, folder)
    works(place)


def make_tree(place: Place, folder: Path) -> None:
    """What `make demo` does first in a clone; kubernetes.core is there, so nothing is fetched."""
    copy = folder / ".cache/collections/ansible_collections/kubernetes/core"
    shutil.copytree(KUBERNETES_CORE, copy)
    place.run("python -c 'from tests.tools import environment; environment.make_collections()'", folder)
    assert (copy.parents[1] / "gpufabric/rdma").resolve() == folder


def test_the_execution_environment(tmp_path: Path) -> None:
    """ansible-builder takes the definition and finds what the collection needs; the Python part is installed above."""
    builder = environment.VENV / "bin" / "ansible-builder"
    context = tmp_path / "context"
    argv = [builder, "create", "--file", ROOT / "execution-environment/execution-environment.yml", "--context", context]
    subprocess.run(argv, cwd=ROOT / "execution-environment", check=True, capture_output=True, timeout=120)
    # The name depends on the container engine that is there, or is not.
    recipe = next(path for path in context.iterdir() if path.name in ("Containerfile", "Dockerfile")).read_text()
    assert "fedora:43" in recipe and "ansible-core==" in recipe
    tree = tmp_path / "ansible_collections/gpufabric/rdma"
    for name in ("meta", "galaxy.yml", "requirements.txt", "bindep.txt"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name)  # type: ignore[operator]
    found = subprocess.run([builder, "introspect", tmp_path], check=True, capture_output=True, text=True, timeout=120)
    needs = yaml.safe_load(found.stdout)
    asked = [line.split("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    assert [line.split("#")[0].strip() for line in needs["python"]] == list(filter(None, asked))
    assert any(line.startswith("helm ") for line in needs["system"])
