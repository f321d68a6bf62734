# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small parts of the page as data: tables, cells, verdicts. The template makes the markup and escapes all texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .runs import PLACES

WORDS = {"pass": "passed", "fail": "failed", "no_data": "no data"}
# Colour is never alone: each verdict has a sign too, of characters that every font has.
SIGNS = {"pass": "", "fail": "\u00d7", "no_data": "?"}
Data = dict[str, Any]
# Rows of a table of single ports.
_ROWS = 50


class Cell(Data):
    """A cell that is more than a text; the template knows it by its key: number, badge, code, lines or strip."""


def signed(verdict: str, text: str) -> str:
    """Return a text with the sign of a verdict."""
    return ("%s %s" % (SIGNS[verdict], text)).strip()


def badge(verdict: str, word: str = "") -> Cell:
    """Return a cell with a verdict as a coloured word with its sign."""
    return Cell(badge=verdict, text=signed(verdict, word or WORDS[verdict]))


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], kind: str = "") -> Data | None:
    """Return a table, None without rows."""
    if not rows:
        return None
    right = [all(_numeric(row[column]) for row in rows) for column in range(len(head))]
    titles = [{"text": title, "number": own} for title, own in zip(head, right)]
    return {"head": titles, "rows": [[_cell(value) for value in row] for row in rows], "kind": kind}


def _cell(value: Any) -> Any:
    if isinstance(value, Cell):
        return value
    text = "" if value is None else str(value)
    return Cell(number=text) if _numeric(value) else text


def _numeric(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and value.replace(".", "", 1).isdigit())


def more(shown: int, total: int, what: str) -> str:
    """Return a line that says how many are not shown, "" when all are."""
    return "%d of %d %s are shown; report.json has all." % (shown, total, what) if total > shown else ""


def listed(
    title: str, head: Sequence[str], rows: Sequence[Sequence[Any]], *, total: int, what: str, note: str = ""
) -> Data | None:
    """Return a section with a table of the first of ``total`` rows, None without rows."""
    found = table(head, rows)
    return {"title": title, "note": note, "table": found, "more": more(len(rows), total, what)} if found else None


def place(row: Mapping[str, Any]) -> str:
    """Return where it was measured, for people."""
    return PLACES.get(row["where"], row["where"])


def unmeasured(report: Mapping[str, Any]) -> Data | None:
    """Return the ports without any test, with the reasons."""
    rows = report.get("unmeasured", [])
    shown = [[badge("no_data"), place(r), r["host"], r["rail"], r["reason"]] for r in rows[:_ROWS]]
    head = ("verdict", "measured", "host", "rail", "reason")
    return listed("Not measured", head, shown, total=len(rows), what="ports")
