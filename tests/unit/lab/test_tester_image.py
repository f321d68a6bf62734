# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tester image that users build: same layout as the lab's, everything pinned. No container engine runs here."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.lab import oci

FOLDER = oci.TESTER_FOLDER
CONTAINERFILE = (FOLDER / "Containerfile").read_text()
DIGEST = "sha256:" + "a" * 64
PINS = {
    "BUILD_IMAGE": f"images.example/cuda-devel@{DIGEST}",
    "BASE_IMAGE": f"images.example/base@{DIGEST}",
    "PERFTEST_URL": "https://example.com/perftest.tar.gz",
    "PERFTEST_SHA256": "b" * 64,
    "NCCL_TESTS_URL": "https://example.com/nccl-tests.tar.gz",
    "NCCL_TESTS_SHA256": "c" * 64,
    "MPICH_URL": "https://example.com/mpich.tar.gz",
    "MPICH_SHA256": "d" * 64,
}


def build(folder: Path, pins: dict[str, str], exists: bool = False) -> subprocess.CompletedProcess[str]:
    """Run build.sh with an engine that prints its arguments, one per line."""
    (folder / "pins").write_text("".join(f"{name}={value}\n" for name, value in pins.items()))
    program = folder / "podman"
    program.write_text(
        f'#!/bin/sh\n[ "$1 $2" != "manifest exists" ] || exit {0 if exists else 1}\nprintf "%s\\n" "$@"\n'
    )
    program.chmod(0o755)
    env = {"PATH": f"{folder}:/usr/bin:/bin"}
    command = ["sh", str(FOLDER / "build.sh"), str(folder / "pins"), "images.example/tester:1"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_build_passes_each_pin(tmp_path: Path) -> None:
    done = build(tmp_path, PINS)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:5] == ["build", "--format", "docker", "--manifest", "images.example/tester:1"]
    given = {line for line in lines if "=" in line}
    assert given == {f"{name}={value}" for name, value in {**PINS, "NVCC_GENCODE": ""}.items()}
    assert lines[-1] == str(FOLDER)


def test_build_adds_to_no_image_that_exists(tmp_path: Path) -> None:
    done = build(tmp_path, PINS, exists=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        "images.example/tester:1 exists already, and the build would add to it. Choose another tag, or" in done.stderr
    )


def test_every_step_of_the_build_ends_at_its_first_error() -> None:
    """Whatever the engine makes of SHELL, which images in OCI format do not have."""
    steps = re.findall(r"^RUN (.*)$", CONTAINERFILE, re.MULTILINE)
    assert steps and all(step.startswith("set -eux; ") for step in steps)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"BASE_IMAGE": "images.example/base:latest"}, "BASE_IMAGE is 'images.example/base:latest', expected an image"),
        ({"BUILD_IMAGE": ""}, "BUILD_IMAGE is '', expected an image with its digest"),
        ({"MPICH_SHA256": "abc"}, "MPICH_SHA256 is 'abc', expected 64 hexadecimal digits"),
        (
            {"PERFTEST_URL": "http://example.com/x.tar.gz"},
            "PERFTEST_URL is 'http://example.com/x.tar.gz', expected",
        ),
        ({"PERFTEST_VERSION": "1"}, "has an unknown line: PERFTEST_VERSION=1"),
    ],
)
def test_build_refuses_what_is_not_pinned(tmp_path: Path, change: dict[str, str], message: str) -> None:
    done = build(tmp_path, {**PINS, **change})
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr


def test_pins_are_read_and_not_executed(tmp_path: Path) -> None:
    done = build(tmp_path, {**PINS, "NVCC_GENCODE": f"$(touch {tmp_path}/ran)"})
    assert done.returncode == 0
    assert not (tmp_path / "ran").exists()


def test_image_has_the_packages_and_the_configuration_of_the_lab() -> None:
    assert oci.tester_packages() == sorted(set(oci.tester_packages()))
    assert "COPY packages.txt /usr/share/gpufabric/packages.txt" in CONTAINERFILE
    assert re.findall(r"^(?:ENV|WORKDIR|CMD) .*$", CONTAINERFILE.rpartition("\nFROM ")[2], re.MULTILINE) == [
        f"ENV {oci.IMAGE_PATH}",
        "WORKDIR /",
        'CMD ["/bin/sh"]',
    ]


def test_no_image_and_no_source_has_a_default() -> None:
    assert re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE) == ["${BUILD_IMAGE}", "${BASE_IMAGE}"]
    assert set(re.findall(r"^ARG ([A-Z0-9_]+)$", CONTAINERFILE, re.MULTILINE)) == set(PINS)
    assert "http" not in re.sub(r"(?m)^#.*$", "", CONTAINERFILE)


def test_fetch_refuses_a_wrong_checksum(tmp_path: Path) -> None:
    curl = tmp_path / "curl"
    curl.write_text(
        '#!/bin/sh\nfor last in "$@"; do :; done\nwhile [ "$1" != --output ]; do shift; done\necho text > "$2"\n'
    )
    curl.chmod(0o755)
    command = ["sh", str(FOLDER / "fetch.sh"), "https://example.com/x.tar.gz", "e" * 64, "x"]
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"has the sha256 [0-9a-f]{64}, expected e{64}", done.stderr)
    assert not (tmp_path / "x").exists()
