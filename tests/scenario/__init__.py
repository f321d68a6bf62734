"""Drives playbooks on the lab for the scenarios below molecule/: run one, look at its recap, its tasks, its report."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import testinfra
import yaml
from testinfra.host import Host
from tests.tools import environment

REPO = environment.REPO
ACCESS = REPO / ".lab"
HOSTS = ("lab-1", "lab-2", "lab-3")
REPORT = REPO / ".demo" / "report"
CALLBACKS = Path(__file__).parent / "callbacks"
# The lab's intent; what differs in a run is given as a whole, since extra variables replace and do not merge.
FABRIC: dict[str, Any] = yaml.safe_load((REPO / "inventories/lab/group_vars/rdma_hosts.yml").read_text())["rdma_fabric"]
# Environment of a run that shows at its end what set_stats handed on, in one line.
SHOW_STATS = {"ANSIBLE_SHOW_CUSTOM_STATS": "1", "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
# How Ansible shows an exception that nobody turned into a message.
TRACEBACK = re.compile(r"Traceback \(most recent call last\)|MODULE FAILURE|An exception occurred")


@dataclass(frozen=True)
class Run:
    """A finished playbook: exit code, what it printed, seconds, its recap by host, a row for each task and host.

    `executed` has a row for each execution of a module: host, module, processor time of the processes that it started
    here in seconds.
    """

    rc: int
    output: str
    seconds: float
    recap: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    tasks: tuple[Mapping[str, Any], ...] = ()
    executed: tuple[tuple[str, str, float], ...] = ()

    @property
    def changed(self) -> list[str]:
        """`host: task` of every task that reported a change."""
        return [f"{row['host']}: {row['task']}" for row in self.tasks if row["changed"]]

    def executions(self, hosts: Iterable[str]) -> int:
        """How many modules were executed on that of these hosts which had the most."""
        counts = Counter(host for host, _module, _seconds in self.executed)
        return max(counts[host] for host in hosts)

    def must(self, rc: int = 0) -> Run:
        """This run, or a failure that shows what it printed."""
        if self.rc != rc:
            raise AssertionError(f"exit code {self.rc}, expected {rc}\n{self.output[-12000:]}")
        return self


# The runs of this process; when a test fails, the last one is shown (molecule/conftest.py).
PLAYED: list[Run] = []


def playbook(name: str, *args: str, inventory: str = "inventories/lab", timeout: int = 1500, **env: str) -> Run:
    """Run playbooks/NAME.yml on the lab; never raises for its exit code (see Run.must)."""
    path = f"playbooks/{name}.yml" if "/" not in name and "." not in name else name
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "tasks.json"
        begin = time.monotonic()
        done = subprocess.run(
            ["ansible-playbook", "-i", inventory, path, *args],
            cwd=REPO,
            env={**_environ(record), **env},
            timeout=timeout,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        seconds = time.monotonic() - begin
        recorded = json.loads(record.read_text()) if record.is_file() else {"tasks": [], "hosts": {}, "executed": []}
    print(f"{path} {' '.join(args)}: exit code {done.returncode}, {seconds:.0f} s; {slowest(recorded['tasks'])}")
    executed = tuple((host, module, float(seconds)) for host, module, seconds in recorded["executed"])
    PLAYED.append(Run(done.returncode, done.stdout, seconds, recorded["hosts"], tuple(recorded["tasks"]), executed))
    return PLAYED[-1]


def slowest(tasks: Iterable[Mapping[str, Any]], count: int = 4) -> str:
    """The tasks that took the longest, each on the host that was last."""
    longest: dict[str, float] = {}
    for row in tasks:
        longest[row["task"]] = max(longest.get(row["task"], 0.0), row["seconds"])
    found = sorted(longest.items(), key=lambda item: -item[1])[:count]
    return ", ".join(f"{task.split(' : ')[-1]} {seconds:.0f} s" for task, seconds in found)


def custom_stats(output: str) -> dict[str, Any]:
    """What set_stats handed to the next step of a workflow; of the output of a run with SHOW_STATS."""
    found = re.search(r"CUSTOM STATS.*\n\s*RUN: (\{.*\})", output)
    assert found, f"the run handed on nothing by set_stats\n{output[-4000:]}"
    return json.loads(found[1])


def _environ(record: Path) -> dict[str, str]:
    return {
        **environment.environ(),
        "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
        "ANSIBLE_CALLBACKS_ENABLED": "record",
        "ANSIBLE_NOCOLOR": "1",
        "RECORD_TASKS": str(record),
    }


def lab(*args: str, timeout: int = 900) -> str:
    """Run a command of the lab; its output."""
    done = subprocess.run(
        [os.environ.get("LAB_PYTHON", sys.executable), "-m", "tests.lab", *args],
        cwd=REPO,
        timeout=timeout,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise AssertionError(f"lab {' '.join(args)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def host(name: str) -> Host:
    """A testinfra host, so that a test looks at the host itself and not at what the product says of it."""
    return testinfra.get_host(f"ssh://{name}", ssh_config=str(ACCESS / "ssh_config"))


def report(folder: Path = REPORT) -> dict[str, Any]:
    return json.loads((folder / "report.json").read_text())


def extra(fabric: Mapping[str, Any] | None = None, **others: Any) -> tuple[str, str]:
    """Extra variables of a run; `fabric` replaces keys of the lab's intent."""
    return ("-e", json.dumps({**({"rdma_fabric": {**FABRIC, **fabric}} if fabric else {}), **others}))


def inventory_with(folder: Path, variables: Mapping[str, Mapping[str, Any]], hosts: Iterable[str] = HOSTS) -> str:
    """The lab's inventory in a folder of its own: some or all of its hosts, with variables on some of them."""
    text = (REPO / "inventories/lab/group_vars/rdma_hosts.yml").read_text()
    (folder / "group_vars").mkdir()
    (folder / "group_vars" / "rdma_hosts.yml").write_text(
        text.replace("{{ inventory_dir }}/../..", str(REPO)).replace(
            "inventory_dir ~ '/../../.lab/kubeconfig'", f"'{REPO}/.lab/kubeconfig'"
        )
    )
    entries = {name: dict(variables.get(name, {})) for name in hosts}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": {"rdma_hosts": {"hosts": entries}}}}))
    return str(folder)


def validate(
    *where: str, retries: int | None = None, fabric: Mapping[str, Any] | None = None, **others: Any
) -> tuple[Run, dict[str, Any]]:
    """Measure `where` (host, pod); the run and the report that this very run wrote, {} when it wrote none."""
    (REPORT / "report.json").unlink(missing_ok=True)
    changes = dict(fabric or {})
    if retries is not None:
        changes["tests"] = {**FABRIC["tests"], "retries": retries}
    run = playbook("validate", *extra(changes, rdma_validate_where=list(where), **others))
    assert not TRACEBACK.search(run.output), run.output[-6000:]
    return run, report() if (REPORT / "report.json").is_file() else {}


def bandwidth(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Results of the planned tests, without those by which isolation found out whom to diagnosis."""
    return [r for r in result["results"] if r["test"] == "write_bw"]


def touching(result: Mapping[str, Any], name: str, rail: str | None = None) -> list[dict[str, Any]]:
    """Planned results in which a host took part, on one rail or on any."""
    return [r for r in bandwidth(result) if name in (r["client"], r["server"]) and rail in (None, r["rail"])]


def diagnosed(result: Mapping[str, Any]) -> set[tuple[str, str | None, str | None]]:
    """Kind, host and rail of every diagnosis."""
    return {(diagnosis["kind"], diagnosis["host"], diagnosis["rail"]) for diagnosis in result["diagnoses"]}


def verdicts(results: Iterable[Mapping[str, Any]]) -> set[str]:
    return {result["verdict"] for result in results}
