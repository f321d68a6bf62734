# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that the lab and the tests need from the system, and how they get there."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.lab import aptsources, command, progress
from tests.lab.errors import LabError

#: Which package a program, or the file that is named by its path, is in.
_NEEDED = {
    "debootstrap": "debootstrap",
    "etcd": "etcd-server",
    "git": "git",
    "gpg-agent": "gnupg",
    "grub-mkstandalone": "grub-common",
    "/usr/lib/grub/x86_64-efi/kernel.img": "grub-efi-amd64-bin",
    "mformat": "mtools",
    "mke2fs": "e2fsprogs",
    "openssl": "openssl",
    "/usr/share/ovmf/OVMF.fd": "ovmf",
    "setpriv": "util-linux",
    "ssh": "openssh-client",
    "qemu-img": "qemu-utils",
}
#: Without these the lab works, but tests of the report page, the tester under busybox or subnet managers are skipped.
_FOR_TESTS = {
    "chromium": "chromium",
    "busybox": "busybox",
    "opensm": "opensm",
    "ibsim": "ibsim-utils",
    "smpquery": "infiniband-diags",
}
#: Come together, from backports where the release has one too old.
_QEMU = ("qemu-system-x86", "qemu-utils")
#: The first with the NIC of the rails, igb.
_QEMU_NEEDED = 8
_SYSTEM_FOLDERS = "/usr/sbin:/sbin"
_RELEASE_WITH_OLD_QEMU = "bookworm"
_SOURCE = Path("/etc/apt/sources.list.d/gpufabric-lab-backports.sources")


def check() -> None:
    """Raise LabError that names all missing packages at once, with the command that installs them."""
    if os.geteuid() != 0:
        raise LabError("the lab needs root: debootstrap and chroot make its root file system")
    packages = missing()
    if packages:
        raise LabError(
            f"missing on this machine: {', '.join(packages)}. `{sys.executable} -m tests.lab "
            f"install` installs them; by hand:\n{by_hand(packages)}"
        )


def install() -> None:
    """Install what the lab or a test misses, where that may be done: as root, on Debian or Ubuntu.

    Raises LabError with the commands where it may not.
    """
    packages = _missing_of_both()
    if not packages:
        progress.note("Debian packages", "all there")
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise LabError(f"missing: {', '.join(packages)}. As root on Debian:\n{by_hand(packages)}")
    with progress.step(f"install {' '.join(packages)}"):
        _install(packages)
    left = _missing_of_both()
    if left:
        raise LabError(f"still missing after apt-get: {', '.join(left)}")


def missing(there: Callable[[str], bool] | None = None, qemu: Callable[[], int] | None = None) -> list[str]:
    """The packages that the lab misses, sorted; the parameters are for tests."""
    there, qemu = there or _is_there, qemu or qemu_major
    packages = {package for name, package in _NEEDED.items() if not there(name)}
    if qemu() < _QEMU_NEEDED:
        packages.update(_QEMU)
    if not there("python:ensurepip"):
        packages.add("python3-venv")
    return sorted(packages)


def missing_for_tests(there: Callable[[str], bool] | None = None) -> list[str]:
    """The packages without which tests are skipped. Ubuntu has Chromium as a snap alone: not installed there."""
    there = there or _is_there
    absent = {package for name, package in _FOR_TESTS.items() if not there(name)}
    return sorted(absent if aptsources.codename() else absent - {"chromium"})


def _missing_of_both() -> list[str]:
    return sorted({*missing(), *missing_for_tests()})


def qemu_major() -> int:
    """The major version of QEMU; 0 when there is none."""
    if not _is_there("qemu-system-x86_64"):
        return 0
    match = re.search(r"version (\d+)", command.run(["qemu-system-x86_64", "--version"]))
    return int(match[1]) if match else 0


def by_hand(packages: Sequence[str]) -> str:
    """The commands that a user types to get the packages."""
    lines = []
    if _needs_backports(packages):
        lines.append(f"cat > {_SOURCE} <<'END'\n{_backports_source()}END")
    lines.append("apt-get update")
    return "\n".join(lines + [shlex.join(argv) for argv in _apt_lines(packages)])


def _install(packages: Sequence[str]) -> None:
    if _needs_backports(packages):
        _SOURCE.write_text(_backports_source())
    command.run(["apt-get", "update", "-q"])
    for argv in _apt_lines(packages):
        command.run(["env", "DEBIAN_FRONTEND=noninteractive", *argv])
    if "etcd-server" in packages and Path("/run/systemd/system").exists():
        # The package starts one for the whole machine; nobody asked for that.
        command.run(["systemctl", "disable", "--now", "etcd"])


def _apt_lines(packages: Sequence[str]) -> list[list[str]]:
    install = ["apt-get", "install", "-y", "--no-install-recommends"]
    if not _needs_backports(packages):
        return [[*install, *packages]]
    new = [name for name in packages if name in _QEMU]
    old = [name for name in packages if name not in _QEMU]
    suite = f"{_RELEASE_WITH_OLD_QEMU}-backports"
    return [[*install, *old]] * bool(old) + [[*install, "-t", suite, *new]]


def _needs_backports(packages: Sequence[str]) -> bool:
    return aptsources.codename() == _RELEASE_WITH_OLD_QEMU and bool(set(packages) & set(_QEMU))


def _backports_source() -> str:
    """The machine's own source of its release, with the suite of its backports."""
    suite = f"{_RELEASE_WITH_OLD_QEMU}-backports"
    source = aptsources.with_suite(aptsources.source_texts(), _RELEASE_WITH_OLD_QEMU, suite)
    if not source:
        raise LabError(f"no apt source for {_RELEASE_WITH_OLD_QEMU} to make one for {suite} from")
    return source


def _is_there(name: str) -> bool:
    if name.startswith("/"):
        return Path(name).exists()
    if name.startswith("python:"):
        return importlib.util.find_spec(name.partition(":")[2]) is not None
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}") is not None
