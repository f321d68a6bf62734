# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the machine's own apt sources: the lab names no mirror of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.lab.errors import LabError

MIRROR_VARIABLE = "GPUFABRIC_LAB_MIRROR"
_ETC = Path("/etc/apt")
_ONE_LINE = re.compile(r"^deb\s+(?:\[[^\]]*\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<rest>.+)$")


def debian_mirror(environ: Mapping[str, str] = os.environ) -> str:
    """The address of a Debian mirror: the variable's, or that of the machine's main source.

    Raises LabError when the machine is not Debian and the variable is not set.
    """
    chosen = environ.get(MIRROR_VARIABLE) or main_mirror(source_texts(), codename())
    if not chosen:
        raise LabError(
            f"no Debian mirror in {_ETC}: set {MIRROR_VARIABLE} to the address of one (the lab's hosts are Debian)"
        )
    return chosen


def source_texts(etc: Path = _ETC) -> list[str]:
    """The contents of all apt source files of the machine."""
    paths = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    wanted = (path for path in paths if path.suffix in (".list", ".sources") and path.is_file())
    return [path.read_text() for path in wanted]


def codename(os_release: Path = Path("/etc/os-release")) -> str:
    """The machine's release name, such as bookworm; empty when it is not Debian."""
    fields = dict(line.split("=", 1) for line in os_release.read_text().splitlines() if "=" in line)
    is_debian = fields.get("ID", "").strip('"') == "debian"
    return fields.get("VERSION_CODENAME", "").strip('"') if is_debian else ""


def main_mirror(texts: Iterable[str], release: str) -> str:
    """The first address that serves the suite `release`; empty when none does."""
    for text in texts:
        for entry in _entries(text):
            if release and release in entry["suites"].split():
                return entry["uris"].split()[0]
    return ""


def with_suite(texts: Iterable[str], release: str, suite: str) -> str:
    """A deb822 source: the entry for `release` with its suites replaced; empty when none."""
    for text in texts:
        for entry in _entries(text):
            if release in entry["suites"].split():
                changed = {**entry, "suites": suite}
                return "".join(f"{_field(name)}: {value}\n" for name, value in changed.items())
    return ""


def _entries(text: str) -> Iterable[dict[str, str]]:
    """Binary package sources of a file in either format, as lower-case deb822 fields."""
    for paragraph in re.split(r"\n\s*\n", text):
        fields = _deb822(paragraph)
        if "uris" in fields and "suites" in fields:
            yield fields
    for line in text.splitlines():
        match = _ONE_LINE.match(line.strip())
        if match:
            yield {
                "types": "deb",
                "uris": match["uri"],
                "suites": match["suite"],
                "components": match["rest"],
            }


def _deb822(paragraph: str) -> dict[str, str]:
    lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
    pairs = (line.partition(":") for line in lines if re.match(r"^[A-Za-z-]+:", line))
    return {name.lower(): value.strip() for name, _colon, value in pairs}


def _field(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))
