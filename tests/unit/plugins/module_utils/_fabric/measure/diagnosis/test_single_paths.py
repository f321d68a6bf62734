"""What readings of single paths show. Milliseconds."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.single_paths import (
    added,
    concerns,
    tell,
)

HOMES = {"h1": "leaf1", "h2": "leaf2", "h3": "leaf1"}
BAD = (
    "h1 to h2 rail0 write_bw: each reading with flow label 7 is low, none with flow labels 8, 9, 10, 11 and 12: one of"
    " several paths between them is bad. Look up on the switches which path packets with the UDP source port 49159 take"
)


def result(paths: dict[int, str], key: str = "flow_labels", **change: Any) -> dict[str, Any]:
    """A test whose readings by path are letters: p of a pass, f of a low one, n of none."""
    verdicts = {"p": "pass", "f": "fail", "n": "no_data"}
    rows = [
        {"verdict": verdicts[letter], key: [path] if key == "flow_labels" else path}
        for path, letters in paths.items()
        for letter in letters
    ]
    same = {"where": "host", "rail": "rail0", "client": "h1", "server": "h2", "test": "write_bw"}
    return {**same, "paths": rows, **change}


def six(first: str, second: str = "ppp", **change: Any) -> dict[str, Any]:
    return result({7: first, 8: second, **{path: "ppp" for path in range(9, 13)}}, **change)


@pytest.mark.parametrize(("readings", "is_path", "text"), [
    (six("fff"), True, BAD),
    (six("ffn"), True, BAD),
    (six("fff", "fff"), True,
     BAD.replace("label 7 is", "labels 7 and 8 is").replace("labels 8, 9, ", "labels 9, ")),
    (six("ppp"), False, "h1 to h2 rail0 write_bw: none of 18 readings on 6 single paths is low"),
    # What comes and goes by time.
    (six("ffp"), False,
     "h1 to h2 rail0 write_bw: 2 of 18 readings on 6 single paths are low, not always on the same path"),
    (six("fff", "fpp"), False,
     "h1 to h2 rail0 write_bw: 4 of 18 readings on 6 single paths are low, not always on the same path"),
    (result({path: "fff" for path in range(6)}), False,
     "h1 to h2 rail0 write_bw: low on each of 6 single paths, so it is not one of several paths"),
    # One reading of each path shows what is the same on all; where they differ, it shows nothing.
    (result({path: "p" for path in range(6)}), False,
     "h1 to h2 rail0 write_bw: none of 6 readings on 6 single paths is low"),
    (result({path: "f" for path in range(6)}), False,
     "h1 to h2 rail0 write_bw: low on each of 6 single paths, so it is not one of several paths"),
    (result({path: "p" if path else "f" for path in range(6)}), False, ""),
    (six("fnn"), False, ""),
    # Of a test that found its peer another way no path is known.
    ({**six("fff"), "paths": [{"verdict": "fail"}, *six("fff")["paths"], {"verdict": "pass"}]}, True, BAD),
    ({**six("fff"), "paths": [{"verdict": "fail"}, {"verdict": "pass"}]}, False, ""),
    (result({1: "fff"}), False, ""),
    (result({1: "nnn"}), False, ""),
    (result({}), False, ""),
    # Of two paths chance puts three low readings on one of them in a tenth of runs.
    (result({0: "fff", 1: "ppp"}, "lid_offset"), False,
     "h1 to h2 rail0 write_bw: 3 of 6 readings on 2 single paths are low, not always on the same path"),
    (result({0: "p" * 9, 1: "f" * 9}, "lid_offset"), True,
     "h1 to h2 rail0 write_bw: each reading with LID offset 1 is low, none with LID offset 0: one of several paths"
     " between them is bad. Trace the route to the LID of the server plus 1 (ibtracert)"),
])  # fmt: skip
def test_tell(readings: dict[str, Any], is_path: bool, text: str) -> None:
    assert tell(readings) == (is_path, text)


@pytest.mark.parametrize(("finding", "expected"), [
    ({"kind": "pair", "host": "h2", "peer": "h1"}, True),
    ({"kind": "pair", "host": "h2", "peer": "h3"}, False),
    ({"kind": "port", "host": "h2"}, True),
    ({"kind": "port", "host": "h3"}, False),
    ({"kind": "paths"}, True),
    ({"kind": "paths", "rail": "rail1"}, False),
    ({"kind": "paths", "where": "pod"}, False),
    ({"kind": "groups", "group": "leaf1", "peer_group": "leaf2"}, True),
    ({"kind": "groups", "group": "leaf1", "peer_group": "leaf3"}, False),
    ({"kind": "uplinks", "group": "leaf2"}, True),
    ({"kind": "uplinks", "group": "leaf3"}, False),
    ({"kind": "rail", "rail": None}, True),
])  # fmt: skip
def test_concerns(finding: dict[str, Any], expected: bool) -> None:
    assert concerns({"where": "host", "rail": "rail0", **finding}, six("fff"), HOMES) is expected


def test_pairs_inside_a_group_show_nothing_of_paths_between_groups() -> None:
    inside = six("fff", server="h3")
    assert not concerns({"where": "host", "rail": "rail0", "kind": "paths"}, inside, HOMES)
    assert concerns({"where": "host", "rail": "rail0", "kind": "group", "group": "leaf1"}, inside, HOMES)


@pytest.mark.parametrize(("kind", "text"), [("pair", f"slow. {BAD}"), ("port", "slow")])
def test_a_path_is_told_and_a_port_stays_a_port(kind: str, text: str) -> None:
    finding = {"where": "host", "rail": "rail0", "kind": kind, "host": "h1", "text": "slow", "evidence": ["seen"]}
    found = added([finding], [six("fff")], HOMES)
    assert found == [{**finding, "text": text, "evidence": ["seen", BAD]}]
    # Other paths of it add evidence alone.
    assert added([finding], [six("ppp")], HOMES)[0]["text"] == "slow"
    assert added([finding], [{**six("ppp"), "paths": []}], HOMES) == [finding]
