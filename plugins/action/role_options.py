# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what users give to playbooks and roles, for all hosts of a play in one step on the controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError, AnsibleUndefinedVariable
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import UnsupportedError
from ansible.plugins.action import ActionBase

from ..module_utils._fabric.intent import layers, request, role_variables
from ..module_utils._fabric.operator.profiles import registry

ROLES = Path(__file__).resolve().parents[2] / "roles"


class ActionModule(ActionBase):
    """Ansible itself judges a role's variables when the role begins: for the last one that is after a reboot."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"effective", "fabric", "hosts"})

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _checked, params = self.validate_argument_spec(
            {
                "effective": {"type": "list", "elements": "str", "default": []},
                "fabric": {"type": "bool", "default": True},
                "hosts": {"type": "list", "elements": "str"},
            }
        )
        hosts = task_vars["ansible_play_hosts_all"]
        if params["effective"]:
            hosts = task_vars["ansible_play_hosts"] if params["hosts"] is None else params["hosts"]
            options = self._effective(params["effective"], hosts)
            tags = (self._task.get_play().tags, task_vars["ansible_run_tags"])
            roles = request.left_out(params["effective"], *tags, skip=task_vars["ansible_skip_tags"])
            result.update(changed=False, options=options, left_out=roles)
            own = self._options(params["effective"])
            return judged(result, ((host, problems(own, options[host]), ()) for host in hosts), len(hosts))
        roles = [path.name for path in ROLES.iterdir()]
        known: Mapping[str, Mapping[str, Any]] = {**self._options(roles), **role_variables.PLAYBOOKS}
        fabrics = Fabrics(params["fabric"])
        result.update(changed=False)
        found = self._given(hosts, roles, known, fabrics=fabrics, hostvars=task_vars["hostvars"])
        return judged(result, found, len(hosts))

    def _given(
        self,
        hosts: Iterable[str],
        roles: list[str],
        known: Mapping[str, Mapping[str, Any]],
        *,
        fabrics: Fabrics,
        hostvars: Mapping[str, Any],
    ) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield host, errors and warnings of its variables."""
        for host in hosts:
            variables = hostvars[host]
            refused, warned = role_variables.misspelled(variables, roles, known)
            found = [*problems(known, variables), *fabrics.problems(variables), *playbook_problems(host, variables)]
            found += [*text_problems(variables), *chart_problems(variables)]
            yield host, [*refused.values(), *found], list(warned.values())

    def _effective(self, roles: Iterable[str], hosts: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the options of roles by host: what is set for it, and the default where nothing is."""
        defaults: dict[str, Any] = {}
        for role in roles:
            path = str(ROLES / role / "defaults" / "main.yml")
            defaults.update(self._loader.load_from_file(path, trusted_as_template=True))
        return {host: self._options_of(host, defaults) for host in hosts}

    def _options_of(self, name: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
        # As the play sees it: hostvars has none of the play's own variables.
        manager = self._task.get_variable_manager()
        host = manager._inventory.get_host(name)
        seen = manager.get_vars(play=self._task.get_play(), host=host, task=self._task)
        templar = self._templar.copy_with_new_env(available_variables={**defaults, **seen})
        found = {}
        for option, default in defaults.items():
            try:
                found[option] = templar.template(seen.get(option, default))
            except AnsibleUndefinedVariable:
                continue  # It depends on something that this host does not have; whoever needs it reports it.
            except AnsibleError as error:
                raise AnsibleError(f"{option} of {name} cannot be evaluated: {error}") from error
        return found

    def _options(self, roles: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return option -> its specification, of those options of the roles that users set."""
        found: dict[str, dict[str, Any]] = {}
        for role in sorted(roles):
            path = ROLES / role / "meta" / "argument_specs.yml"
            if path.is_file():
                specs = self._loader.load_from_file(str(path))["argument_specs"]
                found.update(role_variables.user_given(specs["main"]["options"]))
        return found


def judged(
    result: dict[str, Any], found: Iterable[tuple[str, Iterable[str], Iterable[str]]], hosts: int
) -> dict[str, Any]:
    """Return the result with the errors and warnings of all hosts, each text once with the hosts that it is about."""
    wrong: dict[str, list[str]] = {}
    doubtful: dict[str, list[str]] = {}
    for host, errors, warnings in found:
        for collected, texts in ((wrong, errors), (doubtful, warnings)):
            for text in texts:
                collected.setdefault(text, []).append(host)
    result["problems"] = role_variables.on_hosts(wrong, hosts)
    result["warnings"] = role_variables.on_hosts(doubtful, hosts)
    if wrong:
        said = "; ".join([*result["problems"], *result["warnings"]])
        result.update(failed=True, msg=f"variables, {len(wrong)} problem(s): {said}")
    return result


class Fabrics:
    """Judges ``rdma_fabric`` of one host after the other: it is one dict for all of them, so it is read once."""

    def __init__(self, needed: bool) -> None:
        self._needed = needed
        self._first: list[Any] = []
        self._problem = ""

    def problems(self, variables: Mapping[str, Any]) -> list[str]:
        if not self._needed:
            return []
        if "rdma_fabric" not in variables:
            return ["rdma_fabric is not defined. Set it in the variables of the fabric's group"]
        given, wrong = fabric_layers(variables)
        if wrong:
            return wrong
        fabric = layers.merged(given)
        if not self._first:
            self._first = [fabric]
            problem = role_variables.fabric_problem(fabric, registry.names(), registry.sections())
            self._problem = layers.attributed(problem, given)
        elif fabric != self._first[0]:
            return ["rdma_fabric differs from that of the first host. All hosts of the group need the same"]
        return [self._problem] if self._problem else []


def fabric_layers(variables: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return ``rdma_fabric`` and what is merged into it, by variable, and why that cannot be done."""
    given: dict[str, Any] = {}
    wrong = []
    for name in (layers.BASE, *layers.OVER):
        if name in variables:
            given[name], problem = evaluated(variables, name)
            wrong.append(problem or (layers.layer_problem(name, given[name]) if name != layers.BASE else ""))
    return given, [text for text in wrong if text]


def whole_fabric(variables: Mapping[str, Any]) -> Any:
    """Return the merged value, None if it cannot be evaluated, which is reported elsewhere."""
    given, wrong = fabric_layers(variables)
    return None if wrong else layers.merged(given)


def playbook_problems(host: str, variables: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with those variables of a host that have a reader of their own."""
    readers: dict[str, Callable[[Any], str]] = {
        "rdma_gates": role_variables.gates_problem,
        "rdma_host": lambda value: role_variables.host_problem(host, value),
        "rdma_report_dir": lambda value: role_variables.folder_problem("rdma_report_dir", value),
        "rdma_validate_report_dir": lambda value: role_variables.folder_problem("rdma_validate_report_dir", value),
    }
    for name in readers.keys() & variables.keys():
        value, problem = evaluated(variables, name)
        yield from filter(None, [problem or readers[name](value)])


def text_problems(variables: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with texts that have a form, and with a namespace of the testers that has another use."""
    for name in role_variables.FORMS.keys() & variables.keys():
        value, problem = evaluated(variables, name)
        if problem:
            continue  # It stands on something that the run is still to find out.
        found = role_variables.text_problem(name, value)
        if name == "rdma_validate_namespace" and value and not found and "rdma_fabric" in variables:
            found = role_variables.namespace_problem(value, whole_fabric(variables), registry.names())
        yield from filter(None, [found])


def chart_problems(variables: Mapping[str, Any]) -> list[str]:
    """Return which values of the operator's chart have no effect; what cannot be evaluated is reported elsewhere."""
    name = "network_operator_values"
    value, problem = evaluated(variables, name) if name in variables else (None, "")
    return [] if problem else role_variables.chart_problems(value)


def evaluated(variables: Mapping[str, Any], name: str) -> tuple[Any, str]:
    """Return a variable with all templates in it evaluated, and why that is not possible."""
    try:
        return plain(variables[name]), ""
    except AnsibleError as error:
        return None, f"{name} cannot be evaluated: {error}"


def plain(value: Any) -> Any:
    """Return the value with all of its templates evaluated."""
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in value}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def problems(known: Mapping[str, Mapping[str, Any]], variables: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the variables of a host, in Ansible's words."""
    given = {}
    for name in known:
        if name in variables:
            try:
                given[name] = variables[name]
            except AnsibleUndefinedVariable:
                continue  # It stands on something that the run is still to find out, such as the plan.
    shapes = role_variables.not_dicts(
        known, {name: evaluated(given, name)[0] for name in given if "options" in known[name]}
    )
    judged = {name: value for name, value in given.items() if name not in shapes}
    # One by one: for two options with unknown keys, ansible-core lists the keys that one of them supports.
    told = [text for name, value in judged.items() for text in _refused(name, value, known[name])]
    return [*shapes.values(), *told, *_owners(given, variables)]


def _owners(given: Mapping[str, Any], variables: Mapping[str, Any]) -> list[str]:
    """Return what hosts and policy both own or neither does; what cannot be evaluated is reported elsewhere."""
    if "rdma_fabric" not in variables:
        return []  # Options as they are in effect were judged with it before.
    try:
        # Its templates are evaluated where they are read: this runs for each host.
        fabric = layers.merged({name: variables[name] for name in (layers.BASE, *layers.OVER) if name in variables})
        return [*role_variables.driver_problems(given, fabric), *role_variables.nic_problems(given, fabric)]
    except AnsibleUndefinedVariable:
        return []


def _refused(name: str, value: Any, option: Mapping[str, Any]) -> list[str]:
    """Return why ansible-core refuses the value of an option."""
    try:
        errors = ArgumentSpecValidator({name: option}).validate({name: value}, validate_role_argument_spec=True).errors
    except OverflowError:
        # ansible-core ends so when it converts an infinite number to a whole one.
        return [f"{name}: expected finite numbers, found infinity"]
    return [f"not known: {error.msg}" if isinstance(error, UnsupportedError) else error.msg for error in errors]
