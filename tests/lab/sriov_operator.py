# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real SR-IOV operator, its device plugin and the RDMA shared device plugin, built from public Go modules.

The network operator's chart brings the SR-IOV operator as a chart of its own; so does the lab's.
"""

from __future__ import annotations

from pathlib import Path

from tests.lab import golang

_GITHUB = "github.com"
_OPERATOR = f"{_GITHUB}/k8snetworkplumbingwg/sriov-network-operator"
_DEVICE_PLUGIN = f"{_GITHUB}/k8snetworkplumbingwg/sriov-network-device-plugin"
_RDMA_DEVICE_PLUGIN = f"{_GITHUB}/Mellanox/k8s-rdma-shared-dev-plugin"
#: Module of the lab that pins it, the module that it is of, and the packages of its programs.
_MODULES = {
    "sriov-operator": (
        _OPERATOR,
        _OPERATOR,
        f"{_OPERATOR}/cmd/sriov-network-config-daemon",
        f"{_OPERATOR}/cmd/sriov-network-operator-config-cleanup",
    ),
    "sriov-device-plugin": (_DEVICE_PLUGIN, f"{_DEVICE_PLUGIN}/cmd/sriovdp"),
    "rdma-device-plugin": (_RDMA_DEVICE_PLUGIN, f"{_RDMA_DEVICE_PLUGIN}/cmd/k8s-rdma-shared-dp"),
}


def programs() -> list[Path]:
    """All programs (minutes the first time)."""
    return [
        golang.pinned(name, packages) / package.rsplit("/", 1)[-1]
        for name, (_module, *packages) in _MODULES.items()
        for package in packages
    ]


def chart() -> Path:
    """The folder of the SR-IOV operator's chart."""
    return _source("sriov-operator") / "deployment" / "sriov-network-operator-chart"


def scripts() -> dict[str, Path]:
    """Files of the modules that their programs need beside them, by path in the image without the leading slash."""
    bindata = _source("sriov-operator") / "bindata"
    found = {f"bindata/{path.relative_to(bindata)}": path for path in sorted(bindata.rglob("*")) if path.is_file()}
    return {**found, "images/entrypoint.sh": _source("sriov-device-plugin") / "images" / "entrypoint.sh"}


def _source(name: str) -> Path:
    return golang.source(name, _MODULES[name][0])
