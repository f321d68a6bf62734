"""Options as they are in effect do not have rdma_fabric, with which they were judged before. Costs nothing."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.action.role_options import problems

KNOWN = {"rdma_stack_provider": {"type": "str"}, "nic_firmware_settings": {"type": "dict"}}


@pytest.mark.parametrize("provider", ["container", "inbox"])
def test_they_are_not_judged_as_if_there_were_no_policy(provider: str) -> None:
    assert problems(KNOWN, {"rdma_stack_provider": provider}) == []


def test_what_a_user_gives_is_judged_with_the_fabric() -> None:
    (text,) = problems(KNOWN, {"rdma_stack_provider": "container", "rdma_fabric": {}})
    assert text.startswith("rdma_stack_provider is container, but nothing deploys the driver container")
    operator = {"nic_configuration": {"enabled": True}}
    given = {"nic_firmware_settings": {"SRIOV_EN": True}, "rdma_fabric": {"operator": operator}}
    (text,) = problems(KNOWN, given)
    assert text.startswith("nic_firmware_settings of the hosts and the NIC configuration operator")
