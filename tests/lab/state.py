# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the running lab is made of, and what is wrong with it on purpose."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from tests.lab.faults import Fault
from tests.lab.settings import RUN

_PATH = RUN / "state.json"


@dataclass
class State:
    """A lab that came up completely; there is no state of one that did not.

    disks: the folder that its disks were copied from.
    recipe: what these were made by, see `hosts.recipe`.
    cluster: whether it has a control plane and nodes.
    """

    disks: str
    recipe: str
    cluster: bool
    faults: list[Fault] = field(default_factory=list)


def load() -> State | None:
    """The state of the lab; None when there is none that came up."""
    try:
        raw = json.loads(_PATH.read_text())
        return State(**{**raw, "faults": [Fault(**fault) for fault in raw["faults"]]})
    except (OSError, ValueError, TypeError):
        return None


def store(state: State) -> None:
    """Keep the state; at no time is there half of one."""
    partial = _PATH.with_suffix(".new")
    partial.write_text(json.dumps(asdict(state), indent=2))
    partial.rename(_PATH)


def forget() -> None:
    """From now on the lab counts as one that is not up."""
    _PATH.unlink(missing_ok=True)
