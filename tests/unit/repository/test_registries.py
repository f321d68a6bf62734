"""What a registry knows is asked of the registry, and written nowhere else."""

from __future__ import annotations

import ast
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


# A release of the operator, as text or as part of one.
RELEASE = re.compile(r"(?<![\d.])2[5-9]\.(?:1|4|7|10)(?:\.(?:\d+|x))?(?![\d.])")
RELEASES = "plugins/module_utils/_fabric/intent/releases.py"


def code_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a file without comments and, of a plugin, without documentation."""
    text = path.read_text()
    if path.suffix == ".py":
        keep = ast.parse(text)
        shown = {
            number
            for node in ast.walk(keep)
            if isinstance(node, (ast.Expr, ast.Assign))
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            and (isinstance(node, ast.Expr) or names(node) & {"DOCUMENTATION", "EXAMPLES", "RETURN"})
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
    else:
        shown = set()
    for number, line in enumerate(text.splitlines(), 1):
        if number not in shown:
            yield number, re.sub(r"(?:^|\s)#.*", "", line)


def names(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def releases_in(path: Path) -> list[int]:
    return [number for number, line in code_lines(path) if RELEASE.search(line)]


def product() -> Iterator[Path]:
    """The code of the product; an example of an image, and the tables of definitions and digests, have releases."""
    yield from (path for path in code() if path.name not in ("images.py", "schema_table.py", "digests.py"))


def test_a_release_of_the_operator_is_written_in_one_place() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{number}"
        for path in product()
        if str(path.relative_to(ROOT)) != RELEASES
        for number in releases_in(path)
    }
    assert found == set(), f"take it from {RELEASES}; roles and playbooks: lookup('gpufabric.rdma.operator_release')"
    assert releases_in(ROOT / RELEASES)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", 'X = ("25.10", "26.1")', [1]),
        ("a.py", 'EXAMPLES = """\n26.7.1\n"""\nY = 1\nprint("set it to 26.7.x")', [5]),
        ("a.py", '"""Such as 26.7.1."""\n# 26.7\nFIRMWARE = "28.43.1014"\nB = 126.7\nC = "26.7.1.2"', []),
        ("a.yml", 'x_release: "26.7.1"\n# 26.7.1', [1]),
        ("a.yml", "image: a/perftest:25.01\nx: 20.04", []),
    ],
)
def test_a_release_is_found(tmp_path: Path, name: str, text: str, expected: list[int]) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert releases_in(path) == expected
