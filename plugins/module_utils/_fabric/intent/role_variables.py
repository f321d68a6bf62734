# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users can get wrong in the variables of playbooks and roles, reported for all hosts at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..._common.errors import FabricError
from ..._common.reader import Form, converted, describe, some
from . import gates, releases
from .host_classes import read_fabric
from .host_settings import check_settings
from .images import IMAGE, PULL_SECRET
from .intent import Intent
from .namespaces import NAMESPACE, refusal
from .nic_configuration import sets_roce

NO_DRIVER = (
    "rdma_stack_provider is container, but nothing deploys the driver container of the network operator, so the hosts"
    " would keep the drivers that they have. Set rdma_fabric.operator.driver.enabled to true, or another provider"
)
TWO_DRIVERS = (
    "rdma_fabric.operator.driver.enabled is true, so the driver container replaces the drivers of the hosts, but"
    " rdma_stack_provider is {}. Set rdma_stack_provider to container, or remove rdma_fabric.operator.driver"
)

TWO_FIRMWARES = (
    "nic_firmware_settings of the hosts and the NIC configuration operator"
    " (rdma_fabric.operator.nic_configuration.enabled) would both change the firmware settings of NICs. Move the"
    " settings to rdma_fabric.operator.nic_configuration.templates, or disable the operator"
)
TWO_QOS = (
    "rail_links_qos of the hosts and a template of rdma_fabric.operator.nic_configuration (roceOptimized or"
    " spectrumXOptimized) would both change the QoS of NICs. Remove one of both"
)

# The variables of the playbooks, as an argument specification. Those without a type have a reader of their own.
PLAYBOOKS: Mapping[str, Mapping[str, Any]] = {
    "rdma_bundle_dir": {"type": "path"},
    "rdma_bundle_must_gather": {"type": "bool"},
    "rdma_bundle_redact": {"type": "list", "elements": "str", "choices": ["addresses", "serials", "hosts"]},
    "rdma_cluster_file": {"type": "path"},
    "rdma_disrupt_users": {"type": "bool"},
    "rdma_fabric": {"type": "raw"},
    "rdma_fabric_job": {"type": "raw"},
    "rdma_fabric_overrides": {"type": "raw"},
    "rdma_facts_dir": {"type": "path"},
    "rdma_gates": {"type": "raw"},
    "rdma_group": {"type": "str"},
    "rdma_host": {"type": "raw"},
    "rdma_image_digests": {"type": "path"},
    "rdma_kubeconfig": {"type": "path"},
    "rdma_lint_ignore": {"type": "list", "elements": "str"},
    "rdma_lint_path": {"type": "path"},
    "rdma_manifests_dir": {"type": "path"},
    "rdma_pcie_acs": {"type": "bool"},
    "rdma_preset": {"type": "str"},
    "rdma_preset_hosts": {"type": "int"},
    "rdma_remove_sriov_leftovers": {"type": "bool"},
    "rdma_report_dir": {"type": "raw"},
}
# Options of roles whose text has a form; empty stands for the default.
FORMS: Mapping[str, Form] = {
    "rdma_validate_image": IMAGE,
    "rdma_validate_image_pull_secret": PULL_SECRET,
    "rdma_validate_namespace": NAMESPACE,
}
# What the playbooks themselves hand on: to later plays, and to later jobs of a workflow.
_HANDED_ON = ("rdma_plan", "rdma_fabric_report", "rdma_node")
# A misspelled name is nearer to a real one than this; another variable that happens to begin alike is hardly.
_NEAR = 0.65
# Nearer than this it is one or two letters: gates or a kubeconfig that do not count are no matter for a warning.
_MISSPELLED = 0.87


def user_given(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return a role's options as what a user gives can be judged by: nothing must be given, nothing is filled in."""
    return {
        name: {key: value for key, value in option.items() if key not in ("default", "required")}
        for name, option in options.items()
    }


def not_dicts(known: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return option -> what is wrong with it, for options with suboptions that hold something else than them.

    ansible-core itself ends with an exception for a number or null in their place.
    """
    found = {}
    for name, option in known.items():
        value = given.get(name)
        if "options" not in option or value is None:
            continue
        listed = option.get("type") == "list"
        ones = value if listed and isinstance(value, list) else [value]
        places = [f"{prefix}{name}[{index}]" if listed else f"{prefix}{name}" for index in range(len(ones))]
        problems = [text for place, one in zip(places, ones) for text in _not_dict(option["options"], one, place)]
        if problems:
            found[name] = "; ".join(problems)
    return found


def _not_dict(options: Mapping[str, Mapping[str, Any]], value: Any, place: str) -> list[str]:
    if isinstance(value, str):
        return []  # ansible-core reads a dict from it, or reports that it cannot.
    if isinstance(value, Mapping):
        return [*not_dicts(options, value, f"{place}.").values()]
    return [f"{place}: expected a dict, found {describe(value)}"]


def driver_problems(given: Mapping[str, Any], fabric: Any) -> list[str]:
    """Return why hosts and policy disagree about who brings the drivers, from the options that a user gives."""
    provider = str(given.get("rdma_stack_provider") or "inbox")
    operator = fabric.get("operator") if isinstance(fabric, Mapping) else None
    driver = operator.get("driver") if isinstance(operator, Mapping) else None
    enabled = converted(driver.get("enabled"), bool) is True if isinstance(driver, Mapping) else False
    if enabled and provider != "container":
        return [TWO_DRIVERS.format(provider)]
    return [NO_DRIVER] if provider == "container" and not enabled else []


def nic_problems(given: Mapping[str, Any], fabric: Any) -> list[str]:
    """Return what both the roles on hosts and the NIC configuration operator would set, from the user's options."""
    operator = fabric.get("operator") if isinstance(fabric, Mapping) else None
    section = operator.get("nic_configuration") if isinstance(operator, Mapping) else None
    if not isinstance(section, Mapping) or converted(section.get("enabled"), bool) is not True:
        return []
    templates = section.get("templates")
    every = templates if isinstance(templates, list) else []
    settings = [one.get("settings") for one in every if isinstance(one, Mapping)]
    found = [TWO_FIRMWARES] if given.get("nic_firmware_settings") else []
    return [*found, TWO_QOS] if given.get("rail_links_qos") and any(map(sets_roce, settings)) else found


def misspelled(
    variables: Iterable[str], roles: Iterable[str], known: Iterable[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return name -> the known one that it is likely meant to be: those to refuse, and those to warn of.

    Names count that begin like options of roles or with ``rdma_``. Variables of the playbooks hold for the whole run,
    so a name that is all but one of them is refused.
    """
    words = sorted({*known, *PLAYBOOKS, *_HANDED_ON})
    prefixes = tuple(f"{role}_" for role in roles)
    refused: dict[str, str] = {}
    warned: dict[str, str] = {}
    for name in variables:
        if name in words or not name.startswith((*prefixes, "rdma_")):
            continue
        for near in difflib.get_close_matches(name, words, n=1, cutoff=_NEAR):
            alike = difflib.SequenceMatcher(None, near, name).ratio() >= _MISSPELLED
            serious = alike and near in PLAYBOOKS and not name.startswith(prefixes)
            text = f'{name} is not a variable of this collection; did you mean "{near}"?'
            (refused if serious else warned)[name] = text
    return refused, warned


def fabric_problem(fabric: Any, profiles: Sequence[str], sections: Mapping[str, Collection[str]] | None = None) -> str:
    """Return what is wrong with ``rdma_fabric``, whatever the hosts have; empty when nothing is.

    ``profiles``, ``sections``: of the network models, as ``Intent.from_params`` takes them.
    """
    return _refused(lambda found: read_fabric(found, profiles, sections or {}), fabric)


def text_problem(name: str, value: Any) -> str:
    """Return what is wrong with a text that has a form, such as an image; empty when nothing is, or without text."""
    form = FORMS[name]
    if not isinstance(value, str) or not value or re.fullmatch(form.pattern, value):
        return ""
    return f'{name}: expected {form.words}, found "{value}"'


def namespace_problem(namespace: Any, fabric: Any, profiles: Sequence[str]) -> str:
    """Return why the testers cannot have a namespace, empty when they can or ``rdma_fabric`` is wrong itself."""
    try:
        intent = Intent.from_params(fabric, profiles)
    except FabricError:
        return ""
    return refusal(
        "rdma_validate_namespace",
        str(namespace),
        operator=intent.operator.namespace,
        networks=intent.network_namespace,
        platform=intent.operator.platform.name,
    )


def chart_problems(values: Any) -> list[str]:
    """Return which values of the operator's chart have no effect."""
    found = releases.gone_values(values) if isinstance(values, Mapping) else []
    return [f"network_operator_values.{text}" for text in found]


def gates_problem(rules: Any) -> str:
    """Return what is wrong with ``rdma_gates``; empty when nothing is."""
    return _refused(gates.check, rules)


def host_problem(host: str, settings: Any) -> str:
    """Return what is wrong with ``rdma_host`` of a host; empty when nothing is."""
    return _refused(lambda found: check_settings(host, found), settings)


def folder_problem(name: str, path: Any) -> str:
    """Return what is wrong with a folder; empty when nothing is. ``rdma_report_dir`` may be relative."""
    if isinstance(path, str) and path.strip(" /") and (name == "rdma_report_dir" or path.startswith(("/", "~"))):
        return ""
    return f"{name}: expected a folder such as /srv/rdma-report, found {describe(path)}. Omit it to use the default"


def _refused(check: Any, value: Any) -> str:
    try:
        check(value)
    except FabricError as error:
        return str(error)
    return ""


def on_hosts(said: Mapping[str, Sequence[str]], count: int) -> list[str]:
    """Return a sentence for each text of ``said``, text -> the hosts that it is about, of ``count`` hosts."""
    return [f"{text} ({_who(hosts, count)})" for text, hosts in said.items()]


def _who(hosts: Sequence[str], count: int) -> str:
    return f"on all {count} hosts" if len(hosts) == count > 1 else f"on {some(hosts)}"
