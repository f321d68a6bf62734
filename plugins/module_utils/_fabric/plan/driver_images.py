# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which images of the driver container hosts pull: the operator adds system and architecture of a node to the tag."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.fold import fold
from ..intent.intent import Intent
from ..intent.releases import line_of
from .host_classes import Part
from .hosts import Host

# The ids of os-release for which the vendor publishes drivers, beside that of CoreOS, whose version is another one.
_SYSTEMS = ("rhel", "sles", "ubuntu")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)


def of_plan(parts: Sequence[Part]) -> dict[str, Any]:
    """Return ``driver_systems``: version of the driver -> ends of its tags, sorted, "" for hosts where it is not known.

    Nothing without the driver container.
    """
    found: dict[str, set[str]] = {}
    for part in parts:
        driver = part.intent.operator.driver
        if driver.enabled and driver.version:
            systems = {_system(host.facts, driver.precompiled) for host in part.hosts}
            found.setdefault(driver.version, set()).update(systems)
    return {"driver_systems": {version: sorted(systems) for version, systems in found.items()}} if found else {}


def _system(facts: Mapping[str, Any] | None, precompiled: bool) -> str:
    if not facts:
        return ""
    system, architecture = facts["os"], _ARCHITECTURES.get(facts["arch"], "")
    if system["id"] not in _SYSTEMS or not system["version"] or not architecture:
        return ""
    parts = [facts["kernel"]["release"]] if precompiled else []
    found = "-".join([*parts, f"{system['id']}{system['version']}", architecture])
    return found if _TAG.fullmatch(found) else ""


def doubts(intent: Intent, hosts: Sequence[Host]) -> Iterator[str]:
    """Yield the hosts with an operating system for which the vendor publishes no drivers."""
    operator = intent.operator
    line = line_of(operator.release)
    if not operator.driver.enabled or line is None or operator.image_repository != line.repository(operator.release):
        return
    others: dict[str, list[str]] = {}
    for host in hosts:
        system = host.facts["os"] if host.facts else {"id": "", "version": ""}
        if system["id"] and system["id"] not in _SYSTEMS and not operator.platform.machines:
            others.setdefault(f"{system['id']} {system['version']}".strip(), []).append(host.name)
    for name, members in others.items():
        yield (
            f"{fold(members)}: the vendor publishes no image of the driver container for {name}, so nodes cannot pull"
            " one. Its lists have images for RHEL, SLES and Ubuntu. Install the drivers on the"
            " hosts with role rdma_stack, and remove rdma_fabric.operator.driver"
        )
