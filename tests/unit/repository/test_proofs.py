"""docs/proofs.md is what the marks of the tests say."""

from __future__ import annotations

import pytest
from tests.tools import proofs

TEXT = """
@pytest.mark.proves("host_kernel", "RHEL 9", "Debian 13", by="fixture")
def test_a(): pass
@pytest.mark.proves("host_kernel", "Debian 13", by="lab")
def test_b(): pass
@pytest.mark.proves("sriov", "RHEL 9", by="unit")
def test_c(): pass
"""


def test_the_page_is_current() -> None:
    assert proofs.PAGE.read_text() == proofs.page(proofs.proofs()), "run python -m tests.tools.proofs"


def test_the_strongest_proof_counts() -> None:
    table = proofs.page(proofs.marks(TEXT, "test_x.py")).partition("\n\n## ")[0]
    assert table.splitlines()[-4:] == [
        "| role | Debian 13 | RHEL 9 |",
        "| --- | --- | --- |",
        "| host_kernel | lab | fixture |",
        "| sriov |  | unit |",
    ]


@pytest.mark.parametrize("mark", ['proves("a", "b", by="hope")', 'proves("a", by="lab")', 'proves("a", "b")'])
def test_a_mark_that_says_nothing_is_refused(mark: str) -> None:
    with pytest.raises(ValueError, match=r"^test_x.py: a mark proves"):
        list(proofs.marks(f"@pytest.mark.{mark}\ndef test_x(): pass\n", "test_x.py"))
