# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two commands that reproduce a failure on which a diagnosis rests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from ...intent.kinds import KINDS
from ..readings.ib_port import is_ib
from ..schedule.schedule import Measurement, subject
from ..schedule.tester_input import perftest_args
from .meeting import addresses, bare
from .paths import option_again
from .session import State, gpu_of
from .ways import options_of

Result = Mapping[str, Any]


def commands(state: State, diagnosis: Mapping[str, Any], results: Sequence[Result]) -> list[str]:
    """Return the server's and the client's command for one failed test of a diagnosis; [] when a side is not known.

    ``diagnosis``: an item of report.json ``diagnoses[]``. The commands are those of the testers, with their GID
    index, CPUs and options.
    """
    if diagnosis["kind"] in ("overload", "tester"):
        # Nothing failed that could be repeated.
        return []
    failed = next((result for result in results if result["verdict"] != "pass" and covers(diagnosis, result)), None)
    if failed is None:
        return []
    test = subject(failed)
    server = _side(state, test.server, test.server_rail)
    client = _side(state, test.client, test.rail)
    if not server or not client:
        return []
    return [
        _command(state, test, "server", side=server, path=option_again(state, test, failed, role="server")),
        f"{_command(state, test, 'client', side=client, path=option_again(state, test, failed, role='client'))}"
        f" {quote(_address(state, test, server))}",
    ]


def covers(diagnosis: Mapping[str, Any], result: Result) -> bool:
    """Return whether a result is one of those that a diagnosis is about."""
    test = subject(result)
    client, server = (test.client, test.rail), (test.server, test.server_rail)
    if result["where"] != diagnosis["where"] or (diagnosis["kind"] == "routing" and not test.peer_rail):
        return False
    sent = list(KINDS[test.kind].ways(client, server))
    received = [way[::-1] for way in sent]
    ways = {"send": sent, "receive": received}.get(diagnosis["direction"] or "", [*sent, *received])
    peer_rail = diagnosis.get("peer_rail") or (diagnosis["rail"] if diagnosis["kind"] == "pair" else None)
    return any(
        _is_at(diagnosis["host"], diagnosis["rail"], a) and _is_at(diagnosis["peer"], peer_rail, b) for a, b in ways
    )


def _is_at(host: str | None, rail: str | None, end: tuple[str, str]) -> bool:
    return host in (None, end[0]) and rail in (None, end[1])


def _side(state: State, name: str, rail: str) -> Mapping[str, str]:
    endpoint = state.endpoints.get(name)
    found = endpoint.rails.get(rail, {}) if endpoint else {}
    return found if {"device", "port", "gid", "address"} <= set(found) else {}


def _address(state: State, test: Measurement, server: Mapping[str, str]) -> str:
    """Return where the client reaches the server; a port may have no address of its own."""
    ends = {(test.client, test.rail), (test.server, test.server_rail)}
    return addresses(state, test)[1] if ends & set(bare(state)) else server["address"]


def _command(state: State, test: Measurement, role: str, *, side: Mapping[str, str], path: str) -> str:
    name, rail = (test.client, test.rail) if role == "client" else (test.server, test.server_rail)
    gpu = (gpu_of(state, test, name, rail=rail) or {}).get("bdf", "")
    cpus = side.get("cpus", "-")
    words = [f"ssh {quote(name)}" if state.where == "host" else f"in a pod on {name}:"]
    words += [f"taskset -c {quote(cpus)}"] if cpus != "-" else []
    words += [f"{KINDS[test.kind].program} -d {quote(side['device'])} -i {quote(side['port'])}"]
    words += [*([] if is_ib(side) else [f"-x {quote(side['gid'])}"]), options_of(state, test, role)]
    # A port that no run uses.
    args = perftest_args(state.tests, test.kind, test.size, gpu=gpu, rail=test.rail)
    words += [f"-p {int(state.tests['port_base']) - 1}", args, path]
    return " ".join(word for word in words if word)
