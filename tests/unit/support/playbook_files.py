"""The playbooks as files: what a test of their order or their hosts reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]


def plays(name: str) -> list[dict[str, Any]]:
    """The plays of a playbook, those of what it imports in their place."""
    found: list[dict[str, Any]] = []
    for play in yaml.safe_load((ROOT / "playbooks" / name).read_text()):
        imported = play.get("ansible.builtin.import_playbook")
        found += plays(imported) if imported else [play]
    return found
