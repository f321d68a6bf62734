# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All rules, and running them."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..._common.errors import harmless
from . import cluster_rules, driver_rules, network_rules, policy_rules, sriov_rules, webhook_rules
from .objects import Objects
from .rule import ERROR, Rule

RULES: tuple[Rule, ...] = (
    *policy_rules.RULES,
    *driver_rules.RULES,
    *network_rules.RULES,
    *sriov_rules.RULES,
    *webhook_rules.RULES,
    *cluster_rules.RULES,
)


class Finding(NamedTuple):
    """What a rule found: its name and severity, the object, found and action in ``text``, and its ``effect``."""

    rule: str
    severity: str
    object: str
    text: str
    effect: str

    @property
    def line(self) -> str:
        """The finding as a line for a reader."""
        return f"{self.object}: {self.effect}. {self.text} ({self.rule})"


def names() -> list[str]:
    """Return the names of all rules."""
    return [rule.name for rule in RULES]


def lint(objects: Objects, ignore: Collection[str] = ()) -> list[Finding]:
    """Return what all rules but those in ``ignore`` find, errors first."""
    found = [
        Finding(rule.name, rule.severity, harmless(place), harmless(text), rule.effect)
        for rule in RULES
        if rule.name not in ignore
        for place, text in dict.fromkeys(rule.check(objects))
    ]
    return sorted(found, key=lambda finding: finding.severity != ERROR)
