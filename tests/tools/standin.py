"""The stand-in of the operators (tests/lab/chart/files/standin) as a process beside hollow nodes.

    with standin.nodes(cluster, ports), standin.running(cluster, namespace, definitions):
        ...   # policies, networks and pools become what the real operators make of them

Its Deployment is the chart's, whose pods are hollow. Nodes get what NFD and the hardware would say of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.lab import certificates, charts
from tests.lab.chart.files.standin import components, sriov
from tests.tools import hollow
from tests.tools.fleet import Fleet, eventually

IMAGE = "registry.example.com/sriov-network-operator-config-daemon:1"
#: As NFD writes them.
LABELS = {
    components.NIC_LABEL: "true",
    components.OS_LABEL: "debian",
    components.OS_VERSION_LABEL: "13",
    components.KERNEL_LABEL: "6.12.0-amd64",
}
# Times of the recordings are made of this: nothing here depends on how long a real operator takes.
_PACE = 0.1


@contextmanager
def nodes(cluster: Fleet, ports: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """Give all Nodes the labels of NFD and these ports; later restore labels, annotations and resources."""
    note = {sriov.PORTS: json.dumps(ports)}
    before = {name: cluster.api.get(f"/api/v1/nodes/{name}") for name in cluster.hosts}
    for name in before:
        cluster.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": LABELS, "annotations": note}})
    try:
        yield
    finally:
        for name, node in before.items():
            restore(cluster, name, node)


def restore(cluster: Fleet, name: str, node: Mapping[str, Any]) -> None:
    """Make labels, annotations and resources of a Node those of an earlier copy of it."""
    path, live = f"/api/v1/nodes/{name}", cluster.api.get(f"/api/v1/nodes/{name}")
    cluster.api.patch(
        path, {"metadata": {key: undo(live["metadata"], node["metadata"], key) for key in ("labels", "annotations")}}
    )
    parts = ("capacity", "allocatable")
    cluster.api.patch(f"{path}/status", {"status": {key: undo(live["status"], node["status"], key) for key in parts}})


def undo(live: Mapping[str, Any], before: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The merge patch of a map that makes it what it was."""
    old = before.get(key) or {}
    return {**dict.fromkeys(live.get(key) or {}), **old}


@contextmanager
def running(cluster: Fleet, namespace: str, definitions: Path, pace: float = _PACE) -> Iterator[Path]:
    """Run the stand-in with the definitions of a release line, as long as the context lasts; yield its log."""
    folder, own = cluster.folder / "cluster", cluster.folder / "standin"
    own.mkdir(exist_ok=True)
    pair = certificates.pair(folder, hollow.ADMIN)
    identity, log = own / "admin.pem", own / "standin.log"
    identity.touch(mode=0o600)
    identity.write_text(pair.certificate.read_text() + pair.key.read_text())
    for path in own.glob("*.json"):
        path.unlink()
    for path in definitions.glob("nv-ipam*.yaml"):
        (own / f"{path.stem}.json").write_text(json.dumps(yaml.safe_load(path.read_text())))
    endpoint = cluster.api.endpoint
    argv = [sys.executable, "-u", "-m", "standin", f"--server=https://{endpoint.host}:{endpoint.port}"]
    argv += [f"--ca={certificates.pair(folder, 'ca').certificate}", f"--cert={identity}", f"--namespace={namespace}"]
    argv += [f"--crds={own}", "--no-flap", f"--pace={pace}", f"--sriov-image={IMAGE}"]
    with log.open("w") as out:
        child = subprocess.Popen(argv, cwd=charts.CHART / "files", stdout=out, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: child.poll() is not None or "working" in log.read_text(), 60)
        assert child.poll() is None, log.read_text()
        yield log
    finally:
        # The next one has the same identity and so the lease.
        child.kill()
        child.wait()
        clean(cluster, namespace)


def clean(cluster: Fleet, namespace: str) -> None:
    """Remove what goes with the configuration of the real SR-IOV operator, which its chart removes."""
    places = {"apps/v1": "daemonsets", sriov.API: "sriovnetworknodestates"}
    for version, plural in places.items():
        path = f"/apis/{version}/namespaces/{namespace}/{plural}"
        for item in cluster.api.get(path)["items"]:
            if plural != "daemonsets" or item["metadata"]["name"] == sriov.DAEMON:
                cluster.api.delete(f"{path}/{item['metadata']['name']}")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    eventually(lambda: not cluster.api.get(pods, labelSelector=f"app={sriov.DAEMON}")["items"], 60)
