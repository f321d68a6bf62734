# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A chart on this machine: is it there, and is it the one that was pinned?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path


def is_local(ref: str) -> bool:
    """Whether a chart reference is a path, in Helm's own way of telling."""
    return ref.startswith(("/", "./", "../", "~")) or Path(ref).exists()


def problems(ref: str, checksum: str) -> Iterator[str]:
    """Yield what is wrong with a local chart; nothing for a chart that Helm has yet to fetch.

    ``checksum``: sha256 in hexadecimal, with or without ``sha256:`` before it; empty when not pinned.
    """
    if not ref or not is_local(ref):
        return
    path = Path(ref).expanduser()
    if path.is_dir():
        if not (path / "Chart.yaml").is_file():
            yield f"chart {ref}: the folder has no Chart.yaml; name the folder of a chart"
        elif checksum:
            yield f"chart {ref}: a checksum ({checksum}) needs an archive (.tgz), found a folder; use helm package"
    elif not path.is_file():
        yield f"chart {ref}: there is no such file or folder; correct the path, or name a chart of a repository"
    elif checksum:
        yield from _compare(path, checksum)


def _compare(path: Path, checksum: str) -> Iterator[str]:
    wanted = checksum.rpartition(":")[2].lower()
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        yield f"chart {path}: it cannot be read: {error.strerror}"
        return
    if found != wanted:
        yield f"chart {path}: its sha256 is {found}, expected {wanted}; get the pinned chart, or pin this one"
