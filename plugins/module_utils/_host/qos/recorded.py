# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is recorded of a port's QoS: the settings before the first change, and those that were set. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Settings ``before`` us and those that were ``set``, by name (see ``restore``), and the ``owners`` of the port then.
Entry = Mapping[str, Any]
# By PCI address.
Record = Mapping[str, Entry]
NOTHING: Entry = {"before": {}, "set": {}}


def entry(own: Mapping[str, Any], known: Entry, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a port whose settings become ``own``; ``known`` is the one that there is."""
    return {**known, "before": {name: known["before"].get(name, now[name]) for name in own}, "set": dict(own)}
