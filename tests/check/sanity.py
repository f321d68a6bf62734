"""ansible-test sanity on the oldest and the newest ansible-core that this machine can run.

Only the newest runs all tests, and imports modules on every Python. The older one leaves out what the newest shows, too
(200 s of a processor):
* the linters in `LINTERS` read the text of the files. What ansible-core must have of it, importing and mypy show;
* a module cannot be imported because its code does not suit a Python, which the newest shows on each of them, or
  because this ansible-core does not have what it imports, which one Python shows.

ansible-test insists on a checkout below ansible_collections/<namespace>/<name> and on bootstrapping pip from a
file host that not every network reaches: it gets a copy of the shipped files, a home folder of its own, and a
bootstrap that installs the pinned pip wheel.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.check import processes
from tests.tools import environment

REPO = environment.REPO
HOME = environment.CACHE / "ansible-test"
# What is shipped or checked by sanity; tests and the lab have ruff and mypy.
SHIPPED = (
    "LICENSE",
    "README.md",
    "galaxy.yml",
    "meta",
    "plugins",
    "roles",
    "playbooks",
    "changelogs",
    "tests/config.yml",
    "tests/sanity",
)
# Tests of texts, whatever reads them.
LINTERS = ("pep8", "pylint", "shellcheck", "yamllint")
TARGET_PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
SHIM = """\
# Stands in for the get-pip script: installs pip from a wheel that was fetched beforehand.
import sys

sys.path.insert(0, {wheel!r})
from pip._internal.cli.main import main

drop = ("--no-setuptools", "--no-wheel")
sys.exit(main(["install", "--upgrade"] + [a for a in sys.argv[1:] if a not in drop]))
"""


@dataclass(frozen=True)
class Core:
    """One ansible-core: where its venv is, and which pip its ansible-test wants. ``whole``: whether all tests run."""

    name: str
    venv: Path
    pip: str
    whole: bool = True

    @property
    def options(self) -> list[str]:
        """What limits the tests: the linters, and the Pythons but the one on which this ansible-core runs itself."""
        if self.whole:
            return []
        (python,) = (self.venv / "lib").glob("python3.*")
        return [
            "--python",
            python.name.removeprefix("python"),
            *(word for name in LINTERS for word in ("--skip-test", name)),
        ]

    def run(self, log: IO[str]) -> str | None:
        if not (self.venv / "bin" / "ansible-test").exists():
            log.write(f"left out: no ansible-core {self.name} here (it needs a Python that is not installed)\n")
            return "left out"
        bootstrap(self)
        with tempfile.TemporaryDirectory(prefix="sanity-") as folder:
            root = Path(folder) / "ansible_collections" / "gpufabric" / "rdma"
            copy_shipped(root)
            pythons = Path(folder) / "bin"
            found = link_pythons(pythons)
            missing = [version for version in TARGET_PYTHONS if version not in found]
            log.write(f"target Pythons: {' '.join(found)}; not on this machine: {' '.join(missing) or 'none'}\n")
            log.flush()
            argv = [str(self.venv / "bin" / "ansible-test"), "sanity", "--color", "no", "-v", *self.options]
            code = processes.run(argv, cwd=root, env=self.environ(pythons), stdout=log, stderr=subprocess.STDOUT)
        return None if code == 0 else f"exit code {code}"

    def environ(self, pythons: Path) -> dict[str, str]:
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("ANSIBLE_", "PYENV", "PYTHON"))}
        clean = [p for p in os.environ["PATH"].split(os.pathsep) if "pyenv" not in p]
        path = [str(self.venv / "bin"), str(pythons), *clean]
        return {**keep, "HOME": str(HOME), "PATH": os.pathsep.join(path), "LC_ALL": "C.UTF-8"}


def cores() -> list[Core]:
    newest = Core("2.21", environment.core("2.21"), "25.2")
    # Without a newer one, the oldest must do all of it.
    whole = not (newest.venv / "bin" / "ansible-test").exists()
    return [Core("2.19", environment.core("2.19"), "24.2", whole), newest]


def bootstrap(core: Core) -> None:
    """Put the stand-in of the get-pip script where ansible-test looks for it."""
    cache = HOME / ".ansible" / "test" / "cache"
    script = cache / f"get_pip_{core.pip.replace('.', '_')}.py"
    wheels = environment.CACHE / f"pip-{core.pip}"
    if not list(wheels.glob("pip-*.whl")):
        environment.pip(core.venv, "download", "--no-deps", "-d", str(wheels), f"pip=={core.pip}")
    cache.mkdir(parents=True, exist_ok=True)
    script.write_text(SHIM.format(wheel=str(next(wheels.glob("pip-*.whl")))))


def copy_shipped(root: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *SHIPPED],
        cwd=REPO,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.splitlines():
        source, target = REPO / name, root / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def link_pythons(folder: Path) -> list[str]:
    """Links to the real interpreters, since ansible-test scrubs the environment that a shim needs."""
    folder.mkdir(parents=True)
    found = []
    for version in TARGET_PYTHONS:
        real = interpreter(version)
        if real:
            (folder / f"python{version}").symlink_to(real)
            found.append(version)
    return found


def interpreter(version: str) -> str | None:
    candidates = [Path(sys.base_prefix) / "bin" / f"python{version}", Path("/usr/bin") / f"python{version}"]
    candidates += sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    which = shutil.which(f"python{version}")
    for path in [*map(str, candidates), which]:
        if path and Path(path).exists() and re.search(r"3\.\d+$", path):
            real = environment.real_interpreter(path)
            if real:
                return real
    return None
