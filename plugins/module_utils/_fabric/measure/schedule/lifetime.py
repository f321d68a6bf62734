# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long testers may live: longer than any measurement of the plan can last, known before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...._common.errors import InputError
from ...intent import budgets
from ...intent.tests import complete
from .schedule import fields, mode_of, planned
from .timing import LONGEST_LEAD, STRETCHES, margin_of, stretched

# For what is not known before: pods that start slowly, and a schedule that cannot be worked out yet.
LEAST = 4 * 3600
# Passes begin later than they can.
_TIMES = 2


def lifetime(plan: Mapping[str, Any], names: Sequence[str], margin: int) -> int:
    """Return seconds: LEAST, and twice the announced worst case of measuring ``names`` with all retries.

    ``margin``: seconds that a slot is longer than the measurement in it at most.
    """
    tests = complete(plan.get("tests") or {})
    try:
        rounds = len(planned(names, [rail["name"] for rail in plan["rails"]], tests, fields=fields(plan, names)))
    except InputError:
        return LEAST
    slot = stretched(int(tests["duration"]), margin_of(tests, margin), STRETCHES)
    passes = 1 + int(tests["retries"])
    tests["mode"] = mode_of(tests, len(names))
    times = budgets.repeats(tests, len(names), rounds)
    more = budgets.locating(tests, len(names), len(plan["rails"])) * budgets.needed(tests["repeats"], times)
    more = more * int(tests["isolation"]) + budgets.more(tests, len(names))
    return LEAST + _TIMES * (passes * (rounds * times * slot + LONGEST_LEAD) + more * slot)
