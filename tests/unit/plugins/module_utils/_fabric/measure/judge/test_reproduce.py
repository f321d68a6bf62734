"""Which failed test a blame is repeated by."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import complete
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.reproduce import commands, covers
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.session import State
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Endpoint


def blame(kind: str, rail: str | None, host: str | None = None, peer: str | None = None, **more: Any) -> dict[str, Any]:
    return {"where": "host", "kind": kind, "rail": rail, "host": host, "peer": peer, "direction": None, **more}


SAME = {"rail": "r0", "client": "a", "server": "b"}
CROSSED = {**SAME, "peer_rail": "r1"}


@pytest.mark.parametrize(
    ("blamed", "tests"),
    [
        (blame("rail", None), [SAME, CROSSED]),
        (blame("rail", "r0"), [SAME, CROSSED]),
        (blame("rail", "r1"), [CROSSED]),
        (blame("host", None, "b"), [SAME, CROSSED]),
        (blame("host", None, "c"), []),
        (blame("port", "r0", "a"), [SAME, CROSSED]),
        (blame("port", "r0", "b"), [SAME]),
        (blame("port", "r1", "b"), [CROSSED]),
        (blame("port", "r1", "a"), []),
        (blame("direction", "r0", "a", direction="send"), [SAME, CROSSED]),
        (blame("direction", "r1", "b", direction="receive"), [CROSSED]),
        (blame("direction", "r1", "b", direction="send"), []),
        (blame("pair", "r0", "a", "b"), [SAME]),
        (blame("pair", "r0", "a", "b", peer_rail="r1"), [CROSSED]),
        (blame("pair", "r1", "b", "a", peer_rail="r0"), [CROSSED]),
        (blame("pair", None, "a", "b"), [SAME, CROSSED]),
        (blame("routing", None), [CROSSED]),
        (blame("routing", "r0", peer_rail="r1"), [CROSSED]),
        (blame("routing", "r0", peer_rail="r2"), []),
        ({**blame("rail", None), "where": "pod"}, []),
    ],
)
def test_covers(blamed: dict[str, Any], tests: list[dict[str, str]]) -> None:
    assert [one for one in (SAME, CROSSED) if covers(blamed, {"where": "host", "test": "write_bw", **one})] == tests


def test_who_reads_receives() -> None:
    read = {"where": "host", "test": "read_bw", **CROSSED}
    assert covers(blame("direction", "r1", "b", direction="send"), read)
    assert not covers(blame("direction", "r0", "a", direction="send"), read)


def test_whatever_a_command_is_made_of_is_quoted() -> None:
    side = {"device": "mlx5_0;curl x|sh;", "port": "1", "gid": "$(id)", "address": "10.0.0.1 -F", "cpus": "0;id"}
    endpoints = {name: Endpoint({"r0": side}, {}) for name in ("a b", "c")}
    state = State({}, "host", complete({}), "all_pairs", ["r0"], endpoints)
    failed = {"where": "host", "test": "write_bw", "rail": "r0", "client": "a b", "server": "c", "verdict": "fail"}
    server, client = commands(state, blame("rail", None), [failed])
    assert server.startswith("ssh c taskset -c '0;id' ib_write_bw -d 'mlx5_0;curl x|sh;' -i 1 -x '$(id)' -p ")
    assert client.startswith("ssh 'a b' taskset -c '0;id' ") and client.endswith(" '10.0.0.1 -F'")
