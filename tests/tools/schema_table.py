"""`python -m tests.tools.schema_table`: writes the fields of all kinds on all release lines from tests/fixtures/crds/.

The plan checks every object against them (operator/schema.py). Equal parts of the definitions are written once, so the
table of all lines is about as large as one definition.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from . import importable  # noqa: F401  (makes the collection importable)

# isort: split
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases

CRDS = importable.ROOT / "tests" / "fixtures" / "crds"
TABLE = importable.ROOT / "plugins" / "module_utils" / "_fabric" / "operator" / "schema_table.py"
# What operators write and nobody applies.
REPORTS = ("SriovNetworkNodeState",)
# What the check understands; the rest of a definition is for servers (rules in CEL, list types) or for readers.
RULES = (
    "type", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern",
    "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
)  # fmt: skip
WIDTH = 118
HEADER = '''\
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of the kinds that are planned, on each release line, from the definitions (CRDs) of these releases.

Written by python -m tests.tools.schema_table from tests/fixtures/crds. A number in a part is the place of another part.
"""

from __future__ import annotations

'''


class Parts:
    """Parts of definitions, each once: its text as JSON -> its place."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def place(self, schema: dict[str, Any]) -> int:
        part: dict[str, Any] = {key: schema[key] for key in RULES if key in schema}
        fields = schema.get("properties") or {}
        if fields:
            part["properties"] = {name: self.place(fields[name]) for name in sorted(fields)}
        # A server fills in defaults before it asks for what is required.
        required = [name for name in schema.get("required") or () if "default" not in fields.get(name, {})]
        if required:
            part["required"] = sorted(required)
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                part[key] = self.place(schema[key])
        return self.places.setdefault(json.dumps(part, separators=(",", ":")), len(self.places))


def main() -> int:
    TABLE.write_text(written())
    return 0


def written() -> str:
    parts = Parts()
    kinds: dict[str, dict[str, int]] = {}
    for line in releases.LINES:
        for kind, schema in definitions(folder(line)):
            kinds.setdefault(kind, {})[line] = parts.place(schema["properties"]["spec"])
    text = ",".join(parts.places)
    sources = {line: folder(line).lstrip("v") for line in releases.LINES}
    return HEADER + "\n".join(
        [
            "# Release line -> release whose definitions are used.",
            f"SOURCES = {literal(sources)}",
            "# Kind -> release line -> place of its spec.",
            f"KINDS = {literal(dict(sorted(kinds.items())))}",
            'PARTS = r"""[',
            *wrapped(text),
            ']"""  # noqa: E501',
            "",
        ]
    )


def folder(line: str) -> str:
    """The folder of the definitions of a line."""
    (found,) = (path.name for path in CRDS.iterdir() if path.name.startswith(f"v{line}."))
    return found


def definitions(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and schema of the newest version of each definition in a folder."""
    for path in sorted((CRDS / name).glob("*.yaml")):
        for found in yaml.load_all(path.read_text(), yaml.CSafeLoader):
            kind = found["spec"]["names"]["kind"]
            if kind not in REPORTS:
                yield kind, found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def wrapped(text: str) -> Iterator[str]:
    """Lines of JSON, broken after commas where a break is between two parts of it."""
    line = ""
    for piece in pieces(text):
        if line and len(line) + len(piece) > WIDTH:
            yield line
            line = ""
        line += piece
    yield line


def pieces(text: str) -> Iterator[str]:
    """The text cut after each comma that is not inside of quotation marks."""
    start, quoted = 0, False
    for index, char in enumerate(text):
        if char == '"' and text[index - 1] != "\\":
            quoted = not quoted
        if char == "," and not quoted:
            yield text[start : index + 1]
            start = index + 1
    yield text[start:]


def literal(value: dict[str, Any]) -> str:
    """A dict as ruff formats it."""
    lines = []
    for key, one in value.items():
        shown = json.dumps(one)
        lines.append(f'    "{key}": {shown},')
    return "\n".join(["{", *lines, "}"])


if __name__ == "__main__":
    sys.exit(main())
