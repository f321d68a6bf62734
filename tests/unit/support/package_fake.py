"""A package database and a package source below a fake host: answers dpkg-query, rpm, apt and dnf."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import command

PROGRAMS = {"apt": ("dpkg-query", "apt-get", "apt-cache", "apt-mark"), "dnf": ("rpm", "dnf")}


@dataclass
class Database:
    """Installed packages by version, those that are held, and what the source offers (None: it cannot be used).

    ``uris`` is what apt-get would fetch.
    """

    host: Host
    manager: str = "apt"
    installed: dict[str, str] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    offered: list[str] | None = None
    modinfo: dict[str, str] = field(default_factory=dict)
    uris: str = ""
    refusal: str = ""

    def answer(self, argv: Sequence[str]) -> str | None:
        """What a program prints; None when it is none of ours."""
        answers: Mapping[str, Callable[[list[str]], str]] = {
            "dpkg-query": self._dpkg, "rpm": self._rpm, "apt-mark": self._mark, "apt-cache": self._madison,
            "dnf": self._dnf,
            "apt-get": lambda words: self.uris if "--print-uris" in words else "",
            "modinfo": lambda words: self.modinfo.get(words[-1], ""),
        }  # fmt: skip
        own = answers.get(argv[0])
        return own(list(argv[1:])) if own else None

    def _dpkg(self, words: list[str]) -> str:
        names = words[2:] or sorted(self.installed)
        lines = [
            f"{name} {self.installed[name]} {'hold' if name in self.held else 'install'} installed"
            for name in names
            if name in self.installed
        ]
        gone = [f"{name} 0.1 deinstall config-files" for name in names if name not in self.installed]
        return "\n".join([*lines, *gone])

    def _rpm(self, words: list[str]) -> str:
        names = sorted(self.installed) if words[2:] == ["--all"] else words[2:]
        there = [f"{name} {self.installed[name]}" for name in names if name in self.installed]
        gone = [f"package {name} is not installed" for name in names if name not in self.installed]
        return "\n".join([*there, *gone])

    def _mark(self, words: list[str]) -> str:
        self.held = self.held - set(words[1:]) if words[0] == "unhold" else self.held | set(words[1:])
        return ""

    def _madison(self, words: list[str]) -> str:
        return "\n".join(f"{words[1]} | {version} | http://mirror/ ./ Packages" for version in self.offered or [])

    def _dnf(self, words: list[str]) -> str:
        if "repoquery" in words:
            return "\n".join(self.offered or [])
        path = self.host.root / "etc/dnf/plugins/versionlock.list"
        lines = path.read_text().splitlines()
        action, names = words[2], words[3:]
        if action == "add":
            lines += [f"{name}-0:{self.installed[name]}.*" for name in names]
        else:
            lines = [line for line in lines if not line.startswith(tuple(f"{name}-0:" for name in names))]
        path.write_text("".join(f"{line}\n" for line in lines))
        return ""


def install(host: Host, monkeypatch: pytest.MonkeyPatch, manager: str = "apt") -> Database:
    """Let the programs of a host's package manager answer from a database, and return it."""
    database = Database(host, manager)
    host.prints.update({f"/usr/bin/{name}": "" for name in PROGRAMS[manager]})

    def run(argv: Sequence[str], timeout: float = 60, check: bool = True) -> command.Result:
        result = host.run(argv, timeout, check)
        said = database.answer(argv) if result.rc == 0 else None
        return result if said is None else command.Result(0, said, "")

    monkeypatch.setattr(command, "run", run)
    return database


def carry_out(database: Database, packages: Mapping[str, Any], brings: Mapping[str, str] | None = None) -> None:
    """Do what the role's package tasks do: remove, then install; ``brings``: what comes along, by version."""
    for name in packages["remove"]:
        database.installed.pop(name)
    for item in packages["install"]:
        mark = "=" if database.manager == "apt" else "-"
        name, _mark, version = item.partition(mark) if mark == "=" else split_rpm(item)
        database.installed[name] = version or "1.0"
    database.installed.update(brings or {})


def split_rpm(item: str) -> tuple[str, str, str]:
    """NAME-VERSION-RELEASE, or a bare name."""
    parts = item.rsplit("-", 2)
    return (parts[0], "-", f"{parts[1]}-{parts[2]}") if len(parts) == 3 and parts[1][:1].isdigit() else (item, "", "")
