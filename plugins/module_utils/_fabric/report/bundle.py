# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A support bundle: files by path, bounded and without secrets, and an index of what is in it and what is not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..._common import secrets
from ..._common.errors import harmless
from .redact import Redactor

SCHEMA = "gpufabric.rdma/support-bundle/1"
INDEX = "index.json"
FILE_BYTES, WHOLE_BYTES = 1 << 20, 32 << 20
ALL_BYTES = 128 << 20
# So many files and notes at most: their paths have names that hosts and pods chose.
MOST = 20_000
_REASON, _SHOWN = 500, 20
_FACTS = re.compile(r"hosts/[^/]+/facts\.json")
_ODD = re.compile(r"[^A-Za-z0-9._-]")


def name_of(text: str) -> str:
    """Return a part of a path for a name that others chose: it stays in its folder and is short."""
    return _ODD.sub("_", text)[:120].strip(".") or "_"


class Bundle:
    """Collects texts in memory, ``most`` bytes at most: of logs the end, of values all or nothing."""

    def __init__(self, most: int = ALL_BYTES) -> None:
        self._most = most
        self._size = 0
        self._texts: dict[str, str] = {}
        self._cut: set[str] = set()
        self._missing: list[dict[str, str]] = []

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def missing(self) -> list[dict[str, str]]:
        """What is not in the bundle, and why."""
        return list(self._missing)

    def add(self, path: str, text: str, most: int = FILE_BYTES, *, cut: bool = False) -> None:
        """Add a file, the last ``most`` bytes of it; ``cut``: whoever read it left something out."""
        text = harmless(secrets.hide(text))
        if len(text) > most:
            text, cut = text[-most:], True
        self._put(path, text, cut)

    def add_object(self, path: str, value: Any) -> None:
        """Add a file with a value as JSON; it is left out when it is too large, since a part of it is of no use."""
        text = json.dumps(secrets.hide_in(value), indent=1, sort_keys=True) + "\n"
        if len(text) > WHOLE_BYTES:
            self.miss(path, f"it has {len(text) >> 20} MiB; at most {WHOLE_BYTES >> 20} are collected")
            return
        self._put(path, text, False)

    def miss(self, what: str, why: str) -> None:
        """Note that something is not in the bundle."""
        if len(self._missing) < MOST:
            reason = harmless(secrets.hide(" ".join(why.split())[:_REASON]))
            self._missing.append({"what": what, "why": reason})

    def summary(self) -> list[str]:
        """Return what was collected and what is missing, for people: one line for each part of the bundle."""
        parts = sorted({path.partition("/")[0] for path in self._texts})
        lines = [f"{part}: {sum(path.startswith(f'{part}/') for path in self._texts)} files" for part in parts]
        # Whole parts before single files.
        missing = sorted(self._missing, key=lambda one: one["what"].count("/"))
        lines += [f"missing: {one['what']}: {one['why']}" for one in missing[:_SHOWN]]
        return lines + (
            [f"missing: {len(self._missing) - _SHOWN} more, see {INDEX}"] if len(self._missing) > _SHOWN else []
        )

    def _put(self, path: str, text: str, cut: bool) -> None:
        if self._size + len(text) > self._most or len(self._texts) >= MOST:
            self.miss(path, f"the bundle has {self._size >> 20} MiB in {len(self._texts)} files already")
            return
        self._size += len(text)
        self._texts[path] = text
        if cut:
            self._cut.add(path)

    def _facts(self) -> Iterator[Any]:
        """Yield the facts of hosts; a file of another kind can have such a name."""
        for path, text in self._texts.items():
            if _FACTS.fullmatch(path):
                try:
                    yield json.loads(text)
                except (ValueError, RecursionError):
                    continue

    def files(self, head: Mapping[str, Any], redact: Iterable[str] = (), hosts: Iterable[str] = ()) -> dict[str, str]:
        """Return the files by path, the index first. ``head``: what the index says of the bundle itself.

        ``redact``: which kinds of values get pseudonyms, see redact.KINDS; ``hosts``: the names of hosts and nodes.
        """
        paths = sorted(self._texts)
        kinds = tuple(redact)
        texts, missing = {path: self._texts[path] for path in paths}, self._missing
        if kinds:
            redactor = Redactor(kinds, list(self._facts()), hosts)
            texts = {redactor.text(path): redactor.text(text) for path, text in texts.items()}
            missing = [{key: redactor.text(text) for key, text in one.items()} for one in missing]
            cut = {redactor.text(path) for path in self._cut}
        else:
            cut = self._cut
        index = {
            "schema": SCHEMA,
            **head,
            "files": [{"path": path, "bytes": len(text), "cut": path in cut} for path, text in texts.items()],
            "missing": missing,
        }
        return {INDEX: json.dumps(index, indent=1) + "\n", **texts}
