# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware of NICs: which cards, which settings to write, what waits for a boot, which version is wanted. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from ..._common.change import Change
from ..._common.errors import ConflictError, InputError
from ..._common.pci import NIC_VENDOR, PciAddress
from ..._common.units import exact_version
from ..facts.devices import Port
from ..facts.disruption import left_alone
from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail
from ..system import restore
from .mlxconfig import Setting, plain, same

TOOLS = ("mlxconfig", "mstconfig")
NO_TOOL = f"neither {' nor '.join(TOOLS)} is installed; install mstflint of the distribution, or MFT of DOCA"
GATE = "ADVANCED_PCI_SETTINGS"
# Some devices show these only while the gate is open.
GATED = ("MAX_ACC_OUT_READ", "PCI_WR_ORDERING", "ATS_ENABLED")


@dataclasses.dataclass(frozen=True)
class Card:
    """One device for the firmware tools: all ports of a card. ``pci`` is its first function, ``want`` name -> value."""

    pci: str
    title: str
    firmware: str | None
    rdma: tuple[str, ...]
    want: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Have:
    """What a card answered: its settings, and those of the wanted names that it does not know."""

    settings: Mapping[str, Setting]
    unknown: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class FirmwarePlan:
    """The change; what to set on each card; what a reboot brings, and what only a power cycle does; the record.

    ``found`` maps a card to its wanted parameters as they were read. ``warnings`` name those that others changed.
    """

    change: Change
    sets: Mapping[str, Mapping[str, str]]
    reasons: tuple[str, ...]
    cold: tuple[str, ...]
    record: Mapping[str, Any]
    found: Mapping[str, Mapping[str, Setting]]
    warnings: tuple[str, ...] = ()

    def shown(self, pci: str) -> dict[str, dict[str, str | None]]:
        """Return of each wanted parameter of a card what is its default, in force, and loaded by the next boot."""
        return {
            name: {"default": one.default, "current": one.current, "next_boot": one.next}
            for name, one in self.found.get(pci, {}).items()
        }


NOTHING = FirmwarePlan(Change({}, {}), {}, (), (), {}, {})


def find_cards(
    inventory: HostInventory, rails: Iterable[Rail], want: Mapping[str, str], *, owned: bool
) -> tuple[Card, ...]:
    """Return the cards of the rails; two rails on one card are one.

    ConflictError lists all that cannot be: no NVIDIA NIC, or, unless ``owned``, a card one of whose ports carries the
    default route or the ssh connection, since the reset that new settings need cuts that off. InputError for a port
    that is not there.
    """
    names: dict[str, list[str]] = {}
    problems: list[str] = []
    for rail in rails:
        port = inventory.port(rail.pci)
        if port.passthrough == "vf" and want:
            problems.append(
                f"{rail.pci} ({rail.name}) is a virtual function that the hypervisor passed through: it has no firmware"
                " settings. Set them on the hypervisor, and leave settings unset for this host"
            )
        elif port.vendor == NIC_VENDOR:
            names.setdefault(_ports(inventory, port)[0].pci, []).append(rail.name)
        else:
            problems.append(f"{rail.pci} ({rail.name}) is of vendor {port.vendor}, not an NVIDIA NIC ({NIC_VENDOR})")
    cards = tuple(_card(inventory, pci, f"{pci} ({', '.join(found)})", want=want) for pci, found in names.items())
    problems += [problem for card in cards for problem in _management(inventory, card) if not owned]
    if problems:
        raise ConflictError("; ".join(problems))
    return cards


def recorded_cards(
    inventory: HostInventory, record: Mapping[str, Any], owned: bool
) -> tuple[tuple[Card, ...], list[str]]:
    """Return the cards of the record, wanting what they had before us, and warnings; one that left the host is skipped.

    So is one with a port that has another owner now, or, unless ``owned``, carries the default route or the ssh
    connection.
    """
    ports = inventory.by_pci
    first = {
        pci: {name: plain(name, text) for name, text in entry["before"].items()}
        for pci, entry in record.items()
        if pci in ports
    }
    cards = {pci: _card(inventory, pci, ports[pci].title, want=want) for pci, want in first.items()}
    others = left_alone(inventory, inventory.first, "Firmware settings of its card are")
    why = {pci: [] if owned else _management(inventory, card) for pci, card in cards.items()}
    for pci in cards:
        why[pci] += [others[port.pci] for port in _ports(inventory, ports[pci]) if port.pci in others]
    left = tuple(card for pci, card in cards.items() if not why[pci])
    return left, [text for texts in why.values() for text in texts]


def plan_settings(
    cards: Iterable[Card], have: Mapping[str, Have], record: Mapping[str, Any], *, boot: str, present: bool
) -> FirmwarePlan:
    """Work out what to set on each card, and what waits for a reset; ``boot`` is the id of this boot.

    ConflictError names every parameter that a card does not know or that cannot be written, of all cards, before
    anything is set. What is set but not in force after a boot since then needs more than a reboot.
    """
    cards = tuple(cards)
    problems = [problem for card in cards for problem in _problems(card, have[card.pci]) if present]
    if problems:
        raise ConflictError("; ".join(problems))
    known = {
        card.pci: {
            name: value
            for name, value in card.want.items()
            if name in have[card.pci].settings
            and (present or _is_ours(record[card.pci], name, value, found=have[card.pci].settings[name].next))
        }
        for card in cards
    }
    before = {pci: {name: have[pci].settings[name].next for name in names} for pci, names in known.items()}
    sets = {pci: {n: v for n, v in names.items() if not same(v, before[pci][n])} for pci, names in known.items()}
    after = {pci: {**before[pci], **sets[pci]} for pci in known}
    last = {pci: record.get(pci, {}) for pci in sets}
    cold = [pci for pci in sets if last[pci].get("cold") or (not sets[pci] and last[pci].get("boot", boot) != boot)]
    fresh = [pci for pci in sets if sets[pci] or last[pci].get("boot") == boot]
    how = {pci: "a power cycle" if pci in cold else "a reboot" for pci in sets}
    waits = {c.pci: _waits(c, have[c.pci], known[c.pci], fresh=c.pci in fresh, how=how[c.pci]) for c in cards}
    return FirmwarePlan(
        change=Change(before, after),
        sets={pci: values for pci, values in sets.items() if values},
        reasons=tuple(text for pci, texts in waits.items() if pci not in cold for text in texts),
        cold=tuple(text for pci, texts in waits.items() if pci in cold for text in texts),
        record=_record(before, sets, waits, record=record, boot=boot, present=present),
        found={pci: {name: have[pci].settings[name] for name in names} for pci, names in known.items()},
        warnings=tuple(text for one in cards for text in _changed(one, have[one.pci], record, known=known[one.pci])),
    )


def _changed(card: Card, have: Have, record: Mapping[str, Any], *, known: Mapping[str, str]) -> list[str]:
    """Return a warning for each parameter that is not restored, since it is not what this collection set."""
    return [
        restore.kept(f"{card.title}: {name}", value, record[card.pci]["set"].get(name), now=have.settings[name].next)
        for name, value in card.want.items()
        if name in have.settings and name not in known
    ]


def _is_ours(entry: Mapping[str, Any], name: str, before: str, *, found: str | None) -> bool:
    """Whether a value is still what this collection set (also before a run that was cut off), or restored already."""
    return any(same(one, found) for one in (entry["set"].get(name), entry.get("earlier", {}).get(name), before))


def version_problems(cards: Iterable[Card], minimum: Iterable[str], exact: Iterable[str]) -> list[str]:
    """Return what is wrong with the cards' firmware; InputError for a text that is no version.

    The first number of a version is the kind of card, so a list can have one version for each kind; a kind that the
    list does not have is not judged.
    """
    lowest = {_version(text)[0]: text for text in minimum}
    only = {_version(text)[0]: text for text in exact}
    problems = []
    for card in cards if lowest or only else ():
        if card.firmware is None:
            problems.append(f"{card.title}: its firmware version is not known; load its RDMA driver (mlx5_ib)")
            continue
        found = _version(card.firmware)
        wish, least = only.get(found[0]), lowest.get(found[0])
        if wish and found != _version(wish):
            problems.append(f"{card.title} has firmware {card.firmware}, expected exactly {wish}")
        elif least and found < _version(least):
            problems.append(f"{card.title} has firmware {card.firmware}, expected {least} or newer")
    return problems


def _ports(inventory: HostInventory, port: Port) -> list[Port]:
    slot = PciAddress.parse(port.pci)
    found = [(PciAddress.parse(one.pci), one) for one in inventory.ports if one.vendor == NIC_VENDOR]
    key = (slot.domain, slot.bus, slot.slot)
    return [one for address, one in sorted(found) if (address.domain, address.bus, address.slot) == key]


def _card(inventory: HostInventory, pci: str, title: str, *, want: Mapping[str, str]) -> Card:
    names = [port.pci for port in _ports(inventory, inventory.port(pci))] or [pci]
    devices = [device for device in inventory.rdma_devices if device.pci in names]
    firmware = next((device.firmware for device in devices if device.firmware), None)
    return Card(pci, title, firmware, tuple(device.name for device in devices), want)


def _management(inventory: HostInventory, card: Card) -> list[str]:
    problems = []
    for port in _ports(inventory, inventory.port(card.pci)):
        owner = inventory.owner(port.netdev.name) if port.netdev else None
        if owner:
            problems.append(
                f"{card.title}: {owner}, and the card reset that activates new settings would interrupt it. Set "
                "management_allowed: true to change the card anyway"
            )
    return problems


def _problems(card: Card, have: Have) -> list[str]:
    gate = have.settings.get(GATE)
    opening = same(card.want.get(GATE), "1") and not same(gate.current if gate else None, "1")
    problems = []
    for name in have.unknown:
        if name in GATED and opening:
            continue
        hidden = name in GATED and GATE not in card.want
        hint = f". It may be hidden while {GATE} is off: request {GATE} as well" if hidden else ""
        problems.append(f"{card.title} has no parameter {name}{hint}")
    return problems + [
        f"{card.title}: {name} is read-only"
        for name, value in card.want.items()
        if name in have.settings and have.settings[name].read_only and not same(value, have.settings[name].next)
    ]


def _waits(card: Card, have: Have, known: Mapping[str, str], *, fresh: bool, how: str) -> list[str]:
    """Say what is not in force yet; a card that tells no current values waits when it was set since the boot."""
    found = []
    for name, value in known.items():
        now = have.settings[name].current
        if now is None and fresh:
            found.append(f"{card.title}: {name} is {value} after {how}")
        elif now is not None and not same(value, now):
            found.append(f"{card.title}: {name} is {now} until {how} loads {value}")
    gated = [name for name in have.unknown if name in GATED and same(card.want.get(GATE), "1")]
    return found + [
        f"{card.title}: {name} can be set only after {GATE} has taken effect. Rerun the playbook then" for name in gated
    ]


def _record(
    before: Mapping[str, Mapping[str, str | None]],
    sets: Mapping[str, Mapping[str, str]],
    waits: Mapping[str, list[str]],
    *,
    record: Mapping[str, Any],
    boot: str,
    present: bool,
) -> dict[str, Any]:
    """Values before us, once; what was set; the boot of the last write. Restored cards stay until all is in force.

    ``earlier`` is what was set before the write that is to come: it stays until that is done.
    """
    kept = dict(record)
    for pci, values in before.items():
        entry = record.get(pci, {"before": {}, "set": {}})
        first = {name: text for name, text in values.items() if text is not None and name in sets[pci]}
        entry = {**entry, "before": {**first, **entry["before"]}}
        if sets[pci]:
            ours = {**entry["set"], **(sets[pci] if present else {})}
            earlier = {
                n: values[n] for n in sets[pci] if _is_ours(entry, n, str(entry["before"].get(n)), found=values[n])
            }
            entry = {"before": entry["before"], "set": ours, "earlier": earlier, "boot": boot}
        else:
            entry = {key: value for key, value in entry.items() if key != "earlier"}
        if entry["before"] and (present or waits[pci]):
            kept[pci] = entry
        else:
            kept.pop(pci, None)
    return kept


def _version(text: str) -> tuple[int, ...]:
    numbers = exact_version(str(text))
    if numbers is None:
        raise InputError(f"'{text}' is not a firmware version; expected one such as 28.43.1014")
    return numbers
