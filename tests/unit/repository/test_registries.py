"""What a registry knows is asked of the registry, and written nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Guesses at what a kind of test does from its name.
GUESS = re.compile(
    r"""\b(?:startswith|endswith|removeprefix|removesuffix)\(\(?["'](?:read|write|send|_bw|_lat)"""
    r"""|\b(?:LATENCY|BANDWIDTH)\b|["'](?:read|write|send)_(?:bw|lat)["']"""
    r"""|\bsearch\('\^?(?:read|write|send)|(?:_bw|_lat)\$?'\)"""
)
KINDS = "plugins/module_utils/_fabric/intent/kinds.py"


def guesses(text: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), 1) if GUESS.search(line)]


def code() -> Iterator[Path]:
    """The code of the product; what is generated from the reference page is documentation."""
    yield from sorted(path for path in (ROOT / "plugins").rglob("*.py") if path.parent.name != "doc_fragments")
    for folder in ("roles", "playbooks"):
        yield from sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in (".yml", ".j2"))


def test_nobody_guesses_at_a_kind_of_test_from_its_name() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{number}"
        for path in code()
        if str(path.relative_to(ROOT)) != KINDS
        for number in guesses(path.read_text())
    }
    assert found == set(), f"ask {KINDS}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('if test.kind.startswith("read"):', [1]),
        ("kind.endswith(('_lat', '_x'))", [1]),
        ('x\nif kind in LATENCY or kind == "write_lat":', [2]),
        ("_PROBE = 'send_lat'", [1]),
        ("when: item is search('^read')", [1]),
        ('_OF_BANDWIDTH = 1\npath = command.find("ib_write_bw")\n``write_bw 4096 B``', []),
        ("KINDS[kind].latency", []),
    ],
)
def test_a_guess_is_found(text: str, expected: list[int]) -> None:
    assert guesses(text) == expected
