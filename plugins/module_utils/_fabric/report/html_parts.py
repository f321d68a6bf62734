# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small parts of the page: tables, badges, escaped text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .runs import PLACES

WORDS = {"pass": "passed", "fail": "failed", "no_data": "no data"}
# Colour is never alone: each verdict has a sign too, of characters that every font has.
SIGNS = {"pass": "", "fail": "\u00d7", "no_data": "?"}


class Raw(str):
    """Text that is HTML already."""


def badge(verdict: str, word: str = "") -> Raw:
    """Return a verdict as a coloured word with its sign."""
    text = "%s %s" % (SIGNS[verdict], escape(word or WORDS[verdict]))
    return Raw('<span class="badge %s">%s</span>' % (verdict, text.strip()))


def section(title: str, body: str, note: str = "", kind: str = "") -> str:
    """Return a section with its heading, "" when it has no body."""
    if not body:
        return ""
    quiet = '<p class="quiet">%s</p>' % escape(note) if note else ""
    return "<section%s><h2>%s</h2>%s%s</section>" % (' class="%s"' % kind if kind else "", escape(title), quiet, body)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], kind: str = "") -> Raw:
    """Return a table; it scrolls by itself when the window is narrow. No row, no table."""
    if not rows:
        return Raw("")
    right = [all(_numeric(row[column]) for row in rows) for column in range(len(head))]
    titles = "".join(
        '<th scope="col"%s>%s' % (" class=n" if own else "", escape(title)) for title, own in zip(head, right)
    )
    body = "\n".join("<tr>%s" % "".join(cell(value) for value in row) for row in rows)
    # A region that scrolls must be reachable by keyboard.
    return Raw(
        '<div class="scroll" tabindex="0" role="region" aria-label="%s"><table%s><thead><tr>%s</thead>\n'
        "<tbody>%s</tbody></table></div>"
        % (escape(head[0] or "table"), ' class="%s"' % kind if kind else "", titles, body)
    )


def cell(value: Any) -> str:
    """Return one cell; numbers stand right. End tags of cells and rows are optional in HTML and left out."""
    text = value if isinstance(value, Raw) else escape("" if value is None else str(value))
    return "<td%s>%s" % (" class=n" if _numeric(value) else "", text)


def _numeric(value: Any) -> bool:
    if isinstance(value, Raw):
        return False
    return isinstance(value, (int, float)) or (isinstance(value, str) and value.replace(".", "", 1).isdigit())


def more(shown: int, total: int, what: str) -> str:
    """Return a line that says how many are not shown, "" when all are."""
    if total <= shown:
        return ""
    return '<p class="quiet">%d of %d %s are shown; report.json has all.</p>' % (shown, total, what)


def place(row: Mapping[str, Any]) -> str:
    """Return where it was measured, for people."""
    return PLACES.get(row["where"], row["where"])
