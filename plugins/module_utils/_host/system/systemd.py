# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of systemd and its network tools: read by rank, written with a reload."""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import command
from .files import Roots, read_folder, write_files

# Folders of systemd files by rank: of two files with one name the first counts.
SYSTEMD_FOLDERS = ("{etc}/systemd/network", "{run}/systemd/network", "{lib}/systemd/network")
CGROUPS = ("fs/cgroup", "fs/cgroup/systemd", "fs/cgroup/unified")


def title(module: str) -> str:
    """Return the first line of the comment in every file that a module writes."""
    return f"Written by gpufabric.rdma.{module}, which removes it with state: absent."


def runs(roots: Roots, unit: str) -> bool:
    """Return whether a unit runs: a running service has a control group."""
    return any(os.path.isdir(f"{roots.sysfs}/{top}/system.slice/{unit}") for top in CGROUPS)


def read_systemd(roots: Roots, lib: str, suffix: str) -> dict[str, str]:
    """Return path -> text of systemd's network files in the order of rank."""
    found: dict[str, str] = {}
    for folder in SYSTEMD_FOLDERS:
        found.update(read_folder(folder.format(etc=roots.etc, run=roots.run, lib=lib), suffix))
    return found


def write_units(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Make the own files those of ``after``, units among them, and let systemd read them when they are others."""
    write_files(before, after)
    if before != after:
        command.run(["systemctl", "daemon-reload"])
