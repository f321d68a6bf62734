# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of the lab that are built from Go modules. All of them are static: they run here and in the hosts."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.lab import cache, command
from tests.lab.errors import LabError
from tests.lab.settings import REPO

KUBERNETES_VERSION = "v1.35.4"

_LAB = REPO / "tests" / "lab"
_MODULE = _LAB / "controlplane"
_NEEDED = (1, 25)
_VERSION = "k8s.io/component-base/version"
_KUBERNETES_FLAGS = (
    f"-s -w -X {_VERSION}.gitVersion={KUBERNETES_VERSION} -X {_VERSION}.gitMajor=1 "
    f"-X {_VERSION}.gitMinor={KUBERNETES_VERSION.split('.')[1]}"
)
#: How often the kubelet looks around has no option. On emulated processors an idle kubelet takes a third of
#: one, and all hosts share the few real ones: source file below the module, line as it is, line as built.
_SLOWER = (
    ("pkg/kubelet/kubelet.go", "housekeepingPeriod = time.Second * 2", "housekeepingPeriod = time.Second * 8"),
    (
        "pkg/kubelet/kubelet.go",
        "genericPlegRelistPeriod    = time.Second * 1",
        "genericPlegRelistPeriod    = time.Second * 2",
    ),
    (
        "pkg/kubelet/volumemanager/volume_manager.go",
        "reconcilerLoopSleepPeriod = 100 * time.Millisecond",
        "reconcilerLoopSleepPeriod = 500 * time.Millisecond",
    ),
    (
        "pkg/kubelet/volumemanager/volume_manager.go",
        "desiredStateOfWorldPopulatorLoopSleepPeriod = 100 * time.Millisecond",
        "desiredStateOfWorldPopulatorLoopSleepPeriod = 500 * time.Millisecond",
    ),
)


@functools.cache
def labkube() -> Path:
    """API server, controller manager, scheduler and kubelet in one binary (minutes the first time)."""
    files = ("main.go", "go.mod", "go.sum")
    inputs = b"".join((_MODULE / name).read_bytes() for name in files) + f"{_KUBERNETES_FLAGS}{_SLOWER}".encode()
    return cache.artefact("labkube", inputs, _build_labkube)


def pause() -> Path:
    """The program of the pause image."""
    inputs = (_MODULE / "pause" / "main.go").read_bytes()
    return cache.artefact("pause", inputs, lambda path: _build("./pause", "-s -w", path))


def hollow() -> Path:
    """The stand-in of many kubelets, for benchmarks; its own tests run whenever it is built."""
    folder = _MODULE / "hollow"
    inputs = b"".join(path.read_bytes() for path in [*sorted(folder.glob("*.go")), _MODULE / "go.sum"])
    return cache.artefact("hollow", inputs, _build_hollow)


def pinned(name: str, packages: Sequence[str]) -> Path:
    """The programs of public Go packages, in a folder (minutes the first time).

    They are built in the module modules/NAME of the lab, which pins every version by its checksum.
    """
    module = _LAB / "modules" / name
    inputs = b"".join((module / file).read_bytes() for file in ("go.mod", "go.sum")) + " ".join(packages).encode()
    return cache.artefact(name, inputs, lambda folder: _build_pinned(module, packages, folder))


@functools.cache
def source(name: str, module: str) -> Path:
    """The source folder of a module that modules/NAME requires, verified by its checksum."""
    found = json.loads(_go(["mod", "download", "-json", module], {"GOFLAGS": "-mod=readonly"}, _LAB / "modules" / name))
    return Path(found["Dir"])


def installed(package: str, version: str) -> Path:
    """The program of a public Go package, by `go install` (minutes the first time)."""
    name = package.rsplit("/", 1)[-1]
    target = f"{package}@{version}"
    return cache.artefact(name, target, lambda folder: _install(target, folder)) / name


def _build_labkube(path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="labkube-") as folder:
        modules = Path(folder) / "go.mod"
        shutil.copy(_MODULE / "go.sum", folder)
        source = _slower_kubernetes(Path(folder) / "kubernetes")
        modules.write_text(f"{(_MODULE / 'go.mod').read_text()}\nreplace k8s.io/kubernetes => {source}\n")
        _build(".", _KUBERNETES_FLAGS, path, "-modfile", str(modules))


def _slower_kubernetes(folder: Path) -> Path:
    """Kubernetes' source with the lines of `_SLOWER`, in this folder."""
    module = json.loads(_go(["mod", "download", "-json", "k8s.io/kubernetes"], {}))["Dir"]
    shutil.copytree(module, folder, copy_function=shutil.copyfile)
    for name, old, new in _SLOWER:
        text = (folder / name).read_text()
        if text.count(old) != 1:
            raise LabError(f"Kubernetes {KUBERNETES_VERSION}: expected {old!r} once in {name}; adapt _SLOWER")
        (folder / name).write_text(text.replace(old, new))
    return folder


def _build(package: str, flags: str, path: Path, *more: str) -> None:
    argv = ["build", "-trimpath", *more, "-ldflags", flags, "-o", str(path), package]
    _go(argv, {"GOFLAGS": "-mod=readonly"})


def _build_hollow(path: Path) -> None:
    _go(["test", "-trimpath", "./hollow"], {"GOFLAGS": "-mod=readonly"})
    _build("./hollow", _KUBERNETES_FLAGS, path)


def _build_pinned(module: Path, packages: Sequence[str], folder: Path) -> None:
    folder.mkdir()
    argv = ["build", "-trimpath", "-ldflags", "-s -w", "-o", f"{folder}/", *packages]
    _go(argv, {"GOFLAGS": "-mod=readonly"}, module)


def _install(target: str, folder: Path) -> None:
    folder.mkdir()
    argv = ["install", "-trimpath", "-ldflags", "-s -w", target]
    _go(argv, {"GOBIN": str(folder), "GOFLAGS": ""})


def _go(arguments: Sequence[str], settings: dict[str, str], module: Path = _MODULE) -> str:
    """Run go; it keeps its own caches, so that an interrupted build goes on where it was."""
    environment = {**os.environ, "CGO_ENABLED": "0", **settings}
    return command.run(["nice", str(go()), *arguments], cwd=module, env=environment)


def go() -> Path:
    """The go command, from PATH or the usual place; LabError when there is none or it is too old."""
    needed = ".".join(map(str, _NEEDED))
    found = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not found:
        raise LabError(f"go is not here; install Go {needed} or newer (https://go.dev/doc/install)")
    said = command.run([found, "version"], cwd=Path("/"))
    match = re.search(r"go(\d+)\.(\d+)", said)
    if not match or (int(match[1]), int(match[2])) < _NEEDED:
        raise LabError(f"{found} is {said.strip()}; install Go {needed} or newer")
    return Path(found)
