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
FOOTER = """
## What only a GPU machine could show

No test of this project has run on a GPU. Facts, GPU and NIC pairs, schedule, slots, verdicts and reports are tested
with facts of a server with 8 GPUs and 8 rails and with outputs that were written by hand after public formats.

| subject | what is tested | what only a machine with GPUs, or with GPUs and RDMA NICs, could show |
| --- | --- | --- |
"""
# Subject, what is tested, and what only a machine could show.
WITHOUT_GPUS = (
    (
        "start of CUDA",
        "slots of the tester follow a stand-in that needs 9 s to start",
        "the time that 1 to 8 processes need, with and without the persistence mode of the driver; "
        "whether 12 s are enough for the first slots",
    ),
    (
        "perftest with CUDA",
        "its help decides whether a host can be measured; messages of builds without CUDA are recorded",
        "the lines that prove GPU memory and DMA-BUF, in each version; which packages of vendors have CUDA",
    ),
    (
        "GPU memory beside host memory",
        "expectation, schedule and finding",
        "what PCIe ACS, the IOMMU and the BAR of the GPU really cost; that 0.97 of the rate is reached "
        "behind a PCIe switch",
    ),
    (
        "DMA-BUF, nvidia-peermem",
        "the selection of role peer_memory by kernel, driver and RDMA stack",
        "a registration of GPU memory by each",
    ),
    (
        "tester image",
        "the build script up to the call of the container engine",
        "a build, and its size",
    ),
    (
        "NCCL",
        "the start of processes with MPICH and a stand-in of nccl-tests; log and output by hand; the report",
        "nccl-tests, its log of transports, the bus bandwidth of each model",
    ),
)


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
    lacking = [f"| {' | '.join(row)} |" for row in WITHOUT_GPUS]
    return HEADER + "\n".join([*heads, *rows]) + "\n" + FOOTER + "\n".join(lacking) + "\n"


if __name__ == "__main__":
    sys.exit(main())
