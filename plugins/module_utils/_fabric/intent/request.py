# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run addresses: the hosts of the fabric that its limit leaves, and the tasks that its tags select."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.reader import describe, some

# Words that Ansible itself understands after --tags and --skip-tags.
_WORDS = frozenset({"all", "always", "never", "tagged", "untagged"})
# The group that a run itself makes of unreachable hosts (playbooks/tasks/plan.yml), which later plays leave out.
ABSENT_GROUP = "rdma_absent"
# The role that checks what the other roles would do.
_CHECK = "preflight"


@dataclass(frozen=True)
class Work:
    """A task of the run. ``ours``: it belongs to this collection. ``hidden``: its tags show only at run time."""

    tags: frozenset[str]
    ours: bool
    hidden: bool = False


def in_order(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words in order, but first the one that is spelled most like ``word``."""
    words = sorted(known)
    return sorted(words, key=lambda other: other not in difflib.get_close_matches(word, words, n=1, cutoff=0.5))


def name_problem(group: Any, default: str) -> str:
    """Return why a value of ``rdma_group`` is not the name of a group, empty when it can be one."""
    if isinstance(group, str) and group.strip():
        return ""
    return (
        f"rdma_group: expected the name of a group of the inventory, found {describe(group)}. Pass one name, or omit"
        f" rdma_group to use the group {default}"
    )


def pattern_problem(group: str, hosts: Collection[str], selected: Collection[str]) -> str:
    """Return why a play on the group would have other hosts than the group, empty when it has the same."""
    if set(hosts) == set(selected):
        return ""
    return (
        f"The group {group} has the hosts {some(list(hosts))}, but a play on this name selects"
        f" {some(list(selected)) or 'no host'}: Ansible reads it as a pattern, or a host or another group has the same"
        " name. Rename the group; use letters, digits and underscores"
    )


def reserved_problem(groups: Mapping[str, Sequence[str]], *, planned: bool) -> str:
    """Return why the groups of the inventory conflict with those of a run, empty when they do not.

    ``planned``: the run has computed a plan, so the reserved group is its own.
    """
    if planned or ABSENT_GROUP not in groups:
        return ""
    hosts = some(groups[ABSENT_GROUP]) or "no hosts"
    return (
        f"The inventory has a group {ABSENT_GROUP} ({hosts}). A run adds unreachable hosts to a group of this name and"
        " leaves its hosts out. Rename the group"
    )


def group_problem(group: str, groups: Mapping[str, Sequence[str]], play: Collection[str], *, limit: str) -> str:
    """Return why no host of the fabric is part of the run, empty when one is.

    ``groups`` are those of the inventory, ``play`` the hosts that ``limit`` leaves of it.
    """
    if group not in groups:
        known = in_order(group, set(groups) - {"all", "ungrouped"})
        return (
            f"The inventory has no group {group}, so the fabric has no hosts. Groups of the inventory: "
            f"{some(known) or 'none'}. Correct the name, or pass the group of the fabric: -e rdma_group=NAME"
        )
    hosts = groups[group]
    if not hosts:
        return f"The group {group} is empty, so the fabric has no hosts. Add its hosts to the inventory."
    if not set(hosts) & set(play):
        return f"--limit {limit} matches no host of the group {group} ({some(hosts)}). Correct the limit."
    return ""


def recorded_problem(group: str, hosts: Collection[str], given: Collection[str], *, only_plan: bool) -> str:
    """Return why variables that stand for the hosts of the fabric cannot be used, empty when they can.

    ``hosts``: those of the group in the inventory; ``given``: the names of these variables that the run sets, of which
    ``rdma_facts_dir`` is where facts are recorded when there are hosts. ``only_plan``: the run has playbook plan only.
    """
    if hosts:
        others = sorted(set(given) - {"rdma_facts_dir"})
        return (
            f"{' and '.join(others)}: for a plan without hosts, but the group {group} has the hosts"
            f" {some(list(hosts))}. Remove the variable, or run without this inventory"
            if others
            else ""
        )
    if len(given) > 1:
        return f"{' and '.join(sorted(given))}: expected one of them, since each stands for the hosts of the fabric"
    if not only_plan:
        return (
            f"The inventory has no hosts in the group {group}, and {''.join(given)} is for a plan without hosts."
            " Run playbook plan alone, or add the hosts to the inventory"
        )
    return ""


def inventory_problem(group: str, values: Mapping[str, Any]) -> str:
    """Return the message for hosts whose inventory sets ``rdma_group`` to another value than the run uses."""
    wrong = {host: value for host, value in values.items() if value != group}
    if not wrong:
        return ""
    other = next(iter(wrong.values()))
    return (
        f"rdma_group is {other} in the inventory (on {some(list(wrong))}), but this run uses the group {group}: "
        "Ansible selects the hosts of a play before it reads the variables of the inventory. "
        f"Pass -e rdma_group={other}, or correct the inventory"
    )


def tag_problem(only: Collection[str], skip: Collection[str], tasks: Sequence[Work]) -> str:
    """Return what is wrong with the tags of a run (``only``) and those that it skips, empty when nothing is."""
    known = {tag for task in tasks for tag in task.tags} - _WORDS
    for option, tags in (("--tags", only), ("--skip-tags", skip)):
        unknown = sorted(set(tags) - known - _WORDS)
        if unknown and not any(task.hidden for task in tasks):
            return f"{option} {','.join(unknown)}: no task has this tag. {_has(in_order(unknown[0], known))}"
    work = [task for task in tasks if "always" not in task.tags]
    only_plan = "always" in only or not any(task.ours for task in work)
    if only_plan or any(selected(task.tags, only, skip) for task in work):
        return ""
    given = [("--tags", set(only) - {"all"}), ("--skip-tags", skip)]
    options = " ".join(f"{option} {','.join(sorted(tags))}" for option, tags in given if tags)
    return f"{options}: this selects no task. {_has(sorted(known))}"


def _has(tags: Sequence[str]) -> str:
    if not tags:
        return "This playbook has no tags: run it without --tags and --skip-tags."
    return f"This playbook has the tags {', '.join(tags)}."


def selected(tags: frozenset[str], only: Collection[str], skip: Collection[str]) -> bool:
    """Return whether Ansible runs a task with these tags, ``always`` not among them."""
    own = tags or frozenset({"untagged"})
    wanted = not own.isdisjoint(only)
    if "never" not in own:
        wanted = wanted or "all" in only or ("tagged" in only and bool(tags))
    skipped = "all" in skip or not own.isdisjoint(skip) or ("tagged" in skip and bool(tags))
    return wanted and not skipped


def left_out(roles: Iterable[str], tags: Collection[str], only: Collection[str], *, skip: Collection[str]) -> list[str]:
    """Return the roles that a run leaves out, each of which has its name and the ``tags`` of the play as tags.

    A run that selects none of them, as one of the check alone, leaves out those that it skips.
    """
    own = {role: frozenset({*tags, role}) for role in roles if role != _CHECK}
    chosen = [role for role in own if selected(own[role], only, skip)]
    chosen = chosen or [role for role in own if selected(own[role], ["all"], skip)]
    return [role for role in own if role not in chosen]
