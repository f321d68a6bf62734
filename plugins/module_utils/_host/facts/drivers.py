# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers of RDMA devices, and the version of a driver that is loaded."""

from __future__ import annotations

from collections.abc import Mapping

from ..._common.rdma_modules import OTHERS

# The RDMA core, and drivers of RDMA devices that are not those of the PCI function.
RDMA = ("ib_core", "mlx4_ib", "mlx5_ib", *OTHERS)


def version(raw: Mapping[str, str | None], release: str) -> str | None:
    """Return what distinguishes a loaded driver from its other versions, None when nothing does.

    ``raw``: version, srcversion and taint of /sys/module/NAME; taint has an O for a module from outside of the kernel's
    tree. Where a kernel records no srcversion, its release is the version of its own modules.
    """
    parts = [raw["version"]] if raw["version"] else []
    if raw["srcversion"]:
        parts.append(f"srcversion {raw['srcversion']}")
    elif "O" not in (raw["taint"] or "") and release:
        parts.append(f"in-tree, kernel {release}")
    return ", ".join(parts) or None
