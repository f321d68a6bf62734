# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container images that a plan makes nodes pull, for mirrors of clusters without the vendor's registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..intent.releases import line_of
from .common import image_reference


def images(policy: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the images of the policy's components, sorted; those of the chart and of the driver are not among them."""
    found: set[str] = set()
    for item in policy:
        spec = item.get("spec") or {}
        others = {key: value for key, value in spec.items() if key != "ofedDriver"}
        found.update(_images(others, spec.get("global") or {}))
    return sorted(found)


def drivers(policy: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the images of drivers, whose tags go on with the operating system and architecture of a node."""
    specs = [item.get("spec") or {} for item in policy]
    found = [_images(spec.get("ofedDriver"), spec.get("global") or {}) for spec in specs]
    return sorted({image for part in found for image in part})


def mirror(
    names: Sequence[str], repository: str, release: str, *, digests: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    """Return (where the vendor publishes an image, where it is to be copied to) for a repository that is a mirror.

    ``names``: images in the mirror, and images of the vendor. Those of other registries are left out. Empty when
    ``repository`` is that of the vendor. ``digests``: of images of the vendor, which are then named by it, in place of
    the tag: not all tools that copy images take both.
    """
    line = line_of(release)
    if line is None or repository == line.repository(release):
        return []
    publishers = (line.repository(release), *(line.publisher(name, release) for name in line.images.values()))
    known, found = digests or {}, []
    for name in names:
        folder, _slash, image = name.rpartition("/")
        publisher = line.publisher(image.partition("@")[0].partition(":")[0], release)
        if folder == repository:
            found.append((_by_digest(f"{publisher}/{image}", known), name))
        elif folder in (*publishers, line.operator_registry(release)):
            found.append((_by_digest(name, known), f"{repository}/{image}"))
    return found


def _by_digest(image: str, digests: Mapping[str, str]) -> str:
    digest = digests.get(image)
    return f"{image.rpartition(':')[0]}@{digest}" if digest else image


def _images(value: Any, common: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, Mapping):
        image = value.get("image")
        if isinstance(image, str):
            repository = value.get("repository") or common.get("repository")
            version = value.get("version") or common.get("version")
            yield (f"{repository}/" if repository else "") + image_reference(image, version or "")
        for item in value.values():
            yield from _images(item, common)
    elif isinstance(value, list):
        for item in value:
            yield from _images(item, common)
