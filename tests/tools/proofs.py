"""`python -m tests.tools.proofs`: writes docs/proofs.md, what is proven of each role on which distribution, and how.

Read from the tests themselves: a test that proves something of a role says so by its mark,
`@pytest.mark.proves("host_kernel", "RHEL 9", by="fixture")`. The strongest proof counts: `lab` (a real host was
changed and looked at), `fixture` (recorded or hand-made output of that distribution), `unit` (logic alone).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "proofs.md"
#: From the strongest to the weakest.
WAYS = ("lab", "fixture", "unit")
HEADER = """# Test evidence per role and distribution

`python -m tests.tools.proofs` writes this page from the marks of the tests. **lab**: a real host of that distribution
was changed and verified. **fixture**: files and outputs of that distribution, recorded or written by hand; each fixture
states which. **unit**: logic only. Empty: no test.

"""


class Proof(NamedTuple):
    """A test, and what it proves: a role, a distribution, and in which way."""

    role: str
    distribution: str
    way: str


def main() -> int:
    PAGE.write_text(page(proofs()))
    return 0


def proofs() -> list[Proof]:
    """What the marks of all tests say."""
    files = [*(ROOT / "molecule").glob("*/tests/test_*.py"), *(ROOT / "tests" / "unit").rglob("test_*.py")]
    return [proof for path in sorted(files) for proof in marks(path.read_text(), path.name)]


def marks(text: str, name: str) -> Iterator[Proof]:
    """The proofs of one file; ValueError for a mark that says no known way."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "proves":
            role, *distributions = [ast.literal_eval(argument) for argument in node.args]
            named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
            way = named.get("by")
            if way not in WAYS or not distributions:
                raise ValueError(f'{name}: a mark proves("ROLE", "DISTRIBUTION", ..., by=...), by one of {WAYS}')
            yield from (Proof(role, distribution, way) for distribution in distributions)


def page(found: Iterable[Proof]) -> str:
    """The page: a row a role, a column a distribution."""
    best: dict[tuple[str, str], str] = {}
    for proof in found:
        place = proof.role, proof.distribution
        best[place] = min(best.get(place, proof.way), proof.way, key=WAYS.index)
    distributions = sorted({distribution for _role, distribution in best})
    rows = [
        f"| {role} | {' | '.join(best.get((role, distribution), '') for distribution in distributions)} |"
        for role in sorted({role for role, _distribution in best})
    ]
    heads = [f"| role | {' | '.join(distributions)} |", f"| --- |{' --- |' * len(distributions)}"]
    return HEADER + "\n".join([*heads, *rows]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
