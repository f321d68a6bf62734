# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the running kernel: read and change."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from ..._common.errors import CommandError, FabricError
from ..system import command, files
from ..system.files import Roots, read_text
from . import settings
from .settings import Have, SettingsPlan, Want

# By rank: of two files with one name the first counts (sysctl.d(5)).
SYSCTL_FOLDERS = ("{etc}/sysctl.d", "{run}/sysctl.d", "{usr}/local/lib/sysctl.d", "{lib}/sysctl.d")


def read(roots: Roots, lib: str, want: Want, *, record: Mapping[str, Any]) -> Have:
    """Read the host's side of everything that is wanted, or was."""
    counts = {**record.get("pages", {}), **want.counts()}
    paths = [f"{roots.etc}/{name}" for name in settings.FILES]
    others: dict[str, str] = {}
    for folder in SYSCTL_FOLDERS if want.sysctl else ():
        others.update(
            files.read_folder(folder.format(etc=roots.etc, run=roots.run, usr=os.path.dirname(lib), lib=lib), ".conf")
        )
    return Have(
        files={path: text for path, text in ((path, files.read(path)) for path in paths) if text is not None},
        loaded=tuple(_loaded(roots, lib, {*want.modules, *record.get("modules", ())})),
        sysctl={key: _value(f"{roots.proc}/sys/{key}") for key in {**record.get("sysctl", {}), **want.sysctl}},
        parameters={
            key: _value(f"{roots.sysfs}/module/{key.replace('/', '/parameters/')}")
            for key in {**record.get("parameters", {}), **want.parameters()}
        },
        pages={path: _count(f"{roots.sysfs}/{path}") for path in counts},
        others=others,
        memory=_memory(roots),
    )


def apply(plan: SettingsPlan, roots: Roots, lib: str, *, want: Want) -> None:
    """Load modules, look at what they bring, write files, set values."""
    before, after = plan.change.before, plan.change.after
    for module in sorted(set(after["modules"]) - set(before["modules"])):
        command.run(["modprobe", module])
    settings.check_keys(want, read(roots, lib, want, record={}))
    files.write_files(before["files"], after["files"])
    for key, value in after["sysctl"].items():
        if before["sysctl"][key] != value:
            files.set_kernel(f"{roots.proc}/sys/{key}", value)
    found, pages = before["hugepages"], after["hugepages"]
    # What gets fewer pages makes room for the others.
    for path in sorted(pages, key=lambda path: pages[path] - found[path]):
        if found[path] != pages[path]:
            _set_pages(f"{roots.sysfs}/{path}", found[path], pages[path])
    for module in plan.unload:
        # The kernel refuses what others use, and that is right.
        command.run(["modprobe", "--remove", module], check=False)


def _set_pages(path: str, before: int, count: int) -> None:
    """Ask for pages; when the kernel has too few, give back those that it found: half of them help nobody."""
    size = re.sub(r".*hugepages-(\d+)kB.*", r"\1", path)
    try:
        files.set_kernel(path, str(count))
    except FabricError as error:
        found = _count(path)
        if found is None:
            raise
        if found > count:
            raise CommandError(
                f"hugepages: {count} of {size} kB requested, {found} remain because programs use them. Stop these "
                "programs first"
            ) from error
        files.set_kernel(path, str(before))
        raise CommandError(
            f"hugepages: {count} of {size} kB requested, {found} allocated: memory is fragmented. The former number, "
            f"{before}, was restored. Allocate them at boot (at: boot)"
        ) from error


def _loaded(roots: Roots, lib: str, wanted: set[str]) -> list[str]:
    """Return those of ``wanted`` that the kernel has, as a module or as a part of itself."""
    missing = [name for name in sorted(wanted) if not os.path.isdir(f"{roots.sysfs}/module/{name}")]
    if not missing:
        return sorted(wanted)
    release = read_text(f"{roots.proc}/sys/kernel/osrelease") or ""
    text = files.read(f"{lib}/modules/{release}/modules.builtin") or ""
    builtin = {os.path.basename(line).split(".")[0].replace("-", "_") for line in text.splitlines()}
    return [name for name in sorted(wanted) if name not in missing or name in builtin]


def _value(path: str) -> str | None:
    text = read_text(path)
    return None if text is None else " ".join(text.split())


def _count(path: str) -> int | None:
    text = read_text(path)
    return int(text) if text and text.isdecimal() else None


def _memory(roots: Roots) -> int:
    match = re.search(r"^MemTotal:\s*(\d+) kB", read_text(f"{roots.proc}/meminfo") or "", re.MULTILINE)
    return int(match.group(1)) if match else 0
