# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is installed in a Debian root file system: packages, what they need, and their files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_FIELD = re.compile(r"^([A-Za-z-]+): (.*)$", re.MULTILINE)
_NEEDS = ("Pre-Depends", "Depends")


@dataclass(frozen=True)
class Package:
    """An installed package; needs holds one tuple of alternatives per dependency."""

    name: str
    version: str
    needs: tuple[tuple[str, ...], ...]
    provides: tuple[str, ...]


def installed(root: Path) -> dict[str, Package]:
    """The packages of the tree at root by name."""
    text = (root / "var/lib/dpkg/status").read_text(encoding="utf-8")
    return parse_status(text)


def parse_status(text: str) -> dict[str, Package]:
    """The packages of a dpkg status file by name."""
    paragraphs = (dict(_FIELD.findall(paragraph)) for paragraph in text.split("\n\n"))
    found = (_package(fields) for fields in paragraphs if "Package" in fields)
    return {package.name: package for package in found}


def closure(packages: dict[str, Package], wanted: Iterable[str], without: Collection[str]) -> list[Package]:
    """The wanted packages and all that they need, sorted by name; nothing of `without` is entered.

    Raises KeyError for a wanted package that is not installed.
    """
    providers = {virtual: package.name for package in packages.values() for virtual in package.provides}
    open_names, chosen = [packages[name].name for name in wanted], set[str]()
    while open_names:
        name = open_names.pop()
        if name in chosen or name in without:
            continue
        chosen.add(name)
        for alternatives in packages[name].needs:
            present = [providers.get(other, other) for other in alternatives]
            open_names += [other for other in present if other in packages][:1]
    return [packages[name] for name in sorted(chosen)]


def files(root: Path, package: Package) -> Iterator[str]:
    """The paths (no leading slash) of a package's files and links, without folders."""
    info = root / "var/lib/dpkg/info"
    lists = [info / f"{package.name}.list", *info.glob(f"{package.name}:*.list")]
    text = next(path for path in lists if path.exists()).read_text(encoding="utf-8")
    for line in text.splitlines():
        path = line.lstrip("/")
        here = root / path
        if path and (here.is_symlink() or here.is_file()):
            yield path


def _package(fields: dict[str, str]) -> Package:
    needs = [one for key in _NEEDS for one in fields.get(key, "").split(",") if one.strip()]
    return Package(
        name=fields["Package"],
        version=fields.get("Version", ""),
        needs=tuple(tuple(_bare(name) for name in one.split("|")) for one in needs),
        provides=tuple(_bare(name) for name in fields.get("Provides", "").split(",") if name),
    )


def _bare(relation: str) -> str:
    """The package's name in a relation such as ` libc6:any (>= 2.38)`."""
    return re.split(r"[ (:]", relation.strip(), maxsplit=1)[0]
