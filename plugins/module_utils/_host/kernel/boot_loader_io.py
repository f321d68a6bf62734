# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot loader of a host: read what it has, write what the plan says, make grub.cfg anew."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._common.errors import CommandError
from ..facts.inventory import is_virtual
from ..facts.io import CPUINFO_BYTES
from ..system import command, files
from ..system.files import Roots, names, read_text
from . import boot_loader, boot_plan, cmdline, requirements
from .boot_loader import Loader
from .cmdline import Wanted

# The variable of the boot loader interface: who started this system.
LOADER_INFO = "firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
MENUS = ("grub/grub.cfg", "grub2/grub.cfg")
MKCONFIG = ("grub-mkconfig", "grub2-mkconfig")
# os-prober looks into every disk.
MKCONFIG_SECONDS = 300
# A domain of these types leaves addresses as they are; of the others each address is translated.
DIRECT = ("identity", "")


def read_live(roots: Roots) -> cmdline.Line:
    """Return the command line of the running kernel."""
    return cmdline.parse(read_text(f"{roots.proc}/cmdline") or "")


def read_cpu(roots: Roots) -> requirements.Cpu:
    """Read what decides about the IOMMU."""
    groups = f"{roots.sysfs}/kernel/iommu_groups"
    types = [read_text(f"{groups}/{name}/type") or "" for name in names(groups)]
    cpuinfo = read_text(f"{roots.proc}/cpuinfo", CPUINFO_BYTES) or ""
    return requirements.Cpu(
        requirements.vendor_of(cpuinfo),
        read_text(f"{roots.proc}/sys/kernel/arch") or os.uname().machine,
        is_virtual(cpuinfo),
        sum(kind not in DIRECT for kind in types),
    )


def detect(roots: Roots, boots: Sequence[str]) -> Loader:
    """Return the boot loader in use; ``boots`` are the folders where boot files can be."""
    efi = read_text(f"{roots.sysfs}/{LOADER_INFO}") or ""
    menus = {path: files.read(path) for folder in boots for path in (f"{folder}/{name}" for name in MENUS)}
    return boot_loader.detect(
        boot_loader.Evidence(
            # Four bytes of attributes, then UTF-16: every second byte is the text.
            loader_info="".join(letter for letter in efi if letter.isprintable() and letter != "\ufffd"),
            live=read_live(roots),
            menus={path: text for path, text in menus.items() if text is not None},
            entries=read_entries(roots, boots),
            images=tuple(f"{folder}/EFI/Linux/{name}" for folder in boots for name in names(f"{folder}/EFI/Linux")),
        )
    )


def read_entries(roots: Roots, boots: Sequence[str]) -> dict[str, str]:
    """Return the boot entries of this system, path -> text."""
    machine_id = read_text(f"{roots.etc}/machine-id") or ""
    found: dict[str, str] = {}
    for folder in boots:
        found.update(files.read_folder(f"{folder}/loader/entries", ".conf"))
    return {path: text for path, text in found.items() if boot_loader.is_own_entry(path, text, machine_id)}


def read(roots: Roots, boots: Sequence[str], lib: str, *, loader: Loader | None) -> boot_plan.Have:
    """Read the host's side of kernel arguments."""
    live = read_live(roots)
    if loader is None:
        return boot_plan.Have(live)
    own, defaults = f"{roots.etc}/default/grub.d", f"{roots.etc}/default/grub"
    kernels = f"{roots.etc}/kernel/cmdline"
    if loader.menu is None:
        return boot_plan.Have(
            live,
            entries=read_entries(roots, boots),
            kernels=kernels,
            lib_cmdline=files.read(f"{lib}/kernel/cmdline"),
            files=_texts(kernels),
        )
    reads_folder = "/default/grub.d/" in (files.read(mkconfig()) or "")
    return boot_plan.Have(
        live,
        menu=tuple(boot_loader.menu_lines(files.read(loader.menu) or "")),
        own=own,
        defaults="" if reads_folder else defaults,
        files=_texts(f"{own}/{boot_loader.DROPIN}", *(() if reads_folder else (defaults,))),
    )


def mkconfig() -> str:
    """Return the path of grub-mkconfig; CommandError when there is none."""
    found = [path for path in map(command.find, MKCONFIG) if path]
    if not found:
        raise CommandError("grub-mkconfig is not installed, so the GRUB menu cannot be generated. Install it")
    return found[0]


def apply(plan: boot_plan.BootPlan, loader: Loader, own: str, *, wanted: Wanted) -> None:
    """Write the files, then make grub.cfg of them.

    When that is not possible the files are as before: the next update of a kernel would make a menu of them.
    """
    before, after = plan.change.before["files"], plan.change.after["files"]
    # What reads a file goes before it and comes after it.
    paths = sorted({*before, *after}, reverse=bool(wanted.goal()))
    _put(paths, before, after)
    if loader.menu:
        try:
            _make_menu(loader.menu, own, wanted)
        except BaseException:
            _put(reversed(paths), after, before)
            raise


def _put(paths: Iterable[str], now: Mapping[str, str], then: Mapping[str, str]) -> None:
    for path in paths:
        if now.get(path) != then.get(path):
            files.put(path, then.get(path), mode=_mode(path, 0o644))


def _make_menu(path: str, own: str, wanted: Wanted) -> None:
    """Make grub.cfg beside the one in use and put it in place in one step, when it is right.

    grub-mkconfig writes its result over the old file in pieces, and a host that loses its power then has no menu.
    """
    path = os.path.realpath(path)
    draft = f"{path}.gpufabric"
    try:
        command.run([mkconfig(), "-o", draft], timeout=MKCONFIG_SECONDS)
        _check_menu(draft, own, wanted)
        files.replace(draft, path, _mode(path, 0o600))
    except OSError as error:
        raise CommandError(f"cannot install the new {path}: {error.strerror}") from error
    finally:
        for left in (draft, f"{draft}.new"):
            with contextlib.suppress(OSError):
                os.unlink(left)


def _check_menu(draft: str, own: str, wanted: Wanted) -> None:
    lines = boot_loader.menu_lines(files.read(draft) or "")
    states: list[Mapping[str, Any]] = [wanted.state(line) for line in lines]
    goal = wanted.goal()
    wrong = [text for text, there in goal.items() if any(found[text] != there for found in states)]
    if lines and not wrong:
        return
    later = boot_loader.later_files(files.read_folder(own, ".cfg"), f"{own}/{boot_loader.DROPIN}")
    found = f"'{cmdline.format_line(lines[0])}'" if lines else "no Linux entry"
    raise CommandError(
        f"the menu generated by grub-mkconfig is not as requested for {', '.join(wrong) or 'its entries'}: found "
        f"{found}. It was not installed. Check what else sets the command line: {', '.join(later) or '/etc/grub.d'}"
    )


def _texts(*paths: str) -> dict[str, str]:
    return {path: text for path, text in ((path, files.read(path)) for path in paths) if text is not None}


def _mode(path: str, default: int) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return default
