"""The border: parameters in, plan or one message out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.modules import fabric_plan


def run(capsys: pytest.CaptureFixture[str], **args: Any) -> dict[str, Any]:
    with patch_module_args({"_ansible_check_mode": True, **args}), pytest.raises(SystemExit):
        fabric_plan.main()
    return json.loads(capsys.readouterr().out)


def arguments(**other: Any) -> dict[str, Any]:
    facts = {name: host["facts"] for name, host in fleet(3).items()}
    return {"fabric": {"supernet": "192.168.0.0/16"}, "facts": facts, "group": list(facts), **other}


def test_a_plan_in_check_mode(capsys: pytest.CaptureFixture[str]) -> None:
    assert basic.AnsibleModule
    found = run(capsys, **arguments(settings={"gpu-0002": {"number": 7}}, limit=["gpu-0001"]))
    assert found["changed"] is False
    assert found["plan"]["hosts"]["gpu-0002"]["number"] == 7
    assert found["plan"]["endpoints"]["host"] == ["gpu-0001"]
    assert "facts" not in found["invocation"]["module_args"]


def test_warnings_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, **arguments(fabric={"addresses": "keep"}))
    assert "rdma_fabric.supernet is not given" in str(found["warnings"])


def test_a_mistake_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, **arguments(fabric={"supernet": "192.168.0.0/16", "mtuu": 1}))
    assert found["failed"] is True
    assert found["msg"] == 'rdma_fabric.mtuu: unknown key; did you mean "mtu"?'
