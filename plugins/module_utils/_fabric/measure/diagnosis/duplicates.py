# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of rails that two hosts have, and addresses that the plan does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..readings.tester_log import Endpoint
from .wording import CONFIRMED, Diagnosis

Result = Mapping[str, Any]


def found_twice(plan: Mapping[str, Any], where: str, endpoints: Mapping[str, Endpoint]) -> list[dict[str, Any]]:
    """Return the addresses that more than one endpoint has on a rail: {rail, address, hosts, text, evidence}.

    The first of ``hosts`` is one that should not have it, where the plan tells. A pod may also have the address that
    the plan assigns to another host.
    """
    owners: dict[tuple[str, str], list[str]] = {}
    for name, endpoint in endpoints.items():
        for rail, described in endpoint.rails.items():
            for address in _addresses(described):
                owners.setdefault((rail, address), []).append(name)
    planned = _planned(plan, where)
    told = []
    for (rail, address), names in owners.items():
        if len(names) > 1:
            wrong = [name for name in names if planned.get((name, rail), address) != address] or names
            hosts = [*wrong, *(name for name in names if name not in wrong)]
            evidence = f"the testers of {' and '.join(sorted(hosts))} report {address} on {rail}"
            text = _twice(rail, address, hosts, wrong=wrong)
            told.append({"rail": rail, "address": address, "hosts": hosts, "text": text, "evidence": evidence})
    return told + (_of_hosts(plan, owners) if where == "pod" else [])


def _of_hosts(plan: Mapping[str, Any], owners: Mapping[tuple[str, str], list[str]]) -> list[dict[str, Any]]:
    """Return the addresses of pods that the plan assigns to other hosts."""
    told = []
    for (host, rail), address in _planned(plan, "host").items():
        # A pod on the network of its host has the host's own.
        names = [name for name in owners.get((rail, address), ()) if name != host]
        if len(names) == 1 and host not in owners[rail, address]:
            pod = f"the pod of {names[0]}"
            text = f"{rail}: duplicate address {address} on {pod} and on host {host}"
            action = "Exclude the addresses of hosts from the network of the pods"
            evidence = f"the tester in {pod} reports {address} on {rail}, which the plan assigns to {host}"
            one = {"rail": rail, "address": address, "hosts": [names[0], host], "evidence": evidence}
            told.append({**one, "text": f"{text}. {action}"})
    return told


def _twice(rail: str, address: str, hosts: Sequence[str], *, wrong: Sequence[str]) -> str:
    action = f"Remove it from {', '.join(wrong)}" if len(wrong) < len(hosts) else "Remove it from all but one of them"
    return f"{rail}: duplicate address {address} on {' and '.join(sorted(hosts))}. {action}"


def unplanned(plan: Mapping[str, Any], where: str, endpoints: Mapping[str, Endpoint]) -> Iterator[str]:
    """Yield a sentence for each address of a rail that is neither planned nor another host's."""
    planned = _planned(plan, where)
    known = {(rail, address) for (_name, rail), address in planned.items()}
    for (name, rail), own in planned.items():
        endpoint = endpoints.get(name)
        for address in _addresses(endpoint.rails.get(rail, {})) if endpoint else ():
            if (rail, address) not in known:
                yield f"{name} {rail}: unplanned address {address}; the plan has {own}. Remove it from the port"


def _addresses(described: Mapping[str, str]) -> list[str]:
    found = (described.get("addresses") or described.get("address") or "").split()
    # A port of InfiniBand may have none.
    return [one for one in found if one != "-"]


def _planned(plan: Mapping[str, Any], where: str) -> dict[tuple[str, str], str]:
    """Return (host, rail) to the address that the plan assigns: on bare hosts, on rails whose addresses are planned."""
    rails = {rail["name"] for rail in plan["rails"] if rail.get("subnet")} if where == "host" else set()
    return {
        (name, rail["rail"]): rail["address"].split("/")[0]
        for name, host in plan.get("hosts", {}).items()
        for rail in host.get("rails", ())
        if rail["rail"] in rails and rail.get("address")
    }


def split(results: Sequence[Result]) -> tuple[Sequence[Result], list[Result]]:
    """Return the results without those that a duplicate address explains, and these."""
    hit = [result for result in results if result.get("duplicate")]
    return ([result for result in results if not result.get("duplicate")] if hit else results), hit


def diagnoses(where: str, hit: Sequence[Result]) -> list[Diagnosis]:
    """Return a diagnosis for each duplicate address. Both testers reported it, so it is confirmed."""
    groups: dict[str, list[Result]] = {}
    for result in hit:
        groups.setdefault(result["duplicate"]["text"], []).append(result)
    told = []
    for text, own in groups.items():
        one = own[0]["duplicate"]
        count = "1 test with these hosts did" if len(own) == 1 else f"{len(own)} tests with these hosts did"
        evidence = (one["evidence"],)
        first, second = one["hosts"][:2]
        told.append(
            Diagnosis(
                where,
                "address",
                one["rail"],
                first,
                second,
                None,
                CONFIRMED,
                len(own),
                len(own),
                evidence,
                f"{text}; {count} not pass",
            )
        )
    return told
