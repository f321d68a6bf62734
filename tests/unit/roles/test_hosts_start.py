"""What the role runs on a bare host, for real in a folder: one run at a time has a host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml

ROLE = Path(__file__).resolve().parents[3] / "roles" / "rdma_validate"
TESTER = 'echo "=== gpufabric $1"\n'


def script(name: str) -> str:
    tasks = yaml.safe_load((ROLE / "tasks" / name).read_text())
    argv = tasks[0]["block"][0]["ansible.builtin.command"]["argv"]
    assert argv[:2] == ["sh", "-c"]
    return str(argv[2])


START, BRING = script("hosts_start.yml"), script("hosts_bring.yml")


VARS = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
END = yaml.safe_load((ROLE / "tasks" / "hosts_fetch.yml").read_text())[0]["block"][0]["ansible.builtin.raw"]
LOST = "this run lost the host to another run, or to the playbook gpufabric.rdma.abort\n"


def uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


class Host:
    """A folder with a stand-in for systemctl that notes what it is asked."""

    def __init__(self, path: Path) -> None:
        self.folder, self.asked = path / "run" / "tester", path / "asked"
        (path / "bin").mkdir()
        for name in ("systemctl", "systemd-run"):
            # No unit is active.
            (path / "bin" / name).write_text(f'#!/bin/sh\necho "$*" >>{self.asked}\n[ "$1" != is-active ]\n')
            (path / "bin" / name).chmod(0o755)
        self.env = {"PATH": f"{path}/bin:/usr/bin:/bin"}

    def run(self, text: str, *args: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        argv = ["sh", "-c", text, "sh", *map(str, args)]
        return subprocess.run(argv, input=stdin, env=self.env, text=True, capture_output=True, timeout=20)

    def start(self, run: str, hold: int = 300) -> subprocess.CompletedProcess[str]:
        return self.run(START, "unit", self.folder, "rail r0 eth0", run, hold, stdin=TESTER)

    def bring(self, run: str, hold: int = 900, batch: str = "BATCH") -> subprocess.CompletedProcess[str]:
        return self.run(BRING, self.folder, run, hold, stdin=batch)

    def raw(self, text: str, run: str, number: int) -> subprocess.CompletedProcess[str]:
        """Run the text of a raw task in this pass of a run."""
        step = {"pass": number, "seconds": 10, "lines": {"here": []}}
        known = {"__rdma_validate_folder": self.folder, "__rdma_validate_run": run, "__rdma_validate_left": 5,
                 "__rdma_validate_step": step, "inventory_hostname": "here"}
        while "{{" in text:
            text = jinja2.Template(text).render({**VARS, **known})
        return self.run(text)

    def play(self, run: str, number: int) -> subprocess.CompletedProcess[str]:
        return self.raw(VARS["__rdma_validate_play"], run, number)

    def end(self, run: str, number: int) -> subprocess.CompletedProcess[str]:
        return self.raw(END, run, number)

    def mark(self) -> list[str]:
        return Path(f"{self.folder}.run").read_text().split()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_host_is_taken_described_and_held(host: Host) -> None:
    begin = int(uptime())
    done = host.start("r1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "=== gpufabric describe\n", "")
    assert host.mark()[0] == "r1" and begin + 300 <= int(host.mark()[2]) <= uptime() + 300
    assert host.bring("r1").returncode == 0
    assert host.mark()[0] == "r1" and begin + 900 <= int(host.mark()[2]) <= uptime() + 900
    assert (host.folder / "batch").read_text() == "BATCH"


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
    done = host.run(START, "unit", host.folder, "rail", "r1", 60, stdin="head -c 9000000 /dev/zero | tr '\\0' x\n")
    assert (done.returncode, len(done.stdout)) == (0, 262144)


def test_a_tester_that_fails_is_an_error(host: Host) -> None:
    done = host.run(START, "unit", host.folder, "rail", "r1", 60, stdin="echo broken >&2; exit 3\n")
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
    log = str(host.play("r1", 1).args and host.asked.read_text().split()[-2])
    Path(log).write_text("x" * 70000)
    assert host.end("r1", 1).returncode == 0 and Path(log).stat().st_size == 65536
    none = host.end("r1", 2)
    assert (none.returncode, none.stdout) == (66, "the tester left no log of this pass\n")
    Path(f"{host.folder}.run").write_text("r2 then 99999999\n")
    lost = host.end("r1", 1)
    assert (lost.returncode, lost.stdout) == (75, LOST)
    assert host.end("r2", 1).returncode == 66
