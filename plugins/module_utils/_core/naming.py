# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which port gets which name, now or at the next boot. Pure: the module only carries it out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from . import linkfile
from .change import Change
from .devices import Netdev
from .errors import ConflictError
from .inventory import HostInventory
from .rail import Rail, find_links

TITLE = "Written by gpufabric.rdma.netdev_names, which removes it with state: absent."


@dataclasses.dataclass(frozen=True)
class Files:
    """What decides about names on the host: path -> text, in the order of rank."""

    own: Mapping[str, str]
    links: Mapping[str, str]
    rules: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Rename:
    """One netdev that changes its name now."""

    link: Netdev
    name: str


@dataclasses.dataclass(frozen=True)
class NamePlan:
    """The change, its renames, and what has to wait for a boot; ``record`` is PCI -> first name."""

    change: Change
    renames: tuple[Rename, ...]
    reasons: tuple[str, ...]
    record: Mapping[str, str]


def plan_names(
    inventory: HostInventory,
    rails: Iterable[Rail],
    record: Mapping[str, str],
    files: Files,
    folder: str,
    now: bool,
) -> NamePlan:
    """Work out files and names; recorded ports that are no rail any more get their first name back.

    ``folder`` is where .link files go. With ``now`` a port that nothing uses is renamed at once;
    all others wait for the next boot, with the reason. ConflictError lists everything that
    stands in the way.
    """
    rails = tuple(rails)
    links = find_links(inventory, rails)
    wanted = {rail.pci: rail.netdev for rail in rails}
    restored = _restored(inventory, wanted, record)
    links.update({pci: link for pci, (link, _name) in restored.items()})
    names = {**wanted, **{pci: name for pci, (_link, name) in restored.items()}}
    problems = conflicts(inventory, rails, names, files)
    if problems:
        raise ConflictError("; ".join(problems))
    renames, reasons = _split(links, names, now)
    after = {pci: link.name for pci, link in links.items()}
    after.update({pci: names[pci] for pci, link in links.items() if link.name in {r.link.name for r in renames}})
    texts = {
        f"{folder}/{_file(rail)}": linkfile.format_link(TITLE, inventory.port(rail.pci), rail.netdev, files.links)
        for rail in rails
    }
    change = Change(
        before={"files": dict(files.own), "names": {pci: link.name for pci, link in links.items()}},
        after={"files": texts, "names": after},
    )
    return NamePlan(change, tuple(renames), tuple(reasons), _next_record(links, wanted, record, after))


def conflicts(inventory: HostInventory, rails: Iterable[Rail], names: Mapping[str, str], files: Files) -> list[str]:
    """Say who else would have or give a name; ``names`` is PCI address -> name of all ports that get one.

    Every rail must have a port with a network device.
    """
    problems = []
    moving = {port.netdev.name for port in inventory.ports if port.netdev and port.pci in names}
    for pci, name in names.items():
        for other in inventory.interfaces:
            if name in (other.name, *other.altnames) and other.name not in moving:
                problems.append(f"{pci} is to be named {name}, but {other.name} has this name; rename or remove it")
    for rail in rails:
        port = inventory.port(rail.pci)
        for foreign in linkfile.foreign_names(files.links, files.rules, port, _file(rail)):
            if foreign.name != rail.netdev:
                problems.append(
                    f"{port.title} is to be named {rail.netdev}, but {foreign.path} names it "
                    f"{foreign.name or 'by a policy'}; remove that file or its rule for this port"
                )
    return problems


def rename_commands(renames: Iterable[Rename]) -> list[list[str]]:
    """Return the ``ip`` commands that rename, also when names go round in a circle.

    A device must be down for it on kernels before 6.2, and comes up again when it was up. An
    alternative name equal to the new name has to go first.
    """
    renames = tuple(renames)
    taken = {rename.link.name for rename in renames}
    down, first, second, up = [], [], [], []
    for number, rename in enumerate(renames):
        old, new = rename.link.name, rename.name
        step = f"gpufabric{number}" if new in taken else new
        if rename.link.up:
            down.append(["ip", "link", "set", "dev", old, "down"])
            up.append(["ip", "link", "set", "dev", new, "up"])
        if new in rename.link.altnames:
            first.append(["ip", "link", "property", "del", "dev", old, "altname", new])
        first.append(["ip", "link", "set", "dev", old, "name", step])
        if step != new:
            second.append(["ip", "link", "set", "dev", step, "name", new])
    return [*down, *first, *second, *up]


def _restored(
    inventory: HostInventory, wanted: Mapping[str, str], record: Mapping[str, str]
) -> dict[str, tuple[Netdev, str]]:
    """Recorded ports that are no rail any more; one that left the host has nothing to restore."""
    ports = {port.pci: port for port in inventory.ports}
    return {
        pci: (ports[pci].netdev, name)  # type: ignore[misc]
        for pci, name in record.items()
        if pci not in wanted and pci in ports and ports[pci].netdev
    }


def _split(links: Mapping[str, Netdev], names: Mapping[str, str], now: bool) -> tuple[list[Rename], list[str]]:
    """Part the ports that are renamed now from those that wait, with the reason of each."""
    todo = {pci: names[pci] for pci in links if links[pci].name != names[pci]}
    waits = {pci: why for pci in todo for why in [_why_wait(links[pci], now)] if why}
    # A name is free only when its holder moves now, so waiting spreads.
    changed = True
    while changed:
        held = {links[pci].name for pci in links if pci not in todo or pci in waits}
        more = {pci: f"{todo[pci]} is still in use" for pci in todo if pci not in waits and todo[pci] in held}
        waits.update(more)
        changed = bool(more)
    renames = [Rename(links[pci], name) for pci, name in todo.items() if pci not in waits]
    reasons = [
        f"{pci} gets its name {todo[pci]} (now {links[pci].name}) at the next boot: {why}" for pci, why in waits.items()
    ]
    return renames, reasons


def _why_wait(link: Netdev, now: bool) -> str:
    if not now:
        return "apply is boot"
    if link.addresses:
        return f"it has the address {link.addresses[0]}"
    if link.uppers:
        return f"{link.uppers[0]} stands on it"
    return ""


def _next_record(
    links: Mapping[str, Netdev], wanted: Mapping[str, str], record: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str]:
    """Keep first names until they are back; add those of new rails."""
    kept = {pci: name for pci, name in record.items() if pci in wanted or after.get(pci, name) != name}
    return {**{pci: links[pci].name for pci in wanted}, **kept}


def _file(rail: Rail) -> str:
    return f"{linkfile.PREFIX}{rail.name}.link"
