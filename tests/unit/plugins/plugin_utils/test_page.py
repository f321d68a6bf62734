"""The renderer of the page: its files, what it escapes, and what it does where it cannot write."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jinja2
import pytest
from tests.unit.support import report_factory as factory

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import page as data
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import summary
from ansible_collections.gpufabric.rdma.plugins.plugin_utils import page

FILES = [page.ROLE / "templates" / page.TEMPLATE, *(page.ROLE / "files" / name for name in ("report.css", "report.js"))]


def made() -> str:
    return json.dumps(data.page(summary.build(**factory.fleet(3, 1))))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_stands_in_the_page_as_it_is_needs_no_escape(path: Path) -> None:
    """A style or script with such text would end its element, or be taken for a part of the template."""
    text = path.read_text()
    assert "|safe" not in text.replace(" ", "") and "autoescape" not in text.replace("with autoescape,", "")
    if path.suffix in (".css", ".js"):
        assert not [mark for mark in ("{{", "{%", "{#", "</", "<!--", "]]>") if mark in text]
        assert all(text.count(one) == text.count(other) for one, other in ("{}", "()", "[]"))


def test_a_page_without_one_of_its_parts_is_an_error_and_not_an_empty_place() -> None:
    found = json.loads(made())
    del found["head"]["counts"]
    with pytest.raises(jinja2.UndefinedError, match="counts"):
        page.render(found)


def test_control_characters_do_not_reach_the_page() -> None:
    found = json.loads(made())
    found["warnings"] = {"texts": ["a\x1b[31mb"], "more": ""}
    text = page.render(found)
    assert "\x1b" not in text and "[31mb" in text


def test_the_page_is_not_written_where_the_module_did_not_write(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        page.write(str(tmp_path), made())
    assert str(caught.value) == (
        f"report: {tmp_path} has no report.json on the controller, where the page is rendered. Run fabric_report on the"
        " controller (delegate_to: localhost)"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "report.json").touch()
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InputError) as caught:
        page.write(str(tmp_path), made())
    assert str(caught.value) == f"report: cannot write to {tmp_path}: No space left on device; choose another path"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
