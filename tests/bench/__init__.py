"""Benchmarks: `make bench`, or `python -m tests.bench --only PART ...` in the environment's Python."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Optional

# Name, measured, unit, limit (None: only shown).
Row = tuple[str, float, str, Optional[float]]


def sizes(about: str | None, default: int, words: Sequence[str] | None = None) -> list[int]:
    """Return the numbers of hosts that the command line names; `about` is what --help prints."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="*", type=int, help=f"hosts of each measurement (default: {default})")
    found = list(parser.parse_args(words).hosts) or [default]
    if min(found) < 1:
        parser.error(f"the number of hosts must be at least 1, got {min(found)}")
    return found


def table(rows: Sequence[Row]) -> str:
    """Return the rows as lines of text."""
    width = max((len(row[0]) for row in rows), default=0)
    lines = []
    for name, value, unit, limit in rows:
        verdict = "" if limit is None else f"   limit {limit:g} {unit}{'' if value <= limit else '   EXCEEDED'}"
        lines.append(f"{name:{width}}  {value:10.3f} {unit}{verdict}")
    return "\n".join(lines)
