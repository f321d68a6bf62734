"""What testers recorded of contacts, and what may be in such a record without being one. Cost: 0.1 s."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.contact import (
    BROKEN,
    CONNECTED,
    SILENT,
    UNCHECKED,
    Ping,
    Side,
    parse,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import Run

ROOT = Path(__file__).resolve().parents[7]
RECORDED = json.loads((ROOT / "tests/fixtures/mesh/netns.json").read_text())["cases"]
ONE, TWO, OTHER = "1a:2a:83:37:48:39", "72:17:01:c9:24:7f", "92:cc:b7:71:2e:44"
FAR, FARTHER = ("52:fe:d4:0b:6d:38", "3e:7b:51:36:10:c5"), ("f2:08:d2:85:20:4a", "9a:c8:e0:df:1d:ad")
NO_DEVICE = "Failed to get IB devices list"
WELL = Ping(9000, 3, 3)
LOST, SMALL_LOST, SMALL = Ping(9000, 3, 0), Ping(84, 3, 0), Ping(84, 3, 3)
HEAD = f"mesh mac={ONE} neighbour={TWO}\n"


@pytest.mark.parametrize(
    ("case", "role", "side"),
    [
        ("ok", "client", Side(ONE, TWO, WELL, None, UNCHECKED, NO_DEVICE)),
        ("ok", "server", Side(TWO, ONE, WELL, None, UNCHECKED, NO_DEVICE)),
        # The host answers on rail0 for the address of rail1.
        ("ok", "probe", Side(ONE, TWO, WELL)),
        ("mtu", "client", Side(ONE, TWO, LOST, SMALL, UNCHECKED, NO_DEVICE)),
        ("mtu", "server", Side(TWO, ONE, Ping(9000, why="ping: exit code 124"), None, UNCHECKED, NO_DEVICE)),
        ("swapped", "probe", Side(ONE, OTHER, LOST)),
        ("swapped", "client", Side(ONE, OTHER, WELL, None, UNCHECKED, NO_DEVICE)),
        ("swapped_ignore", "probe", Side(ONE, OTHER, LOST)),
        ("swapped_ignore", "client", Side(ONE, "none", LOST, SMALL_LOST, UNCHECKED, NO_DEVICE)),
        ("cut", "server", Side(TWO, "none", LOST, SMALL_LOST, UNCHECKED, NO_DEVICE)),
        # The peer asked for the MAC address of the client, which so knows that of the peer.
        ("noroute", "client", Side(*FAR, Ping(9000, routed=False), SMALL_LOST, UNCHECKED, NO_DEVICE)),
        ("noroute", "server", Side(*FAR[::-1], LOST, SMALL_LOST, UNCHECKED, NO_DEVICE)),
        ("noroute_without_ip", "client", Side(*FARTHER, Ping(9000, routed=False), SMALL_LOST, UNCHECKED, NO_DEVICE)),
    ],
)
def test_recorded(case: str, role: str, side: Side) -> None:
    assert parse(Run(0, RECORDED[case][role])) == side


# The messages of rdma-core 44's examples/rc_pingpong.c; those of a connection were written by hand.
@pytest.mark.parametrize(
    ("rc", "text", "connection", "why"),
    [
        (
            0,
            "163840 bytes in 0.00 seconds = 3000.51 Mbit/sec\n20 iters in 0.00 seconds = 21.84 usec/iter",
            CONNECTED,
            "",
        ),
        (0, "", SILENT, ""),
        (
            1,
            "Failed status transport retry counter exceeded (12) for wr_id 2\nparse WC failed 1",
            BROKEN,
            "Failed status transport retry counter exceeded (12)",
        ),
        (1, "Failed to modify QP to RTR\nCouldn't connect to remote QP", BROKEN, "Failed to modify QP to RTR"),
        (1, "Couldn't connect to 10.0.0.2:18500", SILENT, ""),
        (124, "", SILENT, ""),
        (143, "", SILENT, ""),
        (1, "Couldn't register MR", UNCHECKED, "Couldn't register MR"),
        (1, "IB device mlx5_9 not found", UNCHECKED, "IB device mlx5_9 not found"),
        (125, "gpufabric: ibv_rc_pingpong is not installed", UNCHECKED, "ibv_rc_pingpong is not installed"),
    ],
)
def test_endings_of_a_connection(rc: int, text: str, connection: str, why: str) -> None:
    side = parse(Run(0, f"{HEAD}ping size=9000 rc=0\n3 packets transmitted, 3 received\nconnect rc={rc}\n{text}"))
    assert side == Side(ONE, TWO, WELL, None, connection, why)


@pytest.mark.parametrize(
    ("text", "ping"),
    [
        # An answer shows that there is a route, whatever was looked up.
        ("RTNETLINK answers: Network is unreachable\n3 packets transmitted, 1 received", Ping(84, 3, 1)),
        (
            "ping: socktype: SOCK_RAW\nping: socket: Operation not permitted",
            Ping(84, why="ping: Operation not permitted"),
        ),
        ("gpufabric: ping of iputils is not installed", Ping(84, why="ping of iputils is not installed")),
        ("3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2043ms", Ping(84, 3, 0)),
        ("3 packets transmitted, 3 received, +1 duplicates, 0% packet loss", Ping(84, 3, 3)),
        # More answers than packets are no better than all of them.
        ("3 packets transmitted, 9999 received", Ping(84, 3, 3)),
        ("99999999 packets transmitted, 3 received", Ping(84, why="ping: exit code 2")),
    ],
)
def test_endings_of_ping(text: str, ping: Ping) -> None:
    side = parse(Run(0, f"{HEAD}ping size=84 rc=2\n{text}"))
    assert side and side.large == ping


@pytest.mark.parametrize(
    "run",
    [
        None,
        Run(137, f"{HEAD}connect rc=0\n1 bytes in 1"),
        Run(0, f"{HEAD}connect rc=0\n1 bytes in 1", late=1.0),
        Run(0, "mesh mac=1a neighbour=none"),
        Run(0, "#bytes #iterations"),
        Run(0, ""),
    ],
)
def test_what_says_nothing(run: Run | None) -> None:
    assert parse(run) is None


def test_nothing_but_known_words_is_taken_over() -> None:
    hostile = f"{HEAD}ping size=9000 rc=2\ngpufabric: \x1b[31mred\n" + "connect rc=1\ngpufabric: " + "x" * 5000
    side = parse(Run(0, hostile))
    assert side and side.large and (side.large.why, len(side.why)) == ("?[31mred", 200)
