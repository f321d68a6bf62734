"""Which parts of a run the check of the cluster asks permissions for, by the tags of the run."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
import yaml
from real_play import ROOT


@pytest.mark.parametrize(
    ("tags", "skipped", "where", "steps"),
    [
        (["all"], [], None, ["operator", "policy", "networks", "validate"]),
        (["all"], ["validate"], None, ["operator", "policy", "networks"]),
        (["all"], [], ["host"], ["operator", "policy", "networks"]),
        (["networks"], [], None, ["networks"]),
        (["deploy", "validate"], ["deploy"], ["pod"], ["validate"]),
        (["nic_cluster_policy", "rdma_validate"], [], None, ["policy", "validate"]),
        # The tag of a role, inside of a playbook that is not skipped.
        (["all"], ["nic_cluster_policy"], None, ["operator", "networks", "validate"]),
        (["deploy"], ["network_operator"], None, ["policy"]),
        (["all"], ["secondary_networks", "rdma_validate"], None, ["operator", "policy"]),
    ],
)
def test_steps_follow_the_tags(tags: list[str], skipped: list[str], where: Any, steps: list[str]) -> None:
    (task,) = yaml.safe_load((ROOT / "playbooks/tasks/cluster.yml").read_text())
    known: dict[str, Any] = {"ansible_run_tags": tags, "ansible_skip_tags": skipped}
    known |= {"rdma_validate_where": where} if where else {}
    for name in ("__selected", "__deploys"):
        known[name] = value(task["vars"][name], known)
    assert value(task["gpufabric.rdma.cluster_info"]["steps"], known) == steps


@pytest.mark.parametrize(
    ("tags", "skipped", "steps"),
    [
        (["all"], [], ["operator", "policy"]),
        (["all"], ["nic_cluster_policy"], ["operator"]),
        (["deploy"], ["nic_cluster_policy", "validate"], ["operator"]),
        (["network_operator"], [], ["operator"]),
        (["nic_cluster_policy", "network_operator"], ["validate"], ["operator", "policy"]),
    ],
)
def test_the_operator_checks_for_the_policy_unless_it_is_skipped(
    tags: list[str], skipped: list[str], steps: list[str]
) -> None:
    play = yaml.safe_load((ROOT / "playbooks/deploy.yml").read_text())[1]
    known = {"ansible_run_tags": tags, "ansible_skip_tags": skipped}
    assert value(play["vars"]["__network_operator_steps"], known) == steps


def value(text: str, known: dict[str, Any]) -> Any:
    """Return what a template of one expression is."""
    jinja = jinja2.Environment(autoescape=False)
    jinja.filters["intersect"] = lambda left, right: [item for item in left if item in right]
    jinja.filters["difference"] = lambda left, right: [item for item in left if item not in right]
    return jinja.compile_expression(text.strip("{} \n"))(**known)
