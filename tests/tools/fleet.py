"""Playbooks on hosts and a cluster without virtual machines: a real control plane with hollow nodes.

    with fleet(folder, nodes=3) as cluster:
        run, report = cluster.validate(rdma_validate_image="registry.example.com/tester:1")
        cluster.api.get("/api/v1/nodes")

The control plane and its kubelets are those of tests/tools/hollow.py, the hosts are the fixture trees of
tests/tools/loopback.py. A host and its Node have the same name and machine ID. Hollow testers report a healthy fabric,
and the tests of a tester that is gone fail. An image of the registry `registry.invalid` cannot be pulled.

Ports are free ones and everything is in the folder, so this runs beside a lab and beside others of its kind.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import scenario
from tests.lab.api import Api, ApiError
from tests.scenario import Run
from tests.scenario.state import jobs_left
from tests.tools import environment, hollow, loopback

# Two rails of the fixture's eight. Slots of two seconds: hollow testers need no time.
FABRIC: dict[str, Any] = {
    **loopback.FABRIC,
    "rails": loopback.FABRIC["rails"][:2],
    # Hollow testers know perftest alone.
    "tests": {"budget": "quick", "duration": 1, "retries": 1, "mesh": False},
}
VARIABLES = {"rdma_validate_image": "registry.example.com/tester:1", "rdma_validate_slot_margin": 1}


@dataclass(frozen=True)
class Fleet:
    """Hosts and their cluster. ``folder``: inventory, playbooks, report and the hosts' trees; ``api``: as admin.

    ``plane``: the processes of the cluster.
    """

    folder: Path
    hosts: Sequence[str]
    inventory: Path
    api: Api
    plane: hollow.Cluster

    @property
    def report(self) -> Path:
        return self.folder / "report"

    def playbook(self, name: str, **variables: Any) -> Run:
        """Run playbooks/NAME.yml with these extra variables; never raises for its exit code (see Run.must)."""
        path, *args = self._arguments(name, variables)
        return scenario.playbook(path, *args, inventory=str(self.inventory), **loopback.environment(self.folder))

    def check(self, name: str, **variables: Any) -> Run:
        """Run the same in check mode, with the diff."""
        path, *args = self._arguments(name, variables)
        args += ["--check", "--diff"]
        return scenario.playbook(path, *args, inventory=str(self.inventory), **loopback.environment(self.folder))

    def start(self, name: str, **variables: Any) -> subprocess.Popen[bytes]:
        """Start the same as a process group of its own, whose output is dropped."""
        return subprocess.Popen(
            ["ansible-playbook", "-i", str(self.inventory), *self._arguments(name, variables)],
            cwd=environment.REPO,
            env={**environment.environ(), **loopback.environment(self.folder)},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _arguments(self, name: str, variables: Mapping[str, Any]) -> list[str]:
        return [f"{self.folder}/playbooks/{name}.yml", *scenario.extra(**variables)]

    def validate(self, **variables: Any) -> tuple[Run, dict[str, Any]]:
        """Measure in pods; the run and the report that this very run wrote, {} when it wrote none."""
        (self.report / "report.json").unlink(missing_ok=True)
        run = self.playbook("validate", rdma_validate_where=["pod"], **variables)
        assert not scenario.TRACEBACK.search(run.output), run.output[-6000:]
        return run, scenario.report(self.report) if (self.report / "report.json").is_file() else {}

    def testers(self) -> list[dict[str, Any]]:
        """Pods of testers."""
        selector = "app.kubernetes.io/managed-by=gpufabric,app.kubernetes.io/component=tester"
        pods: list[dict[str, Any]] = self.api.get("/api/v1/pods", labelSelector=selector)["items"]
        return pods

    def jobs_left(self) -> list[str]:
        """Jobs and pods of the validation that are still there."""
        return jobs_left(self.api)

    def log(self, pod: Mapping[str, Any]) -> str:
        """What a pod printed, "" when it has no log."""
        try:
            return self.api.text(f"{pod_path(pod)}/log")
        except ApiError:
            return ""

    def kill(self, pod: Mapping[str, Any]) -> None:
        self.api.delete(pod_path(pod), gracePeriodSeconds="0")

    @contextmanager
    def cordoned(self, name: str) -> Iterator[None]:
        self.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
        try:
            yield
        finally:
            self.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})


def pod_path(pod: Mapping[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


@contextmanager
def fleet(folder: Path, nodes: int, fabric: Mapping[str, Any] = FABRIC) -> Iterator[Fleet]:
    """Start a cluster of so many nodes, with hosts of the same names, in an empty folder, and end it again."""
    names = [f"gpu-{number:04d}" for number in range(1, nodes + 1)]
    places = {"rdma_kubeconfig": f"{folder}/cluster/{hollow.USER}.kubeconfig", "rdma_report_dir": f"{folder}/report"}
    inventory = loopback.make_hosts(folder, names, fabric, {**VARIABLES, **places})
    loopback.make_playbooks(folder / "playbooks", loopback.path_defaults())
    rails = loopback.planned_rails(fabric, names, folder / "rails")
    (folder / "cluster").mkdir()
    own = [rail["name"] for rail in rails]
    with hollow.cluster(folder / "cluster", nodes, own, [f"rdma/{rail['resource']}" for rail in rails]) as found:
        found.kubeconfig(hollow.USER)
        api = Api.from_kubeconfig(found.kubeconfig(hollow.ADMIN), agent="gpufabric-tests")
        yield Fleet(folder, names, inventory, api, found)


def eventually(holds: Callable[[], Any], seconds: float) -> Any:
    """Return the first true value of ``holds()``; AssertionError after these seconds."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s"
        time.sleep(0.2)
    return found
