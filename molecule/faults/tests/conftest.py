"""Hosts with rails, once for all faults: the first file that runs prepares them, and the power of one fails."""

from __future__ import annotations

import pytest
from tests.scenario import playbook
from tests.scenario.preparation import Cut, cut_in, first_record


@pytest.fixture(scope="session", autouse=True)
def cut() -> Cut:
    """Of lab-2. The operator is not needed: testers use the hosts' own network here."""
    found = cut_in("lab-2", {}, lambda: first_record("lab-2"))
    playbook("prepare").must()
    return found
