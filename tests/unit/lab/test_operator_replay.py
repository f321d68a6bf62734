# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in operator must do what the recorded operator did, when it did it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.lab.operator_replay import Replay, read

#: Seconds by which a change may come earlier or later than in the recording.
TOLERANCE = 1.3
NAMES = [
    "a-minimal-policy",
    "c-wrong-name-and-empty-spec",
    "e-updates-and-generation",
    "j3-slow-controller-manager",
    "k-nvipam-removal",
]
Written = list[tuple[float, str, dict[str, Any]]]
Track = list[tuple[float, Any]]


def recorded(name: str) -> Written:
    lines = [one for one in read(name) if one.get("kind") == "NicClusterPolicy"]
    statuses = [(one["t"], one["name"], one["status"]) for one in lines if one["event"] == "MODIFIED"]
    return [one for one in statuses if one[2] != "(absent)"]


def facets(policy: str, status: dict[str, Any]) -> dict[str, Any]:
    """What a status says, part by part, without its times."""
    said = {f"{policy} state": status["state"], f"{policy} reason": status.get("reason")}
    for one in status.get("appliedStates", []):
        said[f"{policy} {one['name']}"] = (one["state"], one.get("message"))
    for one in status.get("conditions", []):
        what = (one["status"], one["reason"], one["observedGeneration"], one["message"])
        said[f"{policy} condition {one['type']}"] = what
    return said


def tracks(written: Written) -> dict[str, Track]:
    """{facet: [(time, value)] of its changes}; a part that is gone has the value None."""
    found: dict[str, Track] = {}
    for time, policy, status in written:
        said = facets(policy, status)
        for facet in [one for one in found if one.startswith(f"{policy} ")] + list(said):
            track, value = found.setdefault(facet, []), said.get(facet)
            if not track or track[-1][1] != value:
                track.append((time, value))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_part_of_the_status_follows_the_recording(name: str) -> None:
    model, real = tracks(Replay(name).run().written), tracks(recorded(name))
    assert {key: [value for _, value in track] for key, track in model.items()} == {
        key: [value for _, value in track] for key, track in real.items()
    }
    late = [
        (key, ours, theirs)
        for key, track in real.items()
        for ours, theirs in zip(model[key], track)
        if abs(ours[0] - theirs[0]) > TOLERANCE
    ]
    assert late == []


@pytest.mark.parametrize("name", NAMES)
def test_order_of_states_and_conditions_is_the_recorded_one(name: str) -> None:
    model, real = Replay(name).run().written[-1][2], recorded(name)[-1][2]
    for part, key in (("appliedStates", "name"), ("conditions", "type")):
        assert [one[key] for one in model[part]] == [one[key] for one in real[part]]


@pytest.mark.parametrize("name", NAMES)
def test_daemon_sets_are_made_changed_and_deleted_as_recorded(name: str) -> None:
    real: list[tuple[float, str, str]] = []
    generation: dict[str, int] = {}
    for line in read(name):
        if line.get("kind") != "DaemonSet" or line["event"] == "INITIAL":
            continue
        if line["event"] == "ADDED":
            real.append((line["t"], "create", line["name"]))
        elif line["event"] == "MODIFIED" and line["generation"] != generation[line["name"]]:
            real.append((line["t"], "change", line["name"]))
        generation[line["name"]] = line["generation"]
    done = [one for one in Replay(name).run().done if one[2] == "DaemonSet" and one[1] != "delete"]
    assert [(verb, child) for _, verb, _, child in done] == [one[1:] for one in real]
    assert all(abs(ours[0] - theirs[0]) < TOLERANCE for ours, theirs in zip(done, real))


def test_a_late_status_is_absent_and_then_old() -> None:
    replay = Replay("e-updates-and-generation").run()
    created, changed = 0.16, 14.92
    times = [time for time, _, _ in replay.written]
    assert 0.5 < min(times) - created < 1.4
    assert 0.5 < min(time for time in times if time > changed) - changed < 1.3
