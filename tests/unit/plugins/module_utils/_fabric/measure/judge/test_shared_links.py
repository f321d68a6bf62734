"""Rails that share a PCIe link are measured at once, once, beside all other tests. Milliseconds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.unit.support import tester_logs
from tests.unit.support.tester_logs import ROW, frame

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import shared_links
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step, step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass

RAILS = ["rail0", "rail1", "rail2"]
# 113 Gb/s of payload for two ports of 97.9 Gb/s each.
LINK = {"pci": "0000:15:01.0", "speed": 16.0, "width": 8, "rails": ["rail0", "rail1"]}


def plan(hosts: list[str], **tests: Any) -> dict[str, Any]:
    made = tester_logs.plan(hosts, RAILS, **{"sharing": [LINK["rails"]], "rails_at_once": "auto", **tests})
    for rail in LINK["rails"]:
        for side in made["expectations"][rail].values():
            side.update(pcie={"speed": 32.0, "width": 16, "max_payload": 256}, uplinks=[LINK])
    return made


def described(hosts: list[str]) -> dict[str, str]:
    return {
        name: tester_logs.described(
            [f'{rail} device=mlx5_{at} port=1 netdev={rail} gid=3 gid_type="RoCE v2" address=10.{at}.0.{number}'
             for at, rail in enumerate(RAILS)],
            "perftest=6.24 control=-",
        )
        for number, name in enumerate(hosts, 1)
    }  # fmt: skip


def measured(
    made: dict[str, Any],
    shared: dict[str, float],
    failing: str = "",
    slow: tuple[str, str] = ("", ""),
    paused: int = 0,
) -> tuple[Step, list[Step]]:
    """Measure to the end.

    ``shared``: Gb/s that the link of a host carries; ``failing``: a rail that then fails; ``slow``: a port of 50 Gb/s.
    ``paused``: microseconds for which a port pauses its switch while two rails use a link.
    """
    hosts = list(made["endpoints"]["host"])
    texts, passes, steps = described(hosts), [], []
    for _pass in range(20):
        found = step(made, "host", Evidence(texts, {}, tuple(passes)))
        if found.done:
            return found, steps
        steps.append(found)
        users: Counter[tuple[str, ...]] = Counter()
        for name, own in found.lines.items():
            for line in own[:-1]:
                at, rail, role, *_rest = line.split()
                users[at, name, role] += rail in LINK["rails"]
        logs = {}
        for name, own in found.lines.items():
            frames = []
            for line in own[:-1]:
                at, rail, role, peer, *_rest = line.split()
                ends = (name, hosts[int(peer.rsplit(".", 1)[1]) - 1])
                client = ends[role != "client"]
                many = users[at, client, "client"] if rail in LINK["rails"] else 1
                reached = min(97.9, *(shared.get(end, 113.0) / many for end in ends)) if many > 1 else 97.9
                if rail == slow[1] and slow[0] in ends:
                    reached = min(reached, 50.0)
                text = "" if many > 1 and rail == failing else ROW % reached
                header = "seconds=2 ran=10 exchange=plain memory=host"
                if many > 1 and paused:
                    text = f"counters tx_pause_storm_events=+1\namounts tx_prio3_pause_duration=+{paused}\n{text}"
                frames.append(frame(line, int(not text), text, header))
            logs[name] = tester_logs.log(len(passes) + 1, own, frames)
        passes.append(Pass(logs, {}))
    raise AssertionError("the measurement does not end")


def rows(found: Step) -> list[dict[str, Any]]:
    own: list[dict[str, Any]] = found.schedule.get("shared_links", [])
    return own


def test_each_host_is_measured_once_over_its_link() -> None:
    found, steps = measured(plan(["h1", "h2", "h3"]), {})
    # Of three hosts one is left over in the first round.
    assert [(row["client"], row["server"], row["rails"]) for row in rows(found)] == [
        ("h1", "h2", ["rail0", "rail1"]),
        ("h3", "h1", ["rail0", "rail1"]),
    ]
    assert rows(found)[0] == {
        "client": "h1",
        "server": "h2",
        "rails": ["rail0", "rail1"],
        "test": "write_bw",
        "value": pytest.approx(113.0),
        "expected": pytest.approx(0.95 * 113.5, abs=0.5),
        "verdict": "pass",
        "text": "h1 to h2, rail0 and rail1 at the same time: 113.0 Gb/s together, 107.8 Gb/s expected (the PCIe x8"
        " 16 GT/s link of h1 at 0000:15:01.0 that they share)",
    }
    assert shared_links.texts(rows(found)) == [
        "rail0 and rail1 at the same time: 2 of 2 pairs of hosts reach what their shared PCIe link carries; the lowest"
        " has 113.0 Gb/s in total"
    ]
    assert found.summary["verdict"] == "pass" and not found.warnings
    assert (steps[-1].rounds, "rails that share a PCIe link, at once" in steps[-1].announce) == (2, True)
    # They are no other readings of the tests of the schedule.
    assert all(len(result["passes"]) == 1 for result in found.results)


def test_a_slow_link_is_a_warning_and_accuses_no_port() -> None:
    found, _steps = measured(plan(["h1", "h2", "h3", "h4"]), {"h4": 80.0})
    assert [(row["client"], row["verdict"]) for row in rows(found)] == [("h1", "pass"), ("h3", "fail")]
    assert found.summary["verdict"] == "pass"
    assert (found.summary["diagnoses"], found.unsteady, found.links) == ([], [], [])
    assert found.warnings == [
        "h3 to h4, rail0 and rail1 at the same time: 80 Gb/s together, 107.8 Gb/s expected (the PCIe x8 16 GT/s link of"
        " h3 at 0000:15:01.0 that they share). Check the PCIe links above these rails, and other devices that use them"
    ]


def test_a_slow_port_is_not_taken_for_its_link() -> None:
    found, _steps = measured(plan(["h1", "h2", "h3", "h4"]), {}, slow=("h2", "rail1"))
    assert [(row["client"], row["value"], row["verdict"]) for row in rows(found)] == [
        ("h1", pytest.approx(106.5), "no_data"),
        ("h3", pytest.approx(113.0), "pass"),
    ]
    assert rows(found)[0]["text"].endswith("that they share); h2 rail1 too slow alone as well")
    assert [(one["kind"], one["host"], one["rail"]) for one in found.summary["diagnoses"]] == [("port", "h2", "rail1")]
    assert not any("at the same time" in text for text in found.warnings)


def test_in_both_directions_a_slow_port_is_known_by_either_side() -> None:
    # All ports are too slow here; h3 is always the server, but for the rails at once.
    found, _steps = measured(plan(["h1", "h2", "h3"], directions="together"), {})
    assert [(row["client"], row["verdict"]) for row in rows(found)] == [("h1", "no_data"), ("h3", "no_data")]
    assert not any("at the same time" in text for text in found.warnings)


def test_what_ports_count_while_their_link_is_overloaded_is_no_finding() -> None:
    found, _steps = measured(plan(["h1", "h2"]), {}, paused=4_000_000)
    assert [row["verdict"] for row in rows(found)] == ["pass"]
    assert found.links == []


def test_a_missing_reading_is_no_data() -> None:
    found, _steps = measured(plan(["h1", "h2"]), {}, failing="rail1")
    assert [(row["value"], row["verdict"]) for row in rows(found)] == [(None, "no_data")]
    assert found.summary["verdict"] == "pass" and not found.warnings


@pytest.mark.parametrize("tests", [
    {"rails_at_once": True},
    {"rails_at_once": False},
    {"sharing": []},
    {"kinds": ["write_lat"]},
    {"mode": "incast", "fan": 2},
    {"only": {"hosts": ["h1"], "rails": [], "pairs": []}},
])  # fmt: skip
def test_where_it_is_not_measured(tests: dict[str, Any]) -> None:
    made = plan(["h1", "h2", "h3"], **tests)
    if tests.get("rails_at_once") is True:
        for rail in RAILS:
            for side in made["expectations"][rail].values():
                side["tolerance"] = 0.5
    assert rows(measured(made, {})[0]) == []
