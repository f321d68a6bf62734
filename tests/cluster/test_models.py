"""Every network model on every release line with a running operator: the stand-in, which follows recordings.

Each model is applied in place of the one before and waited for, changed and waited for again; then each wait is made to
fail. The nodes are hollow: no container runs, so what a pod would do with its network is not seen here.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from tests.lab import charts
from tests.lab.api import Api, ApiError
from tests.lab.chart.files.standin import components, sriov
from tests.lab.helm import helm
from tests.scenario import Run
from tests.tools import hollow, models, standin
from tests.tools.fleet import Fleet, eventually
from tests.tools.models import CRDS, FASTER, NEWEST, SPACE, Operator, items, patched

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases

NICS, POOLS, NADS = (
    f"/apis/{group}"
    for group in (
        "mellanox.com/v1alpha1",
        f"nv-ipam.nvidia.com/v1alpha1/namespaces/{SPACE}",
        "k8s.cni.cncf.io/v1/namespaces/default/network-attachment-definitions",
    )
)
STATES = f"/apis/{sriov.API}/namespaces/{SPACE}/sriovnetworknodestates"
SETS, PODS = f"/apis/apps/v1/namespaces/{SPACE}/daemonsets", f"/api/v1/namespaces/{SPACE}/pods"
PLUGIN = "rdma-shared-dp-ds"
#: Namespaces of the SR-IOV operator on OpenShift, and of the networks on the page raw of the gallery: definitions there
#: give way to those of other models.
SPACES, OWN_SPACES = "/api/v1/namespaces", {"openshift-sriov-network-operator", "training"}
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}
# Seconds of the wait's clock that no wait comes near to.
LONG = 10_000


def run_role(cluster: Fleet, line: str, state: str, *, check: bool = False, **further: Any) -> Run:
    """Run the role network_operator with the chart of a line, and further variables."""
    archive = charts.of_line(cluster.folder / "charts", models.release(line), models.definitions(line))
    own = {
        "kubeconfig": "{{ rdma_kubeconfig }}",
        "namespace": SPACE,
        "release": models.release(line),
        "chart_ref": str(archive),
        "helm_binary": str(helm()),
        "nfd": False,
        "timeout": 300,
        "state": state,
    }
    variables = {f"network_operator_{key}": value for key, value in own.items()}
    play = {"name": "Run the role", "hosts": "rdma_hosts", "gather_facts": False, "vars": variables}
    text = json.dumps([{**play, "roles": ["gpufabric.rdma.network_operator"]}])
    (cluster.folder / "playbooks" / "line.yml").write_text(text)
    return (cluster.check if check else cluster.playbook)("line", **further).must()


@pytest.fixture(scope="module", params=releases.LINES)
def installed(request: pytest.FixtureRequest, cluster: Fleet) -> Iterator[str]:
    """A release line whose chart its role installs, and removes again; the stand-in of its operators runs."""
    line: str = request.param
    for name in OWN_SPACES - names(cluster, SPACES):
        cluster.api.post(SPACES, {"metadata": {"name": name}})
    assert run_role(cluster, line, "present").changed
    # Definitions of another line would stay as they are.
    own = [yaml.safe_load(path.read_text()) for path in models.definitions(line).glob("*.yaml")]
    own = [one for one in own if "nv-ipam" not in one["spec"]["group"]]
    served = {one["metadata"]["name"]: one for one in items(cluster, CRDS) if "nfd" not in one["metadata"]["name"]}
    assert set(served) == {one["metadata"]["name"] for one in own}
    for one in own:
        assert fields(one) == fields(served[one["metadata"]["name"]])
    with standin.nodes(cluster, models.ports()), standin.running(cluster, SPACE, models.definitions(line)):
        yield line
    assert run_role(cluster, line, "absent").changed
    assert SPACE not in names(cluster, SPACES)
    # Helm leaves definitions. The next line has others of the same names.
    for one in items(cluster, CRDS):
        cluster.api.delete(f"{CRDS}/{one['metadata']['name']}")
    eventually(lambda: not items(cluster, CRDS), 120)


def names(cluster: Fleet, path: str) -> set[str]:
    return {one["metadata"]["name"] for one in items(cluster, path)}


def fields(definition: Mapping[str, Any]) -> set[str]:
    """The fields of the spec of a definition's newest version."""
    found = definition["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]["properties"]
    return set(found.get("spec", {}).get("properties", {}))


@pytest.fixture
def operator(
    installed: str, cluster: Fleet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Operator:
    monkeypatch.setenv("KUBECONFIG", f"{cluster.folder}/cluster/{hollow.ADMIN}.kubeconfig")
    return Operator(cluster, installed, capsys)


@pytest.mark.parametrize("installed", [NEWEST], indirect=True)
def test_chart_that_is_installed(installed: str, cluster: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """About 15 s: three runs of the role with the real Helm."""
    monkeypatch.setenv("KUBECONFIG", "/none")
    assert run_role(cluster, installed, "present").changed == []
    # Values of the plan are shown, what the user gave is not.
    more = {"network_operator_plan_values": {"operator": {"priorityClassName": "p"}}}
    own = {**more, "network_operator_values": {"login": "s3cret"}}
    check = run_role(cluster, installed, "present", check=True, **own)
    assert "+        priorityClassName: p" in check.output and "-    " not in check.output
    assert "s3cret" not in check.output and "<hidden, changed>" in check.output
    assert run_role(cluster, installed, "present").changed == []


def test_models_with_a_running_operator(operator: Operator) -> None:
    """43 to 98 s for each line, and 42 to 170 s for its chart, on two processors with a load of 7 to 18."""
    waited = models.pages(operator.line)
    for page in (*models.others(operator.line), *waited):
        fabric = models.intent(page)
        given = models.ports(models.VFS) if "external" in json.dumps(fabric) else models.ports()
        for name in operator.cluster.hosts:
            operator.cluster.api.patch(f"/api/v1/nodes/{name}", notes(given))
        for made in (operator.plan(fabric), operator.plan(changed(fabric))):
            assert operator.deploy(made, waits=page in waited), page
            if page in waited:
                assert_offered(operator, made, page)
        objects = [item for step in models.STEPS for item in made["objects"][step]]
        planned = [f"{item['kind']}/{item['metadata']['name']}" for item in objects]
        assert operator.managed() == sorted(planned), page
        for step in models.STEPS:
            again = operator.apply(made, step)
            assert not again["changed"], (page, step)
            # Two requests for each object, and a fixed number that looks for objects to remove.
            assert again["requests"] <= 2 * len(made["objects"][step]) + 20, (page, step)
    takes_every_page(operator)
    operator.teardown(made)
    eventually(lambda: not operator.managed(), 120)
    eventually(lambda: not left(operator.cluster), 120)
    # The devices of every model are gone from the Nodes.
    eventually(lambda: not [key for key, found in operator.offered().items() if found != {"0"}], 120)


def takes_every_page(operator: Operator) -> None:
    """The API server accepts the objects of all pages of the gallery, and keeps all that they say."""
    count = 0
    for entry in models.entries(operator.line):
        for item in sum(models.objects_of(entry, operator.line, SPACE).values(), []):
            assert kept(item["spec"], created(operator.cluster.api, item)["spec"]), entry.title
            count += 1
    assert count > 60
    with pytest.raises(ApiError, match="unknown field"):
        created(operator.cluster.api, {**item, "spec": {**item["spec"], "none": 1}})


def created(api: Api, item: dict[str, Any]) -> dict[str, Any]:
    """What the server would store, as one that has no object of this name."""
    meta = {**item["metadata"], "name": "strict"}
    return api.request("POST", models.collection(item), {**item, "metadata": meta}, query=STRICT)


def kept(sent: Any, stored: Any) -> bool:
    """Whether the server kept all that was sent; it adds defaults."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return all(key in stored and kept(value, stored[key]) for key, value in sent.items())
    if isinstance(sent, list) and isinstance(stored, list):
        return len(sent) == len(stored) and all(map(kept, sent, stored))
    return bool(sent == stored)


def changed(fabric: Mapping[str, Any]) -> dict[str, Any]:
    """The same with other names of networks, and fewer VFs where the operator makes them."""
    found = {**fabric, "networks": {**fabric.get("networks", {}), "name": "new-{rail}"}}
    own = fabric.get("sriov", {})
    return {**found, "sriov": {**own, "vfs": 4}} if own and "assigned_by" not in own else found


def notes(ports: list[dict[str, Any]]) -> dict[str, Any]:
    return {"metadata": {"annotations": {sriov.PORTS: json.dumps(ports)}}}


def assert_offered(operator: Operator, made: Mapping[str, Any], page: str) -> None:
    """Every node offers the devices of the plan, and those of the model before are gone."""
    own = {rail["resource"] if "/" in rail["resource"] else f"rdma/{rail['resource']}" for rail in made["rails"]}

    def offers() -> bool:
        return {key for key, found in operator.offered().items() if found != {"0"}} == own

    assert eventually(offers, 120), page


def left(cluster: Fleet) -> list[str]:
    """What a removed policy leaves: its DaemonSets, networks of pods, VFs."""
    found = [one["metadata"]["name"] for one in items(cluster, SETS) if one["metadata"]["name"] != sriov.DAEMON]
    every = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
    found += [one["metadata"]["name"] for one in items(cluster, every)]
    for one in items(cluster, STATES):
        found += [port["name"] for port in one["status"]["interfaces"] if port.get("numVfs")]
    return found


# -- each wait is made to fail ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A cluster that does not get ready: what breaks it, the reasons of the wait (* for any text), if it ends early.

    ``options``: those of the module, computed from the plan. ``faster``: of the clock, for what it must see for long.
    """

    name: str
    page: str
    step: str
    breaks: Callable[[Operator, dict[str, Any]], AbstractContextManager[Any]]
    reasons: tuple[str, ...]
    early: bool = False
    options: Callable[[dict[str, Any]], dict[str, Any]] = field(default=lambda made: {})
    faster: float = FASTER


@contextmanager
def nothing(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
    yield


def node_label(name: str, value: str | None = None, back: str = "true") -> Any:
    """Break a label of the third node."""

    def breaks(operator: Operator, made: Mapping[str, Any]) -> AbstractContextManager[None]:
        path = "/api/v1/nodes/gpu-0003"
        return patched(operator.cluster, path, labelled(name, value), labelled(name, back))

    return breaks


def edit(path: str, change: Mapping[str, Any], back: Mapping[str, Any]) -> Any:
    def breaks(operator: Operator, made: Mapping[str, Any]) -> AbstractContextManager[None]:
        return patched(operator.cluster, path, change, back)

    return breaks


@contextmanager
def other_policy(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
    (policy,) = made["objects"]["policy"]
    operator.cluster.api.post(f"{NICS}/nicclusterpolicies", {**policy, "metadata": {"name": "other"}})
    try:
        yield
    finally:
        operator.cluster.api.delete(f"{NICS}/nicclusterpolicies/other")


def renamed(made: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {"objects": [{**item, "metadata": {"name": name}} for item in made["objects"]["policy"]]}


@contextmanager
def without_operator(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
    api, path = operator.cluster.api, f"/apis/apps/v1/namespaces/{SPACE}/deployments"
    found = api.get(f"{path}/network-operator")
    api.delete(f"{path}/network-operator")
    try:
        yield
    finally:
        kept = {key: value for key, value in found["metadata"].items() if key in ("name", "labels", "annotations")}
        api.post(path, {**found, "metadata": kept, "status": {}})


@contextmanager
def held_controllers(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
    """The controller manager lags behind a change of a DaemonSet, as recorded (j3-slow-controller-manager)."""
    note = {"spec": {"template": {"metadata": {"annotations": {"changed": "yes"}}}}}
    with operator.cluster.plane.paused(hollow.CONTROLLERS):
        operator.cluster.api.patch(f"{SETS}/{PLUGIN}", note)
        yield


def image(name: str, wanted: str) -> Any:
    """Give a DaemonSet another image; the operator does not look at such an edit."""

    @contextmanager
    def breaks(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
        path = f"{SETS}/{name}"
        found = operator.cluster.api.get(path)["spec"]["template"]["spec"]["containers"]
        change, back = (
            {"spec": {"template": {"spec": {"containers": own}}}} for own in ([{**found[0], "image": wanted}], found)
        )
        with patched(operator.cluster, path, change, back):
            if "invalid" in wanted:
                back_off(operator, name)
            yield

    return breaks


def back_off(operator: Operator, name: str) -> None:
    """A kubelet gives up on an image after some attempts. Hollow ones stay at the first."""

    def failing() -> str:
        for pod in items(operator.cluster, PODS):
            for one in (pod.get("status") or {}).get("containerStatuses") or []:
                if pod["metadata"]["name"].startswith(name) and "waiting" in one["state"]:
                    return str(pod["metadata"]["name"])
        return ""

    waits(operator, eventually(failing, 120), "ImagePullBackOff", "Back-off pulling image")


def waits(operator: Operator, pod: str, reason: str, message: str, restarts: int = 0) -> None:
    """Make the status of a pod say that its container waits for that reason."""
    found = operator.cluster.api.get(f"{PODS}/{pod}")["status"]["containerStatuses"][0]
    status = {
        **found,
        "ready": False,
        "restartCount": restarts,
        "state": {"waiting": {"reason": reason, "message": message}},
    }
    condition = {"type": "Ready", "status": "False"}
    change = {"status": {"containerStatuses": [status], "conditions": [condition]}}
    operator.cluster.api.patch(f"{PODS}/{pod}/status", change)


def crashing(name: str, reason: str = "CrashLoopBackOff") -> Any:
    @contextmanager
    def breaks(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
        pods = [pod["metadata"]["name"] for pod in items(operator.cluster, PODS)]
        pod = next(one for one in pods if one.startswith(name))
        waits(operator, pod, reason, "back-off 5m0s restarting failed container", 7)
        try:
            yield
        finally:
            operator.cluster.api.delete(f"{PODS}/{pod}", gracePeriodSeconds="0")

    return breaks


def network(spec: Mapping[str, Any]) -> Any:
    """Break a field of the first rail's network on the cluster."""

    @contextmanager
    def breaks(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
        (item,) = [one for one in made["objects"]["networks"] if one["kind"].endswith("Network")][:1]
        path = f"{NICS}/{item['kind'].lower()}s/{item['metadata']['name']}"
        with patched(
            operator.cluster, path, {"spec": dict(spec)}, {"spec": {key: item["spec"].get(key) for key in spec}}
        ):
            yield

    return breaks


def with_spec(kind: str, **spec: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Wait for the objects with that field in the first one of a kind."""

    def options(made: dict[str, Any]) -> dict[str, Any]:
        found = [json.loads(json.dumps(item)) for item in made["objects"]["networks"]]
        next(item for item in found if item["kind"] == kind)["spec"].update(spec)
        return {"objects": found}

    return options


@contextmanager
def edited_definition(operator: Operator, made: Mapping[str, Any], config: str = "", note: str = "") -> Iterator[None]:
    """Edit the first rail's NetworkAttachmentDefinition; the operator looks at its revision only."""
    api = operator.cluster.api
    if config:
        api.patch(f"{NADS}/rail0", {"spec": {"config": config}})
    if note:
        api.patch(f"{NADS}/rail0", {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/resourceName": note}}})
    try:
        yield
    finally:
        # It is made again.
        api.delete(f"{NADS}/rail0")


def node_ports(ports: list[dict[str, Any]]) -> Any:
    """Give the third node other ports."""

    @contextmanager
    def breaks(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
        path = "/api/v1/nodes/gpu-0003"
        before = operator.cluster.api.get(path)["metadata"]["annotations"][sriov.PORTS]
        with patched(operator.cluster, path, notes(ports), notes(json.loads(before))):
            yield

    return breaks


@contextmanager
def no_state(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
    """The daemon may not run on the third node."""
    api, path, own = operator.cluster.api, "/api/v1/nodes/gpu-0003", f"{STATES}/gpu-0003"
    with patched(operator.cluster, path, labelled("kubernetes.io/os", "none"), labelled("kubernetes.io/os", "linux")):
        api.delete(own)
        yield
    eventually(lambda: items(operator.cluster, STATES)[-1].get("status", {}).get("interfaces"), 120)
    # The operator does not see that ports are known now, but that a label changed.
    api.patch(path, labelled("seen", "yes"))


def labelled(name: str, value: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": {name: value}}}


def state(status: Mapping[str, Any], desired: str = "Idle") -> Any:
    @contextmanager
    def breaks(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
        path, ends = f"{STATES}/gpu-0003", threading.Event()
        before = operator.cluster.api.get(path)["status"]
        operator.cluster.api.patch(path, {"metadata": {"annotations": {sriov.DESIRED: desired}}})
        operator.cluster.api.patch(f"{path}/status", {"status": dict(status)})
        boots = threading.Thread(target=reboots, args=(operator, ends))
        if desired != "Idle":
            boots.start()
        try:
            yield
        finally:
            ends.set()
            if boots.is_alive():
                boots.join()
            back = {key: before.get(key) for key in status}
            operator.cluster.api.patch(path, {"metadata": {"annotations": {sriov.DESIRED: "Idle"}}})
            operator.cluster.api.patch(f"{path}/status", {"status": back})

    return breaks


@contextmanager
def no_daemon(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
    """The image of the daemon cannot be pulled, and no node gets any further."""
    paths = [f"{STATES}/{name}/status" for name in operator.cluster.hosts]
    with image(sriov.DAEMON, "registry.invalid/daemon:none")(operator, made):
        for path in paths:
            operator.cluster.api.patch(path, {"status": {"syncStatus": "InProgress"}})
        try:
            yield
        finally:
            for path in paths:
                operator.cluster.api.patch(path, {"status": {"syncStatus": "Succeeded"}})


def reboots(operator: Operator, ends: threading.Event) -> None:
    """The operator reboots the third node again and again."""
    for number in range(1000):
        change = {"status": {"nodeInfo": {"bootID": f"boot-{number}"}}}
        operator.cluster.api.patch("/api/v1/nodes/gpu-0003/status", change)
        if ends.wait(0.5):
            return


@contextmanager
def overlapping(operator: Operator, made: Mapping[str, Any]) -> Iterator[None]:
    """Another policy selects the nodes of a class, and that of the class comes after it."""
    api, path = operator.cluster.api, f"{NICS}/nicnodepolicies"
    own = next(item for item in made["objects"]["policy"] if item["metadata"]["name"] == "gpufabric-storage")
    api.delete(f"{path}/gpufabric-storage")
    api.post(path, {**own, "metadata": {"name": "other"}})
    api.post(path, own)
    try:
        yield
    finally:
        api.delete(f"{path}/other")


FAULTS = [
    Fault(
        "policy of another name",
        "macvlan",
        "policy",
        other_policy,
        (
            "NicClusterPolicy is ignored by the operator: Unsupported NicClusterPolicy instance other. Only instance"
            " with name nic-cluster-policy is supported",
        ),
        early=True,
        options=lambda made: renamed(made, "other"),
    ),
    Fault(
        "no policy",
        "macvlan",
        "policy",
        nothing,
        ("NicClusterPolicy is absent",),
        options=lambda made: renamed(made, "no"),
    ),
    Fault("no operator", "macvlan", "policy", without_operator, ("the operator's Deployment is absent",)),
    Fault(
        "controllers lag behind",
        "macvlan",
        "policy",
        held_controllers,
        (f"DaemonSet {PLUGIN}: the controller has not observed the latest change yet",),
    ),
    Fault(
        "unknown node",
        "macvlan",
        "policy",
        nothing,
        (
            "missing Nodes: gpu-0009",
            f"DaemonSet {PLUGIN}: scheduled on 3 nodes, expected 4: check the labels of the nodes",
        ),
        options=lambda made: {"nodes": [*made["hosts"], "gpu-0009"]},
    ),
    Fault(
        "node outside of the fabric",
        "macvlan",
        "policy",
        nothing,
        (f"DaemonSet {PLUGIN}: scheduled on 3 nodes, expected 2: narrow rdma_fabric.node_selector",),
        options=lambda made: {"nodes": list(made["hosts"])[:2]},
    ),
    Fault(
        "no label of NFD",
        "macvlan",
        "policy",
        node_label(components.NIC_LABEL),
        (
            f"Nodes without the label {components.NIC_LABEL}: gpu-0003. Set it with NFD or node_labels",
            f"DaemonSet {PLUGIN}: scheduled on 2 nodes, expected 3: check the labels of the nodes",
        ),
    ),
    Fault(
        "image of another release",
        "macvlan",
        "policy",
        image(PLUGIN, "registry.example.com/other:1"),
        (f"DaemonSet {PLUGIN}: runs image registry.example.com/other:1, expected k8s-rdma-shared-dev-plugin:*",),
    ),
    Fault(
        "image that cannot be pulled",
        "macvlan",
        "policy",
        image(PLUGIN, "registry.invalid/k8s-rdma-shared-dev-plugin:none"),
        (
            f"pod {PLUGIN}-*: ImagePullBackOff of registry.invalid/k8s-rdma-shared-dev-plugin:none: Back-off pulling"
            " image",
        ),
        early=True,
    ),
    Fault(
        "container that crashes",
        "macvlan",
        "policy",
        crashing(PLUGIN),
        (f"pod {PLUGIN}-*: CrashLoopBackOff of *: back-off 5m0s restarting failed container",),
        early=True,
    ),
    Fault(
        "Deployment without a pod",
        "macvlan",
        "policy",
        crashing("nv-ipam-controller"),
        ("Deployment nv-ipam-controller: 2 of 2 pods updated, 1 available, 2 in total",),
    ),
    Fault(
        "resource that is not offered",
        "macvlan",
        "policy",
        edit(
            "/api/v1/nodes/gpu-0002/status",
            {"status": {"allocatable": {"rdma/rdma_rail0": "0"}}},
            {"status": {"allocatable": {"rdma/rdma_rail0": "63"}}},
        ),
        ("rdma/rdma_rail0: expected 63 on each node, found gpu-0002 (0)",),
    ),
    Fault(
        "network in a namespace that does not exist",
        "macvlan",
        "networks",
        network({"networkNamespace": "nowhere"}),
        (
            'MacvlanNetwork rail0: notReady: failed to create/update objects: namespaces "nowhere" not found',
            "MacvlanNetwork rail0: no NetworkAttachmentDefinition in namespace nowhere yet",
        ),
        options=with_spec("MacvlanNetwork", networkNamespace="nowhere"),
    ),
    Fault(
        "network that cannot be rendered",
        "macvlan",
        "networks",
        network({"ipam": "it's"}),
        ("MacvlanNetwork rail0: error: failed to render MacvlanNetwork: *",),
        early=True,
    ),
    Fault(
        "definition with another master",
        "macvlan",
        "networks",
        lambda operator, made: edited_definition(operator, made, '{"type":"macvlan","master":"eth9"}'),
        (
            'MacvlanNetwork rail0: its NetworkAttachmentDefinition has master "eth9", expected "rail0". If this'
            " persists, delete it; the operator recreates it",
        ),
    ),
    Fault(
        "definition that is not JSON",
        "macvlan",
        "networks",
        lambda operator, made: edited_definition(operator, made, "{"),
        ("MacvlanNetwork rail0: the config of its NetworkAttachmentDefinition is not valid JSON",),
        early=True,
    ),
    Fault(
        "pool that is too small",
        "macvlan",
        "networks",
        edit(f"{POOLS}/ippools/rail0", {"spec": {"perNodeBlockSize": 60}}, {"spec": {"perNodeBlockSize": 2}}),
        ("IPPool rail0: no addresses yet for gpu-0003",),
    ),
    Fault(
        "definition for another resource",
        "host_device",
        "networks",
        lambda operator, made: edited_definition(operator, made, note="nvidia.com/other"),
        (
            "HostDeviceNetwork rail0: its NetworkAttachmentDefinition is for the resource nvidia.com/other, expected"
            " nvidia.com/hostdev_rail0. If this persists, delete it; the operator recreates it",
        ),
    ),
    Fault(
        "more VFs than the port supports",
        "sriov_external",
        "policy",
        node_ports(models.ports(4, totalvfs=4)),
        ("Node gpu-0003: port rail0 supports 4 VFs, the policy asks for 8",),
        early=True,
    ),
    Fault(
        "fewer VFs than the policy wants",
        "sriov_external",
        "policy",
        node_ports(models.ports(6)),
        ("Node gpu-0003: port rail0 has 6 VFs, expected 8", "Node gpu-0003: port rail1 has 6 VFs, expected 8"),
    ),
    Fault(
        "port of another name",
        "sriov_external",
        "policy",
        node_ports([models.ports(8)[0], {**models.ports(8)[1], "name": "eth9"}]),
        (
            "Node gpu-0003: the SR-IOV operator reports no port rail1, but rail0, eth9. Check the name of the port on"
            " the node, and whether ConfigMap supported-nic-ids lists its model",
        ),
        early=True,
        faster=60,
    ),
    Fault(
        "no ports",
        "sriov_external",
        "policy",
        node_ports([]),
        ("Node gpu-0003: the SR-IOV operator reports no port rail0",),
    ),
    Fault(
        "no state of a node",
        "sriov_external",
        "policy",
        no_state,
        ("Node gpu-0003: the SR-IOV operator has no state of it; check that its config daemon runs on the node",),
    ),
    Fault(
        "daemon whose image cannot be pulled",
        "sriov_external",
        "policy",
        no_daemon,
        (f"pod {sriov.DAEMON}-*: ImagePullBackOff of registry.invalid/daemon:none: Back-off pulling image",),
        early=True,
    ),
    Fault(
        "node whose daemon failed",
        "sriov_external",
        "policy",
        state({"syncStatus": "Failed", "lastSyncError": "no such device"}),
        ("Node gpu-0003: the SR-IOV operator failed: no such device",),
        early=True,
    ),
    Fault(
        "daemon that is at work",
        "sriov_external",
        "policy",
        state({"syncStatus": "InProgress"}),
        (
            "Node gpu-0003: the SR-IOV operator reports InProgress (current state Idle, desired state Idle). If that"
            " stays, read the log of its config daemon",
        ),
    ),
    Fault(
        "node that is rebooted again and again",
        "sriov_external",
        "policy",
        state({"syncStatus": "InProgress"}, "Reboot_Required"),
        (
            "Node gpu-0003: the SR-IOV operator has rebooted it * times and wants to do so again, because it cannot set"
            " the kernel arguments that it wants on this system. The playbook lint names them: set them with the role"
            " host_kernel",
        ),
        early=True,
        faster=100,
    ),
    Fault(
        "two policies for a class",
        "classes",
        "policy",
        overlapping,
        (
            'NicNodePolicy gpufabric-storage: node selector overlap detected: node "gpu-0002" is selected by policies:'
            " [gpufabric-storage, other]",
        ),
        early=True,
    ),
    Fault(
        "node without the label of its class",
        "classes",
        "policy",
        node_label("gpufabric.rdma/class", None, "default"),
        (
            f"Nodes without the labels of their class ({components.NIC_LABEL}=true, gpufabric.rdma/class=default):"
            " gpu-0003",
        ),
    ),
]


@pytest.mark.parametrize("installed", [NEWEST], indirect=True)
def test_waits_that_fail(operator: Operator) -> None:
    """72 to 90 s with a load of 10: the module names object, found and expected; it ends early where it can."""
    page, made = "", {}
    for fault in FAULTS:
        if fault.page != page:
            page, external = fault.page, "external" in fault.page
            for name in operator.cluster.hosts:
                operator.cluster.api.patch(f"/api/v1/nodes/{name}", notes(models.ports(models.VFS if external else 0)))
            made = operator.plan(models.intent(page))
            operator.deploy(made)
        fails(operator, made, fault)
    operator.teardown(made)
    eventually(lambda: not operator.managed(), 120)


def fails(operator: Operator, made: dict[str, Any], fault: Fault) -> None:
    """The wait fails as it should while the fault is there, and succeeds afterwards."""
    own, found = fault.options(made), {}

    def complains() -> bool:
        # A wait that cannot end early is a short one, until the cluster has noticed the fault.
        own_time = {"timeout": LONG if fault.early else 4}
        found.clear()
        found.update(operator.wait(made, fault.step, fault.faster, **own, **own_time))
        return all(any(matches(one, text) for one in found["reasons"]) for text in fault.reasons)

    with fault.breaks(operator, made):
        try:
            eventually(complains, 120)
        except AssertionError:
            raise AssertionError(f"{fault.name}: {found['reasons']}") from None
        how = "stopped, because waiting cannot resolve this" if fault.early else "not ready in time"
        assert found["failed"] and found["msg"].startswith(f"fabric_wait: {how}, after "), (fault.name, found["msg"])
        if fault.early:
            assert found["waited"] < LONG / 2, fault.name
    again = operator.wait(made, fault.step, stable=0)
    assert again.get("ready"), (fault.name, again["msg"])


def matches(found: str, expected: str) -> bool:
    return bool(re.fullmatch(".*".join(map(re.escape, expected.split("*"))), found))


# -- many nodes ---------------------------------------------------------------------------------------------

MANY = {"supernet": "172.16.0.0/12", "rail_prefix": 20, "capacity": {"hosts": 128, "pods_per_host": 2}}


@pytest.mark.parametrize("installed", [NEWEST], indirect=True)
def test_a_hundred_nodes(operator: Operator) -> None:
    """55 to 123 s with a load of 10: a model replaces another on 100 nodes; one node that is not ready is named."""
    with more_nodes(operator.cluster, 97):
        first = operator.plan({**models.intent("macvlan"), **MANY}, hosts=100)
        assert operator.deploy(first)
        found = operator.wait(first, "policy")
        assert found["ready"] and found["requests"] < 30
        assert {len(pool["status"]["allocations"]) for pool in items(operator.cluster, f"{POOLS}/ippools")} == {100}
        lost = "/api/v1/nodes/gpu-0077/status"
        offers = ({"status": {"allocatable": {"rdma/rdma_rail0": count}}} for count in ("62", "63"))
        with patched(operator.cluster, lost, *offers):
            found = operator.wait(first, "policy", timeout=10)
        assert found["reasons"] == ["rdma/rdma_rail0: expected 63 on each node, found gpu-0077 (62)"]
        made = operator.plan({**models.intent("sriov"), **MANY}, hosts=100)
        assert operator.deploy(made)
        assert_offered(operator, made, "sriov")
        operator.teardown(made)
        eventually(lambda: not operator.managed() and not left(operator.cluster), 120)


@contextmanager
def more_nodes(cluster: Fleet, count: int) -> Iterator[None]:
    """So many Nodes more, as the third one."""
    path, like = "/api/v1/nodes", cluster.api.get("/api/v1/nodes/gpu-0003")
    names = [f"gpu-{number:04d}" for number in range(4, count + 4)]
    own = like["metadata"]
    for name in names:
        labels = {**own["labels"], "kubernetes.io/hostname": name}
        meta = {"name": name, "labels": labels, "annotations": {sriov.PORTS: own["annotations"][sriov.PORTS]}}
        cluster.api.post(path, {**like, "metadata": meta, "spec": {}})
    try:
        yield
    finally:
        # Controllers remove the pods of a Node that none of their DaemonSets selects any more.
        for name in names:
            cluster.api.patch(f"{path}/{name}", labelled("kubernetes.io/os", "none"))
        eventually(lambda: not {pod["spec"].get("nodeName") for pod in items(cluster, PODS)} & set(names), 120)
        for name in names:
            cluster.api.delete(f"{STATES}/{name}")
            cluster.api.delete(f"{path}/{name}")
