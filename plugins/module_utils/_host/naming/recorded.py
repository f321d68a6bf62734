# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is recorded of names: the one before the first change, and all that were set and may still be there. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from ..system import restore

# Key of a name -> the name ``before`` us, and the names that were ``set``: the last one, and while a rename waits or is
# carried out the earlier ones too.
Record = Mapping[str, Mapping[str, Any]]
# A device has such a name while names change places.
STEP = "gpufabric{}"
_STEP = re.compile(STEP.format(r"\d+"))


def first(record: Record) -> dict[str, str]:
    """Return the names before us."""
    return {key: entry["before"] for key, entry in record.items()}


def others(record: Record, now: Mapping[str, str], what: str) -> dict[str, str]:
    """Return the keys whose name another tool has changed since, with a warning; ``now`` are the names of all."""
    found = {}
    for key in (key for key in record if key in now):
        before, ours = record[key]["before"], record[key]["set"]
        name = ours[-1] if now[key] in ours or _STEP.fullmatch(now[key]) else now[key]
        if restore.changed_since({key: before}, {key: ours[-1]}, {key: name}):
            found[key] = restore.kept(f"{key}: {what}", before, ours[-1], now=now[key])
    return found


def following(
    record: Record,
    now: Mapping[str, str],
    after: Mapping[str, str],
    *,
    wanted: Mapping[str, str],
    owned: Collection[str],
) -> dict[str, Mapping[str, Any]]:
    """Return the record after a run that leads from the names ``now`` to those of ``after``.

    First names are kept until they are back, and those of what is ``owned`` by others until it is not.
    """
    back = {key for key, name in first(record).items() if after.get(key, name) == name}
    kept = {key: entry for key, entry in record.items() if key in {*wanted, *owned} or key not in back}
    # What came with its name (a VF that udev named by our rule) has no other first one.
    new = {key: {"before": now[key], "set": []} for key in wanted if now.get(key, wanted[key]) != wanted[key]}
    found = {**new, **kept}
    for key in (key for key in found if key in wanted):
        earlier = [] if after.get(key) == wanted[key] else [one for one in found[key]["set"] if one != wanted[key]]
        found[key] = {**found[key], "set": [*earlier, wanted[key]]}
    return found
