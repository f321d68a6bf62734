# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel the boot loader starts next: GRUB's menu, boot loader entries, or the newest one. Pure."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from ..._common.units import version_key

_LITERAL_DEFAULT = re.compile(r'^\s*set default="([^"$]+)"', re.MULTILINE)
_KERNEL = re.compile(r"vmlinuz-(\S+)")


@dataclasses.dataclass
class _Item:
    """An entry of GRUB's menu (``release``) or a submenu (``items``)."""

    names: tuple[str, ...]
    release: str | None = None
    items: list[_Item] = dataclasses.field(default_factory=list)


def next_kernel(boot: Mapping[str, Any]) -> str | None:
    """Return the release that boots next, None when nothing tells.

    ``boot``: ``grub_cfg`` and ``grubenv`` (texts, empty when there is no such file), ``entries``
    (name -> text of /boot/loader/entries) and ``kernels`` (releases that are installed). GRUB takes
    next_entry once, then its default, which may be the saved one; without a menu of its own it
    takes the boot loader entries, newest first.
    """
    environment = dict(line.split("=", 1) for line in boot["grubenv"].splitlines() if "=" in line)
    items = _menu(boot["grub_cfg"]) or _entries(boot["entries"])
    literal = _LITERAL_DEFAULT.search(boot["grub_cfg"])
    chosen = literal.group(1) if literal else environment.get("saved_entry", "")
    for wanted in (environment.get("next_entry", ""), chosen, "0"):
        found = _resolve(wanted, items) if wanted else None
        if found:
            return found
    return max(boot["kernels"], key=version_key, default=None)


def _menu(text: str) -> list[_Item]:
    """Return the top level of the menu in grub.cfg."""
    top = _Item(())
    # Functions have braces too: they stand on the stack as items that no menu has.
    stack = [top]
    for line in text.splitlines():
        words = line.split(None, 1)
        if words and line.rstrip().endswith("{"):
            item = _Item(_names(line))
            if words[0] in ("menuentry", "submenu"):
                stack[-1].items.append(item)
            stack.append(item)
        elif words == ["}"] and len(stack) > 1:
            stack.pop()
        elif words and words[0] in ("linux", "linuxefi", "linux16"):
            match = _KERNEL.search(line)
            stack[-1].release = match.group(1) if match else None
    return top.items


def _names(line: str) -> tuple[str, ...]:
    """Return title and id of an entry; both can be the default."""
    try:
        words = shlex.split(line)
    except ValueError:
        return ()
    after = [words[place + 1] for place, word in enumerate(words[:-1]) if word in ("$menuentry_id_option", "--id")]
    return (*words[1:2], *after)


def _entries(entries: Mapping[str, str]) -> list[_Item]:
    """Return boot loader entries as a menu, newest first, as GRUB's blscfg sorts them."""
    items = []
    for name, text in entries.items():
        fields = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)
        match = _KERNEL.search(fields.get("linux", ""))
        release = fields.get("version") or (match.group(1) if match else "")
        items.append(_Item((name[: -len(".conf")], fields.get("title", "")), release.strip() or None))
    return sorted(items, key=lambda item: (_is_normal(item), version_key(item.release or "")), reverse=True)


def _is_normal(item: _Item) -> bool:
    """Whether it is no rescue entry; those sort last."""
    return "rescue" not in item.names[0]


def _resolve(wanted: str, items: list[_Item]) -> str | None:
    """Follow a default like ``0``, ``1>2`` or ``menu-id>entry-id`` to its kernel."""
    first, _mark, rest = wanted.partition(">")
    found = _find(first.strip(), items)
    if found is None or found.release:
        return found.release if found else None
    return _resolve(rest or "0", found.items)


def _find(name: str, items: Iterable[_Item]) -> _Item | None:
    items = list(items)
    named = next((item for item in items if name in item.names), None)
    if named is None and name.isdecimal() and int(name) < len(items):
        return items[int(name)]
    return named
