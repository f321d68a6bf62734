"""Texts by which the fuzzer found a crash (tests/tools/fuzz.py): a parser returns something or our error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.tools import fuzz

from ansible_collections.gpufabric.rdma.plugins.module_utils._common import units
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import topology_file
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import network, next_kernel
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import network_manager, routing
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos import programs
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import json_text

LONG, DEEP = "9" * 5000, "[" * 100_000
FOUND: list[tuple[Callable[[str], Any], str]] = [
    (units.version_numbers, LONG),
    (next_kernel.version_key, LONG),
    (programs.ring_limits, f"Pre-set maximums:\nRX:\t\t{LONG}\nCurrent hardware settings:\n"),
    (network.parse_interfaces, '[{"ifname":"rail0","mtu":Infinity,"flags":[],"addr_info":[]}]'),
    (network.parse_interfaces, '[{"ifname":"rail0","mtu":1e999,"flags":[],"addr_info":[]}]'),
    (network.parse_interfaces, DEEP),
    (lambda text: routing.parse(text, text), DEEP),
    (network_manager._keyfile, "[connection]\nid\n more\n"),
    (topology_file.parse_conf, f"SwitchName=leaf1 Nodes=gpu-[{LONG}]\n"),
]


@pytest.mark.parametrize(("parse", "text"), FOUND)
def test_no_text_ends_in_a_traceback(parse: Callable[[str], Any], text: str) -> None:
    with contextlib.suppress(FabricError):
        parse(text)


@pytest.mark.parametrize("text", ["Infinity", "-Infinity", "NaN", "1e999", "{", DEEP])
def test_json_has_one_kind_of_error(text: str) -> None:
    with pytest.raises(ValueError):
        json_text.loads(text)


def test_the_fuzzer_finds_a_parser_that_crashes_and_one_that_hangs() -> None:
    """A second of time."""
    texts = ["a=1\n"]
    crash = fuzz.Parser("crash", lambda text: text.index("a=1"), texts)
    assert "ValueError" in fuzz.run(crash, 1.0, 1)[1]
    assert fuzz.run(fuzz.Parser("fine", str.split, texts), 0.05, 1)[1] == ""
