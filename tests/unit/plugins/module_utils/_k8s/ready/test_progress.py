"""The line of a wait: bounded whatever a cluster says, and lost rather than a reason to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.ready import progress


@pytest.mark.parametrize(
    "reasons, what",
    [
        ([], "ready, and checked for some seconds more"),
        (["a is absent"], "not ready yet: a is absent"),
        (["a", "b", "c", "d", "e"], "not ready yet: a; b; c and 2 more"),
        (["two\nlines\x1b[2J"], "not ready yet: two lines\ufffd[2J"),
        (["x" * 9000], f"not ready yet: {'x' * 300}"),
    ],
)
def test_line(reasons: list[str], what: str) -> None:
    assert progress.line("fabric_wait", 61.4, 600, reasons=reasons) == f"fabric_wait: 61 s of at most 600 s, {what}"


def test_a_file_is_replaced_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "line"
    for text in ("first", "second"):
        progress.write(str(path), text)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("second", 0o600)
    assert [item.name for item in tmp_path.iterdir()] == ["line"]


def test_a_file_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    progress.write(str(tmp_path / "absent" / "line"), "text")
    assert list(tmp_path.iterdir()) == []
