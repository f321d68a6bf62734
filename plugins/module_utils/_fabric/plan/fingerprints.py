# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the facts of hosts fit the fingerprints of classes (``rdma_fabric.classes[].match``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.fold import fold
from ..intent.host_classes import KEY, REST, Fingerprint, HostClass
from .gpu_affinity import CLASSES, nearest_gpu
from .hosts import Host


def fits(match: Fingerprint | None, host: Host) -> bool:
    """Return whether the facts of a host show what a fingerprint expects."""
    return match is not None and host.facts is not None and not _differences(match, host)


def unlike(own: HostClass, host: Host) -> Iterator[str]:
    """Yield how a host that a class names differs from what the hosts of the class are to have."""
    if own.match and host.facts:
        for text in _differences(own.match, host):
            yield f"{KEY}.classes[{own.name}]: {host.name} is in hosts, but {text}. Repair the host, or correct match"


def strangers(classes: Sequence[HostClass], rest: Sequence[Host]) -> Iterator[str]:
    """Yield what new hosts of no class have and what fingerprints expect: one may have lost a card.

    Hosts that have their rails already are known to be of no class.
    """
    by_match = [own for own in classes if own.match and not own.hosts]
    alike: dict[str, list[str]] = {}
    for host in rest:
        if by_match and host.facts and not any(port.get("configured") for port in host.ports):
            texts = [f"{own.name}: {text}" for own in by_match for text in _differences(own.match, host)]
            alike.setdefault(", ".join(texts), []).append(host.name)
    for found, names in alike.items():
        yield (
            f"no fingerprint of {KEY}.classes fits {fold(names)} ({found}), planned as class {REST}. Check for missing"
            " cards before the first change. To reject such hosts, set hosts and match of a class together"
        )


def _differences(match: Fingerprint | None, host: Host) -> list[str]:
    if match is None:
        return []
    facts = host.facts or {}
    ports = [port for port in host.ports if port["device"].lower() == match.device]
    what = f"NIC ports {match.device}"
    expected = {what: match.ports, "GPUs": match.gpus}
    counts = {what: len(ports), "GPUs": len(facts.get("gpus", ()))}
    wrong = [
        f"it has {counts[name]} {name}, expected {count}"
        for name, count in expected.items()
        if count is not None and counts[name] != count
    ]
    if wrong or not match.device:
        return wrong
    if not ports:
        return [f"it has no {what}"]
    return list(_far(match.gpu_path, _longest_path(facts, ports)))


def _far(expected: str | None, found: str) -> Iterator[str]:
    if expected and expected != found:
        way = f"the longest way from these NIC ports to their nearest GPUs is {found}" if found else "it has no GPUs"
        yield f"{way}, expected {expected}"


def _longest_path(facts: Mapping[str, Any], ports: Sequence[Mapping[str, Any]]) -> str:
    """Return the class of the longest way from a port to its nearest GPU, "" without GPUs."""
    found = [near.path for port in ports if (near := nearest_gpu(facts, port))]
    return max(found, key=CLASSES.index, default="")
