# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recording as the world of the stand-in operator, in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.lab.chart.files.standin import components, reconcile

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "operator" / "v26.7.0-rc.2"
SETTINGS = components.Settings("nvidia-network-operator")


def read(name: str) -> list[dict[str, Any]]:
    """The lines of a recording."""
    return [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines()]


def merged(target: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        found[key] = merged(found.get(key), value)
    return {key: value for key, value in found.items() if value is not None}


class Replay:
    """Plays what users and stock controllers did; the model does what the operator did."""

    def __init__(self, name: str) -> None:
        self.events = read(name)
        self.now = 0.0
        self.dirty = False
        self.policies: dict[str, dict[str, Any]] = {}
        self.daemon_sets: dict[str, dict[str, Any]] = {}
        self.generations: dict[str, int] = {}
        self.made: dict[tuple[str, str], dict[str, Any]] = {}
        #: (time, policy, status) of each status that the model wrote.
        self.written: list[tuple[float, str, dict[str, Any]]] = []
        #: (time, verb, kind, name) of what the model did to children.
        self.done: list[tuple[float, str, str, str]] = []

    def run(self) -> Replay:
        """To the end of the recording: walk whenever something happened."""
        while self.events:
            self.dirty = self.dirty or self._tick()
            while self.dirty:
                self.dirty = False
                for policy in list(self.policies.values()):
                    self._walk(policy)
        return self

    def _tick(self) -> bool:
        if self.events:
            self.pause(max(0.0, self.events[0]["t"] - self.now))
        return self.dirty

    def _walk(self, policy: dict[str, Any]) -> None:
        name = policy["metadata"]["name"]
        status = reconcile.walk(json.loads(json.dumps(policy)), self, SETTINGS)
        if self.policies.get(name) is policy and policy.get("status") != status:
            policy["status"] = status
            self.written.append((self.now, name, status))
            self.dirty = True

    def _play(self, event: dict[str, Any]) -> None:
        kind, what = event.get("kind"), event["event"]
        if kind == "DaemonSet":
            self.dirty = True
            if what == "DELETED":
                self.daemon_sets.pop(event["name"], None)
            else:
                self.daemon_sets[event["name"]] = event["status"]
                self.generations[event["name"]] = event["generation"]
        elif what == "STEP" and " NicClusterPolicy/" in event["do"] and "http" in event:
            self._step(event)

    def _step(self, event: dict[str, Any]) -> None:
        verb, target = event["do"].split()[:2]
        name = target.split("/")[1]
        if verb == "create":
            self.policies[name] = merged(event["object"], {"metadata": {"generation": 1, "uid": "1"}})
        elif verb == "patch" and name in self.policies:
            self.policies[name]["spec"] = merged(self.policies[name], event["patch"])["spec"]
            self.policies[name]["metadata"]["generation"] = event["generation_after"]
        elif verb == "delete":
            self.policies.pop(name, None)
            self.made.clear()
        self.dirty = True

    def pause(self, seconds: float) -> None:
        end = self.now + seconds
        while self.events and self.events[0]["t"] <= end + 1e-9:
            self.now = max(self.now, self.events[0]["t"])
            self._play(self.events.pop(0))
        self.now = end

    def stamp(self) -> str:
        return f"{self.now:.2f}"

    def nodes(self) -> list[dict[str, Any]]:
        return []

    def apply(self, wanted: dict[str, Any]) -> str:
        key = (wanted["kind"], wanted["metadata"]["name"])
        before = self.made.get(key)
        if before != wanted:
            self.done.append((self.now, "change" if before else "create", *key))
        self.made[key] = wanted
        if before and before != wanted:
            self._until_changed(wanted["metadata"]["name"])
        return ""

    def _until_changed(self, name: str) -> None:
        """A change takes effect when it did in the recording, whose counts would otherwise be old ones."""
        generation = self.generations.get(name)
        for event in self.events:
            if event.get("name") == name and event.get("kind") == "DaemonSet":
                if event["t"] - self.now < 1.0 and event["generation"] != generation:
                    self.pause(event["t"] - self.now)
                return

    def owned(self, state: str, policy: dict[str, Any]) -> list[tuple[str, str]]:
        label = components.STATE_LABEL
        return [key for key, one in self.made.items() if one["metadata"]["labels"][label] == state]

    def delete(self, reference: tuple[str, str]) -> None:
        self.done.append((self.now, "delete", *reference))
        self.made.pop(reference)

    def daemon_set(self, name: str) -> dict[str, Any] | None:
        return self.daemon_sets.get(name)
