# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of a chart before and after, for people: what the user gave may be a secret, and is hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._common import secrets
from ..._common.change import Change

HIDDEN, CHANGED = "<hidden>", "<hidden, changed>"


def change(before: Mapping[str, Any], after: Mapping[str, Any], own: Mapping[str, Any]) -> Change:
    """Return the two sets of values. ``own``: those that the user gave, of which only a change is shown."""
    shown = _hidden(before, after, own)
    return Change(secrets.hide_in(shown[0]), secrets.hide_in(shown[1]))


def _hidden(before: Any, after: Any, own: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    old, new = dict(before), dict(after)
    for key in old:
        if key not in new:
            # Of an earlier run or of another owner: it may be a secret as well.
            old[key] = HIDDEN
        elif key not in own and isinstance(old[key], Mapping) and isinstance(new[key], Mapping):
            old[key], new[key] = _hidden(old[key], new[key], {})
    for key, value in own.items():
        pair = (old.get(key), new.get(key))
        if isinstance(value, Mapping) and value and all(isinstance(one, Mapping) for one in pair):
            old[key], new[key] = _hidden(*pair, value)
            continue
        differ = pair[0] != pair[1]
        if key in old:
            old[key] = HIDDEN
        if key in new:
            new[key] = CHANGED if differ else HIDDEN
    return old, new
