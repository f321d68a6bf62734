"""docs/operator-releases.md has the tables of the registry of releases."""

from __future__ import annotations

from tests.tools import release_page

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases


def test_the_page_has_the_tables_of_the_registry() -> None:
    text = release_page.PAGE.read_text()
    assert release_page.written(text) == text, "run python -m tests.tools.release_page"
    assert all(line.name in text for line in releases.LINES.values())
