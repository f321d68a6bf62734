# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `status` tells about the lab."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.lab import lab, process, ssh, state, switch
from tests.lab.errors import LabError
from tests.lab.settings import HOSTS, RAILS, SSH_PORT, address, number, pci_address

#: A busy emulated host takes its time.
_ANSWER_SECONDS = 30
_RAIL_SCRIPT = "cd /sys/bus/pci/devices && for rail in {places}; do for nic in $rail/net/*; do " + (
    'echo "${{nic##*/}} $(cat $nic/operstate)"; done; done'
)


def collect() -> dict[str, Any]:
    """The whole status: up, hosts (process, ssh, rails), faults, cluster.

    `up` is true when the lab came up completely and every host answers, but for those dead on purpose.
    """
    current = state.load()
    alive = process.running()
    with ThreadPoolExecutor(len(HOSTS)) as pool:
        found = list(pool.map(lambda host: _host(host, alive.get(host)), HOSTS))
    dead = {fault.host for fault in current.faults if fault.kind == "dead"} if current else set()
    missing = [host["name"] for host in found if not host["ssh"] and host["name"] not in dead]
    return {
        "up": current is not None and switch.NAME in alive and not missing,
        "hosts": found,
        "switch": {"pid": alive.get(switch.NAME), "ports": _ports(alive)},
        "faults": [str(fault) for fault in current.faults] if current else [],
        "cluster": lab.cluster_status(),
    }


def lines(found: dict[str, Any]) -> list[str]:
    """The status for a human."""
    hosts = [_host_line(host) for host in found["hosts"]]
    fabric = found["switch"]
    cables = f"{len(fabric['ports'])} of {RAILS * len(HOSTS)} ports connected"
    ends = f"switch     process {fabric['pid']}, {cables}" if fabric["pid"] else "switch     stopped"
    faults = [f"fault      {fault}" for fault in found["faults"]] or ["faults     none"]
    verdict = "the lab is up" if found["up"] else "the lab is not up (python3 -m tests.lab up)"
    return [*hosts, ends, *faults, *[f"cluster    {line}" for line in found["cluster"]], verdict]


def _host(host: str, pid: int | None) -> dict[str, Any]:
    rails = _rails(host) if pid else None
    return {
        "name": host,
        "number": number(host),
        "address": f"{address(host)}:{SSH_PORT}",
        "pid": pid,
        "ssh": rails is not None,
        "rails": rails or [],
    }


def _rails(host: str) -> list[dict[str, str]] | None:
    """Name and state of each rail's NIC as the host sees it; None when it does not answer."""
    script = _RAIL_SCRIPT.format(places=" ".join(map(pci_address, range(RAILS))))
    try:
        said = ssh.run(host, ["sh", "-c", script], timeout=_ANSWER_SECONDS)
    except LabError:
        return None
    words = [line.split() for line in said.splitlines()]
    return [{"name": name, "state": link} for name, link in words]


def _ports(alive: dict[str, int]) -> list[tuple[int, int]]:
    return switch.connected() if switch.NAME in alive else []


def _host_line(host: dict[str, Any]) -> str:
    if host["pid"] is None:
        return f"{host['name']:<10} stopped"
    answer = "ssh" if host["ssh"] else "no ssh"
    rails = ", ".join(f"{rail['name']} {rail['state']}" for rail in host["rails"])
    return f"{host['name']:<10} process {host['pid']}, {host['address']} {answer}; {rails}"
