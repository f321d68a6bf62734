# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What packages a host has, by dpkg or rpm. Installing and removing is left to package modules."""

from __future__ import annotations

from collections.abc import Iterable

from .._core.errors import CommandError
from . import command

DPKG = ["dpkg-query", "--show", "--showformat=${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\n"]
RPM = ["rpm", "--query", "--queryformat=%{NAME} %{VERSION}-%{RELEASE}\n"]


def installed(names: Iterable[str]) -> dict[str, str]:
    """Return name -> version of those of ``names`` that are installed; CommandError without dpkg and rpm."""
    names = sorted(set(names))
    return _versions(names) if names else {}


def everything() -> dict[str, str]:
    """Return name -> version of all packages."""
    return _versions([])


def _versions(names: list[str]) -> dict[str, str]:
    if command.find("dpkg-query"):
        lines = [line.split() for line in command.run([*DPKG, *names], check=False).stdout.splitlines()]
        return {line[0]: line[1] for line in lines if line[3:] == ["installed"]}
    if command.find("rpm"):
        lines = [line.split() for line in command.run([*RPM, *(names or ["--all"])], check=False).stdout.splitlines()]
        # Instead of a version rpm says: package NAME is not installed.
        return {line[0]: line[1] for line in lines if len(line) == 2}
    raise CommandError("neither dpkg-query nor rpm is installed; set rdma_stack_install_packages: false")
