# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module keeps on a host: the values before its first change, and its reasons to reboot."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import files
from .files import Roots


def load(state: str, module: str) -> dict[str, Any]:
    """Return the values before us that a module recorded, empty when there are none."""
    return files.read_record(f"{state}/{module}.json")


def save(state: str, module: str, values: Mapping[str, Any]) -> None:
    """Record values; none of them removes the record."""
    path = f"{state}/{module}.json"
    text = json.dumps(values, indent=1, sort_keys=True) + "\n" if values else None
    if files.read(path) != text:
        files.put(path, text, mode=0o600)
    if not values:
        # Not empty: other modules have records too. Not there: nothing was ever recorded.
        with contextlib.suppress(OSError):
            os.rmdir(state)


def set_reasons(roots: Roots, module: str, reasons: Iterable[str]) -> None:
    """Leave the reasons to reboot where a boot takes them away; none removes the file."""
    path = f"{roots.run}/gpufabric/reboot.d/{module}"
    text = "".join(f"{reason}\n" for reason in reasons) or None
    if files.read(path) != text:
        files.put(path, text)
