# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma_fabric.classes``: groups of hosts with rails and a network model of their own.

Each class is an intent of its own: the keys of ``rdma_fabric`` with those of the class over them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._common.errors import InputError
from ..._common.reader import Form, Reader, raise_problems
from .intent import Intent
from .thresholds import GPU_PATHS

KEY = "rdma_fabric"

# The hosts of no class are a class of this name.
REST = "default"
# The label by which nodes of classes differ, where their selectors do not.
LABEL = "gpufabric.rdma/class"
# Names of rails begin with that of their class, and have at most 15 characters.
_NAME = Form(
    r"[a-z]([a-z0-9-]{0,6}[a-z0-9])?",
    'a name such as storage (lowercase letters, digits and "-" inside, first a letter, at most 8 characters)',
)
# The keys of ``rdma_fabric`` that a class can have its own of.
_OVER = (
    *("profile", "rails", "select", "rail_count", "supernet", "rail_prefix", "capacity", "gateway", "reserved", "mtu"),
    *("vlan", "pkey", "ipv6"),
    "driver_version",
    *("link_speed", "networks", "shared_devices_max", "sriov", "node_labels", "node_selector"),
)
# What two classes can never have in common.
_OWN_ONLY = ("classes", "rails", "rail_count", "supernet", "reserved", "ipv6")
# The key of a class for one of the section operator, of which classes have no other.
_DRIVER_VERSION, _DRIVER_PATH = "driver_version", "operator.driver.version"
_LABELS = ("node_labels", "node_selector")


@dataclass(frozen=True)
class Fingerprint:
    """What the facts of a host must show: NIC ports with a PCI device id, their number, and the number of GPUs.

    ``gpu_path``: the longest way from one of these ports to its nearest GPU.
    """

    device: str | None
    ports: int | None
    gpus: int | None
    gpu_path: str | None = None

    def __str__(self) -> str:
        count = "at least 1" if self.ports is None else self.ports
        found = [f"{count} NIC ports {self.device}"] if self.device else []
        found += [f"{self.gpus} GPUs"] if self.gpus is not None else []
        return ", ".join(found + ([f"GPUs by {self.gpu_path}"] if self.gpu_path else []))


@dataclass(frozen=True)
class HostClass:
    """A class of hosts. ``hosts``: hosts and groups of the inventory; ``match``: None without; ``intent``: its own."""

    name: str
    hosts: tuple[str, ...]
    match: Fingerprint | None
    intent: Intent


def read_fabric(
    fabric: Any, profiles: Sequence[str], sections: Mapping[str, Collection[str]]
) -> tuple[Intent, tuple[HostClass, ...]]:
    """Return the intent of ``rdma_fabric``, that of hosts of no class, and the classes.

    The arguments are those of Intent.from_params; so are the errors.
    """
    intent = Intent.from_params(fabric, profiles, sections)
    problems: list[str] = []
    reader = Reader(fabric, KEY, problems)
    found = []
    for item in reader.sections("classes"):
        name, hosts, match, own = _class(item)
        if item.problems:
            continue
        try:
            both = over(fabric, own, sections)
            own_intent = replace(Intent.from_params(both, profiles, sections), class_name=name)
            found.append(HostClass(name, hosts, match, own_intent))
            if _DRIVER_VERSION in own and not intent.operator.driver.enabled:
                item.refuse(_DRIVER_VERSION, f"has an effect with {KEY}.operator.driver.enabled only. Remove it")
        except InputError as error:
            text = str(error).replace(_DRIVER_PATH, _DRIVER_VERSION) if _DRIVER_VERSION in own else str(error)
            problems.append(text.replace(f"{KEY}.", f"{KEY}.classes[{name}]."))
    names = [own.name for own in found]
    for name in sorted({name for name in names if names.count(name) > 1}):
        reader.refuse("classes", f'the name "{name}" is given to more than one class')
    raise_problems(problems)
    return intent, tuple(found)


def _class(item: Reader) -> tuple[str, tuple[str, ...], Fingerprint | None, dict[str, Any]]:
    """Return name, hosts, fingerprint and own keys of a class."""
    name = item.text("name", None, form=_NAME) or ""
    if "name" not in item:
        item.refuse("name", "missing; every class needs a name")
    elif name == REST:
        item.refuse("name", f"{REST} is the name of the class of all other hosts. Choose another name")
    hosts = item.texts("hosts")
    match = _fingerprint(item.section("match")) if "match" in item else None
    if not hosts and match is None:
        item.refuse("hosts", "missing. Set hosts (hosts or groups of the inventory), match (a fingerprint), or both")
    own = item.rest(_OVER)
    for key in _LABELS:
        if isinstance(own.get(key), Mapping) and LABEL in own[key]:
            item.refuse(key, f"{LABEL} is set by this collection. Remove it")
    item.close()
    return name, hosts, match, own


def _fingerprint(reader: Reader) -> Fingerprint:
    device = Form("[0-9A-Fa-f]{4}", "a PCI device id such as 1021")
    found = Fingerprint(
        device=(reader.text("device", None, form=device) or "").lower() or None,
        ports=reader.integer("ports", None, 1, high=64),
        gpus=reader.integer("gpus", None, 0, high=64),
        gpu_path=reader.text("gpu_path", None, choices=tuple(GPU_PATHS)),
    )
    if found.device is None and (found.ports is not None or found.gpu_path or found.gpus is None):
        reader.refuse("device", "missing. Set the PCI device id of the NIC ports, or gpus alone")
    reader.close()
    return found


def over(fabric: Mapping[str, Any], own: Mapping[str, Any], sections: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """Return ``rdma_fabric`` with the keys of a class over it: sections key by key, all else as a whole.

    Sections that the network model of the class does not use are not inherited.
    """
    foreign = [key for key, names in sections.items() if key not in own and own.get("profile", "") not in ("", *names)]
    below = {key: value for key, value in fabric.items() if key not in (*_OWN_ONLY, *foreign)}
    if _DRIVER_VERSION in own:
        operator = below["operator"] if isinstance(below.get("operator"), Mapping) else {}
        driver = operator["driver"] if isinstance(operator.get("driver"), Mapping) else {}
        below["operator"] = {**operator, "driver": {**driver, "version": own[_DRIVER_VERSION]}}
        own = {key: value for key, value in own.items() if key != _DRIVER_VERSION}
    both = {
        key: {**below[key], **value}
        for key, value in own.items()
        if isinstance(value, Mapping) and isinstance(below.get(key), Mapping)
    }
    return {**below, **own, **both}


def of_plan(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the classes of a plan: {name, hosts, rails, profile}; a plan without any has one of name "" with all."""
    if plan.get("classes"):
        return list(plan["classes"])
    rails = [rail["name"] for rail in plan.get("rails") or ()]
    return [{"name": "", "hosts": list(plan.get("hosts") or ()), "rails": rails, "profile": plan.get("profile") or {}}]


def most_rails(plan: Mapping[str, Any]) -> int:
    """Return how many rails a host has at most."""
    return max(len(own["rails"]) for own in of_plan(plan))


def distinct(selectors: Sequence[Mapping[str, str]]) -> bool:
    """Return whether no node can have the labels of two selectors."""
    return all(
        any(other.get(key, value) != value for key, value in one.items())
        for at, one in enumerate(selectors)
        for other in selectors[at + 1 :]
    )
