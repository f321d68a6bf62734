# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between the release lines of NVIDIA Network Operator that we deploy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One release line: what its chart asks for and what its objects look like.

    ``observed_generation``: conditions of a policy say which generation they belong to.
    ``images``: component -> image name. ``repository``: where those images are by default.
    """

    name: str
    min_kubernetes: tuple[int, int]
    observed_generation: bool
    repository: str
    images: Mapping[str, str]


_IMAGES = {
    "multus": "multus-cni",
    "cni_plugins": "plugins",
    "nv_ipam": "nvidia-k8s-ipam",
    "rdma_shared_device_plugin": "k8s-rdma-shared-dev-plugin",
}

# An automation must name what it knows: lines older than 26.4 have no `global` section and are out of support.
LINES: Mapping[str, Line] = {
    "26.4": Line("26.4", (1, 21), False, "nvcr.io/nvidia/mellanox", _IMAGES),
    "26.7": Line("26.7", (1, 32), True, "nvcr.io/nvidia/mellanox", _IMAGES),
}


def line_of(release: str) -> Line | None:
    """Return the line of a chart version such as ``26.7.1``; None when we do not support it."""
    return LINES.get(".".join(release.split(".")[:2]))
