# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what users give to the roles of the collection, for all hosts of a play in one step on the controller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleUndefinedVariable
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import UnsupportedError
from ansible.plugins.action import ActionBase

from ..module_utils._fabric import options

ROLES = Path(__file__).resolve().parents[2] / "roles"


class ActionModule(ActionBase):
    """Ansible itself judges a role's variables when the role begins: for the last one that is after a reboot."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS: frozenset[str] = frozenset()

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        known = self._options()
        roles = [path.name for path in ROLES.iterdir()]
        wrong: dict[str, list[str]] = {}
        unknown: dict[str, list[str]] = {}
        hosts = task_vars["ansible_play_hosts_all"]
        for host in hosts:
            variables = task_vars["hostvars"][host]
            for text in problems(known, variables):
                wrong.setdefault(text, []).append(host)
            for name, option in options.misspelt(variables, roles, known).items():
                unknown.setdefault(f'no role takes "{name}", did you mean "{option}"?', []).append(host)
        warnings = options.on_hosts(unknown, len(hosts))
        result.update(changed=False, problems=options.on_hosts(wrong, len(hosts)), warnings=warnings)
        if wrong:
            said = "; ".join([*result["problems"], *warnings])
            result.update(failed=True, msg=f"variables of roles, {len(wrong)} problem(s): {said}")
        return result

    def _options(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for path in sorted(ROLES.glob("*/meta/argument_specs.yml")):
            specs = self._loader.load_from_file(str(path))["argument_specs"]
            found.update(options.user_given(specs["main"]["options"]))
        return found


def problems(known: Mapping[str, Mapping[str, Any]], variables: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the variables of a host, in Ansible's words."""
    given = {}
    for name in known:
        if name in variables:
            try:
                given[name] = variables[name]
            except AnsibleUndefinedVariable:
                continue  # It stands on something that the run is still to find out, such as the plan.
    errors = ArgumentSpecValidator(known).validate(given, validate_role_argument_spec=True).errors
    told = [f"not known: {error.msg}" if isinstance(error, UnsupportedError) else error.msg for error in errors]
    return [*told, *options.unsupported(given)]
