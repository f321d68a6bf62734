"""Part of `make bench`: preparing the hosts of the lab, against a plain role with one task a setting, and pings.

The plain role is in tests/bench/plain. It needs no facts, detects no conflict and can take nothing back. Its files have
names of their own that come after ours, so both can be on a host; for want of a way back the lab is reset at the end.

`main()` first shows that both do the same: after each of them alone, on hosts that were reset, rails, soft-RoCE
devices, kernel modules and ARP rules are the same. Then, with both on the hosts, they run in turns, and may change
nothing.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from tests.bench import Row
from tests.scenario import HOSTS, Run, extra, host, lab, playbook
from tests.scenario.state import link_state

PLAIN = "tests/bench/plain/playbook.yml"
TURNS = 3
LIMIT = 14
ARP_RULES = ("arp_announce", "arp_ignore", "rp_filter")
RDMA_MODULES = {"ib_umad", "ib_uverbs", "rdma_rxe", "rdma_ucm"}


class Turn(NamedTuple):
    """One run of each; the pings are as many as prepare has module executions."""

    ours: Run
    plain: Run
    pings: Run


def main() -> list[Row]:
    lab("up")
    try:
        lab("reset")
        playbook("prepare").must()
        wanted, settings = of_all_hosts()
        lab("reset")
        playbook(PLAIN, *settings).must()
        compare(wanted, of_all_hosts()[0])
        playbook("prepare").must()
        turns = [turn(settings) for _number in range(TURNS)]
    finally:
        lab("reset")
    return rows(turns)


def turn(settings: tuple[str, str]) -> Turn:
    ours = converged("prepare")
    return Turn(ours, converged(PLAIN, *settings), pings(ours.executions(HOSTS)))


def converged(name: str, *args: str) -> Run:
    run = playbook(name, *args).must()
    if run.changed:
        raise SystemExit(f"bench: {name} on converged hosts should change nothing; it changed {run.changed}")
    return run


def rows(turns: list[Turn]) -> list[Row]:
    """Return the medians of the turns, and ratios of them."""
    ours, plain, ping = (median(run.seconds for run in runs) for runs in zip(*turns))
    executions = [max(run.executions(HOSTS) for run in runs) for runs in zip(*turns)]
    name = "converged prepare on the lab"
    return [
        (f"{name}: module executions a host", executions[0], "", LIMIT),
        (f"{name}: wall time, median of {len(turns)}", ours, "s", None),
        ("plain role, same settings: module executions a host", executions[1], "", None),
        (f"plain role, same settings: wall time, median of {len(turns)}", plain, "s", None),
        ("prepare / plain role, wall time", ours / plain, "", None),
        (f"{executions[2]} pings a host: wall time, median of {len(turns)}", ping, "s", None),
        ("prepare / pings, wall time", ours / ping, "", None),
    ]


def pings(count: int) -> Run:
    """What as many module executions cost that do nothing."""
    tasks = [{"name": f"Ping {number}", "ansible.builtin.ping": {}} for number in range(count)]
    play = [{"name": "Ping", "hosts": "rdma_hosts", "gather_facts": False, "become": True, "tasks": tasks}]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump(play, file)
        file.flush()
        return converged(file.name)


def of_all_hosts() -> tuple[dict[str, Any], tuple[str, str]]:
    """Return what each host runs with, and the settings that the plain role takes to come to the same."""
    links = {name: rail_links(name) for name in HOSTS}
    settings = {name: [setting(name, link) for link in links[name]] for name in HOSTS}
    return {name: running(name, links[name]) for name in HOSTS}, extra(plain_hosts=settings)


def rail_links(name: str) -> list[dict[str, Any]]:
    """Return what `ip` says of the rails of a host."""
    found = json.loads(host(name).check_output("ip -json address show"))
    return [link for link in found if re.fullmatch(r"rail\d+", link["ifname"])]


def setting(name: str, link: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rail as the plain role takes it."""
    folder = f"/sys/class/net/{link['ifname']}/device"
    pci, driver = (host(name).check_output(f"readlink -f {path}") for path in (folder, f"{folder}/driver"))
    (address,) = link_state(dict(link))["addresses"]
    last = {"pci": pci.rpartition("/")[2], "driver": driver.rpartition("/")[2]}
    return {"netdev": link["ifname"], "mtu": link["mtu"], "address": address, **last}


def running(name: str, links: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a host runs with, of all that prepare sets on the lab."""
    machine = host(name)
    files = [f"/proc/sys/net/ipv4/conf/rail*/{rule}" for rule in ARP_RULES]
    rules = machine.check_output(f"grep . {' '.join(files)}")
    loaded = {line.split()[0] for line in machine.check_output("cat /proc/modules").splitlines()}
    return {
        "rails": {link["address"]: link_state(link) for link in links},
        "rdma": sorted(machine.check_output("rdma link show").split("\n")),
        "rules": sorted(rules.splitlines()),
        "modules": sorted(loaded & RDMA_MODULES),
    }


def compare(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Stop when the plain role did not do the same as prepare: a ratio to it would say nothing."""
    different = [
        f"{name}: {key} is {found[name][key]}, after prepare {value}"
        for name, state in wanted.items()
        for key, value in state.items()
        if found[name][key] != value
    ]
    if different:
        raise SystemExit(f"bench: the plain role does not do what prepare does; {'; '.join(different)}")
