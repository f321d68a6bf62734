# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading dpkg's files: a hand-made tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab import packages

STATUS = """Package: app
Status: install ok installed
Depends: libapp1 (>= 2), shell | dash, unwanted
Pre-Depends: base:any
Version: 1.0
Description: a program
 with more lines

Package: libapp1
Version: 2
Depends: base

Package: dash
Version: 0.5

Package: base
Version: 13
Provides: virtual, other (= 1)

Package: unwanted
Version: 1
Depends: deep

Package: deep
Version: 1
"""


def names(wanted: list[str], without: set[str]) -> list[str]:
    found = packages.closure(packages.parse_status(STATUS), wanted, without)
    return [package.name for package in found]


def test_closure_takes_the_alternative_that_is_there() -> None:
    assert names(["app"], set()) == ["app", "base", "dash", "deep", "libapp1", "unwanted"]


def test_closure_does_not_enter_what_is_left_out() -> None:
    assert names(["app"], {"unwanted"}) == ["app", "base", "dash", "libapp1"]


def test_closure_follows_virtual_packages() -> None:
    needs_virtual = STATUS + "\nPackage: last\nVersion: 1\nDepends: other\n"
    found = packages.closure(packages.parse_status(needs_virtual), ["last"], set())
    assert [package.name for package in found] == ["base", "last"]


def test_a_wanted_package_must_be_there() -> None:
    with pytest.raises(KeyError):
        names(["missing"], set())


def test_files_without_folders_and_ghosts(tmp_path: Path) -> None:
    info = tmp_path / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr/program").write_text("x")
    (tmp_path / "usr/link").symlink_to("/nowhere")
    (info / "app:amd64.list").write_text("/.\n/usr\n/usr/program\n/usr/link\n/usr/gone\n")
    app = packages.parse_status(STATUS)["app"]
    assert list(packages.files(tmp_path, app)) == ["usr/program", "usr/link"]
