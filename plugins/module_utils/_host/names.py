# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a host that decide about the names of its ports."""

from __future__ import annotations

from .._core import linkfile, naming
from . import state
from .sysfs import Roots


def folder(roots: Roots) -> str:
    """Return the folder of our .link files."""
    return f"{roots.etc}/systemd/network"


def read_files(roots: Roots, lib: str) -> naming.Files:
    """Read .link files, ours and those of others, and udev rules; ``lib`` has the distribution's."""
    return naming.Files(
        own=state.read_folder(folder(roots), ".link", linkfile.PREFIX),
        links=state.read_systemd(roots, lib, ".link"),
        rules={
            **state.read_folder(f"{roots.etc}/udev/rules.d", ".rules"),
            **state.read_folder(f"{roots.run}/udev/rules.d", ".rules"),
        },
    )
