"""Hosts with rails, once for all faults: the first file that runs prepares them."""

from __future__ import annotations

import pytest

from tests.scenario import playbook


@pytest.fixture(scope="session", autouse=True)
def prepared() -> None:
    """The operator is not needed: testers use the hosts' own network here."""
    playbook("prepare").must()
