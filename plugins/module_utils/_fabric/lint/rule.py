# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rule is: a trap that no schema knows, found by positive evidence in objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Callable, NamedTuple

from .objects import Objects

ERROR, WARNING = "error", "warning"


class Found(NamedTuple):
    """Where a rule found what: the object as messages call it, and found, expected, action in sentences."""

    object: str
    text: str


@dataclass(frozen=True)
class Rule:
    """``name``: how findings and the option ``ignore`` call it. ``effect``: what happens where it is found.

    ``severity``: an error stops something from working, a warning has a cost that may be wanted. ``source``: who
    reported the effect, a thread or a document. ``needs``: what a finding needs beside the manifests.
    """

    name: str
    severity: str
    effect: str
    source: str
    check: Callable[[Objects], Iterator[Found]]
    needs: str = ""
