"""Lets plain Python import the checkout under the collection's full name: import this first."""

from __future__ import annotations

import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _namespace(name: str, path: Path | None) -> None:
    if name in sys.modules:
        return
    module = types.ModuleType(name)
    module.__path__ = [str(path)] if path else []
    sys.modules[name] = module


for _name, _path in (
    ("ansible_collections", None),
    ("ansible_collections.gpufabric", None),
    ("ansible_collections.gpufabric.rdma", ROOT),
):
    _namespace(_name, _path)
