# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of the control plane: etcd, API server, controller manager, scheduler."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from tests.lab import golang, pki, settings
from tests.lab.errors import LabError
from tests.lab.settings import API_PORT, ETCD_PEER_PORT, ETCD_PORT, HOSTS, OUTSIDE, RUN

ETCD, API_SERVER = "etcd", "kube-apiserver"
CONTROLLERS, SCHEDULER = pki.CONTROLLERS, pki.SCHEDULER
#: In the order in which they start.
NAMES = (ETCD, API_SERVER, CONTROLLERS, SCHEDULER)
#: What the others serve their health at.
HEALTH_PORTS = {CONTROLLERS: 26257, SCHEDULER: 26259}

SERVER = f"https://127.0.0.1:{API_PORT}"
ETCD_DATA = RUN / "etcd"
AUDIT_LOG = RUN / "audit.log"

_ASSETS = "KUBEBUILDER_ASSETS"
_FILES = RUN / "control-plane"
_ETCD_URL = f"http://127.0.0.1:{ETCD_PORT}"
_PEER_URL = f"http://127.0.0.1:{ETCD_PEER_PORT}"
#: What people and their programs ask for is written down; what the cluster's own parts do is not.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": [f"system:{CONTROLLERS}", f"system:{SCHEDULER}"]},
        {"level": "None", "users": ["system:apiserver", "system:anonymous"]},
        {"level": "None", "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"]},
        {"level": "Metadata"},
    ],
}
#: The API server finds a node by its name, and this file is /etc/hosts for it alone.
_WITH_HOSTS = 'mount --bind "$0" /etc/hosts && exec "$@"'


def write_files() -> None:
    """Write what the command lines refer to."""
    _FILES.mkdir(parents=True, exist_ok=True)
    (_FILES / "hosts").write_text(hosts_file())
    (_FILES / "audit-policy.json").write_text(json.dumps(_AUDIT_POLICY))
    for name in HEALTH_PORTS:
        _kubeconfig(name).touch(mode=0o600)
        _kubeconfig(name).write_text(pki.kubeconfig(name, SERVER))


def hosts_file() -> str:
    """The /etc/hosts of the API server."""
    lines = [f"{settings.address(host)} {host}" for host in HOSTS]
    return "\n".join(["127.0.0.1 localhost", *lines]) + "\n"


def command_line(name: str) -> list[str]:
    """The command line of one of NAMES."""
    return {
        ETCD: _etcd,
        API_SERVER: _api_server,
        CONTROLLERS: _controllers,
        SCHEDULER: _scheduler,
    }[name]()


def etcd_program() -> Path:
    """The etcd to use: of KUBEBUILDER_ASSETS, else the machine's."""
    given = _asset(ETCD)
    found = str(given) if given else shutil.which(ETCD)
    if not found:
        raise LabError("etcd is not here; install the package etcd-server")
    return Path(found)


def api_server_program() -> list[str]:
    """The start of the API server's command line: of KUBEBUILDER_ASSETS, else our own."""
    given = _asset(API_SERVER)
    return [str(given)] if given else [str(golang.labkube()), API_SERVER]


def _asset(name: str) -> Path | None:
    folder = os.environ.get(_ASSETS, "")
    if not folder:
        return None
    path = Path(folder) / name
    if not path.exists():
        raise LabError(f"{_ASSETS} is {folder}, but there is no {name} in it; unset it or fill it")
    return path


def etcd(data: Path, url: str, peer_url: str) -> list[str]:
    """The command line of an etcd of one member, whose data nobody will miss."""
    return [
        str(etcd_program()),
        f"--name={ETCD}",
        f"--data-dir={data}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster={ETCD}={peer_url}",
        "--unsafe-no-fsync",
    ]


def _etcd() -> list[str]:
    return etcd(ETCD_DATA, _ETCD_URL, _PEER_URL)


def _api_server() -> list[str]:
    serving, client = pki.pair(pki.SERVER), pki.pair(pki.KUBELET_CLIENT)
    tokens = pki.folder() / pki.SIGNING_KEY
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    hosts = ["unshare", *rights, "--mount", "sh", "-c", _WITH_HOSTS, str(_FILES / "hosts")]
    return [
        *hosts,
        *api_server_program(),
        f"--etcd-servers={_ETCD_URL}",
        "--bind-address=127.0.0.1",
        f"--secure-port={API_PORT}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={pki.authority()}",
        f"--service-account-key-file={tokens}",
        f"--service-account-signing-key-file={tokens}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={pki.SERVICES}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--kubelet-preferred-address-types=Hostname",
        f"--kubelet-certificate-authority={pki.authority()}",
        f"--kubelet-client-certificate={client.certificate}",
        f"--kubelet-client-key={client.key}",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        f"--advertise-address={OUTSIDE}",
        f"--audit-policy-file={_FILES / 'audit-policy.json'}",
        f"--audit-log-path={AUDIT_LOG}",
    ]


def _controllers() -> list[str]:
    return [
        *_labkube(CONTROLLERS),
        f"--service-account-private-key-file={pki.folder() / pki.SIGNING_KEY}",
        f"--root-ca-file={pki.authority()}",
        "--use-service-account-credentials",
    ]


def _scheduler() -> list[str]:
    return _labkube(SCHEDULER)


def _labkube(name: str) -> list[str]:
    return [
        str(golang.labkube()),
        name,
        f"--kubeconfig={_kubeconfig(name)}",
        "--bind-address=127.0.0.1",
        f"--secure-port={HEALTH_PORTS[name]}",
        "--leader-elect=false",
    ]


def _kubeconfig(name: str) -> Path:
    return _FILES / f"{name}.kubeconfig"
