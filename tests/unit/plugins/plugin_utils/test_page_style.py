"""The style of the page: it parses, repeats and defines nothing in vain, and every selector has something to hit.

Which properties and values exist is asked of Chromium, in test_browser.py of the report.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from tests.unit.support import page_style as style
from tests.unit.support import report_factory as factory
from tests.unit.support.page import to_html

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import summary
from ansible_collections.gpufabric.rdma.plugins.plugin_utils import page

RULES = style.rules(style.PATH.read_text())
SCRIPT = (page.ROLE / "files" / "report.js").read_text()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a { color red }", "line 1: EOF reached before {} block for a qualified rule. in a"),
        ("a } b { color: red }", "line 1: Unmatched } in a } b"),
        ("a { color: rgb(1, 2 } }", "line 1: Unmatched } in a"),
        (
            "b { x: y }\n@media print { a { color red } }",
            "line 2: EOF reached before {} block for a qualified rule. in a",
        ),
        ("@font-face { src: x }", "line 1: at-rule @font-face in the style sheet"),
        ("a { b { color: red } }", "line 1: qualified-rule in a"),
        ("a { color: }", "line 1: color has no value in a"),
    ],
)
def test_what_does_not_parse_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        style.rules(text)


def test_no_rule_is_empty() -> None:
    assert [rule.selector for rule in RULES if not rule.declarations] == []


def test_no_selector_sets_a_property_twice() -> None:
    """The second would win, and the first mislead."""
    counted = Counter(
        (rule.media, selector, name)
        for rule in RULES
        for selector in rule.selectors
        for name, _value in rule.declarations
    )
    assert [where for where, times in counted.items() if times > 1] == []


def test_every_variable_is_defined_and_used() -> None:
    defined = {name for rule in RULES for name, _value in rule.declarations if name.startswith("--")}
    used = {
        name for rule in RULES for _name, value in rule.declarations for name in re.findall(r"var\((--[\w-]+)", value)
    }
    quoted = {f"--{name}" for name in re.findall(r'"([\w-]+)"', SCRIPT)}
    assert used - defined == set()
    assert defined - used - quoted == set()
    assert {f"--{name}" for name in re.findall(r'style\("([\w-]+)"', SCRIPT)} - defined == set()


class Seen(HTMLParser):
    """The elements and classes of pages."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.classes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.classes |= {f".{name}" for key, value in attrs if key == "class" for name in (value or "").split()}


def pages() -> Iterator[str]:
    """Pages with tables, with drawn maps, with failures and with acceptance rules."""
    rule = {"name": "a", "severity": "failure", "verdict": "pass", "text": "", "found": 0, "query": "length(results)"}
    yield to_html(summary.build({}, [factory.result("a", "b")], parts={"gates": [rule]}))
    yield to_html(summary.build(**factory.fleet(3, 1, faults={("gpu-001", "rail0"): "cable"})))
    yield to_html(
        summary.build(**factory.fleet(34, 1, 8, {("gpu-007", "rail0"): "slow", ("gpu-020", "rail0"): "cable"}))
    )


def test_every_selector_hits_something() -> None:
    seen = Seen()
    for text in pages():
        seen.feed(text)
    there = {*seen.elements, *seen.classes, "*", ":root"}
    unused = {
        (rule.selector, name) for rule in RULES for name in style.simple_names(rule.selector) if name not in there
    }
    assert unused == set()
