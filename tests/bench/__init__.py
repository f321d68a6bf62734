"""Benchmarks: `make bench`, or `python -m tests.bench --only PART ...` in the environment's Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

# Name, measured, unit, limit (None: only shown).
Row = tuple[str, float, str, Optional[float]]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as lines of text."""
    width = max((len(row[0]) for row in rows), default=0)
    lines = []
    for name, value, unit, limit in rows:
        verdict = "" if limit is None else f"   limit {limit:g} {unit}{'' if value <= limit else '   EXCEEDED'}"
        lines.append(f"{name:{width}}  {value:10.3f} {unit}{verdict}")
    return "\n".join(lines)
