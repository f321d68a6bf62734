# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding a mirror in apt sources of either format."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab import aptsources
from tests.lab.errors import LabError

DEB822 = """# A comment.
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
"""
ONE_LINE = """deb [signed-by=/etc/key.gpg] http://tools.example/apt tools main
deb http://lines.example/debian bookworm main contrib
deb-src http://source.example/debian bookworm main
"""


@pytest.mark.parametrize(
    ("texts", "mirror"),
    [
        ([DEB822], "http://mirror.example/debian"),
        ([ONE_LINE], "http://lines.example/debian"),
        (["", DEB822, ONE_LINE], "http://mirror.example/debian"),
        ([""], ""),
    ],
)
def test_main_mirror(texts: list[str], mirror: str) -> None:
    assert aptsources.main_mirror(texts, "bookworm") == mirror


def test_the_variable_wins() -> None:
    chosen = {aptsources.MIRROR_VARIABLE: "http://own.example/debian"}
    assert aptsources.debian_mirror(chosen) == "http://own.example/debian"


def test_no_mirror_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aptsources, "source_texts", list)
    with pytest.raises(LabError, match="set GPUFABRIC_LAB_MIRROR to the address of one"):
        aptsources.debian_mirror({})


def test_with_suite_keeps_everything_else() -> None:
    assert aptsources.with_suite([DEB822], "bookworm", "bookworm-backports") == (
        "Types: deb\n"
        "Uris: http://mirror.example/debian\n"
        "Suites: bookworm-backports\n"
        "Components: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


def test_codename_is_that_of_debian_only(tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    assert aptsources.codename(release) == "bookworm"
    release.write_text("ID=ubuntu\nVERSION_CODENAME=noble\n")
    assert aptsources.codename(release) == ""
