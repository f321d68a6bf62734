# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chart of the stand-in operator, as a folder and as the same archive every time.

``python3 -m tests.lab.charts OUT`` writes the archive into OUT and prints its path and SHA-256.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import sys
import tarfile
from pathlib import Path

CHART = Path(__file__).resolve().parent / "chart"
_LEFT_OUT = {"__pycache__", ".helmignore"}


def version() -> str:
    """The chart's version."""
    found = re.search(r"^version: (\S+)$", (CHART / "Chart.yaml").read_text(), re.MULTILINE)
    assert found
    return found.group(1)


def package(out: Path) -> Path:
    """Write network-operator-<version>.tgz into a folder and return its path.

    The same files give the same bytes: order, times, owners and modes are fixed.
    """
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"network-operator-{version()}.tgz"
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in _files():
            entry = tarfile.TarInfo(f"network-operator/{path.relative_to(CHART)}")
            entry.size, entry.mode = path.stat().st_size, 0o644
            archive.addfile(entry, io.BytesIO(path.read_bytes()))
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(tar.getvalue())
    return target


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _files() -> list[Path]:
    # Helm wants Chart.yaml first, or it reads the whole archive for it.
    found = [one for one in CHART.rglob("*") if one.is_file() and not _LEFT_OUT & set(one.parts)]
    return sorted(found, key=lambda one: (one.name != "Chart.yaml", str(one.relative_to(CHART))))


if __name__ == "__main__":
    written = package(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print(f"{written}\nsha256:{checksum(written)}")
