# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to write so that the next boot has the wanted kernel arguments, and how to take it back. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from ..._common.change import Change
from ..._common.errors import ConflictError
from ..._common.units import version_key
from . import boot_loader, cmdline
from .boot_loader import Loader
from .cmdline import Line, Wanted


@dataclasses.dataclass(frozen=True)
class Have:
    """The host's side.

    ``entries`` are boot entries, path -> text; ``menu`` the command lines of grub.cfg. ``own`` is
    the folder of GRUB's drop-ins, ``defaults`` the path and text of /etc/default/grub where
    mkconfig reads no such folder. ``kernels`` is the path of /etc/kernel/cmdline, ``lib_cmdline``
    the text that the distribution has for new kernels. ``files`` are texts by path.
    """

    live: Line
    menu: tuple[Line, ...] = ()
    entries: Mapping[str, str] = dataclasses.field(default_factory=dict)
    own: str = ""
    defaults: str = ""
    kernels: str = ""
    lib_cmdline: str | None = None
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class BootPlan:
    """The change; the record after it; what the running kernel has.

    ``pending``: what the record has otherwise while the plan is carried out.
    """

    change: Change
    pending: Mapping[str, Any]
    record: Mapping[str, Any]
    live: Mapping[str, bool]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a boot is needed."""
        return tuple(cmdline.waits(self.live, self.change.after["arguments"]))

    @property
    def arguments(self) -> dict[str, dict[str, bool]]:
        """For each argument: whether the running kernel has it, the boot loader had it, the next boot has it."""
        before, after = self.change.before["arguments"], self.change.after["arguments"]
        return {text: {"live": self.live[text], "found": before[text], "next_boot": after[text]} for text in after}


def plan_boot(wanted: Wanted, loader: Loader | None, have: Have, *, record: Mapping[str, Any]) -> BootPlan:
    """Work out the change. ``loader`` is None where nothing was ever asked of this host."""
    if loader is None:
        return BootPlan(Change({"arguments": {}}, {"arguments": {}}), {}, {}, {})
    watched = _watched(wanted, record)
    make = _plan_menu if loader.menu else _plan_entries
    return make(wanted, watched, have, record=record)


def _plan_menu(wanted: Wanted, watched: Wanted, have: Have, *, record: Mapping[str, Any]) -> BootPlan:
    """GRUB: a drop-in, and grub.cfg made of it."""
    if not have.menu:
        raise ConflictError("grub.cfg has no entry that starts Linux. Run update-grub and check its output")
    path = f"{have.own}/{boot_loader.DROPIN}"
    text = boot_loader.dropin(wanted) if wanted != Wanted() else None
    before = {name: have.files[name] for name in (path, have.defaults) if name in have.files}
    after = {path: text} if text else {}
    if have.defaults:
        after[have.defaults] = boot_loader.with_source(before.get(have.defaults, ""), have.own, bool(text))
    now = _state(watched, have.menu)
    current = record.get("made_from", "") == (text or "") and before == after
    known = now if current else {**now, **record.get("before", {})}
    then = {**{name: known[name] for name in now}, **wanted.goal()}
    change = Change(
        before={"arguments": now, "files": before, "menu_is_current": current},
        after={"arguments": then, "files": after, "menu_is_current": True},
    )
    running = watched.state(have.live)
    kept = _kept(wanted, watched, running, then=then, known={**now, **record.get("before", {})})
    # Until grub.cfg is made, nobody knows what it was made from.
    pending = {"made_from": None}
    last = {**kept, "made_from": text or ""} if kept or text else {}
    return BootPlan(change, pending, last, running)


def _plan_entries(wanted: Wanted, watched: Wanted, have: Have, *, record: Mapping[str, Any]) -> BootPlan:
    """Entries of the Boot Loader Specification, and the file that new kernels get theirs from."""
    known = record.get("files", {})
    before = {**have.entries, **{path: have.files[path] for path in (have.kernels,) if path in have.files}}
    after: dict[str, str] = {}
    files: dict[str, dict[str, Any]] = {}
    rows = {path: boot_loader.options_of(path, text) for path, text in have.entries.items()}
    for path, row in rows.items():
        # A kernel that came after us has its line from the file for new kernels.
        files[path] = _merged(row, wanted, known.get(path) or _one_row(known.get(have.kernels, {})))
        line, text = files[path]["after"], have.entries[path]
        after[path] = text if line == row else boot_loader.with_options(text, line)
    after.update(_plan_kernels(wanted, have, known, files=files))
    now = _state(watched, map(cmdline.parse, rows.values()))
    then = _state(watched, (cmdline.parse(files[path]["after"]) for path in rows))
    change = Change(before={"arguments": now, "files": before}, after={"arguments": then, "files": after})
    running = watched.state(have.live)
    kept = _kept(wanted, watched, running, then=then, known={**now, **record.get("before", {})})
    # Entries that were right already are recorded too: they are none that came after us.
    recorded = files if wanted != Wanted() else {}
    last = {**kept, "files": recorded} if kept or recorded else {}
    return BootPlan(change, {"files": {**known, **recorded}}, last, running)


def _plan_kernels(
    wanted: Wanted, have: Have, known: Mapping[str, Any], *, files: dict[str, dict[str, Any]]
) -> dict[str, str]:
    """Return the file for new kernels; it is made when there is none, of what kernel-install would take."""
    path, text = have.kernels, have.files.get(have.kernels)
    made = text is None or known.get(path, {}).get("made", False)
    if text is None and wanted == Wanted():
        return {}
    if text is None:
        text = have.lib_cmdline or f"{cmdline.format_line(boot_loader.first_cmdline(_default_line(have, known)))}\n"
    files[path] = {**_merged(text, wanted, known.get(path)), "made": made}
    if made and wanted == Wanted() and files[path]["after"] == known[path]["before"]:
        return {}
    return {path: files[path]["after"]}


def _default_line(have: Have, known: Mapping[str, Any]) -> Line:
    """Return the line of the newest entry, as it was before us: the running one may be of a boot for rescue."""
    if not have.entries:
        return have.live
    path = max(have.entries, key=version_key)
    return cmdline.parse(known.get(path, {}).get("before") or boot_loader.options_of(path, have.entries[path]))


def _one_row(known: Mapping[str, Any]) -> dict[str, str]:
    return {key: " ".join(known[key].split()) for key in ("before", "after") if key in known}


def _merged(text: str, wanted: Wanted, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the command line before us, and with what is wanted; blanks stay where nothing changes."""
    line = cmdline.parse(text)
    base = cmdline.undo(line, cmdline.parse(known["before"]), cmdline.parse(known["after"])) if known else line
    texts = (text, known["before"]) if known else (text,)
    before = _as_written(base, texts)
    return {"before": before, "after": _as_written(cmdline.merge(base, wanted), (text, before))}


def _as_written(line: Line, texts: Iterable[str]) -> str:
    """Return the one of the texts that is this line word by word; otherwise the line with the end of the first."""
    shown = cmdline.format_line(line)
    end = ""
    for text in texts:
        if cmdline.format_line(cmdline.parse(text)) == shown:
            return text
        end = end or text[len(text.rstrip()) :]
    return shown + end


def _watched(wanted: Wanted, record: Mapping[str, Any]) -> Wanted:
    """Return everything whose place in the running kernel matters: what is wanted, and what was."""
    names = {word.name for group in (*wanted.groups, wanted.unwanted) for word in group}
    groups = [cmdline.parse(text) for text in record.get("groups", [])]
    unwanted = [word for text in record.get("unwanted", []) for word in cmdline.parse(text)]
    return Wanted(
        (*wanted.groups, *(group for group in groups if not names & {word.name for word in group})),
        (*wanted.unwanted, *(word for word in unwanted if word.name not in names)),
    )


def _state(watched: Wanted, lines: Iterable[Line]) -> dict[str, bool]:
    """Return whether all lines have a wanted text, and whether any has an unwanted one."""
    states = [watched.state(line) for line in lines]
    unwanted = {word.text for word in watched.unwanted}
    return {text: (any if text in unwanted else all)(state[text] for state in states) for text in watched.state(())}


def _kept(
    wanted: Wanted, watched: Wanted, live: Mapping[str, bool], *, then: Mapping[str, bool], known: Mapping[str, bool]
) -> dict[str, Any]:
    """Return of the record what is asked for, or was and still waits for a boot."""
    matter = [text for text in then if text in wanted.goal() or live[text] != then[text]]
    groups = [text for text in map(cmdline.format_line, watched.groups) if text in matter]
    unwanted = [word.text for word in watched.unwanted if word.text in matter]
    return {"groups": groups, "unwanted": unwanted, "before": {text: known[text] for text in matter}} if matter else {}
