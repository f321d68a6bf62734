"""What prepare.yml works out for its roles."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
import yaml
from tests.tools.environment import REPO


def of_preflight(name: str, variables: dict[str, Any]) -> str:
    """Return what the play gives preflight for an input, from these variables of a user."""
    plays = yaml.safe_load((REPO / "playbooks" / "prepare.yml").read_text())
    (role,) = (role for play in plays for role in play.get("roles", []) if role["role"] == "gpufabric.rdma.preflight")
    defaults = yaml.safe_load((REPO / "roles/host_kernel/defaults/main.yml").read_text())
    return jinja2.Environment().from_string(role["vars"][name]).render(__options={**defaults, **variables})


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({}, "False"),
        ({"host_kernel_arguments": ["quiet"]}, "True"),
        ({"host_kernel_arguments_absent": ["quiet"]}, "True"),
        ({"host_kernel_iommu": "passthrough"}, "True"),
        ({"host_kernel_iommu": "none"}, "False"),
        ({"host_kernel_hugepages": [{"size": "2M", "count": 1, "at": "boot"}]}, "True"),
        ({"host_kernel_hugepages": [{"size": "2M", "count": 1}, {"size": "1G", "count": 1, "at": "now"}]}, "False"),
        ({"host_kernel_arguments": ["quiet"], "host_kernel_state": "absent"}, "False"),
        ({"host_kernel_iommu": "passthrough", "host_kernel_state": "absent"}, "False"),
    ],
)
def test_a_boot_loader_is_needed_only_where_arguments_are_set(variables: dict[str, Any], asked: str) -> None:
    assert of_preflight("preflight_kernel_arguments", variables) == asked
