# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive of the stand-in's chart, and what the chart must hold."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import yaml
from tests.lab import charts


def names(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        return archive.getnames()


def test_the_archive_is_the_same_every_time(tmp_path: Path) -> None:
    first = charts.package(tmp_path / "a")
    os.utime(charts.CHART / "values.yaml")
    second = charts.package(tmp_path / "b")
    assert first.name == second.name == "network-operator-26.7.1.tgz"
    assert charts.checksum(first) == charts.checksum(second)


def test_the_archive_holds_what_helm_needs_and_no_bytecode(tmp_path: Path) -> None:
    found = names(charts.package(tmp_path))
    assert found[0] == "network-operator/Chart.yaml"
    assert "network-operator/files/standin/__main__.py" in found
    assert "network-operator/crds/mellanox.com_nicclusterpolicies.yaml" in found
    assert not [one for one in found if one.endswith(".pyc")]


def test_the_chart_of_the_sriov_operator_is_a_part_of_it(tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / "values.yaml").write_text("{}")
    (part / "Chart.yaml").write_text("name: sriov-network-operator-chart\nversion: 0.0.0-dev\n")
    path = charts.package(tmp_path / "out", part)
    found = names(path)
    assert [one for one in found if "/charts/" in one] == [
        "network-operator/charts/sriov/Chart.yaml",
        "network-operator/charts/sriov/values.yaml",
    ]
    with tarfile.open(path) as archive:
        chart = yaml.safe_load(archive.extractfile(found[0]).read())  # type: ignore[union-attr]
    (dependency,) = chart["dependencies"]
    assert (dependency["alias"], dependency["condition"]) == (
        "sriov-network-operator",
        "sriovNetworkOperator.enabled",
    )


def test_crds_of_nv_ipam_come_with_the_policy_and_not_with_the_chart() -> None:
    brought = sorted(one.name for one in (charts.CHART / "crds").iterdir())
    assert not [name for name in brought if "nv-ipam" in name]
    kinds = [
        yaml.safe_load(one.read_text())["spec"]["names"]["kind"]
        for one in sorted((charts.CHART / "files" / "crds").glob("*.yaml"))
    ]
    assert kinds == ["CIDRPool", "IPPool"]


def test_everything_says_that_it_is_a_stand_in() -> None:
    for name in ("Chart.yaml", "README.md", "templates/NOTES.txt", "files/standin/__init__.py"):
        assert "stand-in" in (charts.CHART / name).read_text().lower(), name
