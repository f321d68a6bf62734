# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot loaders: which one starts this host, and where its kernel arguments stand. Pure.

Sources: grub-mkconfig and 10_linux of GRUB 2 (Debian, SUSE), the blscfg command of Red Hat's
GRUB, the Boot Loader Specification, kernel-install(8).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import NamedTuple

from ..._common.errors import ConflictError, ParseError
from ..system import systemd
from . import cmdline
from .cmdline import Argument, Line, Wanted

TITLE = systemd.title("kernel_cmdline")
# Last in the folder: what others set there is known when it is read.
DROPIN = "zz-gpufabric.cfg"
VARIABLES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")
# What kernel-install leaves out when it makes a command line of the running one.
NOT_KEPT = ("BOOT_IMAGE", "initrd", "systemd.machine_id")

# 10_linux, and 10_linux_zfs of Ubuntu.
_SECTION = "### BEGIN /etc/grub.d/10_linux"
_BLSCFG = re.compile(r"^\s*blscfg\b", re.MULTILINE)
_LINUX = re.compile(r"^\s*linux(?:16|efi)?\s+\S+\s*(.*)$")
_OPTIONS = re.compile(r"^(options[ \t]+)(.*?)([ \t]*)$", re.MULTILINE)
_RESCUE = (
    "single", "s", "S", "1", "recovery", "rescue", "emergency", "-b",
    "systemd.unit=rescue.target", "systemd.unit=emergency.target", "rd.break",
)  # fmt: skip


class Evidence(NamedTuple):
    """What a host shows of its boot loader.

    ``loader_info`` is the EFI variable LoaderInfo, empty without one; ``menus`` are the texts of
    the grub.cfg files, ``entries`` those of loader/entries, both by path; ``images`` are unified
    kernel images.
    """

    loader_info: str
    live: Line
    menus: Mapping[str, str]
    entries: Mapping[str, str]
    images: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Loader:
    """The boot loader in use: ``menu`` is the path of a grub.cfg that mkconfig makes, None where entries count."""

    name: str
    menu: str | None


def detect(evidence: Evidence) -> Loader:
    """Return the boot loader that starts this host; ConflictError when that is not known for sure."""
    if any(word.name == "ostree" for word in evidence.live):
        raise ConflictError(
            "this is an ostree system, which manages kernel arguments itself. Set them with rpm-ostree kargs"
        )
    by_grub = evidence.loader_info.startswith("GRUB") or any(word.name == "BOOT_IMAGE" for word in evidence.live)
    if evidence.loader_info.startswith("systemd-boot"):
        return _with_entries("systemd-boot", evidence)
    if by_grub and len(evidence.menus) == 1:
        (path, text), *_none = evidence.menus.items()
        return _with_entries("GRUB with entries", evidence) if _BLSCFG.search(text) else Loader("GRUB", path)
    raise ConflictError(
        "the boot loader of this host is not supported: expected GRUB with one grub.cfg, or systemd-boot; found "
        f"LoaderInfo '{evidence.loader_info or 'none'}', BOOT_IMAGE= {'' if by_grub else 'not '}in the running "
        f"command line, {', '.join(evidence.menus) or 'no grub.cfg'}. Set the kernel arguments manually, and request "
        "none: iommu: none, no arguments, no hugepages at: boot"
    )


def _with_entries(name: str, evidence: Evidence) -> Loader:
    if evidence.entries:
        return Loader(name, None)
    found = f"unified kernel images ({', '.join(evidence.images)})" if evidence.images else "none"
    raise ConflictError(
        f"this host boots with {name}, but loader/entries has no entry of this machine (found: {found}). Kernel "
        "arguments can be changed only in entries of the Boot Loader Specification (type 1)"
    )


def menu_lines(text: str) -> list[Line]:
    """Return the command lines of a grub.cfg, without those for rescue.

    Quotes are GRUB's own here, and mean to it what they mean to the kernel.
    """
    lines = []
    in_section = _SECTION not in text
    for row in text.splitlines():
        if row.startswith(("### BEGIN ", "### END ")):
            in_section = row.startswith(_SECTION)
        match = _LINUX.match(row)
        if in_section and match:
            lines.append(cmdline.parse(match.group(1)))
    return [line for line in lines if not any(word.text in _RESCUE for word in line)]


def is_own_entry(path: str, text: str, machine_id: str) -> bool:
    """Whether an entry starts this system: not another one's, not the rescue kernel, not an EFI program."""
    values = dict(row.split(None, 1) for row in text.splitlines() if len(row.split(None, 1)) == 2)
    rescue = "0-rescue" in path or "rescue" in values.get("version", "")
    return "linux" in values and not rescue and values.get("machine-id", machine_id).strip() == machine_id


def options_of(path: str, text: str) -> str:
    """Return the command line of a boot entry.

    ParseError where it stands elsewhere: in GRUB's environment, or in more than one row.
    """
    rows = _OPTIONS.findall(text)
    if len(rows) > 1:
        raise ParseError(f"{path} has {len(rows)} options lines, expected one. Merge them into one line")
    row = rows[0][1] if rows else ""
    if any(word.text == "$kernelopts" for word in cmdline.parse(row)):
        raise ParseError(
            f"the options of {path} are in the environment of GRUB (kernelopts). "
            "Move them into the entries first: grubby --update-kernel=ALL --args=ro"
        )
    return str(row)


def with_options(text: str, row: str) -> str:
    """Return the text of a boot entry with another command line; everything else stays."""
    if _OPTIONS.search(text):
        return _OPTIONS.sub(lambda match: f"{match.group(1)}{row}{match.group(3)}", text, count=1)
    return f"{text.rstrip()}\noptions {row}\n"


def first_cmdline(line: Line) -> Line:
    """Return the arguments of a new kernel where no file names them, from those of another kernel.

    kernel-install takes those of the running kernel, which may have been started for rescue.
    """
    return tuple(
        word
        for word in line
        if word.name not in NOT_KEPT and word.text not in _RESCUE and not word.text.startswith("$")
    )


def dropin(wanted: Wanted) -> str:
    """Return the shell text that grub-mkconfig reads after everything else.

    It changes the variables that others set and never replaces them, so their later changes count
    too. Entries for rescue get nothing new: GRUB_CMDLINE_LINUX_DEFAULT is not for them.
    """
    return "\n".join([f"# {TITLE}", *_filter(wanted), *_additions(wanted)]) + "\n"


def _filter(wanted: Wanted) -> list[str]:
    """Shell lines that take words out of both variables."""
    ours = [argument for group in wanted.groups for argument in group]
    keep = [_pattern(word) for word in ours]
    drop = [f"{_name(word)}|{_name(word)}=*" for word in wanted.singles()]
    drop += [_pattern(word) if word.value is not None else f"{_name(word)}|{_name(word)}=*" for word in wanted.unwanted]
    if not drop:
        return []
    kept = [f"      {'|'.join(keep)}) ;;"] if keep else []
    lines = [
        "gpufabric_filter() {",
        "  gpufabric_kept=",
        "  for gpufabric_word in $1; do",
        '    case "$gpufabric_word" in',
        *kept,
        f"      {'|'.join(drop)}) continue ;;",
        "    esac",
        '    gpufabric_kept="$gpufabric_kept${gpufabric_kept:+ }$gpufabric_word"',
        "  done",
        "}",
        "set -f",
    ]
    for variable in VARIABLES:
        lines += [f'gpufabric_filter "${variable}"', f'{variable}="$gpufabric_kept"']
    return [*lines, "set +f"]


def _additions(wanted: Wanted) -> list[str]:
    """Shell lines that add each group which is not there."""
    lines = []
    for group in wanted.groups:
        text = cmdline.format_line(group).replace('"', r"\"")
        lines += [
            f'case " ${VARIABLES[0]} ${VARIABLES[1]} " in',
            f'  *" {text} "*) ;;',
            f'  *) {VARIABLES[1]}="${VARIABLES[1]} {text}" ;;',
            "esac",
        ]
    return lines


def _name(word: Argument) -> str:
    """A shell pattern of a name; the kernel knows no difference of '-' and '_'."""
    return '"' + word.name.replace("_", '"[-_]"') + '"'


def _pattern(word: Argument) -> str:
    return _name(word) if word.value is None else f'{_name(word)}="{word.value}"'


def source_line(folder: str) -> str:
    """Return what brings the drop-in into /etc/default/grub where mkconfig reads no folder (SUSE)."""
    return f"# {TITLE}\n. {folder}/{DROPIN}\n"


def with_source(text: str, folder: str, wanted: bool) -> str:
    """Return the text of /etc/default/grub with or without the line that reads the drop-in."""
    rest = text.replace(source_line(folder), "")
    if not wanted:
        return rest
    return rest + ("" if rest.endswith("\n") or not rest else "\n") + source_line(folder)


def later_files(files: Mapping[str, str], own: str) -> list[str]:
    """Return the drop-ins after ours that set the command line anew."""
    assigns = re.compile(rf"^\s*(?:export\s+)?(?:{'|'.join(VARIABLES)})=", re.MULTILINE)
    return [path for path in sorted(files) if path > own and assigns.search(files[path])]
