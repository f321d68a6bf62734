# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fabric_nccl through main() on a simulated API server whose Jobs make pods: objects, waiting, output, removal."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from tests.unit.support import report_factory
from tests.unit.support.cluster_fake import FakeCluster, Response
from tests.unit.support.module_run import PACKAGE, run

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ClusterError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.nccl import DEFAULTS
from ansible_collections.gpufabric.rdma.plugins.plugin_utils import page

ROOT = Path(__file__).resolve().parents[4]
FIXTURES = ROOT / "tests/fixtures/nccl"
HOSTS = ("h1", "h2", "h3")
SIDE = {"rate": 400.0, "mtu": 4096}
LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpufabric-validate/leases/gpufabric-testers"
IDLE = {"workloads": {"queue_pairs": 0, "holders": []}}
BUSY = {"workloads": {"queue_pairs": 4, "holders": ["python3[4711]"]}}
STUCK = {
    "phase": "Pending",
    "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}}],
}


class Cluster(FakeCluster):
    """Makes the pods of each Job, which are over at once, and removes them with it. ``states``: node -> status."""

    def __init__(self, gpus: dict[str, str]) -> None:
        super().__init__(*[node(name, gpus.get(name, "2")) for name in HOSTS])
        self.states: dict[str, dict[str, Any]] = {}
        self.applied: list[dict[str, Any]] = []
        self.admits = True
        self.hides = ""
        self.jobs: list[dict[str, Any]] = []
        self.services: list[dict[str, Any]] = []

    def _patch(self, path: str, query: dict[str, str], data: Any, headers: Any) -> Response:
        answer = super()._patch(path, query, data, headers)
        self.services += [data] if "/services/" in path else []
        self.applied.append(data)
        if "/jobs/" in path and not self.admits:
            self.put(refusal(data["metadata"]["name"]))
        elif "/jobs/" in path:
            self.jobs.append(data)
            affinity = data["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
            (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            for index, hostname in enumerate(term["matchExpressions"][0]["values"]):
                self._pod(data, index, hostname.replace("host-", "node-"))
        return answer

    def _get(self, path: str, *given: Any) -> Response:
        return super()._get("/gone" if self.hides and self.hides in path else path, *given)

    def _pod(self, job: dict[str, Any], index: int, node_name: str) -> None:
        name = f"{job['metadata']['name']}-{index}-abcde"
        meta = {
            "name": name,
            "namespace": "gpufabric-validate",
            "labels": job["spec"]["template"]["metadata"]["labels"],
        }
        spec = {**job["spec"]["template"]["spec"], "nodeName": node_name}
        status = self.states.get(node_name, {"phase": "Succeeded"})
        self.put({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status})
        self.logs[name] = [(FIXTURES / ("second.log" if index else "first.log")).read_text()]

    def _delete(self, path: str, query: Any, data: Any, headers: Any) -> Response:
        answer = super()._delete(path, query, data, headers)
        if "/jobs/" in path:
            start = path.replace("/apis/batch/v1/", "/api/v1/").replace("/jobs/", "/pods/") + "-"
            for pod in [other for other in self.objects if other.startswith(start)]:
                del self.objects[pod]
        return answer


def refusal(job: str) -> dict[str, Any]:
    """Return the event of a Job whose pods are not admitted."""
    meta = {"name": f"{job}.1", "namespace": "gpufabric-validate"}
    said = {"type": "Warning", "message": "Error creating: unable to validate against any security context constraint"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": {"name": job}, **said}


def node(name: str, gpus: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{name}", "labels": {"kubernetes.io/hostname": f"host-{name}"}},
        "status": {"nodeInfo": {"machineID": name}, "allocatable": {"nvidia.com/gpu": gpus}},
    }


def plan(**nccl: Any) -> dict[str, Any]:
    rails = ("rail0", "rail1")
    return {
        "rails": [{"name": name, "netdev": name, "network": name, "resource": f"rdma_{name}"} for name in rails],
        "profile": {"name": "macvlan"},
        "operator": {"network_namespace": "default"},
        "hosts": {name: {"machine_id": name} for name in HOSTS},
        "endpoints": {"host": list(HOSTS), "pod": list(HOSTS)},
        "expectations": {name: dict.fromkeys(HOSTS, SIDE) for name in rails},
        "tests": {"nccl": {**DEFAULTS, "enabled": True, "collectives": ["all_reduce"], **nccl}},
    }


class World:
    """Runs the module on a cluster; ``gpus``: host -> what its Node offers, 2 without."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.folder, self.capsys, self.patch = folder, capsys, patch
        self.cluster = Cluster({})
        self.connects = True

    def run(self, check: bool = False, made: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
        module = importlib.import_module(f"{PACKAGE}.fabric_nccl")
        self.patch.setattr(module, "connect", self._connect)
        self.patch.setattr(module, "Clock", self.cluster.clock.clock)
        params = {
            "plan": made or plan(scopes=["pairs"]),
            "facts": {name: IDLE for name in HOSTS},
            "path": str(self.folder / "report"),
            "run": "nccl-1",
            "image": "images.example/tester:1",
            "script": str(ROOT / "roles/nccl_validate/files/nccl.sh"),
            "tester_script": str(ROOT / "roles/rdma_validate/files/tester.sh"),
        }
        result = run("fabric_nccl", self.capsys, check, **{**params, **given})
        print(result.get("msg"))
        return result

    def _connect(self, _module: Any) -> Any:
        if not self.connects:
            raise ClusterError("no route")
        return self.cluster.api()

    def report(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "report/nccl.json").read_text()))


@pytest.fixture
def world(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("KUBECONFIG", "/none")
    return World(tmp_path, capsys, monkeypatch)


def test_pairs_run_and_nothing_is_left(world: World) -> None:
    result = world.run(limit=["h1", "h2"])
    assert (result["verdict"], result["changed"], result["findings"]) == ("pass", False, [])
    assert [(row["unit"], row["path"], row["value"]) for row in world.report()["results"]] == [
        ("h1 and h2", "network", 46.8),
        ("h1 and h2", "all", 99.0),
    ]
    assert [path for path in world.cluster.objects if "gpufabric" in path and "/services/" not in path] == []
    files = {path.name for path in (world.folder / "report").iterdir()}
    assert files == {"nccl", "nccl.json", "nccl.txt", "nccl-junit.xml", "nccl.prom"}
    assert len(list((world.folder / "report/nccl").glob("*/h?.log"))) == 2


def rails_report(world: World, capsys: pytest.CaptureFixture[str], **given: Any) -> Path:
    """The report of a measurement of the rails, in the folder of the collectives."""
    names = [{"node": name, "rails": [{"rail": "rail0", "address": "10.0.0.1/24"}]} for name in HOSTS]
    results = [report_factory.result(a, b) for a in HOSTS for b in HOSTS if a != b]
    measured = {"plan": {"hosts": dict(zip(HOSTS, names))}, "results": results, **given}
    folder = world.folder / "report"
    assert run("fabric_report", capsys, path=str(folder), **measured)["verdict"] == "pass"
    return folder


def page_data(answer: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(answer["page"]))


def test_the_report_of_the_rails_has_the_collectives(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rails_report(world, capsys)
    answer = world.run(limit=["h1", "h2"])
    page.finish(dict(answer))
    made = json.loads((folder / "report.json").read_text())
    jsonschema.validate(made, json.loads((ROOT / "docs/report.schema.json").read_text()))
    assert (made["verdict"], made["nccl"]["verdict"], made["nccl"]["rails"]) == ("pass", "pass", "pass")
    assert [(row["path"], row["value"], row["transports"]) for row in made["nccl"]["results"]] == [
        (row["path"], row["value"], row["transports"]) for row in world.report()["results"]
    ]
    cases = {case.get("name"): case for case in ElementTree.parse(folder / "junit.xml").iter("testcase")}
    assert list(cases["all_reduce, network alone, h1 and h2"]) == []
    assert "NCCL: pass, 2 of 2 collectives passed" in (folder / "report.txt").read_text()
    html = (folder / "report.html").read_text()
    assert "Collectives of NCCL" in html and "/GDRDMA" in html
    assert (answer["summary"]["verdict"], answer["summary"]["path"]) == ("pass", str(folder))


def test_the_verdict_of_the_report_is_that_of_both(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rails_report(world, capsys)
    low = plan(scopes=["pairs"], minimum={"all_reduce_network": 48.0})
    for _again in range(2):
        answer = world.run(made=low, limit=["h1", "h2"])
        made = json.loads((folder / "report.json").read_text())
        assert (made["verdict"], made["nccl"]["rails"], answer["summary"]["verdict"]) == ("fail", "pass", "fail")
        # The rails have passed, also when the collectives run again.
        assert made["nccl"]["findings"][-1].startswith("The rails passed in run ")
        assert page_data(answer)["head"]["reasons"] == ["Rails: passed. Collectives of NCCL: failed."]
    # A run that ends before its collectives has no data, and the next good one passes.
    world.patch.setattr(world, "connects", False)
    assert page_data(world.run(made=low, limit=["h1", "h2"]))["head"]["verdict"] == "no_data"
    assert json.loads((folder / "report.json").read_text())["verdict"] == "no_data"
    world.patch.setattr(world, "connects", True)
    assert world.run(limit=["h1", "h2"])["summary"]["verdict"] == "pass"


def test_a_report_of_other_hosts_or_one_that_was_changed_is_left_alone(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = rails_report(world, capsys)
    made = json.loads((folder / "report.json").read_text())
    other = json.dumps({**made, "hosts": {"x1": made["hosts"]["h1"]}})
    (folder / "report.json").write_text(other)
    answer = world.run(limit=["h1", "h2"])
    assert (answer["verdict"], "summary" in answer, (folder / "report.json").read_text()) == ("pass", False, other)
    (folder / "report.json").write_text(json.dumps({**made, "rails": [{}]}))
    changed = world.run(limit=["h1", "h2"])
    assert "report.json was changed after it was written" in changed["msg"]
    assert changed["msg"].endswith("Measure the rails again")


@pytest.mark.parametrize(
    "other", [{"hosts": None}, {"hosts": {"h1": {}, "h2": {}}}, {"nccl": []}, {"nccl": {"rails": "x"}}]
)
def test_what_is_no_report_of_rails_is_refused_with_a_message(
    world: World, capsys: pytest.CaptureFixture[str], other: dict[str, Any]
) -> None:
    folder = rails_report(world, capsys)
    made = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_text(json.dumps({**made, **other}))
    refused = world.run(limit=["h1", "h2"])
    assert "report.json was changed after it was written" in refused["msg"]
    assert world.cluster.jobs == []


def test_no_page_with_an_earlier_verdict_stands_while_collectives_run(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = rails_report(world, capsys)
    (folder / "report.html").write_text("passed")
    # A module that is killed leaves the work of its action plugin undone.
    world.run(limit=["h1", "h2"])
    assert not (folder / "report.html").exists()


def test_addresses_do_not_come_into_a_redacted_report(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    folder = rails_report(world, capsys, redact=True)
    stuck = json.loads(json.dumps(STUCK))
    stuck["containerStatuses"][0]["state"]["waiting"]["message"] = "no route to 10.9.8.7"
    world.cluster.states["node-h2"] = stuck
    world.run(limit=["h1", "h2"], timeout=30)
    assert "10.9.8.7" in (folder / "nccl.json").read_text()
    assert "10.9.8.7" not in (folder / "report.json").read_text()


def test_the_job_starts_hydra_on_each_host_with_its_gpus_and_rails(world: World) -> None:
    world.run(limit=["h1", "h2"])
    (job,) = world.cluster.jobs
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (job["spec"]["completionMode"], job["spec"]["completions"]) == ("Indexed", 2)
    assert container["command"] == [
        *("sh", "/gpufabric/nccl.sh", "serve", "/gpufabric/rails", "/gpufabric/collectives"),
        *("gpufabric-nccl-0-0.gpufabric-nccl-0.gpufabric-validate.svc", "$(JOB_COMPLETION_INDEX)", "2", "2", "300"),
    ]
    limits = container["resources"]["limits"]
    assert (limits["nvidia.com/gpu"], limits["rdma/rdma_rail0"], limits["rdma/rdma_rail1"]) == ("2", "1", "1")
    assert {"name": "NCCL_CROSS_NIC", "value": "0"} in container["env"]
    assert {"name": "shared", "mountPath": "/dev/shm"} in container["volumeMounts"]
    (service,) = world.cluster.services
    assert (pod["subdomain"], service["spec"]["clusterIP"]) == (service["metadata"]["name"], "None")
    assert service["metadata"]["ownerReferences"][0]["kind"] == "ConfigMap"


def test_an_odd_host_and_a_group_follow_in_rounds_of_their_own(world: World) -> None:
    world.run(made=plan())
    sizes = [job["spec"]["completions"] for job in world.cluster.jobs]
    assert sizes == [2, 2, 3]
    # The output of the pair is not that of three hosts.
    group = world.report()["results"][-1]
    assert (group["unit"], group["verdict"]) == ("all", "no_data")
    assert group["reason"] == "communicators with 4 GPUs, expected 6 GPUs in each of 1"


def test_a_pod_that_does_not_start_costs_its_pair_only(world: World) -> None:
    world.cluster.states["node-h2"] = STUCK
    result = world.run(timeout=30)
    assert result["verdict"] == "no_data"
    verdicts = {row["unit"]: row["verdict"] for row in world.report()["results"]}
    assert verdicts == {"h1 and h2": "no_data", "h1 and h3": "pass"}
    assert "h2: pod gpufabric-nccl-0-1-abcde: ImagePullBackOff" in world.report()["results"][0]["reason"]
    assert not any("/jobs/" in path for path in world.cluster.objects)


def test_a_host_with_another_number_of_gpus_is_left_out_by_name(world: World) -> None:
    world.cluster = Cluster({"h3": "1"})
    result = world.run()
    assert result["verdict"] == "no_data"
    assert list(world.report()["left_out"]) == ["h3"]
    assert "it offers 1 nvidia.com/gpu, a tester needs 2" in world.report()["left_out"]["h3"]
    # All GPUs must be requested here.
    assert "gpu_resource" not in world.report()["left_out"]["h3"]
    assert "h3: not measured: no tester on node node-h3" in "\n".join(result["text"])


def test_pods_have_their_account_where_the_platform_admits_by_account(world: World) -> None:
    made = plan(scopes=["pairs"])
    made["operator"]["platform"] = "openshift"
    assert world.run(made=made, limit=["h1", "h2"])["verdict"] == "pass"
    kinds = [item["kind"] for item in world.cluster.applied if item["metadata"]["name"].startswith("gpufabric-nccl")]
    assert kinds == ["ConfigMap", "Service", "ServiceAccount", "RoleBinding", "Job"]
    (job,) = world.cluster.jobs
    account, binding = (item for item in world.cluster.applied if item["kind"] in ("ServiceAccount", "RoleBinding"))
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == account["metadata"]["name"]
    assert binding["roleRef"]["name"] == "system:openshift:scc:privileged"
    assert binding["subjects"][0]["name"] == account["metadata"]["name"]


def test_why_no_pod_was_made_is_told(world: World) -> None:
    world.cluster.admits = False
    world.run(limit=["h1", "h2"], timeout=5)
    assert (
        "h1: Error creating: unable to validate against any security context" in world.report()["results"][0]["reason"]
    )


def test_objects_that_another_process_removes_end_the_run_with_a_message(world: World) -> None:
    world.cluster.hides = "configmaps/gpufabric-nccl"
    result = world.run(limit=["h1", "h2"])
    assert result["failed"]
    assert (
        "ConfigMap gpufabric-nccl-0 in namespace gpufabric-validate is missing, although it was just created"
        in result["msg"]
    )


def test_hosts_in_use_are_not_loaded(world: World) -> None:
    facts = {"h1": IDLE, "h2": BUSY, "h3": IDLE}
    refused = world.run(facts=facts)
    assert refused["failed"]
    assert "h2: 4 RDMA queue pairs are open (python3[4711])" in refused["msg"]
    assert "set busy_hosts to exclude to run on the other hosts" in refused["msg"]
    assert (world.cluster.jobs, world.report()["verdict"]) == ([], "no_data")
    assert world.run(facts=facts, busy_hosts="exclude")["verdict"] == "no_data"
    assert [row["hosts"] for row in world.report()["results"][:1]] == [["h1", "h3"]]
    assert "4 RDMA queue pairs are open" in world.report()["left_out"]["h2"]
    world.run(facts={"h1": IDLE, "h2": IDLE})
    assert "the host did not answer" in world.report()["left_out"]["h3"]
    assert {row["unit"] for row in world.report()["results"]} == {"h1 and h2"}
    world.run(facts={}, busy_hosts=True)
    assert world.report()["left_out"] == {}


def test_an_earlier_verdict_does_not_stand_without_a_cluster(world: World) -> None:
    world.run(limit=["h1", "h2"])
    world.patch.setattr(world, "connects", False)
    assert world.run(limit=["h1", "h2"])["failed"]
    assert world.report()["verdict"] == "no_data"


def test_a_run_that_has_begun_leaves_no_earlier_verdict(world: World) -> None:
    world.run(limit=["h1", "h2"])
    begun = run("fabric_nccl", world.capsys, False, state="begun", path=str(world.folder / "report"), run="nccl-2")
    assert (begun["verdict"], begun["changed"]) == ("no_data", False)
    assert (world.report()["verdict"], world.report()["run"]) == ("no_data", "nccl-2")
    assert "the run did not end" in world.report()["left_out"][""]
    lacking = run("fabric_nccl", world.capsys, False, path=str(world.folder / "report"), run="nccl-2")
    assert "state is measured but all of the following are missing" in lacking["msg"]


def test_low_values_name_the_verdict_of_the_rails(world: World) -> None:
    made = plan(scopes=["pairs"], minimum={"all_reduce_network": 48.0})
    result = world.run(made=made, limit=["h1", "h2"])
    assert result["verdict"] == "fail"
    assert "46.8 GB/s, expected at least 48 GB/s (tests.nccl.minimum.all_reduce_network)" in result["findings"][0]
    assert result["findings"][-1].startswith("The measurement of the rails is missing")


def test_check_mode_asks_the_cluster_nothing(world: World) -> None:
    assert world.run(check=True)["changed"] is False
    assert world.cluster.calls == []
    assert not (world.folder / "report").exists()


def test_an_error_leaves_no_earlier_verdict_and_no_object(world: World) -> None:
    world.run(limit=["h1", "h2"])
    result = world.run(limit=["h1", "h2"], script="/none/nccl.sh")
    assert result["failed"]
    assert "script /none/nccl.sh cannot be read" in result["msg"]
    assert world.report()["verdict"] == "no_data"
    assert LEASE not in world.cluster.objects


def test_a_single_host_is_named_and_no_pass(world: World) -> None:
    result = world.run(limit=["h1"])
    assert result["verdict"] == "no_data"
    assert world.report()["left_out"] == {
        "h1": "a collective needs two hosts with the same rails, and no other can run"
    }
    assert result["findings"] == ["No collective was run: it needs two hosts with GPUs and the same rails"]
