# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container images that a plan makes nodes pull, for mirrors of clusters without the vendor's registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..intent.releases import line_of


def images(policy: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the images of the policy's components, sorted; those of the chart itself are not among them."""
    found: set[str] = set()
    for item in policy:
        spec = item.get("spec") or {}
        found.update(_images(spec, spec.get("global") or {}))
    return sorted(found)


def mirror(names: Sequence[str], repository: str, release: str) -> list[tuple[str, str]]:
    """Return (where the vendor publishes an image, where the plan expects it) for a repository that is a mirror.

    Empty when ``repository`` is that of the vendor.
    """
    line = line_of(release)
    published = line.repository(release) if line else repository
    if repository == published:
        return []
    prefix = f"{repository}/"
    return [(f"{published}/{name[len(prefix) :]}", name) for name in names if name.startswith(prefix)]


def _images(value: Any, common: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, Mapping):
        image = value.get("image")
        if isinstance(image, str):
            repository = value.get("repository") or common.get("repository")
            version = value.get("version") or common.get("version")
            yield (f"{repository}/" if repository else "") + image + (f":{version}" if version else "")
        for item in value.values():
            yield from _images(item, common)
    elif isinstance(value, list):
        for item in value:
            yield from _images(item, common)
