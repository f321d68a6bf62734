# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VFs are restored, and what is recorded for it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..facts import disruption
from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..system import restore
from . import plan as sriov_plan
from . import vf
from .boot_unit import Target

# Of a PF: the state ``before`` us, what was ``set`` (see ``restore``), and the ``owners`` then.
Entry = Mapping[str, Any]


def recorded(
    inventory: HostInventory,
    record: Mapping[str, Any],
    have: sriov_plan.Have,
    *,
    managed: Mapping[str, str],
    owned: Collection[str],
) -> tuple[tuple[Target, ...], list[str]]:
    """Return the PFs of the record with what they had before us, and warnings of those that are not restored.

    One that left the host has nothing to restore, and those that are ``owned`` by others now are left alone. So are VFs
    that the SR-IOV operator makes (``managed``, see ``sriov.wanted``), or that are not those that were set. A link that
    somebody else took down since stays down.
    """
    targets, warnings = [], []
    for port in (port for port in inventory.ports if port.pci in record and port.pci not in owned and port.netdev):
        entry, vfs = record[port.pci], have[port.pci]
        text = _other_author(port, entry, vfs, manager=managed.get(port.pci))
        if text:
            warnings.append(text)
        else:
            up = entry["before"]["up"] and port.netdev is not None and port.netdev.up
            targets.append(Target(port, port.title, _first(entry, vfs), up))
    return tuple(targets), warnings


def _other_author(port: Port, entry: Entry, have: tuple[vf.Vf, ...], *, manager: str | None) -> str:
    """Say why the VFs of a PF are not restored, empty when they are."""
    before, ours = entry["before"]["vfs"], entry["set"].get("vfs", ())
    if manager:
        return (
            f"{port.title}: the SR-IOV operator manages its VFs ({manager}), so they are not restored, and their "
            f"record is removed. Before the first change there were {len(before)}"
        )
    now = next((one for one in (ours, before) if _matches(port, have, one)), [one.settings for one in have])
    if restore.changed_since({"vfs": before}, entry["set"], {"vfs": now}):
        return restore.kept(f"{port.title}: VFs", _listed(before), _listed(ours), now=_listed(now))
    return ""


def _matches(port: Port, have: tuple[vf.Vf, ...], wanted: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a PF has this number of VFs with these identities; a VF in use can have the address of its pod."""
    pairs = [(one, want) for one, want in zip(have, wanted) if not one.users(port.infiniband)]
    same = [one.settings.get(key) == want[key] for one, want in pairs for key in vf.IDENTITY if key in want]
    return len(have) == len(wanted) and all(same)


def _first(entry: Entry, have: tuple[vf.Vf, ...]) -> tuple[Mapping[str, Any], ...]:
    """Return the VFs of before; a setting of one that nobody makes anew stays when it has changed since."""
    before, ours = entry["before"]["vfs"], entry["set"].get("vfs", ())
    if not len(before) == len(ours) == len(have):
        return tuple(before)
    changed = [restore.changed_since(*one) for one in zip(before, ours, (one.settings for one in have))]
    return tuple(
        {key: one.settings[key] if key in keys else value for key, value in first.items()}
        for first, keys, one in zip(before, changed, have)
    )


def _listed(vfs: Sequence[Mapping[str, Any]]) -> str:
    names = [str(one.get("mac") or one.get("guid")) for one in vfs if one.get("mac") or one.get("guid")]
    return f"{len(vfs)}" + (f" ({', '.join(names[:2])}{', ...' if len(vfs) > 2 else ''})" if names else "")


def left_alone(inventory: HostInventory, record: Mapping[str, Any], managed: Collection[str]) -> dict[str, str]:
    """Return the recorded PFs that have another owner now, with a warning; those of the operator are no such ones."""
    known = {pci: entry["owners"] for pci, entry in record.items() if pci not in managed}
    return disruption.left_alone(inventory, known, "Its VFs are")


def unsettled(plan: sriov_plan.VfPlan, _earlier: Mapping[str, Any], merged: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the record while the plan is carried out: what changes does not count as set."""
    before, after = plan.change.before["pfs"], plan.change.after["pfs"]
    changing = {pci: _steady(merged[pci], before[pci]["vfs"], after[pci]["vfs"]) for pci in after if pci in merged}
    return {
        **merged,
        **{pci: {**merged[pci], "set": {} if pci in plan.anew else ours} for pci, ours in changing.items()},
    }


def _steady(
    entry: Entry, now: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    ours = entry["set"].get("vfs", ())
    same = len(ours) == len(now) == len(after)
    return {"vfs": [restore.while_changing(*one) for one in zip(ours, now, after)]} if same else {}
