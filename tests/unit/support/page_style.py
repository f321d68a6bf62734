"""The style of the report page as a list of rules, read by tinycss2; what does not parse is a ValueError."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import tinycss2

from ansible_collections.gpufabric.rdma.plugins.plugin_utils import page

PATH = page.ROLE / "files" / "report.css"


@dataclass(eq=False)
class Rule:
    """One rule: the condition of its @media, its selector, its declarations as name and value."""

    media: str
    selector: str
    declarations: list[tuple[str, str]]

    @property
    def selectors(self) -> list[str]:
        return [one.strip() for one in re.split(r",(?![^(]*\))", self.selector)]


def rules(text: str) -> list[Rule]:
    """All rules of a style sheet in their order; only @media is known."""
    return _rules(tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True), "")


def questions() -> tuple[list[str], list[tuple[str, str]]]:
    """What a browser can be asked of the page's style: its selectors, and its declarations with variables replaced."""
    found = rules(PATH.read_text())
    variables = {name: value for rule in found for name, value in rule.declarations if name.startswith("--")}
    declarations = [
        (name, re.sub(r"var\((--[\w-]+)\)", lambda match: variables[match[1]], value))
        for rule in found
        for name, value in rule.declarations
        if not name.startswith("--")
    ]
    return [selector for rule in found for selector in rule.selectors], declarations


def simple_names(selector: str) -> list[str]:
    """The elements and classes of a selector, these with their dot; pseudo-classes are left out."""
    plain = re.sub(r"::?[\w-]+(\([^()]*(\([^()]*\))?\))?", " ", selector)
    return re.findall(r"\.?[\w-]+|\*", plain)


def _rules(nodes: list[Any], media: str) -> list[Rule]:
    found = []
    for node in nodes:
        if node.type == "at-rule" and node.lower_at_keyword == "media" and node.content is not None:
            inner = tinycss2.parse_rule_list(node.content, skip_comments=True, skip_whitespace=True)
            found += _rules(inner, tinycss2.serialize(node.prelude).strip())
        elif node.type == "qualified-rule":
            found.append(_rule(node, media))
        else:
            raise ValueError(_reason(node, "the style sheet"))
    return found


def _rule(node: Any, media: str) -> Rule:
    selector = tinycss2.serialize(node.prelude).strip()
    _refuse_errors([*node.prelude, *node.content], selector)
    declarations = []
    for one in tinycss2.parse_blocks_contents(node.content, skip_comments=True, skip_whitespace=True):
        if one.type != "declaration":
            raise ValueError(_reason(one, selector))
        value = tinycss2.serialize(one.value).strip()
        if not value:
            raise ValueError(f"line {one.source_line}: {one.name} has no value in {selector}")
        declarations.append((one.name, value))
    return Rule(media, selector, declarations)


def _refuse_errors(nodes: list[Any], where: str) -> None:
    for node in nodes:
        if node.type == "error":
            raise ValueError(_reason(node, where))
        _refuse_errors([*(getattr(node, "content", None) or []), *(getattr(node, "arguments", None) or [])], where)


def _reason(node: Any, where: str) -> str:
    what = node.message if node.type == "error" else node.type
    name = f" @{node.at_keyword}" if node.type == "at-rule" else ""
    return f"line {node.source_line}: {what}{name} in {where}"
