# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is who in the lab's cluster: its certificates and kubeconfigs."""

from __future__ import annotations

import base64
import functools
import json
from pathlib import Path

from tests.lab import cache, certificates, settings
from tests.lab.certificates import Pair, Subject
from tests.lab.settings import HOSTS, OUTSIDE

SERVER, KUBELET_CLIENT, ADMIN = "apiserver", "apiserver-kubelet-client", "admin"
CONTROLLERS, SCHEDULER = "kube-controller-manager", "kube-scheduler"
SIGNING_KEY = "service-accounts.key"
#: The address of the service `kubernetes` in the range of SERVICES.
SERVICES, SERVICE_ADDRESS = "10.96.0.0/16", "10.96.0.1"

_SERVICE_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


def subjects() -> list[Subject]:
    """Everybody who has a certificate of the lab's authority."""
    return [
        Subject(
            SERVER,
            "kube-apiserver",
            dns=("localhost", *_SERVICE_NAMES),
            addresses=("127.0.0.1", OUTSIDE, SERVICE_ADDRESS),
        ),
        Subject(KUBELET_CLIENT, "kube-apiserver-kubelet-client", "system:masters"),
        Subject(ADMIN, "lab-admin", "system:masters"),
        Subject(CONTROLLERS, f"system:{CONTROLLERS}"),
        Subject(SCHEDULER, f"system:{SCHEDULER}"),
        *[_kubelet(host) for host in HOSTS],
    ]


@functools.cache
def folder() -> Path:
    """The folder with the authority, all certificates and the key that signs tokens; made once."""
    return cache.artefact("pki", repr(subjects()), _build)


def pair(name: str) -> Pair:
    """The certificate and key of a subject, by its name."""
    return certificates.pair(folder(), name)


def authority() -> Path:
    """The certificate of the lab's authority."""
    return pair("ca").certificate


def kubeconfig(name: str, server: str) -> str:
    """A kubeconfig that holds all it needs, for a subject and the URL of the API server."""
    files = pair(name)
    cluster = {"server": server, "certificate-authority-data": _encoded(authority())}
    user = {
        "client-certificate-data": _encoded(files.certificate),
        "client-key-data": _encoded(files.key),
    }
    context = {"cluster": "lab", "user": name}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "lab", "context": context}],
        "current-context": "lab",
    }
    return json.dumps(config, indent=1) + "\n"


def _kubelet(host: str) -> Subject:
    inside = (settings.inside_address(host),)
    return Subject(host, f"system:node:{host}", "system:nodes", dns=(host,), addresses=inside)


def _build(target: Path) -> None:
    target.mkdir(mode=0o700)
    certificates.authority(target)
    for subject in subjects():
        certificates.issue(target, subject)
    certificates.signing_key(target / SIGNING_KEY)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
