# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many names in few characters: gpu-01, gpu-02 and gpu-03 are gpu-[01-03]."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .reader import MOST, left_out

# The last number of a host name before its domain, and of an address before its prefix length.
_HOST = re.compile(r"([^.]*?)(\d+)(\D*?(?:\..*)?)")
_ADDRESS = re.compile(r"(.*\.)(\d+)((?:/\d+)?)")


def fold(names: Sequence[str]) -> str:
    """Return host names with runs of numbers folded; at most ``MOST`` parts, then how many names are left out."""
    return _fold(names, _HOST)


def fold_addresses(addresses: Sequence[str]) -> str:
    """Return IPv4 addresses with runs of their last number folded: ``192.168.0.[1-16]/24``; other ones as they are."""
    return _fold(addresses, _ADDRESS)


def _fold(names: Sequence[str], form: re.Pattern[str]) -> str:
    families: dict[tuple[str, str, int], list[str]] = {}
    for name in dict.fromkeys(names):
        match = form.fullmatch(name)
        # A number that starts with 0 has a width; others have none.
        width = len(match[2]) if match and match[2].startswith("0") else 0
        key = (match[1], match[3], width) if match else (name, "", -1)
        families.setdefault(key, []).append(match[2] if match else "")
    parts = []
    for (prefix, suffix, _width), numbers in _padded(families).items():
        runs = _runs(numbers)
        whole = ",".join(run for run, _count in runs[:MOST])
        shown = f"{prefix}[{whole}]{suffix}" if len(numbers) > 1 else f"{prefix}{whole}{suffix}"
        left = sum(count for _run, count in runs[MOST:])
        parts.append((shown + left_out(left), len(numbers)))
    left = sum(count for _text, count in parts[MOST:])
    return ", ".join(text for text, _count in parts[:MOST]) + left_out(left)


def _padded(families: dict[tuple[str, str, int], list[str]]) -> dict[tuple[str, str, int], list[str]]:
    """Return the families with numbers such as 10 added to those of 09, which have the same width."""
    found: dict[tuple[str, str, int], list[str]] = {}
    for (prefix, suffix, width), numbers in families.items():
        for number in numbers:
            wide = (prefix, suffix, len(number))
            found.setdefault(wide if wide in families else (prefix, suffix, width), []).append(number)
    return found


def _runs(numbers: Iterable[str]) -> list[tuple[str, int]]:
    """Return runs of consecutive numbers as (text, how many)."""
    runs: list[list[str]] = []
    for number in sorted(numbers, key=lambda text: (int(text or 0), text)):
        if runs and number and int(number) == int(runs[-1][-1]) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}", len(run)) for run in runs]
