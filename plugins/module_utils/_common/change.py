# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change is the difference of two states; nobody assigns ``changed``."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Change:
    """The state before and after; any two values that compare and that Ansible can show."""

    before: Any
    after: Any

    @property
    def changed(self) -> bool:
        """Whether the two states differ."""
        return bool(self.before != self.after)

    def diff(self) -> dict[str, Any]:
        """Return the states in the form of Ansible's ``diff`` result."""
        return {"before": self.before, "after": self.after}
