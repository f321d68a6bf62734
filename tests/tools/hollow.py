"""A cluster of many nodes without a container: a real etcd, API server, Job controller and scheduler, hollow kubelets.

    with cluster(Path("/tmp/x"), nodes=1000, rails=["rail0"], resources=["rdma/rdma_rail0"]) as found:
        found.kubeconfig("validator")     # a user with all rights, but no exemption from the server's own limits
        found.audit                       # what that user asked for, a line of JSON a request

Everything is on the loopback at free ports, in the folder and in child processes that end with the context; it shares
nothing with a lab that runs. Node leases and the controller that watches them are left out.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab import certificates, golang
from tests.lab.certificates import Subject
from tests.lab.control_plane import etcd

ADMIN, USER, KUBELET = "admin", "validator", "kubelet"
CONTROLLERS, SCHEDULER = "kube-controller-manager", "kube-scheduler"
SUBJECTS = (
    Subject("apiserver", "kube-apiserver", dns=("localhost", "kubernetes"), addresses=("127.0.0.1", "10.96.0.1")),
    Subject(KUBELET, "hollow", addresses=("127.0.0.1",)),
    Subject(ADMIN, ADMIN, "system:masters"),
    Subject(USER, USER, "validators"),
    Subject(CONTROLLERS, f"system:{CONTROLLERS}"),
    Subject(SCHEDULER, f"system:{SCHEDULER}"),
)
# Without the one for node life cycle, hollow nodes need no heartbeats.
RUN_CONTROLLERS = "job-controller,deployment-controller,replicaset-controller,garbage-collector-controller"
RUN_CONTROLLERS += ",namespace-controller,serviceaccount-controller,daemonset-controller"
START_SECONDS = 120
# The runtime of Go collects garbage less often: a fifth of the API server's processor time, for 300 MB more.
MEMORY = {"GOGC": "400"}
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
}


class HollowError(Exception):
    """The cluster did not come up: which part, and the end of all logs."""


@dataclass
class Cluster:
    """A running cluster in a folder; ``children``: its processes in the order of their start."""

    folder: Path
    ports: dict[str, int]
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.ports['api']}"

    @property
    def audit(self) -> Path:
        return self.folder / "audit.log"

    def kubeconfig(self, name: str) -> Path:
        """Write and return the kubeconfig of a subject."""
        pair = certificates.pair(self.folder, name)
        authority = certificates.pair(self.folder, "ca").certificate
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "hollow",
            "clusters": [
                {"name": "hollow", "cluster": {"server": self.server, "certificate-authority-data": encoded(authority)}}
            ],
            "users": [
                {
                    "name": name,
                    "user": {
                        "client-certificate-data": encoded(pair.certificate),
                        "client-key-data": encoded(pair.key),
                    },
                }
            ],
            "contexts": [{"name": "hollow", "context": {"cluster": "hollow", "user": name}}],
        }
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config))
        return path

    def start(self, name: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a child; it dies with us whatever happens, and what it writes goes to NAME.log."""
        with (self.folder / f"{name}.log").open("wb") as log:
            child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *argv],
                cwd=self.folder,
                env={**os.environ, **MEMORY},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.children.append(child)
        return child

    @contextlib.contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Hold a child for a while: it neither works nor ends."""
        (child,) = [one for one in self.children if name in one.args]  # type: ignore[operator]
        child.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            child.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill the children: none has data to keep, and an API server would wait for its watches to end."""
        for child in self.children:
            child.kill()
        for child in self.children:
            child.wait()

    def call(self, method: str, path: str, body: object = None) -> str:
        """Send a request as admin and return the answer's text."""
        context = ssl.create_default_context(cafile=str(certificates.pair(self.folder, "ca").certificate))
        pair = certificates.pair(self.folder, ADMIN)
        context.load_cert_chain(pair.certificate, pair.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self.ports["api"], context=context, timeout=30)
        with contextlib.closing(connection):
            connection.request(
                method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            text = answer.read().decode()
        if answer.status >= 400:
            raise OSError(f"{method} {path}: {answer.status} {text[:300]}")
        return text


@contextlib.contextmanager
def cluster(folder: Path, nodes: int, rails: Sequence[str], resources: Sequence[str]) -> Iterator[Cluster]:
    """Start everything in an empty folder, wait until all nodes are there, and end it again."""
    names = ("etcd", "peer", "api", "controllers", "scheduler", "kubelet")
    found = Cluster(folder, dict(zip(names, free_ports(len(names)))))
    certificates.authority(folder)
    for subject in SUBJECTS:
        certificates.issue(folder, subject)
    certificates.signing_key(folder / "tokens.key")
    (folder / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
    try:
        control_plane(found)
        hollow_kubelets(found, nodes, rails, resources)
        yield found
    finally:
        found.stop()


def control_plane(found: Cluster) -> None:
    labkube, folder, ports = str(golang.labkube()), found.folder, found.ports
    url, peer_url = (f"http://127.0.0.1:{ports[name]}" for name in ("etcd", "peer"))
    found.start("etcd", etcd(folder / "etcd", url, peer_url))
    found.start("kube-apiserver", [labkube, "kube-apiserver", *api_server(found, url)])
    until(found, "the API server", lambda: found.call("GET", "/readyz") == "ok")
    found.call(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": USER},
            "subjects": [{"kind": "User", "name": USER}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        },
    )
    for name, port in ((CONTROLLERS, "controllers"), (SCHEDULER, "scheduler")):
        own = (
            []
            if name == SCHEDULER
            else [
                f"--service-account-private-key-file={folder / 'tokens.key'}",
                f"--controllers={RUN_CONTROLLERS}",
                "--use-service-account-credentials",
                # The default of 20 requests a second makes 1000 pods in 50 s; big clusters have more.
                "--kube-api-qps=100",
                "--kube-api-burst=200",
            ]
        )
        found.start(
            name,
            [
                labkube,
                name,
                f"--kubeconfig={found.kubeconfig(name)}",
                "--bind-address=127.0.0.1",
                f"--secure-port={ports[port]}",
                "--leader-elect=false",
                *own,
            ],
        )


def api_server(found: Cluster, etcd: str) -> list[str]:
    folder = found.folder
    serving, client = certificates.pair(folder, "apiserver"), certificates.pair(folder, ADMIN)
    authority = certificates.pair(folder, "ca").certificate
    return [
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={found.ports['api']}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={authority}",
        f"--service-account-key-file={folder / 'tokens.key'}",
        f"--service-account-signing-key-file={folder / 'tokens.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-certificate-authority={authority}",
        f"--kubelet-client-certificate={client.certificate}",
        f"--kubelet-client-key={client.key}",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        # It would taint new nodes until the controller for node life cycle has seen them.
        "--disable-admission-plugins=TaintNodesByCondition",
        f"--audit-policy-file={folder / 'audit-policy.json'}",
        f"--audit-log-path={found.audit}",
    ]


def hollow_kubelets(found: Cluster, nodes: int, rails: Sequence[str], resources: Sequence[str]) -> None:
    pair = certificates.pair(found.folder, KUBELET)
    found.start(
        "hollow",
        [
            str(golang.hollow()),
            f"--kubeconfig={found.kubeconfig(ADMIN)}",
            f"--nodes={nodes}",
            f"--rails={','.join(rails)}",
            f"--resources={','.join(resources)}",
            f"--port={found.ports['kubelet']}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            f"--client-ca-file={certificates.pair(found.folder, 'ca').certificate}",
        ],
    )
    until(found, f"{nodes} nodes", lambda: "registered" in (found.folder / "hollow.log").read_text())
    until(found, "the scheduler", lambda: healthy(found.ports["scheduler"]))


def healthy(port: int) -> bool:
    # Who asks is not told more than that; nobody's certificate is needed on the loopback.
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=ssl._create_unverified_context())
    with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200


def until(found: Cluster, what: str, done: object) -> None:
    """Wait until ``done()`` is true; an error counts as not yet, a child that ended as never."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for child in found.children:
            if child.poll() is not None:
                raise HollowError(f"{child.args} ended with {child.returncode}; {logs(found)}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            if done():  # type: ignore[operator]
                return
        time.sleep(0.3)
    raise HollowError(f"{what} did not come up in {START_SECONDS} s; {logs(found)}")


def logs(found: Cluster) -> str:
    tails = [f"{path.name}: {path.read_text(errors='replace')[-600:]}" for path in sorted(found.folder.glob("*.log"))]
    return "\n".join(tails)


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
