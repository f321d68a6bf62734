"""The network operator by OLM through main(), on an API server in memory with a simulated OLM. Two seconds."""

from __future__ import annotations

import copy
import importlib
import json
from typing import Any, Callable

import pytest
from tests.unit.support.cluster_fake import FakeCluster, status
from tests.unit.support.module_run import PACKAGE, run, warned
from tests.unit.support.olm_fake import NAMESPACE, OLM, PLANS, SUBSCRIPTIONS, VERSIONS, Olm, item, manifest

CSV = "nvidia-network-operator.v26.7.1"
MARK = {"app.kubernetes.io/managed-by": "gpufabric"}
GROUPS = f"/apis/operators.coreos.com/v1/namespaces/{NAMESPACE}/operatorgroups/"
SPACE = f"/api/v1/namespaces/{NAMESPACE}"
# A group that only OpenShift serves.
CONFIG = {"apiVersion": "config.openshift.io/v1", "kind": "SriovOperatorConfig", "metadata": {"name": "version"}}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a", "labels": {"feature.node.kubernetes.io/pci-15b3.present": "true"}},
    "status": {"nodeInfo": {"machineID": "1"}, "conditions": [{"type": "Ready", "status": "True"}]},
}
INFO: dict[str, Any] = {"hosts": {"h": {"machine_id": "1"}}, "platform": "openshift", "nfd": False, "multus": False}
INFO.update(operator_name="network-operator", steps=["operator"], existing="refuse")


@pytest.fixture
def olm(monkeypatch: pytest.MonkeyPatch) -> Olm:
    cluster = FakeCluster(copy.deepcopy(CONFIG), copy.deepcopy(NODE))
    cluster.objects["/version"] = {"gitVersion": "v1.34.1", "major": "1", "minor": "34"}
    found = Olm(cluster)
    for name in ("cluster_info", "fabric_olm"):
        monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.{name}"), "connect", lambda module: cluster.api())
    monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.fabric_olm"), "Clock", found.clock)
    return found


Capture = pytest.CaptureFixture[str]


def install(capsys: Capture, release: str = "26.7.1", check: bool = False, **given: Any) -> dict[str, Any]:
    return run("fabric_olm", capsys, check=check, release=release, **given)


def foreseen(capsys: Capture, release: str = "26.7.1", **given: Any) -> list[str]:
    return list(run("cluster_info", capsys, **{**INFO, "release": release, **given})["problems"])


def actions(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["kind"], one["action"]) for one in result["objects"]]


ALL = ("Namespace", "OperatorGroup", "Subscription", "ClusterServiceVersion")


def test_an_operator_is_installed_once_and_removed(olm: Olm, capsys: Capture) -> None:
    before = copy.deepcopy(olm.cluster.objects)
    info = run("cluster_info", capsys, **INFO, release="26.7.1")
    assert (info["problems"], info["release"]["action"]) == ([], "subscribe")
    preview = install(capsys, check=True)
    assert olm.cluster.objects == before and actions(preview) == [(kind, "create") for kind in ALL]
    result = install(capsys)
    assert result["changed"] and actions(result) == actions(preview)
    assert (result["csv"], result["install_plan"], result["others"]) == (CSV, "install-1", [])
    spec = olm.cluster.objects[f"{SUBSCRIPTIONS}nvidia-network-operator"]["spec"]
    assert (spec["channel"], spec["startingCSV"], spec["installPlanApproval"]) == ("v26.7", CSV, "Manual")
    assert olm.cluster.objects[PLANS + "install-1"]["spec"]["approved"] is True
    again = install(capsys)
    assert not again["changed"] and again["diff"] == {"before": {}, "after": {}}
    assert olm.time.time < 30
    # A later release of the channel is proposed, and stays so.
    olm.proposes = ["nvidia-network-operator.v26.7.9"]
    olm.step()
    assert not install(capsys)["changed"] and not olm.cluster.objects[PLANS + "install-2"]["spec"]["approved"]
    for name in ("install-1", "install-2"):
        del olm.cluster.objects[PLANS + name]
    preview = install(capsys, state="absent", check=True)
    result = install(capsys, state="absent")
    order = ("Subscription", "ClusterServiceVersion", "OperatorGroup", "Namespace")
    assert actions(result) == actions(preview) == [(kind, "delete") for kind in order]
    assert "definitions (CRDs) of package nvidia-network-operator were not removed" in warned(result)[-1]
    assert olm.cluster.objects == before
    assert not install(capsys, state="absent")["changed"]


def test_an_install_plan_with_other_operators_needs_consent(olm: Olm, capsys: Capture) -> None:
    olm.proposes = [CSV, "sriov-fec.v2.9.0"]
    failed = install(capsys)
    assert failed["failed"] and olm.time.time < 30
    assert f"InstallPlan {NAMESPACE}/install-1 was not approved: beside {CSV} it installs or upgrades" in failed["msg"]
    assert "sriov-fec.v2.9.0, and approval is for all of them" in failed["msg"]
    assert olm.cluster.objects[PLANS + "install-1"]["spec"]["approved"] is False
    (told,) = foreseen(capsys)
    assert told in failed["msg"] and told in install(capsys, check=True)["msg"]
    assert foreseen(capsys, olm_approve_others=True) == []
    result = install(capsys, olm_approve_others=True)
    assert (result["others"], result["install_plan"]) == (["sriov-fec.v2.9.0"], "install-1")
    assert "consented by olm_approve_others: InstallPlan install-1 also installs sriov-fec.v2.9.0" in warned(result)


def condition(kind: str, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": reason, "message": message}


FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "release failed": (
        {"ends": {"phase": "Failed", "reason": "InstallCheckFailed", "message": "deployment timed out"}},
        f"ClusterServiceVersion {CSV} failed: InstallCheckFailed: deployment timed out",
    ),
    "plan failed": (
        {
            "plan_ends": {
                "phase": "Failed",
                "conditions": [{"type": "Installed", "status": "False", "reason": "X", "message": "no permission"}],
            }
        },
        "InstallPlan install-1 failed: X: no permission",
    ),
    "not resolved": (
        {"conditions": [condition("ResolutionFailed", "ConstraintsNotSatisfiable", "no operators found")]},
        "Subscription nvidia-network-operator: ResolutionFailed: ConstraintsNotSatisfiable: no operators found",
    ),
    "not unpacked": (
        {"conditions": [condition("BundleUnpackFailed", "DeadlineExceeded", "job failed")]},
        "BundleUnpackFailed: DeadlineExceeded: job failed",
    ),
    "another release": (
        {"proposes": ["nvidia-network-operator.v26.7.9"]},
        f"installs nvidia-network-operator.v26.7.9, and {CSV} is expected",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_waiting_cannot_help_ends_early(name: str, olm: Olm, capsys: Capture) -> None:
    settings, told = FAILURES[name]
    for key, value in settings.items():
        setattr(olm, key, value)
    failed = install(capsys)
    assert failed["failed"] and told in failed["msg"] and "waiting cannot resolve this" in failed["msg"]
    assert olm.time.time < 120
    # Once the cause is gone, the next run continues.
    fresh = Olm(olm.cluster)
    olm.ends, olm.plan_ends, olm.conditions, olm.proposes = fresh.ends, fresh.plan_ends, [], []
    assert install(capsys).get("csv") == CSV
    assert not install(capsys)["changed"]


def test_waiting_has_an_end(olm: Olm, capsys: Capture) -> None:
    requirements = [{"kind": "CustomResourceDefinition", "name": "x.example.com", "status": "NotPresent"}]
    olm.ends = {"phase": "Pending", "requirementStatus": requirements}
    failed = install(capsys, timeout=50)
    assert "not installed after 50 s" in failed["msg"]
    assert "phase Pending, requirements that are not met: CustomResourceDefinition x.example.com" in failed["msg"]


def test_an_unhealthy_catalog_is_waited_for(olm: Olm, capsys: Capture) -> None:
    olm.conditions = [condition("CatalogSourcesUnhealthy", "UnhealthyCatalogSourceFound", "certified-operators")]
    olm.time.at(200, olm.conditions.clear)
    assert install(capsys)["csv"] == CSV


def test_a_plan_that_changes_before_its_approval_is_read_again(olm: Olm, capsys: Capture) -> None:
    answers: list[int] = []
    patch = olm.cluster._patch

    def changing(path: str, query: Any, data: Any, headers: Any) -> Any:
        if path.startswith(PLANS) and not answers:
            answers.append(1)
            live = olm.cluster.objects[path]
            live["metadata"]["resourceVersion"] = "newer"
            olm.proposes = live["spec"]["clusterServiceVersionNames"] = [CSV, "sneaked-in.v1.0.0"]
        return patch(path, query, data, headers)

    olm.cluster._patch = changing  # type: ignore[method-assign]
    failed = install(capsys)
    assert "it installs or upgrades sneaked-in.v1.0.0" in failed["msg"]
    assert olm.cluster.objects[PLANS + "install-1"]["spec"]["approved"] is False


@pytest.mark.parametrize(
    ("installed", "release", "problem"),
    [
        ("26.4.1", "26.7.1", ""),
        ("26.7.1", "26.4.2", "is newer than the requested release 26.4.2, and a downgrade is not supported"),
        ("26.7.1", "26.7.1", ""),
    ],
)
def test_upgrades(installed: str, release: str, problem: str, olm: Olm, capsys: Capture) -> None:
    assert install(capsys, installed)["changed"]
    told = foreseen(capsys, release)
    result = install(capsys, release)
    if problem:
        assert problem in told[0] and told[0] in result["msg"]
        return
    assert told == [] and result.get("csv", result) == f"nvidia-network-operator.v{release}"
    assert result["changed"] is (installed != release)
    assert [one["metadata"]["name"] for one in olm.of(VERSIONS)] == [result["csv"]]
    assert not install(capsys, release)["changed"]
    # An upgrade removes the old release by itself, so a teardown has one to remove.
    assert [one["kind"] for one in install(capsys, release, state="absent")["objects"]][:2] == [
        "Subscription",
        "ClusterServiceVersion",
    ]


def group(name: str, *targets: str, **labels: str) -> dict[str, Any]:
    spec = {"targetNamespaces": list(targets)}
    return item("OperatorGroup", name, "operators.coreos.com/v1", metadata={"labels": labels}, spec=spec)


def elsewhere(olm: Olm) -> None:
    spec = {"name": "nvidia-network-operator"}
    olm.cluster.put(item("Subscription", "other", metadata={"namespace": "gpu"}, spec=spec))


def neighbour(olm: Olm, name: str, **spec: str) -> None:
    olm.cluster.put(item("Subscription", name, spec={"name": name, **spec}))


def by_helm(olm: Olm) -> None:
    notes = {"meta.helm.sh/release-name": "net"}
    meta = {"annotations": notes, "labels": {"app.kubernetes.io/name": "network-operator"}}
    olm.cluster.put(item("Deployment", "net", "apps/v1", metadata=meta, spec={}))


REFUSED: dict[str, tuple[Callable[[Olm], object], str]] = {
    "subscription": (lambda olm: olm.installed(CSV), "is not managed by this collection. Set"),
    "subscription applied from a folder": (
        lambda olm: olm.installed(CSV, **MARK),
        "Subscription nvidia-network-operator/theirs installs package nvidia-network-operator and is not managed",
    ),
    "elsewhere": (elsewhere, "Subscription gpu/other installs package nvidia-network-operator in another namespace"),
    "neighbours": (
        lambda olm: [neighbour(olm, "sriov-fec"), neighbour(olm, "ptp", installPlanApproval="Automatic")],
        "namespace nvidia-network-operator has Subscriptions that are updated automatically (ptp, sriov-fec), and",
    ),
    "two groups": (
        lambda olm: [olm.cluster.put(group(name, NAMESPACE)) for name in ("a", "b")],
        "has 2 OperatorGroups (a, b), and OLM installs nothing where there is more than one",
    ),
    "group of all namespaces": (
        lambda olm: olm.cluster.put(group("all")),
        "OperatorGroup nvidia-network-operator/all selects other namespaces, and package",
    ),
    "group of another namespace": (
        lambda olm: olm.cluster.put(group("gpu", "gpu")),
        "OperatorGroup nvidia-network-operator/gpu selects gpu, and package",
    ),
    "release alone": (
        lambda olm: olm.cluster.put(item("ClusterServiceVersion", CSV, status={"phase": "Succeeded"})),
        f"ClusterServiceVersion nvidia-network-operator/{CSV} exists without a Subscription",
    ),
    "chart": (by_helm, "network operator nvidia-network-operator/net (Helm release net) runs already"),
    "no package": (
        lambda olm: olm.cluster.put(manifest({}, source="mirror")),
        "package nvidia-network-operator is not in catalog openshift-marketplace/certified-operators",
    ),
    "no channel": (
        lambda olm: olm.cluster.put(manifest({"v25.10": [CSV], "stable": [CSV]})),
        "has no channel v26.7. It has: stable, v25.10. Set rdma_fabric.operator.release to a release of one of these",
    ),
    "no release": (
        lambda olm: olm.cluster.put(manifest({"v26.7": ["nvidia-network-operator.v26.7.0"]})),
        f"does not have {CSV}. It has: nvidia-network-operator.v26.7.0",
    ),
    "namespace": (
        lambda olm: olm.cluster.put(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
            }
        ),
        "its label pod-security.kubernetes.io/enforce is restricted",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_stands_in_the_way_is_foreseen_and_left(name: str, olm: Olm, capsys: Capture) -> None:
    before, told = REFUSED[name]
    before(olm)
    objects = copy.deepcopy(olm.cluster.objects)
    (problem,) = foreseen(capsys)
    assert told in problem
    assert problem in install(capsys)["msg"] and problem in install(capsys, check=True)["msg"]
    assert not install(capsys, state="absent")["changed"]
    assert olm.cluster.objects == objects


def test_a_subscription_of_another_tool_is_adopted_with_consent(olm: Olm, capsys: Capture) -> None:
    olm.installed("nvidia-network-operator.v26.4.1")
    assert foreseen(capsys, existing="adopt") == []
    result = install(capsys, existing="adopt")
    assert result["changed"] and [one["metadata"]["name"] for one in olm.of(SUBSCRIPTIONS)] == ["theirs"]
    assert not install(capsys)["changed"]
    removed = install(capsys, state="absent")
    assert removed["changed"] and not olm.of(SUBSCRIPTIONS) and not olm.of(VERSIONS)


@pytest.mark.parametrize(("key", "value"), [("source", "mirror"), ("sourceNamespace", "olm")])
def test_a_subscription_of_another_catalog_is_not_adopted(key: str, value: str, olm: Olm, capsys: Capture) -> None:
    olm.installed(CSV)
    olm.cluster.objects[f"{SUBSCRIPTIONS}theirs"]["spec"][key] = value
    before = copy.deepcopy(olm.cluster.objects)
    found = {"source": "openshift-marketplace/mirror", "sourceNamespace": "olm/certified-operators"}[key]
    (problem,) = foreseen(capsys, existing="adopt")
    assert problem.startswith(f"Subscription {NAMESPACE}/theirs is of catalog {found}, and this collection needs")
    assert "openshift-marketplace/certified-operators" in problem and "rdma_fabric.operator.existing: use" in problem
    assert problem in install(capsys, existing="adopt")["msg"] and olm.cluster.objects == before


def test_neighbours_need_consent_only_where_their_updates_would_stop(olm: Olm, capsys: Capture) -> None:
    neighbour(olm, "ptp")
    (problem,) = foreseen(capsys)
    assert problem.endswith("Choose another rdma_fabric.operator.namespace, or set olm_approve_others: true")
    assert foreseen(capsys, olm_approve_others=True) == []
    # Another Subscription with approval has stopped them already.
    neighbour(olm, "fec", installPlanApproval="Manual")
    assert foreseen(capsys) == []
    for name in ("ptp", "fec"):
        del olm.cluster.objects[SUBSCRIPTIONS + name]
    assert install(capsys)["changed"]
    olm.cluster.put(item("Subscription", "late", spec={"name": "late", "channel": "v26.7"}, status={}))
    assert foreseen(capsys) == []


def test_what_others_have_in_the_namespace_stays(olm: Olm, capsys: Capture) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    olm.cluster.put(copy.deepcopy(space))
    olm.cluster.put(group("theirs", NAMESPACE))
    result = install(capsys)
    assert [one["kind"] for one in result["objects"]] == ["Subscription", "ClusterServiceVersion"]
    install(capsys, state="absent")
    assert GROUPS + "theirs" in olm.cluster.objects and SPACE in olm.cluster.objects


def test_a_namespace_with_objects_of_others_stays(olm: Olm, capsys: Capture) -> None:
    install(capsys)
    platform = [("ConfigMap", "openshift-service-ca.crt"), ("ServiceAccount", "deployer"), ("Secret", "builder-xyz")]
    for kind, name in platform:
        notes = {"kubernetes.io/service-account.name": "builder"}
        olm.cluster.put(item(kind, name, "v1", metadata={"annotations": notes} if kind == "Secret" else {}))
    olm.cluster.put(item("ClusterServiceVersion", "copy.v1", metadata={"labels": {"olm.copiedFrom": "x"}}))
    olm.cluster.put(item("Secret", "mine", "v1"))
    preview = install(capsys, state="absent", check=True)
    result = install(capsys, state="absent")
    assert actions(result) == actions(preview) and SPACE in olm.cluster.objects
    assert "it holds objects that this collection does not manage: Secret mine." in warned(result)[0]
    assert GROUPS + "nvidia-network-operator" not in olm.cluster.objects
    del olm.cluster.objects["/api/v1/namespaces/nvidia-network-operator/secrets/mine"]
    install(capsys, state="absent")
    assert SPACE not in olm.cluster.objects


def test_a_release_whose_subscription_is_gone_is_still_removed(olm: Olm, capsys: Capture) -> None:
    install(capsys)
    del olm.cluster.objects[f"{SUBSCRIPTIONS}nvidia-network-operator"]
    assert install(capsys, state="absent")["changed"] and not olm.of(VERSIONS)


def test_missing_permissions_are_the_problem(olm: Olm, capsys: Capture) -> None:
    olm.cluster.denied = ("list subscriptions", "patch installplans")
    problems = run("cluster_info", capsys, **INFO, release="26.7.1")["problems"]
    assert problems == [
        "permissions are missing: list subscriptions.operators.coreos.com, patch installplans.operators.coreos.com in"
        f" {NAMESPACE}; use an account that has them"
    ]
    assert json.dumps(problems).count(OLM) == 0


def unreadable(olm: Olm, code: int, reason: str, part: str) -> None:
    """Answer reads of some paths with an error."""
    get = olm.cluster._get

    def refusing(path: str, query: Any, data: Any, headers: Any) -> Any:
        return status(code, reason, "not today") if part in path else get(path, query, data, headers)

    olm.cluster._get = refusing  # type: ignore[method-assign]


def test_an_operator_to_be_used_must_run_also_where_olm_cannot_be_read(olm: Olm, capsys: Capture) -> None:
    unreadable(olm, 403, "Forbidden", "operators.coreos.com")
    (problem,) = foreseen(capsys, existing="use")
    assert f"existing is use, but no network operator runs in namespace {NAMESPACE}" in problem


@pytest.mark.parametrize("existing", ["use", "refuse", "adopt"])
def test_a_removal_without_permissions_for_olm(existing: str, olm: Olm, capsys: Capture) -> None:
    install(capsys)
    before = copy.deepcopy(olm.cluster.objects)
    unreadable(olm, 403, "Forbidden", "operators.coreos.com")
    result = install(capsys, state="absent", existing=existing)
    assert olm.cluster.objects == before
    if existing != "use":
        assert result["failed"] and "with 403: not today" in result["msg"]
        return
    assert not result["changed"]
    (note,) = warned(result)
    assert note.startswith("Operators of OLM cannot be read (") and note.endswith("Nothing of them was removed.")


@pytest.mark.parametrize(("code", "reason"), [(500, "InternalError"), (503, "ServiceUnavailable")])
def test_a_failure_to_read_is_no_missing_permission(code: int, reason: str, olm: Olm, capsys: Capture) -> None:
    unreadable(olm, code, reason, "/subscriptions")
    assert install(capsys, state="absent", existing="use")["failed"]
    assert run("cluster_info", capsys, **{**INFO, "release": "26.7.1", "existing": "use"})["failed"]


def test_a_removal_does_not_need_the_catalog(olm: Olm, capsys: Capture) -> None:
    install(capsys)
    unreadable(olm, 503, "ServiceUnavailable", "packagemanifests")
    assert install(capsys)["failed"]
    assert install(capsys, state="absent")["changed"] and not olm.of(SUBSCRIPTIONS) and not olm.of(VERSIONS)


def test_use_is_for_a_removal_and_removes_only_what_is_ours(olm: Olm, capsys: Capture) -> None:
    assert "existing: use is for state absent" in install(capsys, existing="use")["msg"]
    olm.installed(CSV)
    before = copy.deepcopy(olm.cluster.objects)
    result = install(capsys, state="absent", existing="use")
    assert not result["changed"] and olm.cluster.objects == before
    assert "theirs is not managed by this collection. It was not removed." in warned(result)[0]


def test_only_platforms_with_a_catalog_have_olm(olm: Olm, capsys: Capture) -> None:
    assert "platform: Kubernetes has no catalog of OLM" in install(capsys, platform="kubernetes")["msg"]
    assert not olm.cluster.calls
