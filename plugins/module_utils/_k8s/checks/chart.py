# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helm and the chart, checked before the first change: can they be used, and is the chart the one that was pinned?"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

# The first Helm with charts in OCI registries.
OLDEST_HELM = (3, 8)
_REMOTE = re.compile(r"(oci|https?)://")
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")

# Runs a command: exit code, standard output, standard error.
Run = Callable[[Sequence[str]], tuple[int, str, str]]


def kind_of(ref: str) -> str:
    """Return what a chart reference is: ``path``, ``url``, or ``name`` of a chart in a repository."""
    if ref.startswith(("/", "./", "../", "~")):
        return "path"
    return "url" if _REMOTE.match(ref) else "name"


def unpinned(params: Mapping[str, Any]) -> bool:
    """Whether a module's parameters let Helm fetch a chart that nothing is compared with."""
    ref = params["chart_ref"] or ""
    fetched = bool(ref) and kind_of(ref) != "path"
    return params["operator_state"] == "present" and fetched and not params["chart_checksum"]


def problems(ref: str, checksum: str) -> Iterator[str]:
    """Yield what is wrong with a local chart; nothing for a chart that Helm has yet to fetch.

    ``checksum``: sha256 in hexadecimal, with or without ``sha256:`` before it; empty when not pinned.
    """
    if kind_of(ref) == "name" and ("/" in ref or ref.startswith(".") or ref.endswith(".tgz")):
        yield f"chart {ref}: a path must begin with / or ./, and a chart of a repository has a name without a slash"
    if kind_of(ref) != "path":
        return
    path = Path(ref).expanduser()
    if path.is_dir():
        if not (path / "Chart.yaml").is_file():
            yield f"chart {ref}: the folder has no Chart.yaml; name the folder of a chart"
        elif checksum:
            yield f"chart {ref}: a checksum ({checksum}) needs an archive (.tgz), found a folder; use helm package"
    elif not path.is_file():
        yield f"chart {ref}: there is no such file or folder; correct the path, or name a chart of a repository"
    elif checksum:
        yield from _compare(path, checksum)


def helm_problems(run: Run, binary: str, ref: str, *, repo: str, release: str) -> Iterator[str]:
    """Yield why Helm cannot install ``release`` of a chart; ``repo``: URL that a plain name is looked up in."""
    found = shutil.which(binary or "helm")
    if not found:
        yield (
            f"helm was not found{f' at {binary}' if binary else ' in PATH'} on the controller. Install Helm"
            f" {_text(OLDEST_HELM)} or newer there, or set helm_binary to its path"
        )
        return
    _rc, out, _err = run([found, "version", "--short"])
    version = re.match(r"v?(\d+)\.(\d+)", out)
    numbers = (int(version[1]), int(version[2])) if version else None
    if numbers is None or numbers < OLDEST_HELM:
        yield (
            f"{found} reports version {out.strip()[:40] or 'none'}, expected Helm {_text(OLDEST_HELM)} or newer."
            " Upgrade it, or set helm_binary to another one"
        )
        return
    if ref:
        yield from _readable(run, found, ref, repo=repo, release=release)


def _readable(run: Run, helm: str, ref: str, *, repo: str, release: str) -> Iterator[str]:
    """Yield why Helm cannot read the chart, or that it is of another version."""
    local = kind_of(ref) == "path"
    if local and not Path(ref).expanduser().exists():
        return  # problems() reports it
    remote = [] if local else ["--version", release, *([] if kind_of(ref) == "url" else ["--repo", repo])]
    rc, out, err = run([helm, "show", "chart", str(Path(ref).expanduser()) if local else ref, *remote])
    shown = _LOGIN.sub("", ref)
    if rc:
        said = _LOGIN.sub("", " ".join(err.split())[-300:])
        source = f" of {_LOGIN.sub('', repo)}" if "--repo" in remote else ""
        yield (
            f"chart {shown}{source}: Helm cannot read version {release}: {said}. Check the names and the connection, or"
            " set chart_ref to an archive on the controller"
        )
        return
    found = re.search(r"^version:\s*[\"']?([^\s\"']+)", out, re.MULTILINE)
    if not found or found[1] != release:
        yield (
            f"chart {shown}: its version is {found[1] if found else 'missing'}, expected {release}. Set"
            " rdma_fabric.operator.release to the version of the chart, or chart_ref to another chart"
        )


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _compare(path: Path, checksum: str) -> Iterator[str]:
    wanted = checksum.rpartition(":")[2].lower()
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        yield f"chart {path}: it cannot be read: {error.strerror}"
        return
    if found != wanted:
        yield f"chart {path}: its sha256 is {found}, expected {wanted}; get the pinned chart, or pin this one"
