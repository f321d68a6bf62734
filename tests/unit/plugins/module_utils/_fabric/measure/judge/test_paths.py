"""The paths that tests take, and what the report records of them. Milliseconds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support import tester_logs
from tests.unit.support.tester_logs import ROW, frame

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step, step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass

HOSTS = ["gpu-1", "gpu-2"]


def described(name: str, labels: str, more: str = 'gid_type="RoCE v2"') -> str:
    port = f"rail0 device=mlx5_0 port=1 netdev=rail0 gid=3 address=10.0.0.{name[-1]} {more}"
    return tester_logs.described([port], f"perftest=6.24 control=192.0.2.{name[-1]}{labels and f' labels={labels}'}")


def first(*labels: str, **tests: Any) -> Step:
    texts = {name: described(name, own) for name, own in zip(HOSTS, labels)}
    return step(tester_logs.plan(HOSTS, ["rail0"], **tests), "host", Evidence(texts, {}))


def options(found: Step, name: str = "gpu-1") -> list[list[str]]:
    """The options for the path in each line of a host."""
    return [[word for word in line.split() if "flow" in word or "dlid" in word] for line in found.lines[name][:-1]]


@pytest.mark.parametrize(("labels", "tests", "count"), [
    (("list", "list"), {}, 4),
    (("list", "list"), {"queue_pairs": 1}, 1),
    (("list", "list"), {"kinds": ["write_lat"]}, 1),
    # One label would put four queue pairs on one path.
    (("one", "one"), {}, 0),
    (("one", "list"), {"queue_pairs": 1}, 1),
    (("one", "list"), {}, 0),
    (("list", "none"), {}, 0),
    (("list", ""), {}, 0),
    (("list", "list"), {"rdma_cm": True}, 0),
    (("list", "list"), {"load_balancing": "adaptive"}, 0),
])  # fmt: skip
def test_labels_of_a_test(labels: tuple[str, str], tests: dict[str, Any], count: int) -> None:
    found = first(*labels, **tests)
    for one, other in zip(options(found), options(found, "gpu-2")):
        # Each end sets the label of what it sends.
        assert one == other
        assert len(one) == bool(count)
        if count:
            words = one[0].partition("=")
            assert words[0] == "--flow_label"
            numbers = [int(label) for label in words[2].split(",")]
            assert len(set(numbers)) == len(numbers) == count and 1 <= min(numbers) <= max(numbers) <= 16383


def played(found: Step, number: int, value: str) -> Pass:
    def log(name: str) -> str:
        own = found.lines[name]
        header = "seconds=2 exchange=plain memory=host"
        return tester_logs.log(number, own, [frame(line, 0, ROW % value, header) for line in own[:-1]])

    return Pass({name: log(name) for name in HOSTS}, {})


def test_each_reading_has_the_labels_of_its_lines_and_repeats_have_others() -> None:
    made = tester_logs.plan(HOSTS, ["rail0"], repeats=2)
    evidence = Evidence({name: described(name, "list") for name in HOSTS}, {})
    found = step(made, "host", evidence)
    asked = {tuple(word.partition("=")[2] for word in words) for words in options(found)}
    # Two repeats in both directions.
    assert len(asked) == 4
    done = step(made, "host", Evidence(evidence.describe, {}, (played(found, 1, "97.9"),)))
    rows = [row for result in done.results for row in result["passes"]]
    assert {(",".join(map(str, row["flow_labels"])),) for row in rows} == asked


def test_a_failure_is_reproduced_on_its_paths() -> None:
    made = tester_logs.plan(HOSTS, ["rail0"], isolation=0, retries=0)
    evidence = Evidence({name: described(name, "list") for name in HOSTS}, {})
    found = step(made, "host", evidence)
    done = step(made, "host", Evidence(evidence.describe, {}, (played(found, 1, "50"),)))
    commands = done.summary["diagnoses"][0]["reproduce"]
    assert len(commands) == 2 and all(options(found)[0][0] in command for command in commands)


@pytest.mark.parametrize(("one", "other", "lids"), [
    ("lid=0x10 lmc=2", "lid=0x20 lmc=2", (16, 32, 4)),
    ("lid=0x10 lmc=2", "lid=0x20 lmc=1", (16, 32, 2)),
    ("lid=0x10 lmc=0", "lid=0x20 lmc=0", None),
    ("lid=0x10", "lid=0x20", None),
    # Packets with a GRH may have to leave the subnet.
    ("lid=0x10 lmc=2 vf=yes", "lid=0x20 lmc=2 vf=no", None),
    ("lid=- lmc=2", "lid=0x20 lmc=2", None),
])  # fmt: skip
def test_lids_of_infiniband(one: str, other: str, lids: tuple[int, int, int] | None) -> None:
    ports = {"gpu-1": one, "gpu-2": other}
    texts = {name: described(name, "list", f"gid_type=IB {port}") for name, port in ports.items()}
    asked = []
    for seed in range(16):
        made = tester_logs.plan(HOSTS, ["rail0"], seed=seed)
        made["rails"][0]["link_layer"] = "infiniband"
        found = step(made, "host", Evidence(texts, {}))
        asked += list(zip(options(found), options(found, "gpu-2")))
    if lids is None:
        assert asked == [([], [])] * 32
        return
    own, peer, count = lids
    offsets = []
    for words, others in asked:
        # Both ends use the same offset, each to the LID of its peer.
        offsets.append(int(words[0].partition("=")[2]) - peer)
        assert others == [f"--dlid={own + offsets[-1]}"]
    assert set(offsets) == set(range(count))
