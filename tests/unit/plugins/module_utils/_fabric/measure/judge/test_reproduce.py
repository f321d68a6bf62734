"""Which failed test a diagnosis is repeated by."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import complete
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.reproduce import commands, covers
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.session import State
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Endpoint


def diagnosis(
    kind: str, rail: str | None, host: str | None = None, peer: str | None = None, **more: Any
) -> dict[str, Any]:
    return {"where": "host", "kind": kind, "rail": rail, "host": host, "peer": peer, "direction": None, **more}


SAME = {"rail": "r0", "client": "a", "server": "b"}
CROSSED = {**SAME, "peer_rail": "r1"}


@pytest.mark.parametrize(
    ("diagnosed", "tests"),
    [
        (diagnosis("rail", None), [SAME, CROSSED]),
        (diagnosis("rail", "r0"), [SAME, CROSSED]),
        (diagnosis("rail", "r1"), [CROSSED]),
        (diagnosis("host", None, "b"), [SAME, CROSSED]),
        (diagnosis("host", None, "c"), []),
        (diagnosis("port", "r0", "a"), [SAME, CROSSED]),
        (diagnosis("port", "r0", "b"), [SAME]),
        (diagnosis("port", "r1", "b"), [CROSSED]),
        (diagnosis("port", "r1", "a"), []),
        (diagnosis("direction", "r0", "a", direction="send"), [SAME, CROSSED]),
        (diagnosis("direction", "r1", "b", direction="receive"), [CROSSED]),
        (diagnosis("direction", "r1", "b", direction="send"), []),
        (diagnosis("pair", "r0", "a", "b"), [SAME]),
        (diagnosis("pair", "r0", "a", "b", peer_rail="r1"), [CROSSED]),
        (diagnosis("pair", "r1", "b", "a", peer_rail="r0"), [CROSSED]),
        (diagnosis("pair", None, "a", "b"), [SAME, CROSSED]),
        (diagnosis("routing", None), [CROSSED]),
        (diagnosis("routing", "r0", peer_rail="r1"), [CROSSED]),
        (diagnosis("routing", "r0", peer_rail="r2"), []),
        ({**diagnosis("rail", None), "where": "pod"}, []),
    ],
)
def test_covers(diagnosed: dict[str, Any], tests: list[dict[str, str]]) -> None:
    assert [one for one in (SAME, CROSSED) if covers(diagnosed, {"where": "host", "test": "write_bw", **one})] == tests


def test_who_reads_receives() -> None:
    read = {"where": "host", "test": "read_bw", **CROSSED}
    assert covers(diagnosis("direction", "r1", "b", direction="send"), read)
    assert not covers(diagnosis("direction", "r0", "a", direction="send"), read)


def test_whatever_a_command_is_made_of_is_quoted() -> None:
    side = {"device": "mlx5_0;curl x|sh;", "port": "1", "gid": "$(id)", "address": "10.0.0.1 -F", "cpus": "0;id"}
    endpoints = {name: Endpoint({"r0": side}, {}) for name in ("a b", "c")}
    state = State({}, "host", complete({}), "all_pairs", ["r0"], endpoints)
    failed = {"where": "host", "test": "write_bw", "rail": "r0", "client": "a b", "server": "c", "verdict": "fail"}
    server, client = commands(state, diagnosis("rail", None), [failed])
    assert server.startswith("ssh c taskset -c '0;id' ib_write_bw -d 'mlx5_0;curl x|sh;' -i 1 -x '$(id)' -p ")
    assert client.startswith("ssh 'a b' taskset -c '0;id' ") and client.endswith(" '10.0.0.1 -F'")
