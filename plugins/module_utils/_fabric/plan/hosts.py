# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of the group as the planner sees them: facts, own settings, and whether they answered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.errors import ConflictError, InputError
from ..._common.reader import MOST, and_more, raise_problems
from ..intent.host_settings import read_settings
from ..operator.machines import same_machine, shared
from .facts import read_facts


@dataclass(frozen=True)
class Host:
    """One host of the group.

    ``facts`` is what is used of those of ``rdma_facts``, None when this run does not know them; ``invalid`` what is
    wrong with those that it gave. ``limited`` says that the run is about this host; ``absent`` that it should have
    given valid facts and did not. ``qos``: its ``rail_links_qos``, unchecked.
    """

    name: str
    facts: Mapping[str, Any] | None
    limited: bool
    absent: bool
    number: int | None
    node_name: str | None
    rails: Mapping[str, str]
    invalid: str = ""
    qos: Any = None

    @property
    def ports(self) -> Sequence[Mapping[str, Any]]:
        """The ports of the facts; empty when there are none."""
        return self.facts["ports"] if self.facts else ()


def read_hosts(
    hosts: Mapping[str, Mapping[str, Any]],
    group: Sequence[str],
    limit: Collection[str],
    *,
    absent: Collection[str],
    absent_hosts: str,
) -> tuple[Host, ...]:
    """Return the hosts in the order of the whole group.

    ``hosts`` is name -> {facts, rdma_host, qos}; a host of ``limit`` without valid facts counts as absent, one outside
    of it does not. With ``absent_hosts`` "stop" an absent host is an InputError that lists all of them.
    """
    problems: list[str] = []
    found = []
    for name in group:
        entry = hosts.get(name) or {}
        facts = read_facts(entry.get("facts"))
        limited = name in limit
        missing = name in absent or (limited and facts[0] is None)
        found.append(_host(name, facts, limited, absent=missing, entry=entry, problems=problems))
    raise_problems(problems)
    _check_answers(found, absent_hosts)
    _check_machine_ids(found)
    return tuple(found)


def _host(
    name: str, facts: tuple[Any, str], limited: bool, *, absent: bool, entry: Mapping[str, Any], problems: list[str]
) -> Host:
    own = read_settings(name, entry.get("rdma_host"), problems)
    return Host(
        name=name,
        facts=facts[0],
        invalid=facts[1],
        limited=limited,
        absent=absent,
        number=own.number,
        node_name=own.node_name,
        rails=own.rails,
        qos=entry.get("qos"),
    )


def _check_answers(hosts: Sequence[Host], absent_hosts: str) -> None:
    silent = [host.name for host in hosts if host.absent and not host.invalid]
    invalid = [f"{host.name}: {host.invalid}" for host in hosts if host.absent and host.invalid]
    found = []
    if silent:
        listed = ", ".join(silent)
        found.append(f"{len(silent)} of the hosts returned no facts (unreachable, or rdma_facts did not run): {listed}")
    if invalid:
        listed = "; ".join(invalid[:MOST]) + and_more(invalid)
        found.append(f"{len(invalid)} of the hosts returned invalid facts ({listed})")
    if found and absent_hosts == "stop":
        raise InputError(
            f"{'. '.join(found)}. "
            "Repair them, take them out of the group, or set rdma_fabric.absent_hosts: report to measure the others "
            "and report these as no_data"
        )
    if not any(host.facts and host.limited and not host.absent for host in hosts):
        raise InputError(
            f"no host in this run returned valid facts, so nothing can be planned: {'. '.join(found)}. "
            "Check that the hosts are reachable and that rdma_facts runs on them"
        )


def _check_machine_ids(hosts: Iterable[Host]) -> None:
    owners: dict[str, list[str]] = {}
    for host in hosts:
        if host.facts and host.facts.get("machine_id"):
            owners.setdefault(host.facts["machine_id"], []).append(host.name)
    shared = [f"{' and '.join(names)} ({key})" for key, names in owners.items() if len(names) > 1]
    if shared:
        raise ConflictError(
            f"hosts with the same machine id (cloned images, or one machine listed twice): {'; '.join(shared)}. Give "
            "each its own /etc/machine-id with systemd-machine-id-setup"
        )


def match_nodes(hosts: Sequence[Host], nodes: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    """Return host name -> name of its Node, by ``rdma_host.node_name`` or else by machine id.

    ``nodes`` are those of ``cluster_info``: {name, machine_id}. Without nodes only ``node_name`` counts.
    Two Nodes for one host, or one Node for two hosts, are a ConflictError.
    """
    same = same_machine(
        {host.name: (host.facts or {}).get("machine_id") or "" for host in hosts},
        ((node["name"], node.get("machine_id") or "") for node in nodes),
    )
    matches = {host.name: host.node_name or next(iter(same[host.name]), None) for host in hosts}
    problems = [
        f"{host.name} is the Nodes {' and '.join(same[host.name])}"
        for host in hosts
        if len(same[host.name]) > 1 and host.node_name not in same[host.name]
    ]
    problems += [f"the Node {node} is the hosts {' and '.join(own)}" for node, own in shared(matches).items()]
    if problems:
        raise ConflictError(
            f"hosts and Nodes do not match one to one: {'; '.join(problems)}. Delete the stale Node, or set "
            "rdma_host.node_name"
        )
    return matches
