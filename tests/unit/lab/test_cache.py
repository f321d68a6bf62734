# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Artefacts: built once, never half."""

from __future__ import annotations

import fcntl
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.lab import cache


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(cache, "CACHE", tmp_path)
    return tmp_path


def write(text: str, built: list[str]) -> cache.Callable[[Path], None]:
    def build(path: Path) -> None:
        built.append(text)
        path.write_text(text)

    return build


def test_the_same_inputs_are_built_once() -> None:
    built: list[str] = []
    first = cache.artefact("thing", "a", write("one", built))
    second = cache.artefact("thing", "a", write("two", built))
    assert (first, first.read_text(), built) == (second, "one", ["one"])


def test_who_asks_while_it_is_built_waits_for_it() -> None:
    built: list[str] = []

    def build(path: Path) -> None:
        time.sleep(0.1)
        write("one", built)(path)

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(cache.artefact, "thing", "a", build) for _ in range(3)]
        paths = {one.result() for one in asked}
    assert (len(paths), built) == (1, ["one"])


def test_no_other_process_builds_it_at_the_same_time(folder: Path) -> None:
    def build(path: Path) -> None:
        path.write_text("one")
        with (folder / "artefacts" / ".lock-thing").open("a") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    assert cache.artefact("thing", "a", build).read_text() == "one"
    with (folder / "artefacts" / ".lock-thing").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_other_inputs_are_another_artefact() -> None:
    built: list[str] = []
    assert cache.artefact("thing", "a", write("one", built)) != cache.artefact("thing", "b", write("two", built))
    assert built == ["one", "two"]


def test_what_a_failed_build_left_neither_counts_nor_blocks(folder: Path) -> None:
    def fail(path: Path) -> None:
        path.mkdir()
        (path / "half").write_text("half")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        cache.artefact("thing", "a", fail)
    assert not cache.path_of("thing", "a").exists()
    assert cache.artefact("thing", "a", write("whole", [])).read_text() == "whole"


def test_prune_keeps_what_was_used_last(folder: Path) -> None:
    paths = {name: cache.artefact("thing", name, write(name, [])) for name in "abc"}
    other = cache.artefact("thing-other", "a", write("a", []))
    for age, name in enumerate("bca"):
        os.utime(paths[name], (1000 - age, 1000 - age))
    cache.prune(["thing"], keep=2)
    assert {name for name, path in paths.items() if path.exists()} == {"b", "c"}
    assert other.exists()


def test_parts_of_a_key_do_not_run_into_each_other() -> None:
    assert cache.key(["ab", "c"]) != cache.key(["a", "bc"])
    assert cache.key(["ab"]) == cache.key([b"ab"])
