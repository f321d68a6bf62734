# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which port gets which name, now or at the next boot. Pure: the module only carries it out.

The key of a name is the PCI address of a port, or the title of a VF or representor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping

from ..._common.change import Change
from ..._common.errors import ConflictError
from ..._common.pci import PciAddress
from ..._common.reader import left_out
from ..facts.devices import Netdev
from ..facts.disruption import left_alone, owners, users
from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail, find_links
from . import model, recorded, systemd_files
from .model import Function, Wish


@dataclasses.dataclass(frozen=True)
class Files:
    """What decides about names on the host: path -> text, in the order of rank. ``rules`` are those of others.

    Ours go into the folder ``link_folder`` and into the file ``rule_file``.
    """

    own: Mapping[str, str]
    links: Mapping[str, str]
    rules: Mapping[str, str]
    link_folder: str
    rule_file: str


@dataclasses.dataclass(frozen=True)
class Rename:
    """One netdev that changes its name now."""

    link: Netdev
    name: str


@dataclasses.dataclass(frozen=True)
class NamePlan:
    """The change, its renames, what has to wait for a boot, the record, and warnings."""

    change: Change
    renames: tuple[Rename, ...]
    reasons: tuple[str, ...]
    record: recorded.Record
    warnings: tuple[str, ...]

    @property
    def changes_links(self) -> bool:
        """Whether .link files change, which an initramfs can have too. Rules do not count: VFs come after it."""
        before, after = (
            {path: text for path, text in side["files"].items() if path.endswith(".link")}
            for side in (self.change.before, self.change.after)
        )
        return before != after


def plan_names(
    inventory: HostInventory, functions: tuple[Function, ...], wish: Wish, *, record: recorded.Record, files: Files
) -> NamePlan:
    """Work out files and names; what is recorded and not wanted any more gets its first name back, if it has ours.

    What nothing uses is renamed at once where that is wished for; all else waits for the next boot, with the reason.
    ConflictError lists everything that stands in the way.
    """
    find_links(inventory, wish.rails)
    wanted = wish.names(functions)
    here = _here(inventory, functions)
    rules = model.given_names(functions, "net", files.own.get(files.rule_file))
    owned = find_owned(inventory, functions, wanted, record=record, rules=rules)
    now = {key: link.name for key, link in here.items() if key not in wanted and key not in owned.keys}
    others = recorded.others(record, now, "name")
    first = {key: name for key, name in recorded.first(record).items() if key in now and key not in others}
    names = {**wanted, **first}
    problems = conflicts(inventory, functions, wish, names=names, files=files)
    if problems:
        raise ConflictError("; ".join(problems))
    links = {key: here[key] for key in names if key in here}
    holders = {one.title: tuple(f"{holder} holds its RDMA device" for holder in one.holders) for one in functions}
    busy = {port.pci: users(inventory, port) for port in inventory.ports}
    holders.update({pci: (f"it is in use: {', '.join(found)}",) for pci, found in busy.items() if found})
    renames, reasons = _split(links, names, holders, now=wish.now)
    renamed = {rename.link.name: rename.name for rename in renames}
    after = {key: renamed.get(link.name, link.name) for key, link in links.items()}
    now = {key: link.name for key, link in links.items()}
    change = Change(
        before={"files": dict(files.own), "names": now},
        after={
            "files": {
                **_kept(files, owned.ports),
                **_texts(inventory, functions, wish, files=files, kept=owned.functions),
            },
            "names": after,
        },
    )
    record = recorded.following(record, now, after, wanted=wanted, owned=owned.keys)
    return NamePlan(change, tuple(renames), tuple(reasons), record, (*owned.warnings, *others.values()))


@dataclasses.dataclass(frozen=True)
class Owned:
    """What has a name of this collection that is not wanted any more, and another owner now, who uses this name.

    ``ports`` are PCI addresses, ``functions`` is title -> name. ``warnings`` say why each is left alone.
    """

    ports: tuple[str, ...]
    functions: Mapping[str, str]
    warnings: tuple[str, ...]

    @property
    def keys(self) -> frozenset[str]:
        """Return the keys of all names that stay."""
        return frozenset((*self.ports, *self.functions))


def find_owned(
    inventory: HostInventory,
    functions: Iterable[Function],
    wanted: Mapping[str, str],
    *,
    record: Collection[str],
    rules: Mapping[str, str],
) -> Owned:
    """Return what is not restored; ``rules`` is title -> name of the functions that our rules name now.

    The functions of a port with another owner are left alone with it, also those that are to come.
    """
    named = [one for one in functions if one.title in rules and one.title not in wanted]
    ports = {*record, *(one.pf for one in named)}
    known = {pci: inventory.first.get(pci, ()) for pci in inventory.configured if pci in ports and pci not in wanted}
    owned = left_alone(inventory, known, "Its names are")
    found = {one: owners(inventory, one.seen) for one in named if one.pf not in owned and one.netdev and one.seen}
    kept = [one for one in named if one.pf in owned or found.get(one)]
    warnings = _warnings({one: texts for one, texts in found.items() if texts})
    return Owned(tuple(owned), {one.title: rules[one.title] for one in kept}, (*owned.values(), *warnings))


def _warnings(found: Mapping[Function, list[str]]) -> list[str]:
    """Say which functions have another owner: the first of a port and kind stands for all."""
    groups: dict[tuple[str, str], list[Function]] = {}
    for one in found:
        groups.setdefault((one.pf, one.kind), []).append(one)
    return [
        f"{first.title} ({first.netdev.name if first.netdev else ''}) is now used by another owner: "
        f"{', '.join(found[first])}"
        f"{f' ({left_out(len(others)).lstrip()})' if others else ''}. Its name and the udev rule for it are kept; "
        "a run without this owner restores them"
        for first, *others in sorted(groups.values(), key=lambda group: group[0].kind)
    ]


def conflicts(
    inventory: HostInventory, functions: Iterable[Function], wish: Wish, *, names: Mapping[str, str], files: Files
) -> list[str]:
    """Say who else would have or give a name; ``names`` is key -> name of all that get one.

    Every rail must have a port with a network device.
    """
    functions = tuple(functions)
    moving = {link.name for key, link in _here(inventory, functions).items() if key in names}
    others = [other for other in inventory.interfaces if other.name not in moving]
    taken = {name: other.name for other in others for name in (other.name, *other.altnames)}
    problems = [
        f"{key} is to be named {name}, but {taken[name]} has this name. Rename or remove it"
        for key, name in names.items()
        if name in taken
    ]
    for rail in wish.rails:
        port = inventory.port(rail.pci)
        for foreign in systemd_files.foreign_names(files.links, files.rules, port, own=_file(rail)):
            if foreign.name != rail.netdev:
                problems.append(_foreign(port.title, rail.netdev, foreign))
    return problems + _foreign_functions(functions, wish.names(functions), files)


def _foreign_functions(functions: Iterable[Function], wanted: Mapping[str, str], files: Files) -> list[str]:
    """Say who names VFs and representors otherwise: for each file the first of a port stands for all."""
    found: dict[tuple[str, str, str], str] = {}
    for one in functions:
        if one.title in wanted and one.seen:
            for foreign in systemd_files.given_names(files.links, files.rules, one.seen):
                if foreign.name != wanted[one.title]:
                    text = _foreign(one.title, wanted[one.title], foreign)
                    found.setdefault((one.pf, one.kind, foreign.path), text)
    return list(found.values())


def _foreign(title: str, name: str, foreign: systemd_files.Foreign) -> str:
    return (
        f"{title} is to be named {name}, but {foreign.path} names it {foreign.name or 'by a policy'}. Remove that "
        "file, or its rule for this port"
    )


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
        step = recorded.STEP.format(number) if new in taken else new
        if rename.link.up:
            down.append(["ip", "link", "set", "dev", old, "down"])
            up.append(["ip", "link", "set", "dev", new, "up"])
        if new in rename.link.altnames:
            first.append(["ip", "link", "property", "del", "dev", old, "altname", new])
        first.append(["ip", "link", "set", "dev", old, "name", step])
        if step != new:
            second.append(["ip", "link", "set", "dev", step, "name", new])
    return [*down, *first, *second, *up]


def _here(inventory: HostInventory, functions: Iterable[Function]) -> dict[str, Netdev]:
    """Return key -> network device of all that the host has."""
    ports = {port.pci: port.netdev for port in inventory.ports if port.netdev}
    return {**ports, **{one.title: one.netdev for one in functions if one.netdev}}


def _texts(
    inventory: HostInventory, functions: Iterable[Function], wish: Wish, *, files: Files, kept: Mapping[str, str]
) -> dict[str, str]:
    """Return path -> text of all our files; ``kept`` is title -> name of functions that keep theirs."""
    texts = {
        f"{files.link_folder}/{_file(rail)}": systemd_files.format_link(
            model.TITLE, inventory.port(rail.pci), rail.netdev, others=files.links
        )
        for rail in wish.rails
    }
    functions = tuple(functions)
    rules = model.format_rules(functions, {**kept, **wish.names(functions)})
    return {**texts, **({files.rule_file: rules} if rules else {})}


def _kept(files: Files, ports: Iterable[str]) -> dict[str, str]:
    """Return our .link files of these ports."""
    matches = {f"Path={PciAddress.parse(pci).id_path}" for pci in ports}
    return {
        path: text
        for path, text in files.own.items()
        if path.endswith(".link") and not matches.isdisjoint(text.splitlines())
    }


def _split(
    links: Mapping[str, Netdev], names: Mapping[str, str], holders: Mapping[str, tuple[str, ...]], *, now: bool
) -> tuple[list[Rename], list[str]]:
    """Part those that are renamed now from those that wait, with the reason of each."""
    todo = {key: names[key] for key in links if links[key].name != names[key]}
    waits = {key: why for key in todo for why in [_why_wait(links[key], holders.get(key, ()), now)] if why}
    # A name is free only when its holder moves now, so waiting spreads.
    changed = True
    while changed:
        held = {links[key].name for key in links if key not in todo or key in waits}
        more = {key: f"{todo[key]} is still in use" for key in todo if key not in waits and todo[key] in held}
        waits.update(more)
        changed = bool(more)
    renames = [Rename(links[key], name) for key, name in todo.items() if key not in waits]
    reasons = [
        f"{key} gets its name {todo[key]} (now {links[key].name}) at the next boot: {why}" for key, why in waits.items()
    ]
    return renames, reasons


def _why_wait(link: Netdev, holders: tuple[str, ...], now: bool) -> str:
    if not now:
        return "apply is boot"
    if link.addresses:
        return f"it has the address {link.addresses[0]}"
    if link.uppers:
        return f"{link.uppers[0]} is configured on it"
    return holders[0] if holders else ""


def _file(rail: Rail) -> str:
    return f"{systemd_files.PREFIX}{rail.name}.link"
