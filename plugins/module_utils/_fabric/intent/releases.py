# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The release lines of NVIDIA Network Operator: the only place in the product where a release is named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# Where the vendor publishes images of components: final releases, and prereleases (which need credentials).
_REGISTRY = "nvcr.io/nvidia/mellanox"
_STAGING = "nvcr.io/nvstaging/mellanox"
_DOCA = "nvcr.io/nvidia/doca"
_OPERATOR = "nvcr.io/nvidia/cloud-native"

# Component -> image. All but the driver and telemetry are tagged with the release of the operator.
_IMAGES = {
    "cni_plugins": "plugins",
    "doca_driver": "doca-driver",
    "doca_telemetry": "doca_telemetry",
    "ib_kubernetes": "ib-kubernetes",
    "ipoib_cni": "ipoib-cni",
    "multus": "multus-cni",
    "nic_configuration_daemon": "nic-configuration-operator-daemon",
    "nic_configuration_operator": "nic-configuration-operator",
    "nic_feature_discovery": "nic-feature-discovery",
    "nv_ipam": "nvidia-k8s-ipam",
    "rdma_shared_device_plugin": "k8s-rdma-shared-dev-plugin",
    "sriov_device_plugin": "sriov-network-device-plugin",
}

COMPONENTS = tuple(_IMAGES)
# Component -> registry of the vendor, where it is another one than that of the rest.
_ELSEWHERE = {"doca_telemetry": _DOCA}

# What the vendor does for a line.
SUPPORTED = "supported"
FIXES_ONLY = "critical fixes only"
ENDED = "end of support"


@dataclass(frozen=True)
class Line:
    """One release line: what its chart requires, and what its objects look like (fields: ``has``).

    ``min_kubernetes``: what the chart requires. ``support``: what the vendor does for the line. ``releases``: final
    release -> tag of the driver container, empty when it is not known, in order; later releases are accepted too.
    ``restarts_device_plugin``: whether the operator replaces the pods of a device plugin whose configuration changes.
    ``dra``: whether its SR-IOV operator brings the DRA driver.
    ``precompiled``: release -> tag of the driver container that has images with compiled drivers, where it is another
    one; empty when the vendor lists none. ``telemetry``: release -> tag of DOCA Telemetry Service, where it is known.
    ``images``: component -> image. ``registry`` has those of final releases, ``staging`` those of prereleases.
    """

    name: str
    min_kubernetes: tuple[int, int]
    support: str
    releases: Mapping[str, str]
    restarts_device_plugin: bool = True
    precompiled: Mapping[str, str] = field(default_factory=dict)
    dra: bool = True
    telemetry: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=lambda: _IMAGES)
    registry: str = _REGISTRY
    staging: str = _STAGING

    def has(self, kind: str, path: str = "") -> bool:
        """Return whether objects of a kind have a field on this line; without a path, whether the kind exists."""
        return all(
            _number(first) <= _number(self.name) and not (gone and _number(gone) <= _number(self.name))
            for first, gone in (SPANS.get((kind, part), _ALWAYS) for part in ("", path))
        )

    def repository(self, release: str) -> str:
        """Return where the images of a release of this line are by default."""
        return self.staging if is_prerelease(release) else self.registry

    def operator_registry(self, release: str) -> str:
        """Return where the vendor publishes the image of the operator itself."""
        return self.staging if is_prerelease(release) else _OPERATOR

    def publisher(self, image: str, release: str) -> str:
        """Return where the vendor publishes an image of a release."""
        names = {self.images[component]: registry for component, registry in _ELSEWHERE.items()}
        return names.get(image) or self.repository(release)


# In the order of upgrades: one line at a time. Support as in the platform support of 26.7.0, tags as in the lists of
# container images of each release. 25.10 was recorded not to restart device plugins; for 26.1 it is not known.
LINES: dict[str, Line] = {
    line.name: line
    for line in (
        Line(
            "25.10",
            (1, 21),
            ENDED,
            {"25.10.0": "doca3.2.0-25.10-1.2.8.0-2"},
            restarts_device_plugin=False,
            dra=False,
            telemetry={"25.10.0": "1.22.5-doca3.1.0-host"},
        ),
        Line(
            "26.1",
            (1, 21),
            ENDED,
            {
                "26.1.0": "doca3.3.0-26.01-1.0.0.0-0",
                "26.1.1": "doca3.3.0-26.01-1.0.0.0-0",
                "26.1.2": "doca3.3.0-26.01-1.0.0.0-6",
            },
            restarts_device_plugin=False,
            dra=False,
            telemetry=dict.fromkeys(("26.1.0", "26.1.1", "26.1.2"), "1.23.4-doca3.2.0-host"),
        ),
        Line(
            "26.4",
            (1, 21),
            FIXES_ONLY,
            {
                "26.4.0": "doca3.4.0-26.04-0.8.6.0-0",
                "26.4.1": "doca3.4.1-26.04-1.1.0.0-1",
                "26.4.2": "doca3.4.1-26.04-1.1.0.0-3",
            },
            precompiled={"26.4.1": ""},
            telemetry=dict.fromkeys(("26.4.0", "26.4.1"), "1.25.5-doca3.4.0-host"),
        ),
        Line(
            "26.7",
            (1, 32),
            SUPPORTED,
            {"26.7.0": "doca3.5.0-26.07-0.7.7.0-1", "26.7.1": ""},
            precompiled={"26.7.0": "doca3.5.0-26.07-0.7.7.0-0"},
            telemetry={"26.7.0": "1.25.5-doca3.4.0-host", "26.7.1": "1.26.5-doca3.5.0-host"},
        ),
    )
}

# Kinds and fields that not every line has: the first line with it, and the first one without it again. A new line has
# all that the line before it has.
_ALWAYS = ("0.0", "")
_ENV_FILE = "env[].valueFrom.fileKeyRef"
SPANS: dict[tuple[str, str], tuple[str, str]] = {
    ("NicNodePolicy", ""): ("26.4", ""),
    ("NicClusterPolicy", "spec.global"): ("26.4", ""),
    ("NicClusterPolicy", f"spec.nicConfigurationOperator.{_ENV_FILE}"): ("26.1", ""),
    ("NicClusterPolicy", f"spec.ofedDriver.{_ENV_FILE}"): ("26.1", ""),
    ("NicClusterPolicy", "spec.secondaryNetwork.ipamPlugin"): ("0.0", "25.10"),
    ("NicClusterPolicy", "spec.spectrumXOperator.xPlane"): ("26.4", ""),
    ("NicClusterPolicy", "status.conditions"): ("26.7", ""),
    ("IPPool", "spec.perNodeExclusions"): ("26.4", ""),
    ("CIDRPool", "spec.perNodeExclusions"): ("26.4", ""),
    ("SriovNetworkNodePolicy", "spec.bridge.groupingPolicy"): ("26.1", ""),
    ("SriovNetworkNodePolicy", "spec.devlinkParams"): ("26.1", ""),
    ("SriovOperatorConfig", "spec.configDaemonEnvVars"): ("26.1", ""),
}

# What is installed unless the user asks for another release.
DEFAULT = "26.7.1"

_VERSION = re.compile(r"(?a)v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:-([0-9A-Za-z.-]+))?")


# Values of the chart that no line here has, which it ignores without a message: the first release without them (empty
# where none had them), and what to do instead. With the sections of components older charts made the NicClusterPolicy.
_BY_POLICY = "Set it in rdma_fabric, or in rdma_fabric.operator.policy_overrides"
_NIC_CONFIGURATION = "Set rdma_fabric.operator.nic_configuration, which the policy has in its place"
GONE_VALUES: dict[str, tuple[str, str]] = {
    "deployCR": ("24.10", "Remove it: this collection applies the NicClusterPolicy"),
    **dict.fromkeys(
        (
            "docaTelemetryService",
            "ibKubernetes",
            "nicFeatureDiscovery",
            "nvIpam",
            "ofedDriver",
            "rdmaSharedDevicePlugin",
        )
        + ("secondaryNetwork", "sriovDevicePlugin"),
        ("24.10", _BY_POLICY),
    ),
    "draDriver": ("", "Set sriov-network-operator.draDriver, which release 26.4 and later have"),
    "nvPeerDriver": ("23.7", "Remove it: use nvidia-peermem of the GPU driver, or DMA-BUF (role peer_memory)"),
    "psp": ("24.1", "Remove it: Kubernetes has no PodSecurityPolicy"),
    "nicConfigurationOperator": ("25.10", _NIC_CONFIGURATION),
    "nic-configuration-operator-chart": ("25.10", _NIC_CONFIGURATION),
}


def gone_values(values: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each value of the chart that no supported release has."""
    return [
        f"{name}: the chart has no such value{since and f' since release {since}'} and ignores it. {instead}"
        for name, (since, instead) in GONE_VALUES.items()
        if name in values
    ]


class Version(NamedTuple):
    """A release that can be compared: its line, its patch, and where it stands among the prereleases of the patch."""

    line: tuple[int, int]
    patch: int
    stage: tuple[Any, ...]


def version(text: str) -> Version | None:
    """Return a release such as ``v26.7.0-rc.2`` as numbers; None when it is not a release."""
    match = _VERSION.fullmatch(text)
    if not match:
        return None
    year, month, patch, stage = match.groups()
    # A final release comes after its prereleases; in a prerelease numbers come before words.
    parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"[.-]", stage or "") if part]
    return Version((int(year), int(month)), int(patch or 0), (0, *parts) if parts else (1,))


def line_of(release: str) -> Line | None:
    """Return the line of a chart version such as ``26.7.1``; None when we do not support it."""
    found = version(release)
    return LINES.get(name_of(found.line)) if found else None


def name_of(line: tuple[int, int]) -> str:
    """Return the name of a line, e.g. ``26.7``."""
    return "{}.{}".format(*line)


def _number(name: str) -> tuple[int, int]:
    year, month = name.split(".")
    return int(year), int(month)


def is_prerelease(release: str) -> bool:
    """Return whether a release is a prerelease such as ``26.7.0-rc.2``."""
    found = version(release)
    return found is not None and found.stage[0] == 0


def varying(kind: str) -> tuple[str, ...]:
    """Return the fields of a kind that not every line has; an empty one stands for the kind itself."""
    return tuple(path for own, path in SPANS if own == kind)


def lines_with(kind: str, path: str) -> tuple[str, ...]:
    """Return the names of the lines on which a kind has a field."""
    return tuple(name for name, line in LINES.items() if line.has(kind, path))


def warnings(release: str) -> Iterator[str]:
    """Yield what to know before a release is deployed: its support by the vendor, and where a prerelease comes from."""
    line = line_of(release)
    if line and line.support == ENDED:
        names = list(LINES)
        alive = ", ".join(f"{one.name} ({one.support})" for one in LINES.values() if one.support != ENDED)
        yield (
            f"release line {line.name} of the network operator is no longer supported by its vendor and receives no"
            f" fixes. Lines with support: {alive}. Upgrade one line at a time:"
            f" {' -> '.join(names[names.index(line.name) :])}"
        )
    if line and is_prerelease(release):
        yield (
            f"release {release} of the network operator is a prerelease. The vendor publishes its images in"
            f" {line.staging}, which requires credentials, and does not support it in production"
        )


def upgrade_problem(installed: str, desired: str) -> str:
    """Return why the operator cannot go from one release to another; empty when it can."""
    before, after = version(installed), version(desired)
    if after is None or name_of(after.line) not in LINES:
        return f"release {desired} is not supported. Supported release lines: {', '.join(LINES)}"
    if before is None:
        return f'the installed release "{installed}" cannot be identified. Expected a version such as {desired}'
    if before > after:
        return (
            f"the installed release {installed} is newer than the requested release {desired}, and a downgrade is not"
            f" supported. Set rdma_fabric.operator.release to {installed} or newer"
        )
    if before.line == after.line:
        return ""
    lines = tuple(LINES)
    if name_of(before.line) not in lines:
        return (
            f"no upgrade from the installed release {installed} to {desired} is known. Release lines in the order of"
            f" upgrades: {' -> '.join(lines)}"
        )
    steps = lines[lines.index(name_of(before.line)) : lines.index(name_of(after.line)) + 1]
    if len(steps) == 2:
        return ""
    return (
        f"an upgrade from {installed} to {desired} would skip a release line. Upgrade one line at a time:"
        f" {' -> '.join(steps)}"
    )
