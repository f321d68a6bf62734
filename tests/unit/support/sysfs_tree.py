"""Make a host out of a text manifest: files below a folder, and a stand-in for the host's programs.

A manifest is one file per machine. ``[folder]`` names the folder of the lines below it, ``name = text`` is a file
(text in double quotes is a JSON string), ``name -> target`` a link, ``name/`` a folder. ``$ command = text`` is what a
command prints.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import CommandError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import ethtool_io
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import io as facts_io
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.inventory import HostInventory
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import command, files

# What an idle host has where a manifest does not say it.
IDLE = {"net/tcp": "  sl  local_address rem_address   st\n", "mounts": "proc /proc proc rw 0 0\n"}
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "sysfs"


@dataclass
class Host:
    """A machine below ``root``; ``ran`` lists the commands that were asked of it.

    ``settings``: netdev -> what its driver answers to ETHTOOL_GLINKSETTINGS.
    """

    root: Path
    prints: dict[str, str]
    ran: list[list[str]] = field(default_factory=list)
    reacts: Callable[[list[str]], str | None] = lambda argv: None
    settings: dict[str, bytes] = field(default_factory=dict)

    @property
    def roots(self) -> files.Roots:
        return files.Roots.under(str(self.root))

    def options(self) -> dict[str, str]:
        """The option of a module that redirects it to this machine."""
        return {"root": str(self.root)}

    def inventory(self) -> HostInventory:
        return facts_io.read_inventory(self.roots)

    def idle(self) -> None:
        """Let no program have queue pairs."""
        self.prints[QUEUE_PAIRS] = "[]"

    def links(self) -> list[dict[str, Any]]:
        """What ``ip`` prints now, parsed; write it back with ``set_links``."""
        return json.loads(self.prints[IP])

    def set_links(self, links: list[dict[str, Any]]) -> None:
        self.prints[IP] = json.dumps(links)

    def run(self, argv: Sequence[str], timeout: float = 60, check: bool = True) -> command.Result:
        shown = " ".join(argv)
        self.ran.append(list(argv))
        refusal = self.reacts(list(argv))
        if refusal is None:
            return command.Result(0, self.prints.get(shown, ""), "")
        if check:
            raise CommandError(f"'{shown}' failed with status 2: {refusal}")
        return command.Result(2, "", refusal)

    def find(self, program: str) -> str | None:
        paths = [shown.split()[0] for shown in self.prints]
        return next((path for path in paths if path.rpartition("/")[2] == program), None)


IP = "ip -d -j addr show"
QUEUE_PAIRS = "rdma -j resource show qp"


def materialise(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Build the machine of ``tests/fixtures/sysfs/NAME.txt`` and let commands go to it."""
    host = build((FIXTURES / f"{name}.txt").read_text(), root)
    monkeypatch.setattr(command, "run", host.run)
    monkeypatch.setattr(command, "find", host.find)
    monkeypatch.setattr(ethtool_io, "link_settings", host.settings.get)
    return host


def build(manifest: str, root: Path) -> Host:
    """Build the machine of a manifest's text below root."""
    host = Host(root, {})
    folder = root
    for line in manifest.splitlines():
        if line.startswith("[") and line.endswith("]"):
            folder = root / line[1:-1]
            folder.mkdir(parents=True, exist_ok=True)
        elif line.startswith("$ "):
            shown, _equals, text = line[2:].partition(" = ")
            host.prints[shown] = _text(text)
        elif line and not line.startswith("#"):
            _entry(folder, line)
    for name, text in IDLE.items():
        path = root / "proc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(text)
    return host


def _entry(folder: Path, line: str) -> None:
    name, arrow, target = line.partition(" -> ")
    if arrow:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, folder / name)
        return
    name, equals, text = line.partition(" = ")
    if not equals:
        (folder / name).mkdir(parents=True, exist_ok=True)
        return
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(_text(text).encode("latin-1") if "efivars" in str(folder) else _text(text).encode())


def _text(text: str) -> str:
    return json.loads(text) if text.startswith('"') else text
