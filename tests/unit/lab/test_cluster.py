# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cluster is used, what the hosts get, and when a node counts as ready; nothing is started."""

from __future__ import annotations

import io
import json
import ssl
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.lab import certificates, cluster, control_plane, node, pki
from tests.lab.errors import LabError


@pytest.fixture
def certificate_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pki"
    folder.mkdir()
    certificates.authority(folder)
    for subject in pki.subjects():
        certificates.issue(folder, subject)
    monkeypatch.setattr(pki, "folder", lambda: folder)
    return folder


def kubeconfig(path: Path, server: str) -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))
    return path


@pytest.mark.parametrize(
    ("server", "consent", "used"),
    [
        ("https://127.0.0.1:6443", "", True),
        ("https://localhost:6443", "", True),
        ("https://[::1]:6443", "", True),
        ("https://prod.example.com", "", False),
        ("https://127.example.com", "", False),
        ("https://prod.example.com", "true", True),
        (control_plane.SERVER, "", False),
    ],
)
def test_whose_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, consent: str, used: bool) -> None:
    path = kubeconfig(tmp_path / "config", server)
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setenv("USE_EXISTING_CLUSTER", consent)
    assert cluster.external() == (path if used else None)


def test_no_kubeconfig_is_the_labs_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    assert cluster.external() is None
    monkeypatch.delenv("KUBECONFIG")
    assert cluster.external() is None


def test_nothing_is_done_to_the_users_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = kubeconfig(tmp_path / "config", "https://127.0.0.1:6443")
    monkeypatch.setenv("KUBECONFIG", str(own))

    def forbidden(*_args: object) -> None:
        raise AssertionError("must not be called")

    for name in ("start", "stop", "kill"):
        monkeypatch.setattr(cluster.process, name, forbidden)
    cluster.start()
    cluster.stop()
    cluster.save("x")
    cluster.restore("x")
    cluster.hosts_up(forbidden)  # type: ignore[arg-type]
    assert cluster.status() == [f"cluster: yours, of {own} (https://127.0.0.1:6443)"]
    cluster.kubeconfig(tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == own.read_text()
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600


def test_assets_must_be_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    (tmp_path / "etcd").touch()
    assert control_plane.etcd_program() == tmp_path / "etcd"
    with pytest.raises(LabError) as caught:
        control_plane.api_server_program()
    expected = f"KUBEBUILDER_ASSETS is {tmp_path}, but there is no kube-apiserver in it; unset it or fill it"
    assert str(caught.value) == expected


def test_the_api_server_knows_the_nodes_by_name() -> None:
    expected = "127.0.0.1 localhost\n127.0.0.11 lab-1\n127.0.0.12 lab-2\n127.0.0.13 lab-3\n"
    assert control_plane.hosts_file() == expected


def test_certificates_are_of_the_authority(certificate_folder: Path) -> None:
    for subject in pki.subjects():
        pair = certificates.pair(certificate_folder, subject.name)
        context = ssl.create_default_context(cafile=str(certificate_folder / "ca.crt"))
        context.load_cert_chain(pair.certificate, pair.key)
        assert pair.key.stat().st_mode & 0o077 == 0


def test_an_unreadable_subject_is_named_by_openssl(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="openssl"):
        certificates.issue(tmp_path, certificates.Subject("x", "no authority here"))


def test_first_boot_brings_one_archive(certificate_folder: Path) -> None:
    sent: list[tuple[list[str], bytes]] = []

    def run(argv: list[str], *, stdin: bytes = b"", timeout: float = 60) -> str:
        sent.append((argv, stdin))
        return ""

    cluster.first_boot("lab-2", run)
    ((argv, data),) = sent
    assert argv[0] == "tar"
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = {info.name: info.mode for info in archive.getmembers()}
        env = archive.extractfile("etc/kubernetes/node.env").read()  # type: ignore[union-attr]
    assert env == b"NODE_NAME=lab-2\nNODE_IP=10.0.2.12\n"
    assert members["etc/kubernetes/kubelet.key"] == 0o600
    assert members["etc/kubernetes/kubelet.kubeconfig"] == 0o600


def test_hosts_differ_in_identity_when_the_certificates_do(certificate_folder: Path) -> None:
    before = cluster.identity()
    assert cluster.identity() == before
    lab_1 = next(subject for subject in pki.subjects() if subject.name == "lab-1")
    certificates.issue(certificate_folder, lab_1)
    assert cluster.identity() != before


def test_each_host_has_its_own_pod_network(certificate_folder: Path) -> None:
    texts = [node.own_files(host)["etc/cni/net.d/10-lab.conflist"][1] for host in ("lab-1", "lab-3")]
    assert b"10.244.1.0/24" in bytes(texts[0]) and b"10.244.3.0/24" in bytes(texts[1])


def item(status: str, beat: str, taints: list[dict[str, str]] | None = None) -> dict[str, Any]:
    conditions = [
        {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": "t9"},
        {"type": "Ready", "status": status, "lastHeartbeatTime": beat},
    ]
    return {
        "metadata": {"name": "lab-1"},
        "spec": {"taints": taints} if taints else {},
        "status": {"conditions": conditions},
    }


class Answers:
    """An API that knows one node, or none, and the lease of it."""

    def __init__(self, node_item: dict[str, Any], renewed: str) -> None:
        lease = {"metadata": {"name": "lab-1"}, "spec": {"renewTime": renewed}}
        self.lists = {"nodes": [node_item] if node_item else [], "leases": [lease]}

    def get(self, path: str) -> dict[str, Any]:
        return {"items": self.lists[path.rsplit("/", 1)[-1]]}


TAINT = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
CORDONED = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("node_item", "renewed", "word", "stale", "expected"),
    [
        (item("True", "t2"), "l1", "started", "t1", True),
        (item("True", "t1"), "l2", "started", "t1", False),
        (item("True", "t1"), "l2", "thawed", "l1", True),
        (item("True", "t2"), "l1", "thawed", "l1", False),
        (item("True", "t1"), "l1", "", "", True),
        (item("False", "t2"), "l2", "started", "t1", False),
        (item("True", "t2", TAINT), "l2", "started", "t1", False),
        (item("True", "t2", CORDONED), "l2", "started", "t1", True),
        (item("True", "t2", CORDONED + TAINT), "l2", "started", "t1", False),
        ({}, "l1", "started", "", False),
    ],
)
def test_a_node_is_ready_by_its_new_word(
    monkeypatch: pytest.MonkeyPatch,
    node_item: dict[str, Any],
    renewed: str,
    word: str,
    stale: str,
    expected: bool,
) -> None:
    monkeypatch.setattr(cluster, "admin", lambda: Answers(node_item, renewed))
    assert cluster._node_ready("lab-1", word, stale) is expected


def test_a_kubelet_whose_node_is_gone_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: dict[str, str] = {}
    monkeypatch.setattr(cluster, "ready", lambda timeout: None)
    monkeypatch.setattr(cluster, "_words", lambda: {"lab-1": {"thawed": "l1", "started": "t1"}})
    waited: list[str] = []
    monkeypatch.setattr(cluster, "_wait", lambda name, condition, deadline: waited.append(name))

    def run_on(host: str, argv: Any) -> str:
        ran[host] = argv[-1]
        return "started\n"

    cluster.hosts_up(run_on, ["lab-1", "lab-2"])
    assert "cgroup.freeze" in ran["lab-1"] and "restart" not in ran["lab-1"]
    assert ran["lab-2"] == "systemctl restart kubelet && echo started"
    assert waited == ["node lab-1", "node lab-2"]


def test_requests_are_counted_by_who_asked() -> None:
    def event(agent: str, stage: str = "ResponseComplete", **more: Any) -> str:
        return json.dumps({"stage": stage, "userAgent": agent, "verb": "get", "requestURI": "/version?x=1", **more})

    pods: dict[str, Any] = {"objectRef": {"resource": "pods", "subresource": "exec"}}
    lines = [
        event("Helm/3"),
        event("kubectl/1", **pods),
        event("kubectl/1", stage="ResponseStarted", **pods),
    ]
    assert cluster.audited(lines) == {("get", "/version"): 1, ("get", "pods/exec"): 1}
    assert cluster.audited(lines, "Helm") == {("get", "/version"): 1}


def test_waiting_ends_with_the_reason() -> None:
    with pytest.raises(LabError) as caught:
        cluster._wait("node lab-1", lambda: False, deadline=0.0)
    assert str(caught.value) == "node lab-1 is not ready in time: not ready"
