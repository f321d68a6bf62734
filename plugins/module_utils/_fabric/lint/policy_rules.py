# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for the policies of the network operator and for the configurations of device plugins in them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ..intent.driver import has_system
from ..operator.common import POLICY_NAME
from .objects import Objects, at, dicts, label, loaded, mapping, number, text, texts
from .rule import ERROR, WARNING, Found, Rule

KINDS = ("NicClusterPolicy", "NicNodePolicy")
PLUGINS = ("rdmaSharedDevicePlugin", "sriovDevicePlugin")
# Sections with an image of their own, by path below the spec.
IMAGES = (
    ("ofedDriver",),
    *((plugin,) for plugin in PLUGINS),
    ("ibKubernetes",),
    ("secondaryNetwork", "cniPlugins"),
    ("secondaryNetwork", "multus"),
    ("secondaryNetwork", "ipoib"),
    ("nvIpam",),
    ("nicFeatureDiscovery",),
    ("docaTelemetryService",),
    ("nicConfigurationOperator", "operator"),
    ("nicConfigurationOperator", "configurationDaemon"),
)
_NAMES = {"rdmaSharedDevicePlugin": re.compile(r"\w+", re.ASCII), "sriovDevicePlugin": re.compile(r"[\w.]+", re.ASCII)}
_ENTRIES = {"rdmaSharedDevicePlugin": "configList", "sriovDevicePlugin": "resourceList"}
_LONGEST_NODE_POLICY = 30
# A driver that is compiled on the node needs about this long.
_COMPILE_SECONDS = 1200
# Fields of releases that are no longer supported.
_GONE = (("psp",), ("nvPeerDriver",), ("secondaryNetwork", "ipamPlugin"))
UFM_NEEDED = ("UFM_USERNAME", "UFM_PASSWORD", "UFM_ADDRESS")
_UFM_KNOWN = (*UFM_NEEDED, "UFM_HTTP_SCHEMA", "UFM_PORT", "UFM_CERTIFICATE")
_GUID = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){7}", re.IGNORECASE)


def _name(objects: Objects) -> Iterator[Found]:
    for policy in objects.of("NicClusterPolicy"):
        name = text(policy, "metadata", "name")
        if name != POLICY_NAME:
            yield Found(label(policy), f"It reads only the policy {POLICY_NAME}. Rename it")


def _image_version(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(*KINDS):
        shared = text(policy, "spec", "global", "version")
        for path in IMAGES:
            section, own = at(policy, "spec", *path), text(policy, "spec", *path, "version")
            place = f"spec.{'.'.join(path)}.version"
            if isinstance(section, Mapping) and not own and not shared:
                yield Found(label(policy), f"{place} is not set, and no spec.global.version is. Set one of them")


def _image_latest(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(*KINDS):
        for path in (("global",), *IMAGES):
            if text(policy, "spec", *path, "version") == "latest":
                yield Found(label(policy), f"spec.{'.'.join(path)}.version is latest. Set the tag of a release")


def _plugin_json(objects: Objects) -> Iterator[Found]:
    for policy, plugin in _sections(objects):
        error = loaded(policy, "spec", plugin, "config")[1]
        if error:
            yield Found(label(policy), f"spec.{plugin}.config is not valid JSON ({error}). Correct it")


def _plugin_quote(objects: Objects) -> Iterator[Found]:
    for policy, plugin in _sections(objects):
        if "'" in text(policy, "spec", plugin, "config"):
            yield Found(label(policy), f"spec.{plugin}.config has a single quotation mark ('). Remove it")


def _resource_name(objects: Objects) -> Iterator[Found]:
    for policy, plugin in _sections(objects):
        for entry in entries(policy, plugin):
            name = text(entry, "resourceName")
            if name and not _NAMES[plugin].fullmatch(name):
                allowed = "letters, digits and _" + (" and ." if plugin == "sriovDevicePlugin" else "")
                yield Found(
                    label(policy), f'spec.{plugin}.config: resourceName "{name}": expected {allowed}. Rename it'
                )


def _shared_by_ports(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(*KINDS):
        for entry in entries(policy, "rdmaSharedDevicePlugin"):
            ports = texts(entry, "selectors", "ifNames")
            if len(ports) > 1:
                yield Found(
                    label(policy),
                    f"The resource {text(entry, 'resourceName')} has the ports {', '.join(ports)}. Define one resource"
                    " for each port",
                )


def _two_owners(objects: Objects) -> Iterator[Found]:
    cluster = [policy for policy in objects.of("NicClusterPolicy") if text(policy, "metadata", "name") == POLICY_NAME]
    for policy in cluster:
        for node in objects.of("NicNodePolicy"):
            for section in ("ofedDriver", *PLUGINS):
                if all(isinstance(at(one, "spec", section), Mapping) for one in (policy, node)):
                    yield Found(label(node), f"spec.{section} is in {label(policy)}, too. Remove it from one of them")


def _node_policy_name(objects: Objects) -> Iterator[Found]:
    for policy in objects.of("NicNodePolicy"):
        length = len(text(policy, "metadata", "name"))
        if length > _LONGEST_NODE_POLICY:
            yield Found(label(policy), f"The name has {length} characters; at most {_LONGEST_NODE_POLICY} are possible")


def _safe_load(objects: Objects) -> Iterator[Found]:
    for policy, upgrade in _upgrades(objects):
        if upgrade.get("safeLoad") is True and upgrade.get("autoUpgrade") is not True:
            yield Found(label(policy), "ofedDriver.upgradePolicy.safeLoad is true without autoUpgrade. Set both")


def _no_drain(objects: Objects) -> Iterator[Found]:
    for policy, upgrade in _upgrades(objects):
        drain = upgrade.get("drain")
        off = drain is None or at(drain, "enable") is False
        if upgrade.get("autoUpgrade") is True and off:
            yield Found(
                label(policy),
                "ofedDriver.upgradePolicy upgrades automatically without drain. Set drain.enable: true",
            )


def _driver_tag(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(*KINDS):
        driver = at(policy, "spec", "ofedDriver")
        own, common = text(driver, "version"), text(policy, "spec", "global", "version")
        if isinstance(driver, Mapping) and not own and common:
            yield Found(
                label(policy),
                f"ofedDriver has no version, so it takes {common} of spec.global, the tag of the other components. Set"
                " ofedDriver.version",
            )
        elif has_system(own):
            yield Found(
                label(policy),
                f"ofedDriver.version {own} has the operating system in it, which the operator adds. Remove it",
            )


def _startup_probe(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(*KINDS):
        driver = at(policy, "spec", "ofedDriver")
        tries, period = (number(driver, "startupProbe", key) for key in ("failureThreshold", "periodSeconds"))
        if tries is None or period is None or at(driver, "forcePrecompiled") is True:
            continue
        if tries * period < _COMPILE_SECONDS:
            yield Found(
                label(policy),
                f"ofedDriver.startupProbe ends after {tries * period} s (failureThreshold {tries}, periodSeconds"
                f" {period}). Set them to {_COMPILE_SECONDS} s or more, or use a precompiled driver",
            )


def _gone(objects: Objects) -> Iterator[Found]:
    for policy in objects.of("NicClusterPolicy"):
        for path in _GONE:
            if at(policy, "spec", *path) is not None:
                yield Found(label(policy), f"No supported release has spec.{'.'.join(path)}. Remove it")


def _ufm_secret(objects: Objects) -> Iterator[Found]:
    named = {name for policy in objects.of(*KINDS) if (name := text(policy, "spec", "ibKubernetes", "ufmSecret"))}
    for secret in objects.of("Secret"):
        if text(secret, "metadata", "name") not in named:
            continue
        keys = {str(key) for part in ("data", "stringData") for key in mapping(secret, part)}
        missing = [key for key in UFM_NEEDED if key not in keys]
        if missing:
            unknown = sorted(keys - {*_UFM_KNOWN})
            found = f" and has {', '.join(unknown)}" if unknown else ""
            yield Found(label(secret), f"It lacks {', '.join(missing)}{found}. Possible keys: {', '.join(_UFM_KNOWN)}")


def _guid_range(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(*KINDS):
        section = at(policy, "spec", "ibKubernetes")
        first, last = (text(section, f"pKeyGUIDPoolRange{end}") for end in ("Start", "End"))
        wrong = [guid for guid in (first, last) if guid and not _GUID.fullmatch(guid)]
        if wrong:
            yield Found(
                label(policy), f"ibKubernetes: {', '.join(wrong)}: expected GUIDs such as 02:00:00:00:00:00:00:00"
            )
        elif first and last and first.lower() > last.lower():
            yield Found(label(policy), f"ibKubernetes: the range of GUIDs begins at {first}, after its end {last}")


def _sections(objects: Objects) -> Iterator[tuple[Mapping[str, Any], str]]:
    for policy in objects.of(*KINDS):
        for plugin in PLUGINS:
            yield policy, plugin


def entries(policy: Mapping[str, Any], plugin: str) -> list[Mapping[str, Any]]:
    """Return the resources in the configuration of a device plugin."""
    return dicts(loaded(policy, "spec", plugin, "config")[0], _ENTRIES[plugin])


def _upgrades(objects: Objects) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for policy in objects.of(*KINDS):
        upgrade = at(policy, "spec", "ofedDriver", "upgradePolicy")
        if isinstance(upgrade, Mapping):
            yield policy, upgrade


def ports_of_plugins(objects: Objects) -> dict[str, str]:
    """Return port -> the object and section that gives it to a device plugin of the network operator."""
    owners: dict[str, str] = {}
    for policy, plugin in _sections(objects):
        for entry in entries(policy, plugin):
            for key in ("ifNames", "pfNames"):
                # A selector of the SR-IOV device plugin can be a list of alternatives.
                for selector in [entry.get("selectors"), *dicts(entry, "selectors")]:
                    owners.update(dict.fromkeys(texts(selector, key), f"{label(policy)} spec.{plugin}"))
    return owners


def _same_port_twice(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(*KINDS):
        owners: dict[str, list[str]] = defaultdict(list)
        for entry in entries(policy, "rdmaSharedDevicePlugin"):
            for port in dict.fromkeys(texts(entry, "selectors", "ifNames")):
                owners[port].append(text(entry, "resourceName"))
        for port, names in owners.items():
            if len(names) > 1:
                yield Found(label(policy), f"The port {port} is in the resources {', '.join(names)}. Keep it in one")


_OPERATOR, _WEBHOOK, _VENDOR = "network-operator", "the operator's webhook", "NVIDIA's documentation"
_SHARED = "k8s-rdma-shared-dev-plugin #44, #92, #93, #117"
RULES = (
    Rule("policy-name", ERROR, "The operator ignores the policy", f"{_OPERATOR} #73", _name),
    Rule("image-version", ERROR, "The section stays in state error", _VENDOR, _image_version),
    Rule("image-latest", WARNING, "Nodes can run different versions", "Kubernetes' documentation", _image_latest),
    Rule("plugin-json", ERROR, "The device plugin crashes", _WEBHOOK, _plugin_json),
    Rule("plugin-quote", ERROR, "The operator cannot render its manifest", "the operator's templates", _plugin_quote),
    Rule("resource-name", ERROR, "The device plugin does not offer it", _WEBHOOK, _resource_name),
    Rule(
        "resource-ports", WARNING, "A pod gets any of these ports, whatever its network is", _SHARED, _shared_by_ports
    ),
    Rule("port-twice", WARNING, "Pods of both resources share one port", _SHARED, _same_port_twice),
    Rule("policy-owners", ERROR, "Two policies configure one component", _VENDOR, _two_owners),
    Rule(
        "node-policy-name", WARNING, "The webhook, where it is enabled, refuses the policy", _WEBHOOK, _node_policy_name
    ),
    Rule("driver-tag", ERROR, "The image of the driver cannot be pulled", _VENDOR, _driver_tag),
    Rule("driver-safe-load", WARNING, "The setting has no effect", _WEBHOOK, _safe_load),
    Rule("driver-drain", WARNING, "The driver is replaced below running pods", _VENDOR, _no_drain),
    Rule("driver-probe", WARNING, "The driver can be killed while it compiles", f"{_OPERATOR} #720", _startup_probe),
    Rule("policy-fields", WARNING, "The API server drops the field", f"{_OPERATOR} release notes", _gone),
    Rule("ufm-secret", ERROR, "ib-kubernetes cannot connect to UFM", "ib-kubernetes' documentation", _ufm_secret),
    Rule("guid-range", ERROR, "ib-kubernetes does not start", _WEBHOOK, _guid_range),
)
