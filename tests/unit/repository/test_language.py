"""User-facing text is in standard English: the idioms of the table in CONTRIBUTING.md are refused.

To examine more text, add a line to SOURCES: a name, and a function that yields (where, text), with `where` as
"path:line" of the first line of the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Files with idioms that are still to be edited. A file is removed from the list with its last idiom.
TO_DO: frozenset[str] = frozenset()

Texts = Iterator[tuple[str, str]]


class Idiom(NamedTuple):
    """A phrase that is refused, what to write instead, and an example of each."""

    pattern: re.Pattern[str]
    instead: str
    refused: tuple[str, ...]
    accepted: tuple[str, ...]


def idiom(pattern: str, instead: str, refused: list[str], accepted: list[str]) -> Idiom:
    """An idiom whose pattern has one space where a text may break its line."""
    return Idiom(re.compile(pattern.replace(" ", r"\s+")), instead, tuple(refused), tuple(accepted))


UNITS = "rail|host|node|Node|playbook|role|port|pair|pod|run|pass|round|second|minute|module|template|page|network"
NUMBERS = "[Oo]ne|two|three|four|five|six|seven|eight|ten"
NOUN = r"(?!(?:and|as|at|by|for|from|has|if|in|is|of|on|or|that|to|when|which|while|with)\b)[a-z]+"
IDIOMS = (
    idiom(
        rf"\b(?:(?:{NUMBERS}|\d[\d.]*) (?:\w+ )?{NOUN}|[Mm]s|[Ss]|MiB) an? (?:{UNITS})\b"
        rf"|\b(?:network|pool|template|module|page|tester|request) an? (?:{UNITS})\b",
        "per: one network per rail, 10 ms per host",
        [
            "one network a rail",
            "It takes 10 ms a\nhost.",
            "a page a role",
            "the network a rail",
            "One Job, one tester a node.",
            "7 s a host",
        ],
        [
            "one network per rail",
            "10 ms per host",
            "It runs on a host.",
            "which is on a host",
            "a task on a host",
            "a fleet or a run",
        ],
    ),
    idiom(
        r"\b[Tt](?:ell|ells|old|elling)\b|\b[Ss](?:ay|ays|aid|aying)\b",
        "report, show, print, list, state; for instructions: set",
        ["The message tells which host.", "Nothing is said.", "It is told at once.", "Say so in the inventory."],
        ["The message names the host.", "reports all problems in one message", "the soldier"],
    ),
    idiom(
        r"\b(?:tak(?:e|es|en|ing)|took|giv(?:e|es|en|ing)|gave|com(?:e|es|ing)|came|[Bb]r(?:ing|ings|ought)|puts?)"
        r"(?: \w+){0,3} back\b|\bgoes\b",
        "restore, revert, remove, return",
        [
            "The rails are taken back.",
            "It gives the old values back.",
            "Hosts come back.",
            "Bring that Node back first.",
            "What goes, goes in reverse.",
        ],
        ["Original values are restored.", "It falls back to GIDs.", "The host returns.", "Go 1.25"],
    ),
    idiom(
        r"\b(?:of|by|than|to|as|like|from|over) (?:ours|yours|others|theirs)\b|\bothers'"
        r"|\b(?:[Ss]ome|[Nn]o|[Aa]ny)body\b|\b[Ss]omeone else\b|\b[Ww]hoever\b|\b[Ww]hom\b|\b[Aa]ccuses?d?\b",
        "managed by this collection, unmanaged, another tool; or the passive voice",
        [
            "files of others",
            "an object of ours",
            "somebody else",
            "Nobody is accused.",
            "whom to blame",
            "accuses hosts",
        ],
        ["files managed by another tool", "the other hosts", "No host is suspected."],
    ),
    idiom(
        r"\b(?:[Oo]ur|[Oo]urs|us|[Ww]e)\b",
        "this collection, or the passive voice",
        ["our label", "packages installed by us", "We know of none."],
        ["the label of this collection", "the bus", "in the US"],
    ),
    idiom(
        r"\b[Ww]hat (?:(?:is|was|are|were) (?:there|asked|wanted|missing|left)\b"
        r"|waits?\b|goes\b|comes\b|came\b|stays\b|stands\b|grew\b)",
        "a noun: current state, requested value, pending change",
        ["what is there", "what was asked for", "What waits for a boot is listed.", "what is left"],
        ["the current state", "what the role changes", "a pending change"],
    ),
    idiom(
        r"(?<![Tt]here\s)\b(?:is|are|was|were|be) no (?!longer\b|more\b|less\b)",
        "is not a ..., is not valid",
        ["eth0 is no rail", "a name that is no sysctl key", "values that are\nno numbers", "They are no data."],
        ["eth0 is not a rail", "there is no GID", "it is no longer used", "There are no leftovers."],
    ),
    idiom(r"\b[Ss]hall\b", "must, should, to be", ["rails shall be up"], ["rails must be up", "marshalled"]),
    idiom(
        r"\b[Bb]lam(?:e|es|ed|ing)\b",
        "diagnosis, suspect, cause",
        ["A host is blamed.", "Blame is right", "the blames"],
        ["A host is diagnosed.", "the suspect"],
    ),
    idiom(
        r"(?<![Mm]ake\s)(?<![Mm]akes\s)\b[Ss]ure\b|\b(?:[Ll]ikely)\b",
        "confirmed, suspected; for a probability: probably",
        ["The diagnosis is sure.", "a likely cause"],
        ["Make sure that lldpd runs.", "It makes sure of that.", "a confirmed diagnosis", "pressure", "is unlikely"],
    ),
    idiom(
        r"\b(?:[Tt]ry|[Tt]ries|[Tt]ried|[Ll]ook)(?: \w+){0,3} by hand\b|\b[Cc]ommands (?:to \w+ it |for )?again\b",
        "reproduce",
        ["how to try it by hand", "Look at a suspect by hand", "commands again"],
        ["Reproduce a result by hand", "Run it again.", "made by hand"],
    ),
    idiom(
        r"\boutside of the kernel\b|\b(?:drivers?|modules?) of the kernel\b|\bof the kernel\)",
        "in-tree, out-of-tree",
        ["built outside of the kernel", "the driver of the kernel", "mlx5_core (of the kernel)"],
        ["an in-tree driver", "out-of-tree modules", "the version of the kernel"],
    ),
    idiom(
        r"\b(?:[Ss]tands?|stood|[Hh]angs?|hung) (?:up)?on\b"
        r"|\b(?:[Ss]tands?|stood) (?:in|at|before|first|there|below|above|with)\b",
        "is configured on, is connected to, is listed in, precedes",
        ["the VLAN stands on rail0", "switches that the rails hang on", "its path stands before"],
        ["the VLAN is configured on rail0", "a stand-in for the operator", "stands for", "the test hangs"],
    ),
    idiom(
        r"\b[Nn]ow and (?:after|at|then)\b|\b[Aa]t boots\b",
        "immediately and across reboots, persistent; intermittently",
        ["now and after a boot", "now and at boots", "slow now and then"],
        ["immediately and across reboots", "at boot", "now and in the future"],
    ),
    idiom(
        r"\b(?:[Ww]ho|account that|that) may do what\b|\b[Ww]ho may\b|\baccount that may\b",
        "permissions, access",
        ["who may do what", "an account that may list Nodes"],
        ["an account with these permissions", "a host that may be rebooted"],
    ),
    idiom(
        r"\b[Ww]rong readings?\b",
        "an invalid reading",
        ["a wrong reading"],
        ["an invalid reading", "the wrong key"],
    ),
    idiom(
        r"\b[Oo]nly when asked\b|\b[Rr]eally ready\b",
        "opt-in; ready",
        ["only when asked", "until it is really ready"],
        ["opt-in", "until it is ready"],
    ),
)

FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
GENERATED = re.compile(r"<!-- inputs: from .*?<!-- inputs: end -->", re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
# Code in the documentation of plugins, and what is not a sentence in a YAML file.
MARKUP = re.compile(r"\b(?:C|V|O|M|E|RV|P|L|U|I|B)\([^)]*\)|\{\{.*?\}\}", re.DOTALL)
YAML_CODE = re.compile(r"^\s*(?:default|choices|type|elements|required): .*$|^\s*[\w-]+:$", re.MULTILINE)
TARGET = re.compile(r"\]\([^)\s]*\)")
# Stands for code in a sentence: neither a word nor a space.
GAP = "\N{HORIZONTAL ELLIPSIS}"


def gap(match: re.Match[str]) -> str:
    """What replaces code: lines keep their numbers."""
    return GAP + "\n" * match[0].count("\n")


def prose(markdown: str) -> str:
    """The sentences of a page, without code, comments and the targets of links; lines keep their numbers."""
    for pattern in (FENCE, GENERATED, COMMENT):
        markdown = pattern.sub(lambda match: "\n" * match[0].count("\n"), markdown)
    markdown = CODE.sub(gap, markdown)
    return TARGET.sub("]", markdown)


def paragraphs(path: Path, root: Path = ROOT) -> Texts:
    """The paragraphs of a page, each with its file and first line; a row of a table is a paragraph."""
    line = 1
    for part in re.split(r"(\n(?=\|)|(?<=\|)\n|\n{2,})", prose(path.read_text())):
        if part.strip():
            yield f"{path.relative_to(root)}:{line}", part
        line += part.count("\n")


def pages() -> Texts:
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        yield from paragraphs(path)


def role_readmes() -> Texts:
    for path in sorted((ROOT / "roles").glob("*/README.md")):
        yield from paragraphs(path)


def strings(path: Path, root: Path = ROOT) -> Texts:
    """The documentation that a plugin assigns to names, without its code: C(...), V(...), O(...), expressions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield f"{path.relative_to(root)}:{node.value.lineno}", MARKUP.sub(gap, node.value.value)


def plugin_docs() -> Texts:
    for folder in ("modules", "doc_fragments", "inventory", "lookup"):
        for path in sorted((ROOT / "plugins" / folder).glob("*.py")):
            yield from strings(path)


def descriptions(path: Path, root: Path = ROOT) -> Texts:
    """The descriptions in a YAML file: everything but keys, defaults and choices."""
    text = YAML_CODE.sub(gap, path.read_text())
    yield f"{path.relative_to(root)}:1", CODE.sub(gap, text)


def role_specs() -> Texts:
    for name in ("argument_specs.yml", "main.yml"):
        for path in sorted((ROOT / "roles").glob(f"*/meta/{name}")):
            yield from descriptions(path)


def names(path: Path, root: Path = ROOT) -> Texts:
    """The names of plays, tasks and blocks in a file."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r"\s*- name: (.+)", line)
        if match:
            yield f"{path.relative_to(root)}:{number}", match[1]


def task_names() -> Texts:
    for pattern in ("playbooks/**/*.yml", "roles/*/tasks/**/*.yml", "molecule/**/*.yml"):
        for path in sorted(ROOT.glob(pattern)):
            yield from names(path)


def messages(root: Path = ROOT) -> Texts:
    """The texts that code can print: every literal of several words that is not documentation."""
    for folder in ("module_utils", "modules", "action", "inventory", "lookup", "plugin_utils"):
        for path in sorted((root / "plugins" / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            skipped = documentation(tree)
            for node in ast.walk(tree):
                text = literal(node) if id(node) not in skipped else ""
                if " " in text.strip():
                    yield f"{path.relative_to(root)}:{getattr(node, 'lineno', 1)}", MICROSECONDS.sub(gap, text)


# A unit, and not the pronoun.
MICROSECONDS = re.compile(r"(?:\b(?:worst|median)|\.\.\.) us\b")


def documentation(tree: ast.AST) -> set[int]:
    """Docstrings, documentation blocks, and the parts of texts with values in them."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) or (isinstance(node, ast.Assign) and names_of(node) & BLOCKS):
            found.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            found |= {id(part) for part in node.values}
    return found


BLOCKS = {"DOCUMENTATION", "EXAMPLES", "RETURN"}


def names_of(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def literal(node: ast.AST) -> str:
    """A text as it is printed, with ... for what is filled in; empty for anything else."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_messages_are_examined_without_docstrings(tmp_path: Path) -> None:
    path = tmp_path / "plugins" / "module_utils" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text('"""It shall."""\nDOCUMENTATION = "It shall"\ndef f(x):\n    raise E(f"{x} is no rail")\n')
    assert found(messages(tmp_path)) == [
        "plugins/module_utils/x.py:4: is no -> write: is not a ..., is not valid",
    ]


SOURCES: list[tuple[str, Callable[[], Texts]]] = [
    ("messages", messages),
    ("pages", pages),
    ("READMEs of roles", role_readmes),
    ("documentation of plugins", plugin_docs),
    ("specs of roles", role_specs),
    ("names of plays and tasks", task_names),
]


def found(texts: Texts) -> list[str]:
    """Every idiom in texts, one message each."""
    return [
        f"{place(where, text, match)}: {' '.join(match[0].split())} -> write: {idiom.instead}"
        for where, text in texts
        for idiom in IDIOMS
        for match in idiom.pattern.finditer(text)
    ]


def place(where: str, text: str, match: re.Match[str]) -> str:
    """Path and line of a match, given those of the text."""
    path, _, line = where.rpartition(":")
    return f"{path}:{int(line) + text.count(chr(10), 0, match.start())}"


def of_files(findings: list[str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for finding in findings:
        grouped.setdefault(finding.partition(":")[0], []).append(finding)
    return grouped


@pytest.mark.parametrize(("name", "texts"), SOURCES, ids=[name for name, _texts in SOURCES])
def test_text_is_in_plain_words(name: str, texts: Callable[[], Texts]) -> None:
    refused = [finding for path, some in of_files(found(texts())).items() if path not in TO_DO for finding in some]
    assert not refused, f"{len(refused)} idioms in {name}:\n" + "\n".join(refused)


def test_a_file_leaves_the_list_with_its_last_idiom() -> None:
    faulty = {path for _name, texts in SOURCES for path in of_files(found(texts()))}
    assert sorted(TO_DO - faulty) == [], "these files have no idiom left: remove them from TO_DO"


@pytest.mark.parametrize("name", [name for name, _texts in SOURCES])
def test_a_source_has_text(name: str) -> None:
    assert sum(len(text) for _where, text in dict(SOURCES)[name]()) > 1000


@pytest.mark.parametrize(("idiom", "text"), [(each, text) for each in IDIOMS for text in each.refused])
def test_the_gate_sees(idiom: Idiom, text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Heading\n\nA sentence.\n{text}\n")
    findings = found(paragraphs(page, tmp_path))
    assert [each for each in findings if each.startswith("page.md:4: ") and each.endswith(idiom.instead)] != []


@pytest.mark.parametrize("text", [text for each in IDIOMS for text in each.accepted])
def test_the_gate_accepts(text: str) -> None:
    assert found(iter([("page.md:1", text)])) == []


def test_a_finding_names_line_phrase_and_replacement(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Heading\n\n```\nshall\n```\n\n| a | b |\n| --- | --- |\n| c | It\nis no\nrail. |\n\nIt shall.\n")
    assert found(paragraphs(page, tmp_path)) == [
        "page.md:10: is no -> write: is not a ..., is not valid",
        "page.md:13: shall -> write: must, should, to be",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```\nIt shall.\n```\n",
        "~~~yaml\n# says\n~~~\n",
        "`It shall.` is a message.\n",
        "``a ` tells`` is code.\n",
        "[a page](decisions/whom-we-tell.md)\n",
        "<!-- shall -->\n",
        "<!-- inputs: from x -->\n| shall |\n<!-- inputs: end -->\n",
    ],
)
def test_code_comments_and_targets_are_left_out(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert found(paragraphs(page, tmp_path)) == []


def test_text_beside_code_is_examined(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```\ncode\n```\nIt shall `be` told.\n")
    assert [finding.split(" -> ")[0] for finding in found(paragraphs(page, tmp_path))] == [
        "page.md:4: told",
        "page.md:4: shall",
    ]


def test_documentation_of_a_plugin_is_examined_without_its_code(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        '"""shall"""\n\nRETURN = r"""\nx:\n  description: It shall V(tell) O(told) or\n    is told.\n"""\n'
    )
    assert [finding.split(" -> ")[0] for finding in found(strings(plugin, tmp_path))] == [
        "plugin.py:6: told",
        "plugin.py:5: shall",
    ]


def test_descriptions_of_a_role_are_examined_without_their_code(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yml"
    spec.write_text("tells:\n  description: >-\n    It `tells` us.\n  default: told\n  choices: [shall]\n")
    assert [finding.split(" -> ")[0] for finding in found(descriptions(spec, tmp_path))] == ["spec.yml:3: us"]


def test_names_of_tasks_are_examined(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.yml"
    tasks.write_text("- name: x | Go on\n  debug:\n    msg: told\n- name: x | Say why\n")
    assert [finding.split(" -> ")[0] for finding in found(names(tasks, tmp_path))] == ["tasks.yml:4: Say"]
