# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two commands by which a person can repeat what a blame rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .lines import perftest_args
from .schedule import Test, subject
from .state import State, gpu_of

Result = Mapping[str, Any]


def commands(state: State, blame: Mapping[str, Any], results: Sequence[Result]) -> list[str]:
    """Return the server's and the client's command for one failed test of a blame; [] when a side is not known.

    ``blame``: an item of report.json ``blames[]``. The commands are those of the testers, with their GID index, CPUs
    and options.
    """
    failed = next((result for result in results if result["verdict"] != "pass" and _covers(blame, result)), None)
    if failed is None:
        return []
    test = subject(failed)
    server = _side(state, test.server, test.server_rail)
    client = _side(state, test.client, test.rail)
    if not server or not client:
        return []
    return [
        _command(state, test, test.server, test.server_rail, server),
        f"{_command(state, test, test.client, test.rail, client)} {server['address']}",
    ]


def _covers(blame: Mapping[str, Any], result: Result) -> bool:
    """Return whether a result is one of those that a blame is about."""
    names = (result["client"], result["server"])
    if blame["rail"] not in (None, result["rail"]) or result["where"] != blame["where"]:
        return False
    if any(blame[key] is not None and blame[key] not in names for key in ("host", "peer")):
        return False
    sender = result["server" if result["test"].startswith("read") else "client"]
    return blame["direction"] is None or (sender == blame["host"]) == (blame["direction"] == "send")


def _side(state: State, name: str, rail: str) -> Mapping[str, str]:
    endpoint = state.endpoints.get(name)
    found = endpoint.rails.get(rail, {}) if endpoint else {}
    return found if {"device", "port", "gid", "address"} <= set(found) else {}


def _command(state: State, test: Test, name: str, rail: str, side: Mapping[str, str]) -> str:
    gpu = (gpu_of(state, test, name, rail) or {}).get("bdf", "")
    cpus = side.get("cpus", "-")
    words = [f"ssh {name}" if state.where == "host" else f"in a pod on {name}:"]
    words += [f"taskset -c {cpus}"] if cpus != "-" else []
    words += [f"ib_{test.kind} -d {side['device']} -i {side['port']} -x {side['gid']}"]
    # A port that no run uses.
    words += [f"-p {int(state.tests['port_base']) - 1}", perftest_args(state.tests, test.kind, test.size, gpu)]
    return " ".join(words)
