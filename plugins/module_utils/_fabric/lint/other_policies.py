# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies of the SR-IOV operator, made by others, for ports of rails: then one device has two owners.

What the operator has written into the state of a node counts. Only for nodes of which it has written nothing yet, the
selectors of a policy are compared with the plan, and those that only a node can answer give nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ..._common.fold import fold
from ..._common.reader import some
from .objects import at, dicts, label, mapping, pf_names, text, texts

Item = Mapping[str, Any]
KIND, PLURAL, STATES = "SriovNetworkNodePolicy", "sriovnetworknodepolicies", "sriovnetworknodestates"
# Fields of nicSelector that the plan alone cannot compare.
_UNKNOWN = ("deviceID", "netFilter")


@dataclass(frozen=True)
class Port:
    """A port of a rail, one for each member of a bond: host and Node, PCI address, and names that it has and gets."""

    rail: str
    host: str
    node: str
    pci: str
    names: Collection[str]


@dataclass(frozen=True)
class Owned:
    """A policy and the ports of rails that it selects. ``contested``: the plan has a policy for one of them, too."""

    policy: Item
    ports: Sequence[Port]
    contested: bool

    @property
    def problem(self) -> str:
        """What this means, and what to do; "" where the policy leaves the ports as they are."""
        rails = dict.fromkeys(port.rail for port in self.ports)
        where = some([f"{rail} of {fold([p.host for p in self.ports if p.rail == rail])}" for rail in rails])
        if self.contested:
            return (
                f"{label(self.policy)} selects {where}, and the plan has a policy for these ports, too. One policy can"
                " create the VFs of a port. Remove this policy, or leave these ports out of rdma_fabric"
            )
        if at(self.policy, "spec", "externallyManaged") is True:
            return ""
        return (
            f"{label(self.policy)} selects {where}: the SR-IOV operator creates VFs of these ports and can change their"
            " MTU. Remove the policy unless workloads need these VFs"
        )


def ports(hosts: Mapping[str, Item], nodes_by_host: Mapping[str, str], rails: Sequence[Item]) -> list[Port]:
    """Return the ports of the rails of a plan (its ``hosts`` and ``rails``) whose PCI address is known."""
    members = {rail.get("name"): rail.get("members") or () for rail in rails}
    return [
        Port(rail["rail"], name, nodes_by_host[name], pci, names)
        for name, host in hosts.items()
        for rail in host.get("rails") or ()
        if name in nodes_by_host and rail.get("pci")
        for pci, names in _functions(rail, members.get(rail["rail"], ()))
    ]


def _functions(rail: Item, interfaces: Sequence[str]) -> Iterator[tuple[str, Collection[str]]]:
    """Yield PCI address and names of each function; a bond has none, its members are in the order of ``interfaces``."""
    if not rail.get("members"):
        yield rail["pci"], {name for name in (rail.get("current"), rail.get("netdev")) if name}
        return
    for pci, own in zip_longest(rail["members"], interfaces[: len(rail["members"])]):
        yield pci, {own} if own else ()


def owned(
    policies: Sequence[Item],
    states: Sequence[Item],
    known: Sequence[Port],
    *,
    labels: Mapping[str, Any],
    own: Sequence[Item],
) -> Iterator[Owned]:
    """Yield the ``policies`` that select known ports. ``own``: policies of the plan.

    ``labels``: Node -> its labels, with those that the plan gives it.
    """
    written = {(text(one, "metadata", "namespace"), text(one, "metadata", "name")): one for one in states}
    for policy in policies:
        space = text(policy, "metadata", "namespace")
        found = [
            port
            for port in known
            if _selects_node(policy, labels.get(port.node)) and _selects(policy, port, written.get((space, port.node)))
        ]
        if found:
            yield Owned(policy, found, any(_plans(own, port, labels.get(port.node)) for port in found))


def _plans(own: Sequence[Item], port: Port, labels: Any) -> bool:
    """Return whether a policy of the plan is for a port; classes of hosts can have ports of the same name."""
    return any(
        _selects_node(item, labels)
        and not {*port.names}.isdisjoint(pf_names(texts(item, "spec", "nicSelector", "pfNames")))
        for item in own
    )


def _selects_node(policy: Item, labels: Any) -> bool:
    known = labels if isinstance(labels, Mapping) else {}
    return all(known.get(key) == value for key, value in mapping(policy, "spec", "nodeSelector").items())


def _selects(policy: Item, port: Port, state: Item | None) -> bool:
    desired = dicts(state, "spec", "interfaces")
    if desired:
        names = [
            text(group, "policyName")
            for one in desired
            if text(one, "pciAddress") == port.pci
            for group in dicts(one, "vfGroups")
        ]
        return text(policy, "metadata", "name") in names
    return _names(mapping(policy, "spec", "nicSelector"), port)


def _names(selector: Mapping[Any, Any], port: Port) -> bool:
    """Return whether a selector certainly names a port: all that it has must fit."""
    named, addresses = [*pf_names(texts(selector, "pfNames"))], texts(selector, "rootDevices")
    if not (named or addresses) or any(selector.get(key) for key in _UNKNOWN):
        return False
    return (not named or not {*named}.isdisjoint(port.names)) and (not addresses or port.pci in addresses)
