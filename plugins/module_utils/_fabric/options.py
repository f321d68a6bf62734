# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users can get wrong in the variables of the collection's roles, said of all hosts at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core.provider import NO_CONTAINER
from .fields import some

# A misspelt option is nearer to a real one than this; another variable that happens to begin alike is hardly.
_NEAR = 0.65


def user_given(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return a role's options as what a user gives can be judged by: nothing must be given, nothing is filled in."""
    return {
        name: {key: value for key, value in option.items() if key not in ("default", "required")}
        for name, option in options.items()
    }


def unsupported(given: Mapping[str, Any]) -> list[str]:
    """Return why values that the options allow are refused now, from the options that a user gives."""
    return [NO_CONTAINER] if given.get("rdma_stack_provider") == "container" else []


def misspelt(variables: Iterable[str], roles: Iterable[str], options: Iterable[str]) -> dict[str, str]:
    """Return variable -> the option that it is likely meant to be, for those that begin like options and are none."""
    known = set(options)
    beginnings = tuple(f"{role}_" for role in roles)
    found = {}
    for name in variables:
        if name.startswith(beginnings) and name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=_NEAR)
            if near:
                found[name] = near[0]
    return found


def on_hosts(said: Mapping[str, Sequence[str]], count: int) -> list[str]:
    """Return a sentence for each text of ``said``, text -> the hosts that it is about, of ``count`` hosts."""
    return [f"{text} ({_who(hosts, count)})" for text, hosts in said.items()]


def _who(hosts: Sequence[str], count: int) -> str:
    return f"on all {count} hosts" if len(hosts) == count > 1 else f"on {some(hosts)}"
