"""`python -m tests.tools.release_page`: writes the tables of docs/operator-releases.md from `intent/releases.py`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from . import importable  # noqa: F401  (makes the collection importable)

# isort: split
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator import schema_table

PAGE = importable.ROOT / "docs" / "operator-releases.md"
BEGIN = "<!-- lines: from intent/releases.py by python -m tests.tools.release_page -->"
END = "<!-- lines: end -->"
DEFINITIONS_BEGIN = "<!-- definitions: from operator/schema_table.py by python -m tests.tools.release_page -->"
DEFINITIONS_END = "<!-- definitions: end -->"


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


def written(text: str) -> str:
    """The page with its tables as the registry has them now; ValueError when there is no place for them."""
    text = filled(text, BEGIN, END, "\n\n".join((lines(), versions(), fields(), images())))
    return filled(text, DEFINITIONS_BEGIN, DEFINITIONS_END, definitions())


def filled(text: str, begin: str, end: str, content: str) -> str:
    """A page with this content between two of its lines; ValueError when it does not have them."""
    part = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not part.search(text):
        raise ValueError(f"the page has no lines {begin} and {end}")
    return part.sub(lambda _match: f"{begin}\n\n{content}\n\n{end}", text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    every = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in every)


def lines() -> str:
    head = (
        "line",
        "support by the vendor",
        "Kubernetes minimum",
        "device plugin restarted after a change",
        "DRA driver",
    )
    return table(
        head,
        [
            (
                line.name,
                line.support,
                ".".join(map(str, line.min_kubernetes)),
                yes(line.restarts_device_plugin),
                yes(line.dra),
            )
            for line in releases.LINES.values()
        ],
    )


def versions() -> str:
    head = ("release", "tag of components", "tag of the driver container", "with precompiled images")
    return table(
        head,
        [
            (release, f"`network-operator-v{release}`", *map(tag, (driver, line.precompiled.get(release, driver))))
            for line in releases.LINES.values()
            for release, driver in line.releases.items()
        ],
    )


def tag(text: str) -> str:
    return f"`{text}`" if text else "unknown"


def fields() -> str:
    rows = [
        (kind, f"`{path}`" if path else "the kind itself", *(yes(line.has(kind, path)) for line in of_all()))
        for kind, path in releases.SPANS
    ]
    return table(("kind", "field", *releases.LINES), rows)


def definitions() -> str:
    kinds = [(kind, *(yes(line.name in places) for line in of_all())) for kind, places in schema_table.KINDS.items()]
    return table(("kind", *(schema_table.SOURCES[line.name] for line in of_all())), kinds)


def images() -> str:
    names = sorted({name for line in of_all() for name in line.images})
    return table(("component", "image"), [(name.replace("_", " "), ", ".join(image(name))) for name in names])


def image(component: str) -> list[str]:
    """The image of a component, or those of different lines."""
    found = [line.images[component] for line in of_all() if component in line.images]
    return [f"`{name}`" for name in dict.fromkeys(found)]


def of_all() -> list[releases.Line]:
    return list(releases.LINES.values())


def yes(value: bool) -> str:
    return "yes" if value else "no"


if __name__ == "__main__":
    sys.exit(main())
