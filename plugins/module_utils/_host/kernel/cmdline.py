# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel command lines: parse, merge, take back, format. Repeats, order and quotes are kept. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping

from ..._common.errors import InputError, ParseError

# The kernel takes each of these as often as it stands there; of any other the last one counts.
REPEATS = frozenset(
    ("console", "crashkernel", "earlycon", "hugepages", "hugepagesz", "memmap", "modprobe.blacklist", "pci")
)
REPEATED_PREFIXES = ("rd.", "systemd.")
# A wrong one of these and the host does not come back, or comes back without its services.
PROTECTED = frozenset((
    "BOOT_IMAGE", "init", "initrd", "rdinit", "ro", "rw", "root", "rootflags", "rootfstype", "rootdelay", "rootwait",
    "resume", "noresume", "single", "s", "S", "1", "2", "3", "4", "5", "emergency", "rescue", "recovery", "-b",
    "systemd.unit", "systemd.machine_id", "systemd.gpt_auto",
))  # fmt: skip
# The initramfs: what it unlocks, assembles and mounts. Which drivers it loads may be asked for.
PROTECTED_PREFIX, NOT_PROTECTED = "rd.", ("rd.driver.blacklist", "rd.driver.pre", "rd.driver.post")
# Boot loaders and shells take these for themselves, each in its own way.
SPECIAL = re.compile(r"[$`\\'|&;<>{}()#*?!~\[\]]|[^\x20-\x7e]")
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


@dataclasses.dataclass(frozen=True)
class Argument:
    """One argument; two that mean the same to the kernel are equal, however they are quoted."""

    name: str
    value: str | None
    text: str = dataclasses.field(compare=False)

    @classmethod
    def from_word(cls, word: str) -> Argument:
        """Split a word at the first equals sign; the kernel knows no difference of '-' and '_' in a name."""
        name, equals, value = word.replace('"', "").partition("=")
        return cls(name.replace("-", "_"), value if equals else None, word)

    def matches(self, other: Argument) -> bool:
        """Whether ``other`` is meant by this one: by its name alone when there is no value."""
        return self.name == other.name and self.value in (None, other.value)


# Arguments that belong together, in this order: hugepagesz=1G hugepages=16.
Group = tuple[Argument, ...]
Line = tuple[Argument, ...]


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What a command line must have, and must not have."""

    groups: tuple[Group, ...] = ()
    unwanted: tuple[Argument, ...] = ()

    @classmethod
    def from_texts(cls, present: Iterable[str], absent: Iterable[str]) -> Wanted:
        """Check the user's words; InputError names the one that cannot be accepted."""
        groups = tuple(dict.fromkeys(_group(text) for text in present))
        unwanted = tuple(dict.fromkeys(argument for text in absent for argument in _group(text)))
        for argument in unwanted:
            if any(argument in group for group in groups):
                raise InputError(
                    f"kernel argument '{argument.text}' is requested both as present and as absent. List it once"
                )
        return cls(groups, unwanted)

    def state(self, line: Line) -> dict[str, bool]:
        """Return for each text, wanted or unwanted, whether a command line has it."""
        ours = {argument for group in self.groups for argument in group}
        others = [argument for argument in line if argument not in ours]
        singles = self.singles()
        return {
            **{
                format_line(group): in_force(line, group[0]) if group[0] in singles else contains(line, group)
                for group in self.groups
            },
            **{word.text: any(word.matches(other) for other in others) for word in self.unwanted},
        }

    def goal(self) -> dict[str, bool]:
        """Return the state of a command line that has everything right."""
        return {
            **{format_line(group): True for group in self.groups},
            **{word.text: False for word in self.unwanted},
        }

    def singles(self) -> tuple[Argument, ...]:
        """Return the wanted arguments of which a line may have one value only."""
        alone = [group[0] for group in self.groups if len(group) == 1]
        names = [argument.name for group in self.groups for argument in group]
        return tuple(word for word in alone if not repeats(word.name) and names.count(word.name) == 1)


def parse(text: str) -> Line:
    """Parse a command line; double quotes hold blanks together, as the kernel has it.

    ParseError for a quote that does not end.
    """
    if text.count('"') % 2:
        raise ParseError(f"unbalanced double quote in the kernel command line '{text.strip()}'")
    return tuple(Argument.from_word(word) for word in _WORD.findall(text))


def format_line(line: Iterable[Argument]) -> str:
    """Return the text of a command line; the reverse of ``parse``."""
    return " ".join(argument.text for argument in line)


def repeats(name: str) -> bool:
    """Whether the kernel takes every argument of this name."""
    return name in REPEATS or name.startswith(REPEATED_PREFIXES)


def contains(line: Line, group: Group) -> bool:
    """Whether a line has the arguments of a group one right after the other."""
    size = len(group)
    return any(line[start : start + size] == group for start in range(len(line) - size + 1))


def in_force(line: Line, word: Argument) -> bool:
    """Whether a line has an argument and no later one gives its name another value: the kernel takes the last."""
    return next((other for other in reversed(line) if other.name == word.name), None) == word


def merge(line: Line, wanted: Wanted) -> Line:
    """Return the line with everything wanted and nothing unwanted; what is right keeps its place.

    Another value of a wanted argument goes, unless the kernel takes all values of that name.
    """
    ours = {argument for group in wanted.groups for argument in group}
    names = {argument.name for argument in wanted.singles()}
    kept = tuple(
        word
        for word in line
        if word in ours or not (word.name in names or any(other.matches(word) for other in wanted.unwanted))
    )
    for group in wanted.groups:
        kept = kept if contains(kept, group) else (*kept, *group)
    return kept


def undo(line: Line, before: Line, after: Line) -> Line:
    """Take back what made ``after`` of ``before``, and nothing that somebody else did to the line since."""
    if line in (before, after):
        return before
    rest = _minus(line, _minus(after, before))
    return (*rest, *_minus(_minus(before, after), rest))


def waits(live: Mapping[str, bool], next_boot: Mapping[str, bool]) -> list[str]:
    """Return the reasons to reboot: what the running kernel has otherwise than the next one."""
    return [
        f"{text} {'takes effect' if there else 'is removed'} at the next boot"
        for text, there in next_boot.items()
        if live[text] != there
    ]


def _minus(line: Line, others: Line) -> Line:
    """Return the line without one of each of ``others``, the last of its kind."""
    left = list(reversed(line))
    for other in others:
        if other in left:
            left.remove(other)
    return tuple(reversed(left))


def _decides_initramfs(name: str) -> bool:
    return name.startswith(PROTECTED_PREFIX) and name not in NOT_PROTECTED


def _group(text: str) -> Group:
    special = SPECIAL.search(text)
    if special:
        raise InputError(f"kernel argument '{text}' has {special.group()!r}, which boot loaders interpret. Remove it")
    group = parse(text)
    if not group:
        raise InputError("a kernel argument is empty. Remove it from the list")
    for argument in group:
        if argument.name in PROTECTED or _decides_initramfs(argument.name):
            raise InputError(f"kernel argument '{argument.text}' can prevent the host from booting. Set it manually")
    return group
