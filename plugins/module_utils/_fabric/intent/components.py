# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components of the operator beside those that a network model needs, and where and how components run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._common.reader import Form, Reader, describe
from .images import REPOSITORY, VERSION
from .nic_configuration import NicConfiguration, read_nic_configuration
from .releases import COMPONENTS, Line

_CONTAINER = Form(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a container, such as kube-multus")
_CONFIG_MAP = Form(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", "the name of a ConfigMap, such as telemetry")
_QUANTITY = re.compile(r"(\d+(\.\d*)?|\.\d+)([kMGTPE]i?|Ki|[num])?")
_UNITS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {f"{unit}i": 1024.0**power for power, unit in enumerate("KMGTPE", 1)}
_RESOURCES = ("cpu", "memory")
# Its tag is operator.driver.version, which has a default for each release.
_DRIVER = "doca_driver"
TELEMETRY = "doca_telemetry"


@dataclass(frozen=True)
class Own:
    """What one component has of its own. ``resources``: as ``containerResources`` of its section."""

    name: str
    repository: str | None
    version: str | None
    resources: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Telemetry:
    """DOCA Telemetry Service; ``config_map``: its configuration, that of the operator without."""

    enabled: bool
    config_map: str | None


@dataclass(frozen=True)
class Parts:
    """Keys of the section ``operator``. ``deployment_*``: for what the operator runs once per cluster."""

    nic_feature_discovery: bool
    telemetry: Telemetry
    nic_configuration: NicConfiguration
    components: tuple[Own, ...]
    deployment_node_selector: Mapping[str, str]
    deployment_tolerations: tuple[Mapping[str, Any], ...]

    def own(self, component: str) -> Own | None:
        """Return what a component has of its own."""
        return next((one for one in self.components if one.name == component), None)


def read_parts(reader: Reader, line: Line | None, release: str) -> Parts:
    """Read the keys from the section ``operator``; problems are noted in the reader."""
    parts = Parts(
        nic_feature_discovery=reader.flag("nic_feature_discovery", False),
        telemetry=_telemetry(reader.section("telemetry")),
        nic_configuration=read_nic_configuration(reader.section("nic_configuration")),
        components=_components(reader),
        deployment_node_selector=reader.labels("deployment_node_selector"),
        deployment_tolerations=read_tolerations(reader, "deployment_tolerations"),
    )
    own = parts.own(TELEMETRY)
    if parts.telemetry.enabled and line and not (line.telemetry.get(release) or (own and own.version)):
        reader.refuse(
            "components",
            f"the tag of the image {line.images[TELEMETRY]} for release {release} is not known here. Add an entry with"
            f" name: {TELEMETRY} and the version from the list of container images of the release",
        )
    return parts


def read_tolerations(reader: Reader, key: str) -> tuple[dict[str, Any], ...]:
    """Read a list of tolerations."""
    return tuple(_toleration(item) for item in reader.sections(key))


def _toleration(reader: Reader) -> dict[str, Any]:
    """Return a toleration as a pod has it, without the keys that are not set."""
    found = {
        "key": reader.text("key", None),
        "operator": reader.text("operator", None, choices=("Exists", "Equal")),
        "value": reader.text("value", None),
        "effect": reader.text("effect", None, choices=("NoSchedule", "PreferNoSchedule", "NoExecute")),
        "tolerationSeconds": reader.integer("tolerationSeconds", None, 0, high=1 << 31),
    }
    if found["operator"] == "Exists" and found["value"]:
        reader.refuse("value", "not possible with operator: Exists")
    if found["operator"] != "Exists" and not found["key"]:
        reader.refuse("key", "missing. Set it, or operator: Exists to tolerate every taint")
    reader.close()
    return {key: value for key, value in found.items() if value is not None}


def _telemetry(reader: Reader) -> Telemetry:
    found = Telemetry(reader.flag("enabled", False), reader.text("config_map", None, form=_CONFIG_MAP))
    reader.close()
    return found


def _components(reader: Reader) -> tuple[Own, ...]:
    found: list[Own] = []
    for item in reader.sections("components"):
        name = item.text("name", None, choices=sorted(COMPONENTS))
        if "name" not in item:
            item.refuse("name", f"missing; expected one of {', '.join(sorted(COMPONENTS))}")
        own = Own(
            name=name or "",
            repository=item.text("repository", None, form=REPOSITORY),
            version=item.text("version", None, form=VERSION),
            resources=tuple(_container(one) for one in item.sections("resources")),
        )
        if name == _DRIVER and own.version:
            item.refuse("version", "the tag of the driver is operator.driver.version. Set it there")
        if name in [other.name for other in found]:
            reader.refuse("components", f"{name} is listed more than once. Merge the entries")
        item.close()
        found.append(own)
    return tuple(found)


def _container(reader: Reader) -> dict[str, Any]:
    name = reader.text("container", None, form=_CONTAINER)
    if "container" not in reader:
        reader.refuse("container", "missing; name the container of the component's pods")
    amounts = {key: _amounts(reader, key) for key in ("requests", "limits")}
    for resource in amounts["requests"].keys() & amounts["limits"].keys():
        if amount(amounts["requests"][resource]) > amount(amounts["limits"][resource]):
            reader.refuse(
                "requests",
                f"{resource} {amounts['requests'][resource]} is more than the limit {amounts['limits'][resource]}",
            )
    reader.close()
    return {"name": name, **{key: value for key, value in amounts.items() if value}}


def _amounts(reader: Reader, key: str) -> dict[str, str]:
    found = {}
    for resource, value in reader.mapping(key).items():
        if resource not in _RESOURCES:
            reader.refuse(key, f'expected {" and ".join(_RESOURCES)}, found "{resource}"')
        elif isinstance(value, bool) or not amount(str(value)):
            reader.refuse(key, f"{resource}: expected an amount such as 100m or 256Mi, found {describe(value)}")
        else:
            found[str(resource)] = str(value)
    return found


def amount(text: str) -> float:
    """Return a quantity of Kubernetes as a number; 0 for zero and for what is not one."""
    match = _QUANTITY.fullmatch(text)
    return float(match[1]) * {**_UNITS, **_BINARY}.get(match[3] or "", 1.0) if match else 0.0
