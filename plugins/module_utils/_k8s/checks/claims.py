# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster and a run suit rails whose VFs pods claim (Dynamic Resource Allocation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._fabric.operator import claims

_OPTION = "rdma_fabric.sriov.assigned_by: dra"


def problems(params: Mapping[str, Any], version: tuple[int, int] | None) -> Iterator[str]:
    """Yield why pods could not claim VFs, and that testers do not. ``version``: that of Kubernetes, where known."""
    if not any(rail.get("claim") for rail in params["rails"]):
        return
    if {"operator", "policy"} & {*params["steps"]} and version and version < claims.MIN_KUBERNETES:
        found, wanted = (".".join(map(str, one)) for one in (version, claims.MIN_KUBERNETES))
        yield (
            f"Kubernetes {found} is too old for pods to claim VFs ({_OPTION}), expected {wanted} or newer. Upgrade the"
            " cluster, or remove assigned_by"
        )
    if "validate" in params["steps"]:
        yield (
            f"testers make no claims, so in this fabric ({_OPTION}) they would not start, because no node offers the"
            " resources of the rails. Measure on the hosts only, without collectives"
        )
