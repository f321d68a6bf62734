# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release lines of NVIDIA Network Operator: the only place in the product where a release is named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


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

# In the order of upgrades. An automation must name what it knows: lines older than 26.4 have no `global` section and
# are out of support.
LINES: dict[str, Line] = {
    "26.4": Line("26.4", (1, 21), False, "nvcr.io/nvidia/mellanox", _IMAGES),
    "26.7": Line("26.7", (1, 32), True, "nvcr.io/nvidia/mellanox", _IMAGES),
}

# What is installed unless the user asks for another release.
DEFAULT = "26.7.1"

# Lines that are not deployed but can be found in a cluster: they come before LINES in the order of upgrades.
_OUTDATED = ("25.10", "26.1")
_VERSION = re.compile(r"(?a)v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:-([0-9A-Za-z.-]+))?")


class Version(NamedTuple):
    """A release that can be compared: its line, its patch, and where it stands among the prereleases of the patch."""

    line: tuple[int, int]
    patch: int
    stage: tuple[Any, ...]


def version(text: str) -> Version | None:
    """Return a release such as ``v26.7.0-rc.2`` as numbers; None when it is not a release."""
    match = _VERSION.fullmatch(text)
    if not match:
        return None
    year, month, patch, stage = match.groups()
    # A final release comes after its prereleases; in a prerelease numbers come before words.
    parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"[.-]", stage or "") if part]
    return Version((int(year), int(month)), int(patch or 0), (0, *parts) if parts else (1,))


def line_of(release: str) -> Line | None:
    """Return the line of a chart version such as ``26.7.1``; None when we do not support it."""
    found = version(release)
    return LINES.get(name_of(found.line)) if found else None


def name_of(line: tuple[int, int]) -> str:
    """Return the name of a line, e.g. ``26.7``."""
    return "{}.{}".format(*line)


def order() -> tuple[str, ...]:
    """Return every line in the order of upgrades: the vendor supports an upgrade within a line or to the next one."""
    return (*_OUTDATED, *LINES)


def upgrade_problem(installed: str, desired: str) -> str:
    """Return why the operator cannot go from one release to another; empty when it can."""
    before, after = version(installed), version(desired)
    if after is None or name_of(after.line) not in LINES:
        return f"release {desired} is not supported. Supported release lines: {', '.join(LINES)}"
    if before is None:
        return f'the installed release "{installed}" cannot be identified. Expected a version such as {desired}'
    if before > after:
        return (
            f"the installed release {installed} is newer than the requested release {desired}, and a downgrade is not"
            f" supported. Set rdma_fabric.operator.release to {installed} or newer"
        )
    if before.line == after.line:
        return ""
    lines = order()
    if name_of(before.line) not in lines:
        return (
            f"no upgrade from the installed release {installed} to {desired} is known. Release lines in the order of"
            f" upgrades: {' -> '.join(lines)}"
        )
    steps = lines[lines.index(name_of(before.line)) : lines.index(name_of(after.line)) + 1]
    if len(steps) == 2:
        return ""
    return (
        f"an upgrade from {installed} to {desired} would skip a release line. Upgrade one line at a time:"
        f" {' -> '.join(steps)}"
    )
