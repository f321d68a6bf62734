# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the running kernel, and the files that keep them: modules, sysctl, memlock, hugepages. Pure.

Sources: modules-load.d(5), modprobe.d(5), sysctl.d(5), tmpfiles.d(5), limits.conf(5) and the
kernel's own text on hugetlbpage.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..._common.change import Change
from ..._common.errors import ConflictError, InputError
from ..system import restore, systemd
from . import requirements
from .requirements import Hugepages

TITLE = systemd.title("kernel_settings")
LOAD = "modules-load.d/gpufabric-kernel.conf"
OPTIONS = "modprobe.d/gpufabric-kernel.conf"
SYSCTL = "sysctl.d/90-gpufabric-kernel.conf"
LIMITS = "security/limits.d/90-gpufabric-memlock.conf"
# Pages of a size or node that sysctl cannot name; written by systemd-tmpfiles at each boot.
PAGES = "tmpfiles.d/gpufabric-hugepages.conf"
FILES = (LOAD, OPTIONS, SYSCTL, LIMITS, PAGES)

_NAME = re.compile(r"[\w-]+")
_PAGES_LINE = re.compile(r"^w /sys/(\S+) - - - - (\d+)$", re.MULTILINE)
_KEY = re.compile(r"\w[\w-]*[./](?!.*\.\.)[^\s=]+")
# A key and its path have '.' and '/' the other way round.
_SWAP = str.maketrans("./", "/.")
_TRUTH = {"1": "Y", "0": "N", "y": "Y", "n": "N"}


@dataclasses.dataclass(frozen=True)
class Want:
    """The user's wishes; nothing of all on the way back. ``sysctl`` is keyed by path below /proc/sys."""

    modules: tuple[str, ...] = ()
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    sysctl: Mapping[str, str] = dataclasses.field(default_factory=dict)
    memlock: str = ""
    pages: tuple[Hugepages, ...] = ()

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Want:
        """Check the module's parameters; InputError names what cannot be accepted."""
        if params["state"] == "absent":
            return cls()
        names = [*params["modules"], *params["module_options"]]
        wrong = [name for name in names if not _NAME.fullmatch(name)]
        if wrong:
            raise InputError(f"'{wrong[0]}' is not a valid kernel module name; expected letters, digits, '_' and '-'")
        memlock = params["memlock"]
        if not re.fullmatch(r"unlimited|\d*", memlock):
            raise InputError(f"memlock is '{memlock}'; expected unlimited, a number of KiB, or an empty string")
        texts = {**params["module_options"], **params["sysctl"]}
        split = [name for name, value in texts.items() if "\n" in str(value)]
        if split:
            raise InputError(f"the value of '{split[0]}' has more than one line; write it as one")
        return cls(
            modules=tuple(sorted({name.replace("-", "_") for name in params["modules"]})),
            options={name.replace("-", "_"): _plain(text) for name, text in params["module_options"].items()},
            sysctl={sysctl_path(key): _plain(value) for key, value in params["sysctl"].items()},
            memlock=memlock,
            pages=tuple(p for p in requirements.parse_hugepages(params["hugepages"]) if not p.boot),
        )

    def parameters(self) -> dict[str, str]:
        """Return MODULE/PARAMETER -> wanted value; a parameter without a value is a switch."""
        words = [(module, *word.partition("=")) for module, text in self.options.items() for word in text.split()]
        return {f"{module}/{name}": value if equals else "Y" for module, name, equals, value in words}

    def counts(self) -> dict[str, int]:
        """Return the path below sysfs -> wanted number of hugepages."""
        return {pages_path(pages): pages.count for pages in self.pages}


@dataclasses.dataclass(frozen=True)
class Have:
    """The host's side: own files, loaded modules, values (None: not there), sysctl files in their order."""

    files: Mapping[str, str]
    loaded: tuple[str, ...]
    sysctl: Mapping[str, str | None]
    parameters: Mapping[str, str | None]
    pages: Mapping[str, int | None]
    others: Mapping[str, str]
    memory: int


@dataclasses.dataclass(frozen=True)
class SettingsPlan:
    """The change; the record of values before us; modules to unload; why a boot is needed; warnings."""

    change: Change
    record: Mapping[str, Any]
    unload: tuple[str, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


def sysctl_path(key: str) -> str:
    """Return the path below /proc/sys of a key; the first separator decides which of the two forms it has."""
    if not _KEY.fullmatch(key):
        raise InputError(f"'{key}' is not a valid sysctl key; expected one such as vm.swappiness")
    dot, slash = key.find("."), key.find("/")
    return key.translate(_SWAP) if slash < 0 or 0 <= dot < slash else key


def pages_path(pages: Hugepages) -> str:
    """Return the path below sysfs of the number of pages."""
    base = "kernel/mm" if pages.numa_node is None else f"devices/system/node/node{pages.numa_node}"
    return f"{base}/hugepages/hugepages-{pages.size}kB/nr_hugepages"


def plan_settings(want: Want, have: Have, record: Mapping[str, Any], *, etc: str) -> SettingsPlan:
    """Work out the change. InputError and ConflictError before anything is written.

    Keys and counts that came with us and are not wanted any more get their value before us. Modules
    are no part of the way back: the kernel may refuse to unload them.
    """
    _check(want, have)
    # Our files say what was set.
    set_sysctl = dict(_assignments(have.files.get(f"{etc}/{SYSCTL}", "")))
    set_counts = {path: int(count) for path, count in _PAGES_LINE.findall(have.files.get(f"{etc}/{PAGES}", ""))}
    old_sysctl, warnings = _before("sysctl", want.sysctl, have.sysctl, record=record, ours=set_sysctl)
    old_counts, more = _before("pages", want.counts(), have.pages, record=record, ours=set_counts)
    sysctl, counts = {**old_sysctl, **want.sysctl}, {**old_counts, **want.counts()}
    loaded = sorted(set(have.loaded) & set(want.modules))
    change = Change(
        before={
            "files": dict(have.files),
            "modules": loaded,
            "sysctl": {key: have.sysctl.get(key) for key in sysctl},
            "hugepages": {key: have.pages.get(key) for key in counts},
        },
        after={"files": _files(want, etc), "modules": list(want.modules), "sysctl": sysctl, "hugepages": counts},
    )
    new = [name for name in want.modules if name not in have.loaded or name in record.get("modules", ())]
    unload = [name for name in record.get("modules", ()) if name not in want.modules and name in have.loaded]
    reasons, parameters = _waits(want, have, record.get("parameters", {}))
    kept = {
        "modules": new,
        "sysctl": {key: record.get("sysctl", {}).get(key, have.sysctl[key]) for key in want.sysctl},
        "pages": {key: record.get("pages", {}).get(key, have.pages[key]) for key in want.counts()},
        "parameters": parameters,
    }
    record = {key: value for key, value in kept.items() if value}
    return SettingsPlan(change, record, tuple(unload), tuple(reasons), (*warnings, *more))


def unsettled(plan: SettingsPlan, _earlier: Mapping[str, Any], merged: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record while values change: it names those that do, which can have any value after a power cut.

    What is not restored, since another tool changed it, is not in it: the file that says what was set may go.
    """
    before, after = ({**one["sysctl"], **one["hugepages"]} for one in (plan.change.before, plan.change.after))
    changing = {*merged.get("changing", ()), *(key for key in after if before[key] != after[key])}
    values = {
        kind: {key: value for key, value in merged.get(kind, {}).items() if key in after}
        for kind in ("sysctl", "pages")
    }
    found = {**merged, **values, "changing": sorted(changing)}
    return {key: value for key, value in found.items() if value}


def check_keys(want: Want, have: Have) -> None:
    """Raise InputError for a sysctl key that the kernel does not have."""
    missing = [key for key in want.sysctl if have.sysctl.get(key) is None]
    if missing:
        raise InputError(
            f"this kernel has no sysctl {', '.join(key.translate(_SWAP) for key in missing)} (no "
            f"/proc/sys/{missing[0]}); correct the name, or load the module that provides it (option modules)"
        )


def _check(want: Want, have: Have) -> None:
    # A module that is not loaded yet can bring keys.
    if set(want.modules) <= set(have.loaded):
        check_keys(want, have)
    for key, value in want.sysctl.items():
        _check_others(key, value, have.others)
    for pages in want.pages:
        path = pages_path(pages)
        if have.pages.get(path) is None:
            where = "" if pages.numa_node is None else f" on NUMA node {pages.numa_node}"
            raise InputError(
                f"hugepages of {pages.size} kB are not supported{where} (no /sys/{path}). Request another size"
            )
    asked = sum(pages.size * pages.count for pages in want.pages)
    if 0 < have.memory < asked:
        raise InputError(
            f"hugepages: {asked} kB requested, but the host has {have.memory} kB of memory. Reduce the number of pages"
        )


def _check_others(key: str, value: str, others: Mapping[str, str]) -> None:
    """Refuse a file that comes after ours at each boot and sets the key otherwise.

    Patterns do not count: a key that is named by itself is left out of them.
    """
    found = None
    by_name: dict[str, str] = {}
    for path in others:
        by_name.setdefault(posixpath.basename(path), path)
    for base, path in sorted(by_name.items()):
        if base > posixpath.basename(SYSCTL):
            for other, text in _assignments(others[path]):
                found = (path, text) if other == key else found
    if found and found[1] != value:
        raise ConflictError(
            f"sysctl {key.translate(_SWAP)}: {found[0]} is applied after the file of this module and sets "
            f"'{found[1]}', but '{value}' is requested. Change that file, or request the same value"
        )


def _assignments(text: str) -> Iterable[tuple[str, str]]:
    for line in (line.strip() for line in text.splitlines()):
        key, equals, value = line.partition("=")
        name = key.strip().lstrip("-")
        if equals and not line.startswith(("#", ";")) and _KEY.fullmatch(name):
            yield sysctl_path(name), " ".join(value.split())


def _before(
    kind: str, want: Mapping[str, Any], now: Mapping[str, Any], *, record: Mapping[str, Any], ours: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the recorded values to restore, and warnings: what went with its module cannot, what others changed stays.

    ``ours`` are the values that our file sets; those that a run that was cut off was changing can be any.
    """
    here = {key: value for key, value in record.get(kind, {}).items() if None not in (value, now.get(key))}
    known = {key: value for key, value in ours.items() if key not in record.get("changing", ())}
    others = [key for key in restore.changed_since(here, known, now) if key not in want]
    return (
        {key: value for key, value in here.items() if key not in others},
        [restore.kept(key, here[key], known[key], now=now[key]) for key in others],
    )


def _plain(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else " ".join(str(value).split())


def _waits(want: Want, have: Have, known: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return why a boot is needed, and the record of module parameters.

    A parameter that its module does not show, or of a module that is not loaded, waits for nothing.
    """
    wanted = want.parameters()
    goal = {**known, **wanted}
    there = {key: have.parameters[key] for key in goal if have.parameters.get(key) is not None}
    waiting = [key for key in there if _truth(there[key]) != _truth(goal[key])]
    reasons = [f"{key.replace('/', ' ')}={goal[key]} takes effect at the next boot" for key in waiting]
    return reasons, {key: known.get(key, str(there[key])) for key in there if key in wanted or key in waiting}


def _truth(value: str | None) -> str:
    return _TRUTH.get((value or "").lower(), value or "")


def _files(want: Want, etc: str) -> dict[str, str]:
    rows = {
        LOAD: list(want.modules),
        OPTIONS: [f"options {name} {text}" for name, text in sorted(want.options.items())],
        SYSCTL: [f"{key} = {value}" for key, value in sorted(want.sysctl.items())],
        # A star does not stand for root.
        LIMITS: [f"{who} - memlock {want.memlock}" for who in ("*", "root") if want.memlock],
        PAGES: [f"w /sys/{path} - - - - {count}" for path, count in sorted(want.counts().items())],
    }
    return {f"{etc}/{name}": "\n".join([f"# {TITLE}", *lines]) + "\n" for name, lines in rows.items() if lines}
