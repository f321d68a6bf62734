# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file with digests of images, which the lists of images then have."""

from __future__ import annotations

from .._common.errors import InputError
from .._fabric.intent import digests
from .text_files import text_of

_LARGEST = 1 << 24


def read(path: str | None) -> dict[str, str]:
    """Return image -> digest of a file, nothing without one; InputError for a file without any."""
    if not path:
        return {}
    try:
        text = text_of(path, _LARGEST)
    except OSError as error:
        raise InputError(f"image_digests: cannot read {path}: {error.strerror}") from error
    if text is None:
        raise InputError(f"image_digests: {path} does not exist. Correct the path, or remove the option")
    found = digests.parsed(text)
    if not found:
        raise InputError(
            f"image_digests: {path} has no line with an image and a sha256 digest. Add lines such as"
            " registry.example.com/mellanox/multus-cni:TAG@sha256:..., or remove the option"
        )
    return found
