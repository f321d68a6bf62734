"""Releases of the operator: compared as numbers, and which upgrade is supported."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

NEWER = "the installed release {} is newer than the requested release {}, and a downgrade is not supported."
SKIP = "an upgrade from {} to {} would skip a release line. Upgrade one line at a time: {}"
UNKNOWN = "no upgrade from the installed release {} to {} is known. Release lines in the order of upgrades: "
SUPPORTED = "release {1} is not supported. Supported release lines: 25.10, 26.1, 26.4, 26.7"
UNREADABLE = 'the installed release "{}" cannot be identified. Expected a version such as {}'
ASCENDING = (
    "1.0.0",
    "24.10.1",
    "25.4.0",
    "25.10.0",
    "26.1.2",
    "26.4.1",
    "26.4.2",
    "26.7.0-beta.1",
    "26.7.0-rc.2",
    "26.7.0-rc.10",
    "26.7.0",
    "26.7.1",
    "26.10.0",
)

UPGRADES = [
    ("26.7.1", "26.7.1", ""),
    ("v26.7.0", "26.7.1", ""),
    ("26.7.0-rc.2", "26.7.0", ""),
    ("26.4.2", "26.7.1", ""),
    ("26.1.2", "26.4.2", ""),
    ("26.1.2", "26.1.3", ""),
    ("25.10.0", "26.1.2", ""),
    ("25.7.0", "25.10.0", UNKNOWN),
    ("26.4.2", "26.1.2", NEWER),
    ("26.4.2", "26.7.0-rc.2", ""),
    ("26.7.2", "26.7.1", NEWER),
    ("26.7.0", "26.7.0-rc.2", NEWER),
    ("26.7.1", "26.4.2", NEWER),
    ("26.10.0", "26.7.1", NEWER),
    ("27.1.0", "26.7.1", NEWER),
    ("26.1.2", "26.7.1", SKIP),
    ("25.10.0", "26.7.1", SKIP),
    ("25.10.0", "26.4.2", SKIP),
    ("1.0.0", "26.7.1", UNKNOWN),
    ("24.10.1", "26.4.2", UNKNOWN),
    ("25.4.0", "26.7.1", UNKNOWN),
    ("25.7.0", "26.4.2", UNKNOWN),
    ("26.2.0", "26.7.1", UNKNOWN),
    ("26.7.1", "26.10.0", SUPPORTED),
    ("25.10.0", "25.7.0", SUPPORTED),
    ("26.7.1", "latest", SUPPORTED),
    ("latest", "26.7.1", UNREADABLE),
    ("", "26.7.1", UNREADABLE),
    ("sha256", "26.7.1", UNREADABLE),
]
STEPS = {
    ("25.10.0", "26.7.1"): "25.10 -> 26.1 -> 26.4 -> 26.7",
    ("25.10.0", "26.4.2"): "25.10 -> 26.1 -> 26.4",
    ("26.1.2", "26.7.1"): "26.1 -> 26.4 -> 26.7",
}


@pytest.mark.parametrize(("installed", "desired", "expected"), UPGRADES)
def test_upgrades(installed: str, desired: str, expected: str) -> None:
    said = releases.upgrade_problem(installed, desired)
    assert said.startswith(expected.format(installed, desired, STEPS.get((installed, desired))))
    assert bool(said) == bool(expected)


def test_the_order_is_that_of_numbers() -> None:
    found = [releases.version(text) for text in ASCENDING]
    assert None not in found
    assert all(before < after for before, after in itertools.pairwise(found))  # type: ignore[operator]


@given(st.sampled_from(ASCENDING), st.sampled_from(ASCENDING))
def test_nothing_older_is_ever_installed_over_something_newer(installed: str, desired: str) -> None:
    if ASCENDING.index(desired) < ASCENDING.index(installed):
        assert releases.upgrade_problem(installed, desired)


def test_the_lines_are_in_the_order_of_upgrades_and_so_are_their_releases() -> None:
    texts = [release for line in releases.LINES.values() for release in (line.name, *line.releases)]
    found = [releases.version(text) for text in texts]
    assert None not in found and found == sorted(found)  # type: ignore[type-var]
    assert all(releases.line_of(text) is line for line in releases.LINES.values() for text in line.releases)
    assert list(list(releases.LINES.values())[-1].releases)[-1] == releases.DEFAULT


@pytest.mark.parametrize("text", ["", "26", "26.x", "26.7.1.2", "26.7.1-", "2٦.7.1", "9" * 5000 + ".1.1"])
def test_what_is_no_release(text: str) -> None:
    assert releases.version(text) is None
    assert releases.line_of(text) is None


ENDED = (
    "release line {} of the network operator is no longer supported by its vendor and receives no fixes. Lines with"
    " support: 26.4 (critical fixes only), 26.7 (supported). Upgrade one line at a time: {}"
)
PRERELEASE = (
    "release {} of the network operator is a prerelease. The vendor publishes its images in nvcr.io/nvstaging/mellanox,"
    " which requires credentials, and does not support it in production"
)
WARNINGS = [
    ("25.10.0", [ENDED.format("25.10", "25.10 -> 26.1 -> 26.4 -> 26.7")]),
    ("26.1.2", [ENDED.format("26.1", "26.1 -> 26.4 -> 26.7")]),
    ("26.1.2-rc.4", [ENDED.format("26.1", "26.1 -> 26.4 -> 26.7"), PRERELEASE.format("26.1.2-rc.4")]),
    ("26.4.2", []),
    ("26.7.1", []),
    ("26.7.0-rc.2", [PRERELEASE.format("26.7.0-rc.2")]),
]


@pytest.mark.parametrize(("release", "expected"), WARNINGS)
def test_a_plan_warns_of_its_release(release: str, expected: list[str]) -> None:
    assert list(releases.warnings(release)) == expected
    made = plan({"supernet": "192.168.0.0/16", "operator": {"release": release}}, fleet(2))
    assert [said for said in made["warnings"] if "network operator" in said] == expected


REGISTRIES = [
    ("26.7.1", "nvcr.io/nvidia/mellanox"),
    ("25.10.0", "nvcr.io/nvidia/mellanox"),
    ("26.7.0-rc.2", "nvcr.io/nvstaging/mellanox"),
    ("26.10.0-beta.1", None),
]


@pytest.mark.parametrize(("release", "repository"), REGISTRIES)
def test_prereleases_come_from_the_staging_registry(release: str, repository: str | None) -> None:
    line = releases.line_of(release)
    assert (line.repository(release) if line else None) == repository


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        # What the charts of supported lines have, with keys of the same names further down.
        ({"operator": {"ofedDriver": {"initContainer": {}}}, "sriov-network-operator": {"draDriver": {}}}, []),
        (
            {"deployCR": True, "nvIpam": {"deploy": True}, "nfd": {"enabled": False}},
            [
                "deployCR: the chart has no such value since release 24.10 and ignores it."
                " Remove it: this collection applies the NicClusterPolicy",
                "nvIpam: the chart has no such value since release 24.10 and ignores it. Set it"
                " in rdma_fabric, or in rdma_fabric.operator.policy_overrides",
            ],
        ),
        (
            {"draDriver": {"cdiRoot": "/x"}},
            [
                "draDriver: the chart has no such value and ignores it. Set"
                " sriov-network-operator.draDriver, which release 26.4 and later have"
            ],
        ),
    ],
)
def test_values_that_the_chart_ignores(values: dict[str, object], expected: list[str]) -> None:
    assert sorted(releases.gone_values(values)) == sorted(expected)
