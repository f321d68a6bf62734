# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policies of a fabric: one NicClusterPolicy, and where there are classes of hosts the device plugins of each.

Release lines with the kind NicNodePolicy have one for each class, which runs on its nodes only. On other lines one
device plugin runs on all nodes with the resources of all classes, and finds on each node those whose ports exist there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._common.errors import InputError
from ..._common.reader import raise_problems
from ..intent.intent import Intent
from ..intent.releases import Line, line_of, lines_with
from . import nic_configuration, sections
from .common import merged, metadata, to_json
from .driver import driver_section
from .nodes import fabric_selector
from .policy import build_policy, images_of, tolerations
from .profiles import registry
from .profiles.kinds import NODE_POLICY

KIND = NODE_POLICY.kind
# Section -> the list of resources in its configuration. A node may have each from one policy only.
PLUGINS: Mapping[str, str] = {"rdmaSharedDevicePlugin": "configList", "sriovDevicePlugin": "resourceList"}
_SHARED = "rdmaSharedDevicePlugin"


@dataclass(frozen=True)
class Group:
    """A class of hosts with its rails, as the plan has them. Without classes there is one of name ""."""

    name: str
    intent: Intent
    rails: Sequence[Mapping[str, Any]]

    def sections(self, line: Line) -> dict[str, Any]:
        """Return the sections of its network model."""
        return registry.get(self.intent.profile).sections(self.intent, line, self.rails)


def policies(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the policies of all groups and the other objects that are applied with them."""
    line = line_of(groups[0].intent.operator.release)
    if line is None:
        return []
    further = _once(
        item for group in groups for item in registry.get(group.intent.profile).policies(group.intent, group.rails)
    )
    if len(groups) == 1 and not groups[0].name:
        own = groups[0].intent
        return [build_policy(own, line, groups[0].sections(line)), *nic_configuration.objects(own), *further]
    shared = replace(groups[0].intent, node_selector=_shared_selector(groups))
    return [*_of_classes(groups, line, shared), *nic_configuration.objects(shared), *further]


def _once(objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the objects, with one of each that is for the whole cluster; classes must not differ in it."""
    found: list[dict[str, Any]] = []
    for item in objects:
        first = next((one for one in found if one["kind"] == item["kind"]), None)
        if first is None or not registry.is_patched(item["kind"]):
            found.append(item)
        elif first != item:
            raise InputError(
                f"rdma_fabric.classes: the fields of {item['kind']} {item['metadata']['name']} differ between classes,"
                " and there is one for the whole cluster. Set the same fields in all classes, or in one class only"
            )
    return found


def _of_classes(groups: Sequence[Group], line: Line, intent: Intent) -> Iterator[dict[str, Any]]:
    """Yield the policies (``intent``: what all classes have in common)."""
    own = {group.name: group.sections(line) for group in groups}
    common: dict[str, Any] = {}
    for name, found in own.items():
        rest = {key: value for key, value in found.items() if key not in PLUGINS}
        common = _together(common, rest, f"{name}: spec")
    plugins = {name: {key: found[key] for key in PLUGINS if key in found} for name, found in own.items()}
    if len({group.intent.operator.driver.version for group in groups}) > 1 and intent.operator.driver.enabled:
        intent = _own_drivers(groups, plugins, line, intent=intent)
    if not line.has(KIND):
        raise_problems(list(_unsafe(groups, plugins, line)))
        yield build_policy(intent, line, {**common, **_one_plugin(plugins)})
        return
    elsewhere = {*PLUGINS, *(key for found in plugins.values() for key in found)}
    both = sorted(elsewhere & intent.operator.policy_overrides.keys())
    if both:
        raise InputError(
            f"rdma_fabric.operator.policy_overrides: {', '.join(both)} cannot be in the NicClusterPolicy where each"
            f" class of hosts has it in a {KIND}. Remove it from policy_overrides"
        )
    yield build_policy(intent, line, common, elsewhere=list(images_of(plugins)))
    for group in groups:
        if plugins[group.name]:
            yield _node_policy(group, plugins[group.name])


def _own_drivers(
    groups: Sequence[Group], plugins: Mapping[str, dict[str, Any]], line: Line, *, intent: Intent
) -> Intent:
    """Give each class the section of its driver, and return the intent of the NicClusterPolicy, which has none then."""
    if not line.has(KIND):
        raise InputError(
            f"rdma_fabric.classes[].driver_version: release line {line.name} of the network operator has one driver for"
            f" all nodes. Lines with {KIND}: {', '.join(lines_with(KIND, ''))}. Remove driver_version, or set"
            " rdma_fabric.operator.release to a release of one of them"
        )
    for group in groups:
        plugins[group.name].update(driver_section(group.intent, line))
    driver = replace(intent.operator.driver, enabled=False)
    return replace(intent, operator=replace(intent.operator, driver=driver))


def _shared_selector(groups: Sequence[Group]) -> dict[str, str]:
    first, *others = (group.intent.node_selector for group in groups)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _together(one: Mapping[str, Any], other: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the sections of two classes as one; InputError where they need different values."""
    for key in one.keys() & other.keys():
        if isinstance(one[key], Mapping) and isinstance(other[key], Mapping):
            _together(one[key], other[key], f"{path}.{key}")
        elif one[key] != other[key]:
            raise InputError(
                f"rdma_fabric.classes: {path}.{key} of the NicClusterPolicy would be {other[key]}, and {one[key]} for"
                " another class. There is one NicClusterPolicy. Use the same value for all classes"
            )
    return merged(one, other)


def _node_policy(group: Group, plugins: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy of a class; the kind has no section ``global``."""
    operator = group.intent.operator
    image = {"repository": operator.image_repository, "version": operator.component_version}
    return {
        "apiVersion": NODE_POLICY.api_version,
        "kind": KIND,
        "metadata": metadata(f"gpufabric-{group.name}"),
        "spec": {
            "nodeSelector": fabric_selector(group.intent.node_selector),
            **tolerations(group.intent),
            **{key: {**image, **sections.pull_secrets(group.intent), **own} for key, own in plugins.items()},
        },
    }


def _one_plugin(plugins: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return each device plugin with the resources of all classes."""
    found: dict[str, Any] = {}
    for own in plugins.values():
        for key, section in own.items():
            config = json.loads(section["config"])
            if key in found:
                config[PLUGINS[key]] = [*json.loads(found[key]["config"])[PLUGINS[key]], *config[PLUGINS[key]]]
            found[key] = {**section, "config": to_json(config)}
    return found


def _unsafe(groups: Sequence[Group], plugins: Mapping[str, Mapping[str, Any]], line: Line) -> Iterator[str]:
    """Yield why one device plugin on all nodes would offer ports of other classes, or disturb them."""
    remedy = (
        f"Release line {line.name} of the network operator has one device plugin for all nodes. Set"
        f" rdma_fabric.operator.release to a release of a line with {KIND}: {', '.join(lines_with(KIND, ''))}"
    )
    for key in PLUGINS:
        using = [group for group in groups if key in plugins[group.name]]
        for group in using:
            names = {name for rail in group.rails for name in sections.port_names(rail)}
            others = (other for other in groups if other is not group)
            for other in others:
                same = sorted(names & {name for rail in other.rails for name in sections.port_names(rail)})
                if same:
                    yield (
                        f"rdma_fabric.classes: {key} of class {group.name} would offer {', '.join(same)} on the nodes"
                        f" of class {other.name} as well. {remedy}"
                    )
    shared = [group.name for group in groups if _SHARED in plugins[group.name]]
    for group in groups:
        if shared and group.intent.sriov.rdma_mode == "exclusive":
            yield (
                f"rdma_fabric.classes[{group.name}].sriov.rdma_mode: exclusive is not possible on a node with the RDMA"
                f" shared device plugin, which class {', '.join(shared)} requires. {remedy}"
            )
