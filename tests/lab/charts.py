# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chart of the stand-in operator, as a folder and as the same archive every time.

In the archive is the chart of the real SR-IOV operator, under the name and the condition that the vendor's has.

``python3 -m tests.lab.charts OUT`` writes the archive (without it) into OUT and prints its path and SHA-256.
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
_DEPENDENCY = """dependencies:
  - name: sriov-network-operator-chart
    version: 0.0.0-dev
    alias: sriov-network-operator
    condition: sriovNetworkOperator.enabled
"""


def version() -> str:
    """The chart's version."""
    found = re.search(r"^version: (\S+)$", (CHART / "Chart.yaml").read_text(), re.MULTILINE)
    assert found
    return found.group(1)


def package(out: Path, sriov_operator: Path | None = None) -> Path:
    """Write network-operator-<version>.tgz into a folder and return its path; `sriov_operator`: the chart to put in.

    The same files give the same bytes: order, times, owners and modes are fixed.
    """
    return _write(out, version(), _contents(sriov_operator))


def of_line(out: Path, release: str, definitions: Path) -> Path:
    """The same with the version of a release and the definitions of its line (those of SR-IOV among them)."""
    own = {name: text for name, text in _contents(None).items() if "crds/" not in name or "nfd-api" in name}
    own["Chart.yaml"] = own["Chart.yaml"].replace(version().encode(), release.encode())
    for path in sorted(definitions.glob("*.yaml")):
        # The definitions of nv-ipam come with the policy.
        folder = "files/crds" if path.name.startswith("nv-ipam") else "crds"
        own[f"{folder}/{path.name}"] = path.read_bytes()
    return _write(out, release, own)


def _write(out: Path, release: str, contents: dict[str, bytes]) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    target = out / f"network-operator-{release}.tgz"
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"network-operator/{name}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(tar.getvalue())
    return target


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _contents(sriov_operator: Path | None) -> dict[str, bytes]:
    # Helm wants Chart.yaml first, or it reads the whole archive for it.
    own = {str(one.relative_to(CHART)): one.read_bytes() for one in _files(CHART)}
    if sriov_operator is None:
        return own
    own["Chart.yaml"] += _DEPENDENCY.encode()
    return own | {f"charts/sriov/{one.relative_to(sriov_operator)}": one.read_bytes() for one in _files(sriov_operator)}


def _files(folder: Path) -> list[Path]:
    found = [one for one in folder.rglob("*") if one.is_file() and not _LEFT_OUT & set(one.parts)]
    return sorted(found, key=lambda one: (one.name != "Chart.yaml", str(one.relative_to(folder))))


if __name__ == "__main__":
    written = package(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print(f"{written}\nsha256:{checksum(written)}")
