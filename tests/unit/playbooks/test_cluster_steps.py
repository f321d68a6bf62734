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
    ],
)
def test_steps_follow_the_tags(tags: list[str], skipped: list[str], where: Any, steps: list[str]) -> None:
    (task,) = yaml.safe_load((ROOT / "playbooks/tasks/cluster.yml").read_text())
    jinja = jinja2.Environment(autoescape=False)
    jinja.filters["intersect"] = lambda left, right: [item for item in left if item in right]
    jinja.filters["difference"] = lambda left, right: [item for item in left if item not in right]
    known: dict[str, Any] = {"ansible_run_tags": tags, "ansible_skip_tags": skipped}
    known |= {"rdma_validate_where": where} if where else {}
    for name, text in (("__selected", task["vars"]["__selected"]), ("", task["gpufabric.rdma.cluster_info"]["steps"])):
        known[name] = jinja.compile_expression(text.strip("{} \n"))(**known)
    assert known[""] == steps
