"""A run without hosts of the fabric, or without anything to do, gets a message; all other runs get none."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.request import (
    Work,
    group_problem,
    inventory_problem,
    left_out,
    name_problem,
    pattern_problem,
    reserved_problem,
    selected,
    tag_problem,
)

FABRIC, WEB = ["gpu-1", "gpu-2"], ["web-1"]
GROUPS = {"all": FABRIC + WEB, "ungrouped": [], "rdma_hosts": FABRIC, "web": WEB, "none": []}


@pytest.mark.parametrize(("group", "play", "limit", "message"), [
    ("rdma_hosts", ["gpu-1", "gpu-2", "web-1", "localhost"], "", ""),
    ("rdma_hosts", ["gpu-2"], "gpu-2", ""),
    ("rdma_host", ["gpu-1"], "", (
        "The inventory has no group rdma_host, so the fabric has no hosts. Groups of the inventory: rdma_hosts, none, "
        "web. Correct the name, or pass the group of the fabric: -e rdma_group=NAME")),
    ("none", ["gpu-1"], "", "The group none is empty, so the fabric has no hosts. Add its hosts to the inventory."),
    ("rdma_hosts", ["web-1"], "web-1", (
        "--limit web-1 matches no host of the group rdma_hosts (gpu-1, gpu-2). Correct the limit.")),
])  # fmt: skip
def test_a_run_needs_a_host_of_the_fabric(group: str, play: list[str], limit: str, message: str) -> None:
    assert group_problem(group, GROUPS, play, limit=limit) == message


def test_the_group_of_unreachable_hosts_is_reserved() -> None:
    assert reserved_problem(GROUPS, planned=False) == ""
    own = {**GROUPS, "rdma_absent": ["gpu-2"]}
    assert reserved_problem(own, planned=False) == (
        "The inventory has a group rdma_absent (gpu-2). A run adds unreachable hosts to a group of this name and"
        " leaves its hosts out. Rename the group"
    )
    assert reserved_problem(own, planned=True) == ""


def test_an_inventory_that_sets_another_group_is_refused() -> None:
    assert inventory_problem("rdma_hosts", {"gpu-1": "rdma_hosts"}) == ""
    assert inventory_problem("rdma_hosts", {"gpu-1": "fabric_b", "gpu-2": "rdma_hosts"}) == (
        "rdma_group is fabric_b in the inventory (on gpu-1), but this run uses the group rdma_hosts: "
        "Ansible selects the hosts of a play before it reads the variables of the inventory. "
        "Pass -e rdma_group=fabric_b, or correct the inventory"
    )


@pytest.mark.parametrize(("group", "found"), [
    ("", '"" (text)'), (" ", '" " (text)'), (None, "nothing (null)"), (["a", "b"], "a list"), (5, "5 (number)"),
])  # fmt: skip
def test_a_group_is_one_name(group: object, found: str) -> None:
    assert name_problem("rdma_hosts", "rdma_hosts") == ""
    assert name_problem(group, "rdma_hosts") == (
        f"rdma_group: expected the name of a group of the inventory, found {found}. Pass one name, or omit"
        " rdma_group to use the group rdma_hosts"
    )


def test_a_name_that_is_a_pattern_is_refused() -> None:
    assert pattern_problem("gpu", ["a", "b"], ["b", "a"]) == ""
    assert pattern_problem("dc1:gpu", ["a", "b"], []) == (
        "The group dc1:gpu has the hosts a, b, but a play on this name selects no host: Ansible reads it as a pattern,"
        " or a host or another group has the same name. Rename the group; use letters, digits and underscores"
    )
    assert "but a play on this name selects web-1:" in pattern_problem("!x", ["a"], ["web-1"])


def task(*tags: str, ours: bool = True, hidden: bool = False) -> Work:
    return Work(frozenset(tags), ours, hidden)


PLAN = task("always")
SITE = [PLAN, task("prepare", "sriov"), task("validate")]
MINE = task("mine", ours=False)
HAS = "This playbook has the tags "


@pytest.mark.parametrize(("tasks", "only", "skip", "message"), [
    (SITE, ["all"], [], ""),
    (SITE, ["sriov"], [], ""),
    (SITE, ["always"], [], ""),
    (SITE, ["tagged"], [], ""),
    (SITE, ["all"], ["validate"], ""),
    ([PLAN], ["all"], [], ""),
    (SITE, ["valdate"], [], "--tags valdate: no task has this tag. " + HAS + "validate, prepare, sriov."),
    (SITE, ["sriov", "x"], [], "--tags x: no task has this tag. " + HAS + "prepare, sriov, validate."),
    (SITE, ["all"], ["prepair"], "--skip-tags prepair: no task has this tag. " + HAS + "prepare, sriov, validate."),
    ([PLAN], ["prepare"], [], (
        "--tags prepare: no task has this tag. This playbook has no tags: run it without --tags and --skip-tags.")),
    (SITE, ["sriov"], ["prepare"], (
        "--tags sriov --skip-tags prepare: this selects no task. " + HAS + "prepare, sriov, validate.")),
    (SITE, ["all"], ["prepare", "validate"], (
        "--skip-tags prepare,validate: this selects no task. " + HAS + "prepare, sriov, validate.")),
    (SITE, ["untagged"], [], "--tags untagged: this selects no task. " + HAS + "prepare, sriov, validate."),
    ([task("always", "rdma")], ["rdma"], [], ""),
    # A playbook of the user's own that imports ours.
    ([*SITE, MINE], ["mine"], [], ""),
    ([PLAN, MINE], ["all"], ["mine"], ""),
    ([*SITE, MINE], ["nime"], [], "--tags nime: no task has this tag. " + HAS + "mine, prepare, sriov, validate."),
    ([*SITE, task(ours=False, hidden=True)], ["theirs", "sriov"], [], ""),
])  # fmt: skip
def test_tags_select_something_to_do(tasks: list[Work], only: list[str], skip: list[str], message: str) -> None:
    assert tag_problem(only, skip, tasks) == message


@pytest.mark.parametrize(("tags", "only", "skip", "runs"), [
    ((), ["all"], [], True),
    ((), ["untagged"], [], True),
    ((), ["tagged"], [], False),
    (("a",), ["a", "b"], [], True),
    (("a",), ["a"], ["tagged"], False),
    (("a",), ["all"], ["all"], False),
    (("a", "never"), ["all"], [], False),
    (("a", "never"), ["tagged"], [], False),
    (("a", "never"), ["a"], [], True),
    ((), ["all"], ["untagged"], False),
])  # fmt: skip
def test_selection_is_that_of_ansible(tags: tuple[str, ...], only: list[str], skip: list[str], runs: bool) -> None:
    assert selected(frozenset(tags), only, skip) is runs


@pytest.mark.parametrize(
    ("only", "skip", "expected"),
    [
        (["all"], [], []),
        (["prepare"], [], []),
        (["tagged"], ["sriov"], ["sriov"]),
        (["sriov"], [], ["rail_links"]),
        (["prepare", "sriov"], [], []),
        (["preflight", "sriov"], [], ["rail_links"]),
        (["preflight"], [], []),
        (["preflight"], ["sriov"], ["sriov"]),
        (["sriov"], ["sriov"], ["sriov"]),
        (["validate"], [], []),
        (["all"], ["prepare"], ["sriov", "rail_links"]),
    ],
)
def test_roles_that_a_run_leaves_out(only: list[str], skip: list[str], expected: list[str]) -> None:
    assert left_out(["preflight", "sriov", "rail_links"], ["prepare"], only, skip=skip) == expected
