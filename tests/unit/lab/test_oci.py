# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image archives: their form, and that the same input gives the same bytes."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from tests.lab import oci, packages


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    info = root / "var/lib/dpkg/info"
    python = root / "usr/lib/python3.13"
    (python / "__pycache__").mkdir(parents=True)
    (python / "json.py").write_text("1")
    (python / "__pycache__/json.cpython-313.pyc").write_text("2")
    (python / "__pycache__/other.cpython-313.pyc").write_text("3")
    (root / "usr/share/doc/app").mkdir(parents=True)
    (root / "usr/share/doc/app/copyright").write_text("text")
    (root / "bin").symlink_to("usr/bin")
    (root / "usr/bin").mkdir()
    (root / "usr/bin/app").write_text("program")
    (root / "usr/bin/app").chmod(0o755)
    info.mkdir(parents=True)
    lines = ["/bin", "/bin/app", "/usr/lib/python3.13/json.py", "/usr/share/doc/app/copyright"]
    (info / "app.list").write_text("\n".join(lines))
    return root


def layer(root: Path) -> list[str]:
    app = packages.Package("app", "1", (), ())
    return [info.name for info, _content in oci.tester_entries(root, [app])]


def test_layer_starts_with_the_links_of_merged_usr(tree: Path) -> None:
    assert layer(tree)[:4] == ["bin", "sbin", "lib", "lib64"]


def test_layer_has_programs_and_bytecode_but_no_documents(tree: Path) -> None:
    assert [name for name in layer(tree) if name.startswith("usr/")] == [
        "usr/bin/awk",
        "usr/bin/app",
        "usr/lib/python3.13/__pycache__/json.cpython-313.pyc",
        "usr/lib/python3.13/json.py",
    ]


def test_no_name_twice(tree: Path) -> None:
    assert len(layer(tree)) == len(set(layer(tree)))


def test_archive_is_a_docker_archive_and_reproducible(tree: Path, tmp_path: Path) -> None:
    app = packages.Package("app", "1", (), ())
    one, two = tmp_path / "one.tar", tmp_path / "two.tar"
    for path in (one, two):
        oci.write_image(path, ("lab/app:1",), oci.tester_entries(tree, [app]), ["/bin/sh"])
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as archive:
        contents = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    (manifest,) = json.loads(contents["manifest.json"])
    assert manifest["RepoTags"] == ["lab/app:1"]
    config = json.loads(contents[manifest["Config"]])
    assert (config["config"]["Cmd"], config["config"].get("Entrypoint")) == (["/bin/sh"], None)
    digest = hashlib.sha256(contents["layer.tar"]).hexdigest()
    assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}"]
    assert sorted(tmp_path.glob("*-layer")) == []
