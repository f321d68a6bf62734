"""What the role runs on a bare host, for real in a folder: one run at a time has a host, to measure or to change it."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ConflictError
from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import host_tester
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import lock

ROLE = Path(__file__).resolve().parents[3] / "roles" / "rdma_validate"
TESTER = 'echo "=== gpufabric $1"\n'


VARS = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
CHANGED = (
    "another run changes this host: module rail_links, process 4711, since then. Wait until it has ended, then measure "
    "again\n"
)
LOST = "this run lost the host to another run, or to the playbook gpufabric.rdma.abort\n"


Done = subprocess.CompletedProcess[str]


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


class Host:
    """A folder with a stand-in for systemctl that notes what it is asked."""

    def __init__(self, path: Path) -> None:
        self.folder, self.asked = path / "gpufabric" / "tester", path / "asked"
        (path / "bin").mkdir()
        for name in ("systemctl", "systemd-run"):
            # No unit is active.
            (path / "bin" / name).write_text(f'#!/bin/sh\necho "$*" >>{self.asked}\n[ "$1" != is-active ]\n')
            (path / "bin" / name).chmod(0o755)
        self.env = {"PATH": f"{path}/bin:/usr/bin:/bin"}

    def run(self, *argv: str, stdin: str = "") -> Done:
        argv = tuple(arg.replace("flock -w 20", "flock -w 0") for arg in argv)
        return subprocess.run(argv, input=stdin, env=self.env, text=True, capture_output=True, timeout=20)

    def start(self, run: str, hold: int = 300, continued: str = "", tester: str = TESTER) -> Done:
        argv = host_tester.prepare(self.tester(run), "rail r0 eth0", hold, now=500.25, continued=continued)
        return self.run(*argv, stdin=tester)

    def look(self, run: str, number: int, ended: bool = True) -> Done:
        """Another run looks for the log of this run and pass."""
        return self.raw(host_tester.find(self.tester(run), number, ended, most=100))

    def play_on(self) -> None:
        """From now on the unit is active."""
        (self.folder.parents[1] / "bin/systemctl").write_text("#!/bin/sh\nexit 0\n")

    def bring(self, run: str, batch: str = "BATCH", seconds: int = 590) -> Done:
        return self.run(*host_tester.deliver(self.tester(run), 310 + seconds, 500.25), stdin=batch)

    def tester(self, run: str) -> host_tester.Tester:
        return host_tester.Tester(str(self.folder), "unit", run)

    def raw(self, text: str) -> Done:
        return self.run("sh", "-c", text)

    def play(self, run: str, number: int) -> Done:
        return self.raw(host_tester.start(self.tester(run), number, 10, begin=515.5, now=500.25, hold_for=320))

    def end(self, run: str, number: int) -> Done:
        return self.raw(host_tester.collect(self.tester(run), number, 0))

    def clean(self, run: str) -> Done:
        return self.raw(host_tester.remove(self.tester(run)))

    def mark(self) -> list[str]:
        return Path(f"{self.folder}.run").read_text().split()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_host_is_taken_described_and_held(host: Host) -> None:
    begin = int(uptime())
    done = host.start("r1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "=== gpufabric describe\n=== gpufabric ports\n", "")
    assert host.mark()[0] == "r1" and begin + 300 <= int(host.mark()[2]) <= uptime() + 300
    assert host.bring("r1").returncode == 0
    assert host.mark()[0] == "r1" and begin + 900 <= int(host.mark()[2]) <= uptime() + 900
    assert (host.folder / "batch").read_text() == "BATCH"


def test_each_delivery_notes_both_clocks_for_the_tester(host: Host) -> None:
    begin = uptime()
    for done in (host.start("r1"), host.bring("r1", batch="BATCH 1 0 14\nEND 0\n"), host.play("r1", 1)):
        assert done.returncode == 0
    lines = [line.split() for line in (host.folder / "clocks").read_text().splitlines()]
    assert [there for _here, there in lines] == ["500.25"] * 3
    assert all(begin <= float(here) <= uptime() for here, _there in lines)
    assert host.asked.read_text().endswith(f".log {host.folder}/clocks 515.5\n")


def test_a_second_run_touches_nothing_and_names_the_first(host: Host) -> None:
    host.start("r1")
    host.bring("r1")
    asked = host.asked.read_text()
    done = host.start("r2")
    assert (done.returncode, done.stdout) == (75, "")
    assert done.stderr.startswith(f"this host is being measured by run r1 since {host.mark()[1]}, for at most ")
    assert done.stderr.endswith(" Wait until it ends, or end it with the playbook gpufabric.rdma.abort\n")
    assert host.asked.read_text() == asked and (host.folder / "batch").read_text() == "BATCH"
    assert host.bring("r2").returncode == 75 and host.mark()[0] == "r1"


def test_the_same_run_may_start_again(host: Host) -> None:
    host.start("r1")
    assert host.start("r1").returncode == 0


@pytest.mark.parametrize("mark", ["r1 then 5", "r1 then", "", "\x00", "r1 then x[$(id)]", "r1 then -1"])
def test_a_mark_that_has_expired_or_says_nothing_is_taken_over(host: Host, mark: str) -> None:
    host.folder.mkdir(parents=True)
    (host.folder / "old").write_text("")
    Path(f"{host.folder}.run").write_text(mark + "\n")
    assert host.start("r2").returncode == 0
    assert host.mark()[0] == "r2" and not (host.folder / "old").exists()
    assert "stop unit.service" in host.asked.read_text()


def test_a_description_is_limited(host: Host) -> None:
    tester = "head -c 9000000 /dev/zero | tr '\\0' x\n"
    done = host.start("r1", tester=tester)
    assert (done.returncode, len(done.stdout)) == (0, 262144)


def test_ports_are_read_without_a_mark_and_nothing_is_left(host: Host, tmp_path: Path) -> None:
    argv = host_tester.ports("rail rail0 eth0")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        argv,
        input='echo "$1 $TMPDIR"; cat "$2"\n',
        text=True,
        capture_output=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert done.returncode == 0 and done.stdout.startswith(f"ports {scratch}/")
    assert done.stdout.endswith("\nrail rail0 eth0\n")
    assert not list(scratch.iterdir()) and not Path(f"{host.folder}.run").exists()


def test_a_tester_that_fails_is_an_error(host: Host) -> None:
    done = host.start("r1", tester="echo broken >&2; exit 3\n")
    assert (done.returncode, done.stderr) == (3, "broken\n")


def test_only_the_schedule_of_the_pass_is_played(host: Host) -> None:
    host.start("r1")
    early = host.play("r1", 1)
    assert (early.returncode, early.stdout) == (75, "the schedule of pass 1 did not reach this host in time\n")
    host.bring("r1", batch="BATCH 1 0 14\nEND 0\n")
    assert host.play("r1", 1).returncode == 0 and "tester.sh run" in host.asked.read_text()
    asked = host.asked.read_text()
    # The task that brings the schedule of the next pass ran out of time.
    late = host.play("r1", 2)
    assert (late.returncode, late.stdout) == (75, "the schedule of pass 2 did not reach this host in time\n")
    lost = host.play("r2", 1)
    assert (lost.returncode, lost.stdout) == (75, LOST)
    assert host.asked.read_text() == asked


def test_only_the_log_of_this_run_and_pass_is_fetched(host: Host) -> None:
    host.start("r1")
    host.bring("r1", batch="BATCH 1 0 14\nEND 0\n")
    log = str(host.play("r1", 1).args and host.asked.read_text().split()[-3])
    Path(log).write_text("x" * 300000)
    assert host.end("r1", 1).returncode == 0 and Path(log).stat().st_size == 262144
    none = host.end("r1", 2)
    assert (none.returncode, none.stdout) == (66, "the tester left no log of this pass\n")
    Path(f"{host.folder}.run").write_text("r2 then 99999999\n")
    lost = host.end("r1", 1)
    assert (lost.returncode, lost.stdout) == (75, LOST)
    assert host.end("r2", 1).returncode == 66


# --- what a run left that did not end ---------------------------------------------------------------------------

DONE = "=== gpufabric batch 1 done 2 0\n"


@pytest.mark.parametrize(("log", "number", "rc"), [
    (DONE, 1, 0), (f"=== gpufabric test\n{DONE}", 1, 0), (DONE, 2, 66), ("", 1, 66), (f"{DONE}more\n", 1, 66),
    ("x" * 100 + f"\n{DONE}", 1, 66), (None, 1, 66), ("=== gpufabric batch 11 done 2 0\n", 1, 66),
])  # fmt: skip
def test_only_a_whole_log_of_the_last_pass_is_worth_fetching(host: Host, log: str | None, number: int, rc: int) -> None:
    host.start("r1")
    if log is not None:
        (host.folder / "r1-1.log").write_text(log)
    assert host.look("r1", number).returncode == rc
    assert host.look("r0", number).returncode == 66


def test_a_run_that_is_continued_gives_its_hosts_to_the_one_that_continues_it(host: Host) -> None:
    host.start("r1")
    (host.folder / "r1-1.log").write_text(DONE)
    assert host.look("r1", 1).returncode == 0
    assert host.start("r3", continued="r0").returncode == 75
    assert host.start("r2", continued="r1").returncode == 0
    assert host.mark()[0] == "r2" and not (host.folder / "r1-1.log").exists()


def test_a_run_whose_testers_still_measure_is_not_continued(host: Host) -> None:
    host.start("r1")
    host.play_on()
    for done in (host.look("r1", 1), host.start("r2", continued="r1")):
        said = done.stdout + done.stderr
        assert done.returncode == 75
        assert said.startswith(f"this host is being measured by run r1 since {host.mark()[1]}, for at most ")
        assert said.endswith(" s more. Wait until it ends, or end it with the playbook gpufabric.rdma.abort\n")
    assert host.mark()[0] == "r1"


def test_a_run_that_may_be_going_on_elsewhere_keeps_its_hosts(host: Host) -> None:
    host.start("r1")
    (host.folder / "r1-1.log").write_text(DONE)
    assert host.look("r1", 1, ended=False).returncode == 75
    Path(f"{host.folder}.run").write_text("r1 then 1\n")
    assert host.look("r1", 1, ended=False).returncode == 0


def test_only_a_run_that_is_known_to_have_ended_is_continued(host: Host) -> None:
    text = VARS["__rdma_validate_continued"]
    for left, resumed, found in (
        ({"run": "r1", "ended": True}, "/r/r1", "r1"), ({"run": "r1", "ended": True}, "", ""),
        ({"run": "r1", "ended": False}, "/r/r1", ""), ({}, "/r/report.json", ""),
    ):  # fmt: skip
        known = {"__rdma_validate_leftover": left, "__rdma_validate_resumed": resumed}
        assert jinja2.Environment(autoescape=False).from_string(text).render(known) == found


# --- changing modules -------------------------------------------------------------------------------------------


def test_the_lock_of_modules_is_that_of_the_role() -> None:
    folder = Path(VARS["__rdma_validate_folder"])
    assert (f"{folder}.run", folder.parent.name) == (f"/run/gpufabric/{lock.MARK}", "gpufabric")
    tester = host_tester.Tester(str(folder), "unit", "r1")
    assert f"<{folder.parent}/{lock.HOLDER}\n" in host_tester.start(tester, 1, 10, begin=1.0, now=1.0, hold_for=1)


def test_nothing_is_measured_where_a_module_changes_the_host(host: Host) -> None:
    host.start("r1")
    host.bring("r1", batch="BATCH 1 0 14\nEND 0\n")
    # As if the mark had expired: otherwise no module gets the lock.
    folder = os.open(host.folder.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    (host.folder.parent / "holder").write_text("module rail_links, process 4711, since then\n")
    mark, asked = host.mark(), host.asked.read_text()
    for done in (host.start("r2"), host.start("r1"), host.bring("r1"), host.play("r1", 1)):
        assert (done.returncode, done.stdout, done.stderr) == (75, "", CHANGED)
    os.unlink(host.folder.parent / "holder")
    assert "another run changes this host: its module is not known. " in host.start("r2").stderr
    assert host.mark() == mark and host.asked.read_text() == asked
    os.close(folder)
    assert host.play("r1", 1).returncode == 0


def test_a_folder_that_is_locked_is_not_removed(host: Host) -> None:
    host.start("r1")
    folder = os.open(host.folder.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    assert host.clean("").returncode == 0
    assert list(host.folder.parent.iterdir()) == []
    os.close(folder)
    assert host.clean("").returncode == 0
    assert not host.folder.parent.exists()
    # What abort removed is lost, and stays removed.
    for lost in (host.bring("r1"), host.play("r1", 1)):
        assert (lost.returncode, lost.stdout, lost.stderr) == (75, LOST, "")
    assert not host.folder.parent.exists()


def test_a_measurement_and_a_module_exclude_each_other(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real module side and the real role side, in each order."""
    monkeypatch.setattr(lock, "PATIENCE", 0.0)
    run = str(host.folder.parents[1])
    with lock.held(run, "sriov_vfs", False):
        assert "another run changes this host: module sriov_vfs, process " in host.start("r1").stderr
    assert host.start("r1").returncode == 0
    with pytest.raises(ConflictError, match="this host is being measured by run r1 since "):
        lock.held(run, "sriov_vfs", False).__enter__()
    # It lasts longer with each pass, and the refusal left nothing behind.
    assert host.bring("r1", batch="BATCH 1 0 14\nEND 0\n").returncode == 0 and host.play("r1", 1).returncode == 0
    host.clean("")
    with lock.held(run, "sriov_vfs", False):
        pass


def test_a_run_whose_mark_expired_notices_that_the_host_was_changed(host: Host) -> None:
    run = str(host.folder.parents[1])
    host.start("r1", hold=0)
    host.bring("r1", batch="BATCH 1 0 14\nEND 0\n")
    Path(f"{host.folder}.run").write_text("r1 then 1\n")
    # Nothing changed the host meanwhile: the run goes on.
    assert host.play("r1", 1).returncode == 0 and int(host.mark()[2]) > uptime() + 300
    Path(f"{host.folder}.run").write_text("r1 then 1\n")
    with lock.held(run, "sriov_vfs", False):
        pass
    lost = host.play("r1", 1)
    assert (lost.returncode, lost.stdout) == (75, LOST)


def test_a_run_removes_only_its_own_tester(host: Host) -> None:
    host.start("r1")
    assert host.clean("r2").returncode == 0 and host.mark()[0] == "r1" and (host.folder / "rails").exists()
    assert host.clean("r1").returncode == 0 and not host.folder.parent.exists()


def test_a_run_that_never_had_the_host_removes_nothing(host: Host) -> None:
    host.folder.mkdir(parents=True)
    assert host.clean("r1").returncode == 0 and host.folder.exists()
