# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What packages a host has, holds and could get. Installing and removing is left to package modules."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from ..._common.errors import CommandError
from ..system import command, files
from ..system.files import Roots
from . import doca
from .openpgp import armored

DPKG = ["dpkg-query", "--show", "--showformat=${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\n"]
RPM = ["rpm", "--query", "--queryformat=%{NAME} %{VERSION}-%{RELEASE}\n"]
LOCKS = "dnf/plugins/versionlock.list"
# Fetches one file as apt does: its proxies, passwords and certificates.
APT_HELPER = "/usr/lib/apt/apt-helper"
_URI = re.compile(r"^'(\S+)' \S+ (\d+)", re.MULTILINE)


class Packages(NamedTuple):
    """``installed`` maps name -> version, ``held`` are those that keep theirs, ``manager`` is apt or dnf."""

    installed: Mapping[str, str]
    held: tuple[str, ...]
    manager: str


def manager() -> str:
    """Return apt or dnf, by which database the host has; CommandError without one."""
    if command.find("dpkg-query"):
        return "apt"
    if command.find("rpm"):
        return "dnf"
    raise CommandError("neither dpkg-query nor rpm is installed; set install_packages: false")


def read(names: Iterable[str], etc: str) -> Packages:
    """Return what is there of ``names``; one call of a program, none without names."""
    names = sorted(set(names))
    if not names:
        return Packages({}, (), "apt")
    lines = _query(names)
    held = tuple(line[0] for line in lines if line[2:3] == ["hold"])
    if manager() == "dnf":
        held = tuple(name for name in names if _locked(name, files.read(f"{etc}/{LOCKS}") or ""))
    return Packages({line[0]: line[1] for line in lines}, held, manager())


def installed(names: Iterable[str]) -> dict[str, str]:
    """Return name -> version of those of ``names`` that are installed."""
    names = sorted(set(names))
    return {line[0]: line[1] for line in _query(names)} if names else {}


def everything() -> dict[str, str]:
    """Return name -> version of all packages; of a package with several versions, such as a kernel, the last by name.

    The keys that rpm lists among the packages are none.
    """
    return {line[0]: line[1] for line in sorted(_query([])) if line[0] != "gpg-pubkey"}


def _query(names: list[str]) -> list[list[str]]:
    if manager() == "apt":
        lines = [line.split() for line in command.run([*DPKG, *names], check=False).stdout.splitlines()]
        return [line for line in lines if line[3:] == ["installed"]]
    lines = [line.split() for line in command.run([*RPM, *(names or ["--all"])], check=False).stdout.splitlines()]
    # Of a package that is not there rpm says so in five words.
    return [line for line in lines if len(line) == 2]


def _locked(name: str, locks: str) -> bool:
    """Whether dnf's list has a lock of a package: NAME-EPOCH:VERSION-RELEASE.*."""
    return re.search(rf"^(\d+:)?{re.escape(name)}-(\d+:)?\d", locks, re.MULTILINE) is not None


def check_holds(etc: str) -> None:
    """Make sure that packages can be held; CommandError names what is missing."""
    if manager() == "dnf" and files.read(f"{etc}/{LOCKS}") is None:
        raise CommandError(
            "packages cannot be held: dnf has no versionlock; install python3-dnf-plugin-versionlock, or set "
            "doca.hold: false"
        )


def hold(before: Iterable[str], after: Iterable[str]) -> None:
    """Hold what is not held yet, and release what shall not be held any more."""
    before, after = set(before), set(after)
    own = (["apt-mark", "unhold"], ["apt-mark", "hold"])
    if before != after and manager() == "dnf":
        own = (["dnf", "--quiet", "versionlock", "delete"], ["dnf", "--quiet", "versionlock", "add"])
    for argv, names in zip(own, (before - after, after - before)):
        if names:
            command.run([*argv, *sorted(names)], timeout=300)


def unobtainable(names: Iterable[str]) -> str:
    """Say why the sources of the host do not give packages, empty when they do; installs nothing.

    Of package managers other than apt and dnf nothing is known.
    """
    try:
        if command.find("apt-get"):
            return _fetch_apt(sorted(names))
        return _ask_dnf(sorted(names)) if command.find("dnf") else ""
    except CommandError as error:
        return str(error)


def _fetch_apt(names: list[str]) -> str:
    """Fetch the smallest package of each server: its lists say nothing of whether it answers, and still has them."""
    listed = command.run(["apt-get", "-qq", "--yes", "--print-uris", "install", *names], check=False)
    if listed.rc:
        return _said(listed)
    found = sorted((int(size), uri) for uri, size in _URI.findall(listed.stdout))
    smallest = {urlsplit(uri)[:2]: uri for _size, uri in reversed(found)}
    patience = [word for kind in ("http", "https") for word in ("-o", f"Acquire::{kind}::Timeout=20")]
    with tempfile.TemporaryDirectory(prefix="gpufabric-") as work:
        fetched = [
            command.run([APT_HELPER, *patience, "download-file", uri, f"{work}/file"], timeout=120, check=False)
            for uri in smallest.values()
        ]
    return "; ".join(_said(result) for result in fetched if result.rc)


def _ask_dnf(names: list[str]) -> str:
    argv = ["dnf", "--quiet", "--refresh", "repoquery", "--queryformat=%{name}\n", *names]
    result = command.run(argv, timeout=300, check=False)
    lacking = [name for name in names if name not in result.stdout.split()]
    if result.rc:
        return _said(result)
    return f"no enabled repository has {', '.join(lacking)}" if lacking else ""


def _said(result: command.Result) -> str:
    """Return the errors that a package manager printed, without its warnings."""
    lines = [line.strip() for line in (result.stderr or result.stdout).splitlines() if line.strip()]
    return " ".join([line for line in lines if line.startswith(("E: ", "Error"))] or lines)


def offered(roots: Roots, wanted: doca.Wanted, source: Mapping[str, str], *, url: str) -> list[str]:
    """Return the versions of the package that a signed source offers, asked for without changing the host.

    Its files go to a folder of their own, which is removed again. CommandError when the source cannot be reached or
    its signature is not that of the key.
    """
    work = f"{roots.run}/gpufabric/probe"
    try:
        for folder in ("lists/partial", "cache/archives/partial", "parts"):
            os.makedirs(f"{work}/{folder}", exist_ok=True)
        # apt reads it as a user of its own.
        os.chmod(work, 0o755)
        return _probe_apt(work, wanted, source) if manager() == "apt" else _probe_dnf(work, wanted, url)
    except CommandError as error:
        raise CommandError(f"the package source {url} cannot be used; nothing was changed. {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _probe_apt(work: str, wanted: doca.Wanted, source: Mapping[str, str]) -> list[str]:
    key = f"{work}/key.asc"
    files.write(key, armored(wanted.key))
    text = next(text for path, text in source.items() if path.endswith(".sources"))
    text = re.sub(r"^Signed-By: .*$", f"Signed-By: {key}", text, flags=re.MULTILINE)
    files.write(f"{work}/parts/probe.sources", text)
    places = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": f"{work}/parts",
        "Dir::State::Lists": f"{work}/lists",
        "Dir::Cache": f"{work}/cache",
        "APT::Update::Error-Mode": "any",
        "Acquire::Retries": "1",
    }
    options = [word for name, value in places.items() for word in ("-o", f"{name}={value}")]
    command.run(["apt-get", "--quiet", "update", *options], timeout=300)
    lines = command.run(["apt-cache", "madison", wanted.package, *options]).stdout.splitlines()
    fields = [[part.strip() for part in line.split("|")] for line in lines]
    return list(dict.fromkeys(field[1] for field in fields if len(field) == 3 and field[0] == wanted.package))


def _probe_dnf(work: str, wanted: doca.Wanted, url: str) -> list[str]:
    probe = f"{doca.NAME}-probe"
    argv = ["dnf", "--quiet", f"--setopt=cachedir={work}/cache", f"--repofrompath={probe},{url}", f"--repo={probe}"]
    argv += ["repoquery", "--queryformat=%{version}-%{release}\n", wanted.package]
    return [line.strip() for line in command.run(argv, timeout=300).stdout.splitlines() if line.strip()]
