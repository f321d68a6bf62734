# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The link state of a port that is not a rail any more: only what this collection set is undone. Pure.

The addresses of the record are all that were set; those of a run that was cut off stay among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..facts.devices import Port
from ..facts.rail_ports import Rail
from ..system import restore
from .ipv6 import is_ipv6

State = Mapping[str, Any]
Entry = Mapping[str, Any]
# By PCI address: state, and record.
States = Mapping[str, State]
Record = Mapping[str, Entry]
_VALUES = ("mtu", "up")


def states(
    record: Record,
    now: States,
    owned: Mapping[str, str],
    *,
    in_use: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """Return the state to restore of each recorded port; ``owned`` are those that have another owner now."""
    return {
        pci: without_ours(entry, now[pci], in_use) if pci in owned else restored(entry, now[pci])
        for pci, entry in record.items()
    }


def restored(entry: Entry, now: State) -> dict[str, Any]:
    """Return the state to restore; ``entry`` is the record: the state ``before``, and what was ``set``.

    A value that has changed since it was set stays as it is now.
    """
    before, ours = entry["before"], entry["set"]
    # With a VLAN, what was set is on its interface, and all that the port had was removed.
    left = () if ours.get("vlans") else ours["addresses"]
    # Of a bond nothing is removed but what was added.
    removed = set() if entry.get("bond") else {*before["addresses"]} - {*left}
    return {
        **restore.values(_values(before), _values(ours), _values(now)),
        "addresses": sorted(({*now["addresses"]} - added(entry)) | removed),
        "sysctl": restore.values(before["sysctl"], ours.get("sysctl", {}), now["sysctl"]),
    }


def _values(state: State) -> dict[str, Any]:
    return {key: state[key] for key in _VALUES if key in state}


def foreign(entry: Entry | None, now: State) -> set[str]:
    """Return the addresses of a port that other tools set since the first run; there are none before it."""
    known = {*entry["set"]["addresses"], *entry["before"]["addresses"]} if entry else {*now["addresses"]}
    return {*now["addresses"]} - known


def warnings(rails: Iterable[Rail], record: Mapping[Port, Entry | None], now: States) -> list[str]:
    """Return what other tools set and is kept: addresses of rails, and values of ports that are none any more."""
    addresses = {rail.pci: (rail.name, rail.addresses) for rail in rails}
    found = []
    for port, entry in record.items():
        name, own = addresses.get(port.pci, ("", ()))
        if not name:
            found += _changed(port.title, entry or {}, now[port.pci])
        elif own:
            others = sorted(foreign(entry, now[port.pci]) - {*own})
            found += [_foreign(f"rail {name}: {port.title}", one) for one in others]
    return found


def _foreign(what: str, address: str) -> str:
    return (
        f"{what} has the address {address}, which this collection did not set and which is not in the plan. "
        "It is kept. Remove it, or exclude this port from the rails"
    )


def _changed(title: str, entry: Entry, now: State) -> list[str]:
    before, ours, found = ({**_values(one), **one.get("sysctl", {})} for one in (entry["before"], entry["set"], now))
    others = restore.changed_since(before, ours, found)
    return [restore.kept(f"{title}: {key}", before[key], ours[key], now=found[key]) for key in others]


def entry(rail: Rail, owners: Sequence[str], first: Entry | None, *, now: State, after: State) -> dict[str, Any]:
    """Return the record of a rail's port, ``first`` being the one that there is; ``owners`` are those of now."""
    ours = [address for address in after["addresses"] if address not in foreign(first, now)]
    known = first or {"before": now, "owners": owners}
    routes = [network for way in rail.ways for network in way.routes if is_ipv6(way.address)]
    return {**known, "rail": rail.name, "set": {**after, "addresses": ours, **({"routes": routes} if routes else {})}}


def unsettled(earlier: Record, after_it: Record, merged: Record, *, now: States, after: States) -> dict[str, Entry]:
    """Return the record while a run changes links from ``now`` to ``after``, ``after_it`` being the one after it.

    ``merged`` is that of ``earlier`` and ``after_it``: the addresses that either set can be there until the change is
    done.
    """
    found = restore.unsettled(merged, now, after)
    for pci in (pci for pci in found if pci in after):
        entries = [one[pci] for one in (earlier, after_it) if pci in one]
        addresses = sorted({address for one in entries for address in one["set"]["addresses"]})
        rules = restore.while_changing(merged[pci]["set"].get("sysctl", {}), now[pci]["sysctl"], after[pci]["sysctl"])
        kept = {
            key: sorted({name for one in entries for name in one["set"].get(key, ())}) for key in ("vlans", "routes")
        }
        ours = {**found[pci]["set"], "addresses": addresses, "sysctl": rules}
        ours.update({key: names for key, names in kept.items() if names})
        found[pci] = {**found[pci], "rail": entries[-1]["rail"], "set": ours}
    return found


def without_ours(entry: Entry, now: State, in_use: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a port that has another owner: the address that was set goes, all else stays.

    It stays too while it is the only address, or connections (``in_use``, by address) use it.
    """
    idle = {address for address in added(entry) if address.split("/")[0] not in in_use}
    left = [address for address in now["addresses"] if address not in idle]
    return {**now, "addresses": left or now["addresses"]}


def disturbs(before: State, after: State) -> bool:
    """Whether users of a link would notice the change: another MTU, an address that goes, a link that goes down."""
    gone = {*before["addresses"]} - {*after["addresses"]}
    return bool(gone) or before["mtu"] != after["mtu"] or (before["up"] and not after["up"])


def added(entry: Entry) -> set[str]:
    """Return the addresses of a record that this collection set."""
    return {*entry["set"]["addresses"]} - {*entry["before"]["addresses"]}
