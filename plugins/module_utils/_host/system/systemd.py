# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of systemd and its network tools: their syntax, read by rank, written with a reload."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Union

from ..._common.errors import InputError
from . import command
from .files import Roots, read_folder, write_files

# Folders of systemd files by rank: of two files with one name the first counts.
SYSTEMD_FOLDERS = ("{etc}/systemd/network", "{run}/systemd/network", "{lib}/systemd/network")
CGROUPS = ("fs/cgroup", "fs/cgroup/systemd", "fs/cgroup/unified")

Settings = Sequence[tuple[str, str]]
# Section -> its settings in order, each a key and a value; in pairs where a section can be there more than once.
Sections = Union[Mapping[str, Settings], Sequence[tuple[str, Settings]]]
_LINE_BREAK = re.compile(r"[\0\r\n]")
# Characters of a word of a command that systemd would split or unquote.
_QUOTED = re.compile(r"""[\s"']""")
# Characters that names of units keep; a dash stands for a slash.
_PLAIN = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz:_.")


def title(module: str) -> str:
    """Return the first line of the comment in every file that a module writes."""
    return f"Written by gpufabric.rdma.{module}, which removes it with state: absent."


def file_text(first: str, sections: Sections) -> str:
    """Return the text of a unit, .link or .network file: ``first`` as a comment, then its sections.

    Values are written unchanged: in units, texts from the input go through ``literal`` or ``exec_line``. InputError
    for a value that would change the lines after it.
    """
    parts = list(sections.items() if isinstance(sections, Mapping) else sections)
    for section, settings in parts:
        for key, value in settings:
            if _LINE_BREAK.search(value) or is_continued(value):
                raise InputError(
                    f"cannot write {key}= in section [{section}] of a systemd file: the value is {value!r}, expected "
                    "one line that does not end with a backslash. Correct the value that this text comes from"
                )
    texts = ["\n".join([f"[{name}]", *(f"{key}={value}" for key, value in settings)]) for name, settings in parts]
    return f"# {first}\n" + "\n\n".join(texts) + "\n"


def is_continued(line: str) -> bool:
    """Whether a line ends in a backslash that joins the next line to it; one after another stands for itself."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def literal(text: str) -> str:
    """Return a text for a unit in which % is not the start of a specifier."""
    return text.replace("%", "%%")


def word(text: str) -> str:
    """Return one word of a command for Exec settings of units: quoted where necessary, with specifiers expanded.

    A dollar sign is doubled: variables would be replaced inside of quotes too.
    """
    escaped = text.replace("\\", "\\\\").replace("$", "$$")
    # A semicolon of its own would separate two commands.
    if text not in ("", ";") and not _QUOTED.search(text):
        return escaped
    quote = '"' if "'" in text else "'"
    return quote + escaped.replace(quote, "\\" + quote) + quote


def exec_line(argv: Iterable[str]) -> str:
    """Return a command for Exec settings of units; its words arrive unchanged."""
    return " ".join(word(literal(one)) for one in argv)


def escape(name: str) -> str:
    """Return the name of a device as it is written in names of units, as systemd-escape does.

    A first dot stays: the name is a part of sys-subsystem-net-devices-NAME.device.
    """
    return "".join(chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in os.fsencode(name))


def unescape(escaped: str) -> str:
    """Return the name of a device from the name of a unit; the reverse of ``escape``."""
    parts = re.split(r"\\x([0-9a-f]{2})", escaped)
    return os.fsdecode(b"".join(bytes.fromhex(one) if at % 2 else os.fsencode(one) for at, one in enumerate(parts)))


def runs(roots: Roots, unit: str) -> bool:
    """Return whether a unit runs: a running service has a control group."""
    return any(os.path.isdir(f"{roots.sysfs}/{top}/system.slice/{unit}") for top in CGROUPS)


def read_systemd(roots: Roots, lib: str, suffix: str) -> dict[str, str]:
    """Return path -> text of systemd's network files in the order of rank."""
    found: dict[str, str] = {}
    for folder in SYSTEMD_FOLDERS:
        found.update(read_folder(folder.format(etc=roots.etc, run=roots.run, lib=lib), suffix))
    return found


def write_units(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Make the own files those of ``after``, units among them, and let systemd read them when they are others."""
    write_files(before, after)
    if before != after:
        command.run(["systemctl", "daemon-reload"])
