# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The initramfs: whether a driver is in it, and a new one when what names its devices has changed.

A driver in the initramfs names its ports there, with the .link files that were copied into it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from ..system import command
from ..system.files import Roots

# Program that lists, the image of a kernel as it is called with it, and the command that makes a new one.
_TOOLS = (
    ("lsinitramfs", ("initrd.img-{}",), ("update-initramfs", "-u", "-k", "{}")),
    ("lsinitrd", ("initramfs-{}.img", "initrd-{}"), ("dracut", "--force", "--kver", "{}")),
)
_LIST_SECONDS, _MAKE_SECONDS = 120, 900


def with_drivers(roots: Roots, kernels: Iterable[str], drivers: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return (path, command that renews it) of the initramfs of each kernel that has one of the drivers.

    Listing an image takes seconds, so ask only when something changed. CommandError when a tool fails.
    """
    wanted = {name for driver in drivers for name in (driver.replace("-", "_"), driver.replace("_", "-"))}
    pattern = re.compile(r"/(?:%s)\.ko\b" % "|".join(sorted(wanted)))
    found = []
    for program, images, renew in _TOOLS:
        if not wanted or not command.find(program):
            continue
        for kernel in kernels:
            paths = [f"{roots.boot}/{image.format(kernel)}" for image in images]
            for path in [path for path in paths if os.path.exists(path)][:1]:
                if pattern.search(command.run([program, path], timeout=_LIST_SECONDS).stdout):
                    found.append((path, [word.format(kernel) for word in renew]))
    return found


def renew(argv: list[str]) -> None:
    """Make a new initramfs; CommandError when that fails."""
    command.run(argv, timeout=_MAKE_SECONDS)
