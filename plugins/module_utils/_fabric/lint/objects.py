# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes objects of any origin, read without trust in their form: what is not as expected counts as absent."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

# A PF of a selector may be followed by a range of its VFs, as in ens1f0#0-3.
_PF = re.compile(r"([^#]+)(?:#.*)?")


@dataclass(frozen=True)
class Objects:
    """What is examined. ``items``: the objects; ``hosts``: host -> its facts, where they are known.

    ``complete``: these are all objects of a cluster, so that what is not here does not exist. ``groups``: the API
    groups that the cluster serves, none where that is not known. ``selected``: the policies are for all ``hosts``.
    """

    items: Sequence[Mapping[str, Any]]
    hosts: Mapping[str, Any] = field(default_factory=dict)
    complete: bool = False
    groups: Collection[str] = ()
    selected: bool = False

    def of(self, *kinds: str) -> list[Mapping[str, Any]]:
        """Return the objects of some kinds, in their order."""
        return [item for item in self.items if isinstance(item, Mapping) and item.get("kind") in kinds]

    def for_hosts(self, section: str) -> list[Mapping[str, Any]]:
        """Return the policies with a section that are for all hosts: for which ones others are, facts cannot tell."""
        return [
            policy
            for policy in self.of("NicClusterPolicy")
            if isinstance(at(policy, "spec", section), Mapping)
            and (self.selected or not at(policy, "spec", "nodeAffinity"))
        ]


def label(item: Mapping[str, Any]) -> str:
    """Return how a message calls an object: ``Kind name`` or ``Kind namespace/name``."""
    namespace, name = text(item, "metadata", "namespace"), text(item, "metadata", "name")
    return f"{item.get('kind')} {namespace + '/' if namespace else ''}{name or '(no name)'}"


def at(item: Any, *path: str) -> Any:
    """Return what is at a path, None when it is not there."""
    for key in path:
        if not isinstance(item, Mapping):
            return None
        item = item.get(key)
    return item


def text(item: Any, *path: str) -> str:
    """Return the text at a path, empty when there is none."""
    found = at(item, *path)
    return found if isinstance(found, str) else ""


def number(item: Any, *path: str) -> int | None:
    """Return the whole number at a path, None when there is none."""
    found = at(item, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def dicts(item: Any, *path: str) -> list[Mapping[str, Any]]:
    """Return the dicts of the list at a path."""
    found = at(item, *path)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def mapping(item: Any, *path: str) -> Mapping[Any, Any]:
    """Return the dict at a path, an empty one when there is none."""
    found = at(item, *path)
    return found if isinstance(found, Mapping) else {}


def texts(item: Any, *path: str) -> list[str]:
    """Return the texts of the list at a path."""
    found = at(item, *path)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def loaded(item: Any, *path: str) -> tuple[Any, str]:
    """Return what the JSON text at a path holds, and why it cannot be read; None and "" where there is no text."""
    found = text(item, *path)
    if not found.strip():
        return None, ""
    try:
        return json.loads(found), ""
    except (ValueError, RecursionError) as error:
        return None, " ".join(str(error).split())


def network(value: Any) -> Network | None:
    """Return a network, None when the text is none."""
    try:
        return ipaddress.ip_network(value, strict=False) if isinstance(value, str) else None
    except ValueError:
        return None


def pf_names(names: Iterable[str]) -> Iterator[str]:
    """Yield the names of the PFs in a selector, without the ranges of their VFs."""
    for name in names:
        match = _PF.fullmatch(name)
        if match:
            yield match[1]
