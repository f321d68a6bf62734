# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container images of the lab, as archives that `ctr images import` reads. No registry knows them."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.lab import cache, golang, packages, sriov_operator

PAUSE = "registry.lab/pause:1"
#: Components of the operator that cannot be had: images of their names hold the pause program.
COMPONENTS = tuple(
    f"registry.lab/mellanox/{name}:network-operator-v26.7.1"
    for name in ("multus-cni", "plugins", "nvidia-k8s-ipam", "k8s-rdma-shared-dev-plugin")
)
TESTER = "gpufabric-lab/tester:1"

#: One image under every name that the chart of the SR-IOV operator asks for: what a container is, its command says.
SRIOV = {
    part: f"registry.lab/sriov/{part}:1"
    for part in ("operator", "config-daemon", "device-plugin", "cni", "rdma-device-plugin")
}
_SRIOV_PACKAGES = "base-files bash coreutils grep mawk pci.ids sed"
#: The device plugins are started with arguments alone. Its CNI plugin cannot be had: pods attach no VFs here.
_SRIOV_ENTRYPOINT = """#!/bin/sh
[ "$1" = --no-sleep ] && exit 0
exec /images/entrypoint.sh "$@"
"""

#: The same packages as in the image that users build; its perftest, and MPICH with nccl-tests, are built with CUDA.
TESTER_FOLDER = Path(__file__).resolve().parents[2] / "tester-image"
_LAB_PACKAGES = ("perftest", "python3")
#: Needed by the packages' scripts or by programs that no pod of the lab runs.
_LEFT_OUT = """
adduser base-passwd debconf debianutils dpkg init-system-helpers libdb5.3t64 libpam-modules libpam-modules-bin
libpam-runtime media-types mount openssl-provider-legacy passwd pci.ids perl perl-base systemd tar tzdata udev
"""
_LEFT_OUT_PATHS = re.compile(
    r"usr/share/(doc|man|info|locale)/|usr/lib/[^/]+/gconv/|usr/lib/python3[^/]+/(test|pydoc_data)/"
)
_MERGED_USR = ("bin", "sbin", "lib", "lib64")
_TESTER_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
_TESTER_LINKS = {"usr/bin/awk": "mawk"}
IMAGE_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"

#: A member of a layer, and its content.
Entry = tuple[tarfile.TarInfo, "bytes | Path"]


def pause() -> Path:
    """The archive of the pause image."""
    program = golang.pause()
    return cache.artefact(
        "pause-image",
        f"{PAUSE} {COMPONENTS} {cache.file_hash(program)}",
        lambda to: write_image(to, (PAUSE, *COMPONENTS), [_file("pause", program, 0o755)], ["/pause"]),
    )


def tester(root: Path) -> Path:
    """The archive of the tester image, from the files of Debian packages in the tree at root."""
    wanted, unwanted = [*tester_packages(), *_LAB_PACKAGES], frozenset(_LEFT_OUT.split())
    chosen = packages.closure(packages.installed(root), wanted, unwanted)
    recipe = [TESTER, _LEFT_OUT_PATHS.pattern, _TESTER_FILES, _TESTER_LINKS]
    inputs = json.dumps([recipe, [(package.name, package.version) for package in chosen]])
    return cache.artefact(
        "tester-image",
        inputs,
        lambda to: write_image(to, (TESTER,), tester_entries(root, chosen), ["/bin/sh"]),
    )


def tester_packages() -> list[str]:
    """The packages of the tester image."""
    lines = (TESTER_FOLDER / "packages.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def sriov(root: Path) -> Path:
    """The archive of the SR-IOV operator, its daemon and the device plugins, with what they need of Debian."""
    wanted, unwanted = _SRIOV_PACKAGES.split(), frozenset(_LEFT_OUT.split()) - {"pci.ids"}
    chosen = packages.closure(packages.installed(root), wanted, unwanted)
    programs = sriov_operator.programs()
    recipe = [list(SRIOV.values()), _SRIOV_ENTRYPOINT, [path.parent.name + path.name for path in programs]]
    inputs = json.dumps([recipe, [(package.name, package.version) for package in chosen]])

    def write(to: Path) -> None:
        entries = [*_debian_entries(root, chosen, {"usr/bin/awk": "mawk", "usr/bin/sh": "bash"})]
        entries += [_file(f"usr/bin/{path.name}", path, 0o755) for path in programs]
        entries += [_file(name, path, 0o755) for name, path in sriov_operator.scripts().items()]
        entries.append(_text("entrypoint", _SRIOV_ENTRYPOINT, 0o755))
        write_image(to, tuple(SRIOV.values()), entries, [], ["/entrypoint"])

    return cache.artefact("sriov-image", inputs, write)


def tester_entries(root: Path, chosen: Iterable[packages.Package]) -> list[Entry]:
    """What the tester's layer holds, links of the merged /usr first."""
    return _debian_entries(root, chosen, _TESTER_LINKS)


def _debian_entries(root: Path, chosen: Iterable[packages.Package], links: Mapping[str, str]) -> list[Entry]:
    entries = [_link(name, f"usr/{name}") for name in _MERGED_USR]
    entries += [_folder("tmp", 0o1777), _folder("root", 0o700), _folder("run", 0o755)]
    entries += [_text(name, text) for name, text in _TESTER_FILES.items()]
    entries += [_link(name, target) for name, target in links.items()]
    names = {name for package in chosen for name in packages.files(root, package)}
    names = {_merged(name) for name in names if not _LEFT_OUT_PATHS.match(name)}
    own = {info.name for info, _content in entries}
    entries += [_copy(root, name) for name in sorted(_with_bytecode(root, names) - own)]
    return entries


def write_image(
    path: Path, names: Sequence[str], entries: Sequence[Entry], command: Sequence[str], entrypoint: Sequence[str] = ()
) -> None:
    """Write a docker archive of one layer at path. The same entries always give the same bytes."""
    layer = path.with_name(f"{path.name}-layer")
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as archive:
        for entry in entries:
            _add(archive, entry)
    settings = {"Env": [IMAGE_PATH], "Cmd": list(command), "WorkingDir": "/"}
    if entrypoint:
        settings["Entrypoint"] = list(entrypoint)
    layers = {"type": "layers", "diff_ids": [f"sha256:{cache.file_hash(layer)}"]}
    config = _json({"architecture": "amd64", "os": "linux", "config": settings, "rootfs": layers})
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = _json([{"Config": config_name, "RepoTags": list(names), "Layers": ["layer.tar"]}])
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for member, content in (("manifest.json", manifest), (config_name, config)):
            _add(archive, (_info(member, 0o644, len(content)), content))
        _add(archive, _file("layer.tar", layer, 0o644))
    layer.unlink()


def _with_bytecode(root: Path, names: set[str]) -> set[str]:
    """The names and the compiled form of the Python files among them: without it each start takes seconds more."""
    compiled = {
        str(path.relative_to(root))
        for name in names
        if name.endswith(".py")
        for path in (root / name).parent.glob(f"__pycache__/{Path(name).stem}.cpython-*.pyc")
    }
    return names | compiled


def _merged(name: str) -> str:
    first, slash, _rest = name.partition("/")
    return f"usr/{name}" if slash and first in _MERGED_USR else name


def _copy(root: Path, name: str) -> Entry:
    source = root / name
    if source.is_symlink():
        return _link(name, str(source.readlink()))
    info, content = _file(name, source, source.stat().st_mode & 0o7777)
    # dpkg took this time from the package; Python compares it with the one in the compiled file.
    info.mtime = int(source.stat().st_mtime)
    return info, content


def _file(name: str, source: Path, mode: int) -> Entry:
    return _info(name, mode, source.stat().st_size), source


def _text(name: str, text: str, mode: int = 0o644) -> Entry:
    return _info(name, mode, len(text.encode())), text.encode()


def _link(name: str, target: str) -> Entry:
    info = _info(name, 0o777, 0)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info, b""


def _folder(name: str, mode: int) -> Entry:
    info = _info(name, mode, 0)
    info.type = tarfile.DIRTYPE
    return info, b""


def _info(name: str, mode: int, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.size = mode, size
    return info


def _add(archive: tarfile.TarFile, entry: Entry) -> None:
    info, content = entry
    if isinstance(content, bytes):
        archive.addfile(info, io.BytesIO(content) if content else None)
        return
    with content.open("rb") as source:
        archive.addfile(info, source)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
