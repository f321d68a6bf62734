"""What keeps hosts that are fixture trees away from the machine that they are on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.bench.loopback import descendants
from tests.tools import loopback

GUARD = Path(loopback.__file__).parent / "guard"


def guarded(tmp_path: Path, code: str, tree: str = "tree") -> subprocess.CompletedProcess[str]:
    """Run Python code as the modules of the benchmark run; `tree` below tmp_path is what it may change."""
    loopback.script(tmp_path / "bin" / "known", loopback.STAND_IN)
    for path in ("tree/prints/known -x", "tree/file", "other/file"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("a text\n")
    places = {"HOST_TREE": str(tmp_path / tree), "HOST_BIN": str(tmp_path / "bin"), "PYTHONPATH": str(GUARD)}
    environment = {**os.environ, **places, "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-c", f"import os, shutil, socket, subprocess, tempfile\n{code}"]
    return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)


def state(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in folder.rglob("*") if path.is_file() and path.name != "guarded"}


@pytest.mark.parametrize(
    "code",
    [
        "open('other/file', 'w')",
        "open('other/new', 'a')",
        "open('tree/../other/file', 'r+')",
        "os.symlink('../other/file', 'tree/link'); open('tree/link', 'w')",
        "os.symlink('../other', 'tree/folder'); os.remove('tree/folder/file')",
        "os.rename('tree/file', 'other/file')",
        "os.replace('other/file', 'tree/file')",
        "os.link('other/file', 'tree/hard')",
        "os.remove('file', dir_fd=os.open('other', os.O_RDONLY))",
        "os.chmod('other/file', 0)",
        "os.truncate('other/file', 0)",
        "os.truncate(os.open('other/file', os.O_RDONLY), 0)",
        "shutil.rmtree('other')",
        "tempfile.mkdtemp(dir='other')",
        "subprocess.run(['/bin/rm', 'other/file'])",
        "subprocess.run(['rm', 'other/file'])",
        "subprocess.run('rm other/file', shell=True)",
        "subprocess.run(['known'], executable='/bin/rm')",
        "os.system('rm other/file')",
        "os.execv('/bin/rm', ['rm', 'other/file'])",
        "os.posix_spawn('/bin/rm', ['rm', 'other/file'], {})",
        "socket.create_connection(('127.0.0.1', 9), 1)",
    ],
)
def test_nothing_reaches_out_of_the_tree(tmp_path: Path, code: str) -> None:
    guarded(tmp_path, "pass")
    before = state(tmp_path)
    done = guarded(tmp_path, code)
    assert done.returncode != 0 and "PermissionError: guard: " in done.stderr, done.stderr
    assert state(tmp_path / "other") == {path: text for path, text in before.items() if "/other/" in path}


def test_a_module_works_in_its_tree(tmp_path: Path) -> None:
    done = guarded(
        tmp_path,
        """
folder = tempfile.mkdtemp(dir='tree')
open(f'{folder}/new', 'w').write('new')
os.replace(f'{folder}/new', 'tree/file')
shutil.rmtree(folder)
print(subprocess.run(['known', '-x'], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout, end='')
print(shutil.which('sh', path=os.defpath), subprocess.run(['known', '-y'], capture_output=True).returncode)
""",
    )
    assert (done.returncode, done.stdout) == (0, "a text\nNone 1\n"), done.stderr
    assert (tmp_path / "tree/file").read_text() == "new"
    assert len((tmp_path / "tree/guarded").read_text().splitlines()) == 1


def test_the_root_of_the_machine_is_no_tree(tmp_path: Path) -> None:
    done = guarded(tmp_path, "print('runs')", tree="../" * 20)
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "must be folders of fixtures, not /" in done.stderr


def test_every_path_of_every_module_on_hosts_is_in_the_tree() -> None:
    found = loopback.path_defaults()
    modules = (loopback.REPO / "plugins" / "modules").glob("*.py")
    on_hosts = {path.stem for path in modules if re.search(r"arguments\.ROOT|topic_io", path.read_text())}
    assert set(found) == {f"gpufabric.rdma.{name}" for name in on_hosts}
    paths = [
        path
        for options in found.values()
        for value in options.values()
        for path in (value if isinstance(value, list) else [value])
    ]
    assert len(paths) > 10 and all(path.startswith("{{ host_tree }}") for path in paths)


@pytest.mark.parametrize("default", [None, "", "/", "etc", ["/boot", "/"]])
def test_a_path_that_would_leave_the_tree_is_refused(default: Any) -> None:
    kind = {"type": "list", "elements": "path"} if isinstance(default, list) else {"type": "path"}
    with pytest.raises(SystemExit, match="some_module would leave the fixture tree: option place has the default"):
        loopback.into_tree("some_module", {"place": {**kind, "default": default}})


def test_generations_of_processes() -> None:
    assert descendants({2: 1, 3: 2, 4: 2, 5: 4, 6: 5, 7: 1}, 2) == [[3, 4], [5], [6]]
    assert descendants({2: 1, 3: 1}, 3) == []
