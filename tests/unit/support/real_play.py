"""Play something for real on this machine, with this checkout as the collection and without anybody's settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def ansible_playbook(
    folder: Path, *args: str | Path, timeout: int = 300, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ansible-playbook; what it needs and leaves is below ``folder``, which may serve several runs."""
    return _run("ansible-playbook", folder, args, timeout=timeout, environment=environment)


def ansible_inventory(folder: Path, *args: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ansible-inventory, as ansible_playbook runs a play."""
    return _run("ansible-inventory", folder, args, timeout=60, environment=environment)


def _run(
    program: str, folder: Path, args: Sequence[str | Path], *, timeout: int, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    (folder / "none.cfg").write_text("")
    # A tree of collections of its own, so that names lead to this checkout and nowhere else.
    place = folder / "collections" / "ansible_collections" / "gpufabric"
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "rdma").exists():
        (place / "rdma").symlink_to(ROOT)
    settings = {
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_CONFIG": str(folder / "none.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_NOCOLOR": "1",
    }
    return subprocess.run(
        [str(Path(sys.executable).parent / program), *args],
        env={**os.environ, **settings, **environment}, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
