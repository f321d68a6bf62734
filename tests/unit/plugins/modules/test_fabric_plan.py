"""The border: parameters in, plan or one message out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic
from tests.unit.support import module_run
from tests.unit.support.plan_factory import fleet


def run(capsys: pytest.CaptureFixture[str], **args: Any) -> dict[str, Any]:
    found: dict[str, Any] = module_run.run("fabric_plan", capsys, check=True, **args)
    return found


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


def test_ipv6_addresses_of_rails(capsys: pytest.CaptureFixture[str]) -> None:
    fabric = {"supernet": "192.168.0.0/16", "ipv6": {"supernet": "fd00:10::/48"}}
    found = run(capsys, **arguments(fabric=fabric))
    rail = found["plan"]["hosts"]["gpu-0001"]["rails"][0]
    assert (rail["address"], rail["ipv6"]["address"]) == ("192.168.0.1/24", "fd00:10::1/64")


def test_warnings_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, **arguments(fabric={"addresses": "keep"}))
    assert "rdma_fabric.supernet is not given" in str(found["warnings"])


def test_a_mistake_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, **arguments(fabric={"supernet": "192.168.0.0/16", "mtuu": 1}))
    assert found["failed"] is True
    # Playbooks read the intent before, and name the nearest key (action/test_role_options.py).
    assert "fabric.mtuu. Supported parameters include: absent_hosts," in found["msg"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("topology.conf", "SwitchName=leaf1 Nodes=gpu-000[1-2]\nSwitchName=leaf2 Nodes=gpu-0003\n"),
        (
            "topology.yaml",
            "- topology: t\n  tree:\n    switches:\n    - {switch: leaf1, nodes: 'gpu-000[1-2]'}\n"
            "    - {switch: leaf2, nodes: gpu-0003}\n",
        ),
        (
            "topology.json",
            '{"instances": [{"id": "gpu-0001", "network_layers": ["leaf1"]},\n'
            '\t{"id": "gpu-0002", "network_layers": ["leaf1"]}, '
            '{"id": "gpu-0003", "network_layers": ["leaf2"]}]}',
        ),
    ],
)
def test_groups_of_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    tests = {"mode": "topology", "groups": {"from": "file", "path": str(tmp_path / name)}}
    found = run(capsys, **arguments(fabric={"supernet": "192.168.0.0/16", "tests": tests}))
    assert found["plan"]["tests"]["groups"] == {"leaf1": ["gpu-0001", "gpu-0002"], "leaf2": ["gpu-0003"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.conf", None, "cannot read {path}: No such file or directory"),
        ("bad.json", b"{", "{path} cannot be parsed: Expecting property name"),
        ("bad.yaml", b"a: [", "{path} cannot be parsed: while parsing a flow"),
        ("bad.conf", b"\xff\xfe", "{path} cannot be parsed: 'utf-8' codec can't decode"),
    ],
)
def test_a_file_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    tests = {"mode": "topology", "groups": {"from": "file", "path": str(path)}}
    found = run(capsys, **arguments(fabric={"supernet": "192.168.0.0/16", "tests": tests}))
    assert found["failed"] is True
    assert found["msg"].startswith("rdma_fabric.tests.groups.path: " + message.format(path=path))


def test_null_in_an_override_reaches_the_policy(capsys: pytest.CaptureFixture[str]) -> None:
    """Ansible adds null for every option that is not given; in a free dict null is what the user wrote."""
    operator = {"policy_overrides": {"nvIpam": None}}
    found = run(capsys, **arguments(fabric={"supernet": "192.168.0.0/16", "operator": operator}))
    assert "nvIpam" not in found["plan"]["objects"]["policy"][0]["spec"]
