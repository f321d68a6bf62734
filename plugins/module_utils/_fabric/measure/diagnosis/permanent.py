# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results without those that a permanent fault of a host, port, direction or rail explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..schedule.schedule import subject
from . import absence, duplicates, fan
from .causes import causes
from .components import View
from .pass_index import Fleet

Result = Mapping[str, Any]
# What comes and goes is told as unsteady, and one pair or an unknown path explains no more than itself.
_OPEN = ("pair", "path")


def without_permanent(results: Sequence[Result], view: View) -> Sequence[Result]:
    """Return the results of one place that say something about faults that come and go.

    Stars are none of them: their sum is judged, and no share of it.
    """
    if not any(result["verdict"] == "fail" or result.get("star") for result in results):
        return results
    known, _hit = duplicates.split(absence.split(results)[0])
    pairs, _failed = fan.split(known)
    fleet = Fleet.of(pairs, view)
    gone = {
        failure.test
        for cause in causes(fleet)
        if cause.scope.kind not in _OPEN and not cause.unsteady
        for failure in cause.failures
    }
    return [result for result in results if not result.get("star") and subject(result) not in gone]
