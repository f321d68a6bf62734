"""Run a module through its main() and return what it says."""

from __future__ import annotations

import importlib
import json
from typing import Any
from unittest.mock import patch

import pytest
from ansible.module_utils import _internal
from ansible.module_utils._internal._json import _profiles
from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

PACKAGE = "ansible_collections.gpufabric.rdma.plugins.modules"


def run(name: str, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    # Each module is a process of its own, where no other one has warned.
    warnings._global_warnings.clear()
    module = importlib.import_module(f"{PACKAGE}.{name}")
    # A test of an action plugin makes this process a controller, which prints warnings in place of returning them.
    as_module = patch.object(_internal, "is_controller", False)
    # It checks texts of parameters, too, and keeps whether it does.
    unchecked = patch.object(_profiles, "_string_encoding_check_enabled", lambda: False)
    with as_module, unchecked, patch_module_args({**params, "_ansible_check_mode": check}), pytest.raises(SystemExit):
        module.main()
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def warned(result: dict[str, Any]) -> list[str]:
    """The texts of a result's warnings, which newer releases of ansible-core wrap."""
    return [one if isinstance(one, str) else one["event"]["msg"] for one in result.get("warnings", [])]
