# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The link state of a port that is not a rail any more: only what this collection set is undone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

State = Mapping[str, Any]


def states(
    record: Mapping[str, Mapping[str, Any]],
    now: Mapping[str, State],
    owned: Mapping[str, str],
    in_use: Mapping[str, Any],
) -> dict[str, dict[str, Any]]:
    """Return the state to restore of each recorded port; ``owned`` are those that have another owner now."""
    return {
        pci: without_ours(entry, now[pci], in_use) if pci in owned else restored(entry, now[pci])
        for pci, entry in record.items()
    }


def restored(entry: Mapping[str, Any], now: State) -> dict[str, Any]:
    """Return the state to restore; ``entry`` is the record: the state ``before``, and what was ``set``.

    A value that has changed since it was set stays as it is now.
    """
    before, ours = entry["before"], entry["set"]
    removed = {*before["addresses"]} - {*ours["addresses"]}
    return {
        "mtu": before["mtu"] if now["mtu"] == ours["mtu"] else now["mtu"],
        "up": before["up"] if now["up"] == ours["up"] else now["up"],
        "addresses": sorted(({*now["addresses"]} - _added(entry)) | removed),
        "sysctl": {
            key: before["sysctl"].get(key, value) if value == ours["sysctl"].get(key) else value
            for key, value in now["sysctl"].items()
        },
    }


def without_ours(entry: Mapping[str, Any], now: State, in_use: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a port that has another owner: the address that was set goes, all else stays.

    It stays too while it is the only address, or connections (``in_use``, by address) use it.
    """
    idle = {address for address in _added(entry) if address.split("/")[0] not in in_use}
    left = [address for address in now["addresses"] if address not in idle]
    return {**now, "addresses": left or now["addresses"]}


def disturbs(before: State, after: State) -> bool:
    """Whether users of a link would notice the change: another MTU, an address that goes, a link that goes down."""
    gone = {*before["addresses"]} - {*after["addresses"]}
    return bool(gone) or before["mtu"] != after["mtu"] or (before["up"] and not after["up"])


def _added(entry: Mapping[str, Any]) -> set[str]:
    return {*entry["set"]["addresses"]} - {*entry["before"]["addresses"]}
