"""Network models on a cluster with hollow nodes and the stand-in of the operators: planned, applied and waited for.

The modules run through their main(), as the roles run them. Their clock runs faster than that of the cluster: they poll
more often, and what they must see for 10 s they see for one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from tests.lab.api import ApiError
from tests.tools import gallery
from tests.tools.environment import REPO
from tests.tools.fleet import Fleet
from tests.tools.support_matrix import MODELS, VARIANTS
from tests.unit.support import module_run, plan_factory

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.poll import Clock
from ansible_collections.gpufabric.rdma.plugins.modules import fabric_objects, fabric_wait

NEWEST = list(releases.LINES)[-1]
SPACE = "nvidia-network-operator"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MARK = ("app.kubernetes.io/managed-by", "gpufabric")
RAILS, VFS = 2, 8
STEPS = ("policy", "networks")
FASTER = 10
#: Seconds of that clock for what must succeed, also on a machine that other gates keep busy.
PATIENCE = 300 * FASTER
#: What has no page of the gallery.
OWN: dict[str, dict[str, Any]] = {
    "per_host": {"profile": "macvlan", "host_prefix": 26, "capacity": {"hosts": 3}},
    "sriov_ib_plain": {"profile": "sriov_ib", "sriov": {"vfs": VFS}},
}


@dataclass(frozen=True)
class Operator:
    """A release line whose chart is installed, with the stand-in of its operators."""

    cluster: Fleet
    line: str
    capsys: pytest.CaptureFixture[str]

    @property
    def release(self) -> str:
        return release(self.line)

    def plan(self, fabric: Mapping[str, Any], hosts: int = 3) -> dict[str, Any]:
        """The plan of so many hosts, whose names are those of the Nodes."""
        own = {"supernet": "192.168.0.0/16", "rail_count": RAILS, **fabric}
        own["operator"] = {**own.get("operator", {}), "release": self.release}
        layer = registry.get(own["profile"]).link_layer
        fleet = plan_factory.fleet(hosts, rails=RAILS, link_layer=layer)
        return plan(own, {name: {**host, "rdma_host": {"node_name": name}} for name, host in fleet.items()})

    def apply(
        self, made: Mapping[str, Any], step: str, state: str = "present", *, check: bool = False
    ) -> dict[str, Any]:
        """Apply or remove the objects of a step as its role does."""
        prune = {"step": step, "namespace": SPACE, "network_namespace": made["operator"]["network_namespace"]}
        labels = {"node_labels": made["nodes"]["labels"], **scope(made)} if step == "policy" else {}
        own = {"objects": made["objects"][step], "prune": prune, "state": state, "timeout": PATIENCE, **labels}
        with patch.object(fabric_objects, "Clock", lambda: clock(FASTER)):
            found = module_run.run("fabric_objects", self.capsys, check=check, **own)
        assert not found.get("failed"), found["msg"]
        return found

    def wait(self, made: Mapping[str, Any], step: str, faster: float = FASTER, **more: Any) -> dict[str, Any]:
        """Wait as the role of the step does, with other options; the result, also that of a failure."""
        rails = {} if made["classes"] else {rail["resource"]: rail["share"] for rail in made["rails"]}
        own = {"objects": made["objects"][step], "resources": rails if step == "policy" else {}, **scope(made)}
        own = {"timeout": PATIENCE, **own, **more}
        with patch.object(fabric_wait, "Clock", lambda: clock(faster)):
            return module_run.run("fabric_wait", self.capsys, **{"release": self.release, "namespace": SPACE, **own})

    def deploy(self, made: Mapping[str, Any], waits: bool = True) -> bool:
        """Apply both steps as check mode predicts, each until it is ready; whether there was something to change."""
        changed = False
        for step in STEPS:
            predicted = self.apply(made, step, check=True)["changed"]
            done = self.apply(made, step)["changed"]
            assert done is predicted, step
            changed = done or changed
            if not waits:
                continue
            found = self.wait(made, step, stable=2)
            assert found.get("ready"), found["msg"]
        return changed

    def teardown(self, made: Mapping[str, Any]) -> None:
        """Remove both steps, which must have something to remove."""
        for step in reversed(STEPS):
            assert self.apply(made, step, state="absent")["changed"]

    def managed(self) -> list[str]:
        """The objects with our mark, kind and name; not what the operator makes of them."""
        found = []
        for one in self.cluster.api.get(CRDS)["items"]:
            spec = one["spec"]
            path = f"/apis/{spec['group']}/{spec['versions'][-1]['name']}/{spec['names']['plural']}"
            for item in items(self.cluster, path):
                meta = item["metadata"]
                if MARK in (meta.get("labels") or {}).items() and not meta.get("ownerReferences"):
                    found.append(f"{spec['names']['kind']}/{item['metadata']['name']}")
        return sorted(found)

    def offered(self) -> dict[str, set[str]]:
        """Resource -> the numbers of it that nodes offer."""
        found: dict[str, set[str]] = {}
        for node in items(self.cluster, "/api/v1/nodes"):
            for key, value in node["status"]["allocatable"].items():
                if "/" in key:
                    found.setdefault(key, set()).add(value)
        return found


def scope(made: Mapping[str, Any]) -> dict[str, Any]:
    names = list(made["hosts"])
    return {"nodes": names, "classes": made["classes"], "nodes_by_host": {name: name for name in names}}


def clock(faster: float) -> Clock:
    return Clock(lambda: time.monotonic() * faster, lambda seconds: time.sleep(seconds / faster))


def release(line: str) -> str:
    return list(releases.LINES[line].releases)[-1]


def definitions(line: str) -> Path:
    """The folder with the kinds of a line."""
    (folder,) = (REPO / "tests" / "fixtures" / "crds").glob(f"v{line}.*")
    return folder


def pages(line: str) -> list[str]:
    """The models of a line: each profile, on the newest line the variants, too."""
    found = [*MODELS, *(VARIANTS if line == NEWEST else ())]
    return [*(page for page in found if not gallery.refusal(gallery.ENTRIES[page], release(line))), *OWN]


def others(line: str) -> list[str]:
    """The variants that a line can have, and that are waited for on the newest one only."""
    found = [page for page in VARIANTS if not gallery.refusal(gallery.ENTRIES[page], release(line))]
    return [page for page in found if page not in pages(line)]


def intent(page: str) -> dict[str, Any]:
    """The intent of a page of the gallery, for hosts with two rails."""
    if page in OWN:
        return dict(OWN[page])
    fabric: dict[str, Any] = yaml.safe_load(gallery.intent_text(gallery.ENTRIES[page]))
    for own in fabric.get("classes") or []:
        own.pop("match")
        own.update(hosts=["gpu-0002"], rail_count=RAILS)
    return fabric


def entries(line: str) -> list[gallery.Entry]:
    """The pages of the gallery that a line can have; every line has all network models."""
    return [entry for entry in gallery.ENTRIES.values() if not gallery.refusal(entry, release(line))]


def objects_of(entry: gallery.Entry, line: str, namespace: str) -> dict[str, list[dict[str, Any]]]:
    """The objects of a page of the gallery by step, for operator and networks in one namespace."""
    fabric = yaml.safe_load(gallery.intent_text(entry))
    fabric["operator"] = {**fabric.get("operator", {}), "release": release(line), "namespace": namespace}
    fabric["network_namespace"] = namespace
    made = plan(fabric, gallery.hosts(fabric))["objects"]
    return {step: made[step] for step in STEPS}


def collection(item: Mapping[str, Any]) -> str:
    """Where objects like this are created, by the rule that all kinds here but one follow."""
    kind = item["kind"].lower()
    plural = f"{kind[:-1]}ies" if kind.endswith("policy") else f"{kind}s"
    plural = "network-attachment-definitions" if kind == "networkattachmentdefinition" else plural
    space = item["metadata"].get("namespace")
    return f"/apis/{item['apiVersion']}/{f'namespaces/{space}/' if space else ''}{plural}"


def ports(vfs: int = 0, **other: Any) -> list[dict[str, Any]]:
    """The ports of every node, as the SR-IOV operator sees them; ``vfs``: those made on the host."""
    fixed = {"vendor": "15b3", "deviceID": "1021", "linkType": "ETH", "mtu": 9000, "totalvfs": VFS, "numVfs": vfs}
    fixed.update(other)
    return [{"name": f"rail{at}", "pciAddress": f"0000:{at + 24:02x}:00.0", **fixed} for at in range(RAILS)]


def items(cluster: Fleet, path: str) -> list[dict[str, Any]]:
    """The objects of a path, none where its kind is not served."""
    try:
        found: list[dict[str, Any]] = cluster.api.get(path)["items"]
    except ApiError:
        return []
    return found


@contextmanager
def patched(cluster: Fleet, path: str, change: Mapping[str, Any], back: Mapping[str, Any]) -> Iterator[None]:
    """Change an object by a merge patch, later by another one."""
    cluster.api.patch(path, dict(change))
    try:
        yield
    finally:
        cluster.api.patch(path, dict(back))
