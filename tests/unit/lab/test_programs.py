# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Naming what is missing, all at once."""

from __future__ import annotations

import pytest
from tests.lab import aptsources, programs

SOURCE = "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n"


@pytest.mark.parametrize(
    ("absent", "qemu", "packages"),
    [
        (set(), 10, []),
        ({"debootstrap", "etcd", "python:ensurepip"}, 10, ["debootstrap", "etcd-server", "python3-venv"]),
        (set(), 7, ["qemu-system-x86", "qemu-utils"]),
        ({"qemu-img"}, 0, ["qemu-system-x86", "qemu-utils"]),
    ],
)
def test_missing(absent: set[str], qemu: int, packages: list[str]) -> None:
    assert programs.missing(lambda name: name not in absent, lambda: qemu) == packages


@pytest.mark.parametrize(
    ("release", "absent", "packages"),
    [
        ("bookworm", {"chromium", "busybox"}, ["busybox", "chromium"]),
        ("trixie", {"chromium"}, ["chromium"]),
        ("trixie", set(), []),
        ("", {"chromium", "busybox"}, ["busybox"]),
    ],
)
def test_missing_for_tests(
    release: str, absent: set[str], packages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aptsources, "codename", lambda: release)
    assert programs.missing_for_tests(lambda name: name not in absent) == packages


def test_install_takes_what_lab_and_tests_miss_and_the_lab_starts_without_the_latter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed: list[str] = []
    there = {"chromium": False}
    monkeypatch.setattr(aptsources, "codename", lambda: "trixie")
    monkeypatch.setattr(programs, "_is_there", lambda name: there.get(name, True))
    monkeypatch.setattr(programs, "qemu_major", lambda: 10)
    monkeypatch.setattr(programs.os, "geteuid", lambda: 0)
    monkeypatch.setattr(programs.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(programs, "_install", lambda packages: (installed.extend(packages), there.clear()))
    programs.check()
    programs.install()
    assert installed == ["chromium"]


def test_by_hand_takes_qemu_from_backports_on_debian_12(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aptsources, "codename", lambda: "bookworm")
    monkeypatch.setattr(aptsources, "source_texts", lambda: [SOURCE])
    assert programs.by_hand(["mtools", "qemu-system-x86"]).splitlines() == [
        "cat > /etc/apt/sources.list.d/gpufabric-lab-backports.sources <<'END'",
        "Types: deb",
        "Uris: http://mirror.example/debian",
        "Suites: bookworm-backports",
        "Components: main",
        "END",
        "apt-get update",
        "apt-get install -y --no-install-recommends mtools",
        "apt-get install -y --no-install-recommends -t bookworm-backports qemu-system-x86",
    ]


def test_by_hand_is_one_command_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aptsources, "codename", lambda: "trixie")
    assert programs.by_hand(["mtools", "qemu-system-x86"]).splitlines() == [
        "apt-get update",
        "apt-get install -y --no-install-recommends mtools qemu-system-x86",
    ]
