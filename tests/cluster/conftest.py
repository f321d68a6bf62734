"""One cluster for all tests: each leaves it without testers, cordoned nodes or other objects."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from tests.tools.fleet import Fleet, fleet


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Three nodes, as the lab: six rounds of one pair each, which are one pass."""
    with fleet(tmp_path_factory.mktemp("cluster").resolve(), nodes=3) as found:
        yield found
