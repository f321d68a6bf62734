"""What a wait shows while its module runs: lines of the module's file, in a folder of the run that is gone afterwards.

The scenario sriov looks for these lines in the output of a real playbook. Cost: less than a second.
"""

from __future__ import annotations

import importlib.util
import sys
import time
import types
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.unit.support.real_play import ROOT

from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import progress_lines
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.ready import progress


class Base:
    """What the plugin needs of ansible-core's base class."""

    def __init__(self, transport: str, given: dict[str, Any]) -> None:
        self._connection = types.SimpleNamespace(transport=transport)
        self._task = types.SimpleNamespace(args=given)
        self.shown: list[str] = []
        self._display = types.SimpleNamespace(display=self.shown.append)
        self.arguments: dict[str, Any] | None = None

    def run(self, _tmp: Any, _task_vars: Any) -> dict[str, Any]:
        return {}

    def _execute_module(self, module_args: dict[str, Any] | None = None, **_others: Any) -> dict[str, Any]:
        self.arguments = module_args
        for seconds in range(5) if module_args else ():
            tell = progress.teller("fabric_wait", module_args["progress_file"], 60)
            tell(seconds, ["IPPool rail0 is absent"])
            time.sleep(0.1)
        return {"ready": True}


@pytest.fixture(params=["fabric_wait", "fabric_objects"])
def plugin(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plugin alone: Ansible's own import would make this process a controller."""
    monkeypatch.setattr(progress_lines, "REPORT_INTERVAL", 0.12)
    name = f"ansible_collections.gpufabric.rdma.plugins.action.{request.param}"
    spec = importlib.util.spec_from_file_location(name, ROOT / f"plugins/action/{request.param}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    ansible = types.ModuleType("ansible")
    ansible.constants = types.SimpleNamespace(DEFAULT_LOCAL_TMP=str(tmp_path))  # type: ignore[attr-defined]
    parts = {"ansible": ansible, "ansible.plugins": types.ModuleType("plugins")}
    with patch.dict(sys.modules, {**parts, "ansible.plugins.action": types.SimpleNamespace(ActionBase=Base)}):
        spec.loader.exec_module(module)
    return module.ActionModule


def test_lines_are_shown_while_the_module_waits(plugin: Any, tmp_path: Path) -> None:
    made = plugin("local", {"objects": [1]})
    assert made.run() == {"ready": True}
    assert made.arguments["objects"] == [1]
    assert len(made.shown) >= 2
    lines = [f"fabric_wait: {second} s of at most 60 s, not ready yet: IPPool rail0 is absent" for second in range(5)]
    assert set(made.shown) <= set(lines)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("transport, given", [("ssh", {}), ("local", {"progress_file": "/none/mine"})])
def test_a_file_elsewhere_is_not_looked_for(plugin: Any, transport: str, given: dict[str, Any]) -> None:
    made = plugin(transport, given)
    assert made.run() == {"ready": True}
    assert (made.arguments, made.shown) == (None, [])
