# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's Kubernetes cluster: a control plane on this machine, a node in each host.

`start` begins, `ready` waits for the control plane, `hosts_up` for the nodes. The state of the
cluster is etcd's data: `save` and `restore` copy it, always with the control plane stopped.

With a KUBECONFIG of the user's own (see `external`) that cluster is used in place of the lab's:
nothing is started, stopped, saved or restored, the hosts do not become its nodes, and what a
scenario leaves in it stays there.
"""

from __future__ import annotations

import io
import ipaddress
import json
import os
import shutil
import ssl
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.lab import cache, charts, control_plane, debian, golang, helm, node, oci, pki, process, sriov_operator
from tests.lab.api import Api, ApiError, read_kubeconfig, server_of
from tests.lab.control_plane import ETCD_DATA, HEALTH_PORTS, NAMES
from tests.lab.errors import LabError
from tests.lab.settings import HOSTS, RUN

#: Runs a program in a host: run(argv, stdin=b"", timeout=60) is its standard output.
Run = Callable[..., str]
#: run_on(host, argv) is the same for any host.
RunOn = Callable[[str, Sequence[str]], str]

_CONSENT = "USE_EXISTING_CLUSTER"
_IMPORT_SECONDS = 600
_HOSTS_SECONDS = 180.0
_POLL_SECONDS = 0.2
_FREEZER = "/sys/fs/cgroup/system.slice/kubelet.service/cgroup.freeze"
#: Prints what was done: nothing when the kubelet runs already.
_START = f"""if grep -qs 1 {_FREEZER}; then echo 0 > {_FREEZER} && echo thawed
else systemctl is-active -q kubelet || {{ systemctl start kubelet && echo started; }}
fi"""
_RESTART = "systemctl restart kubelet && echo started"
#: The taint of a Node that somebody cordoned, which is no matter of the lab's.
_CORDONED = "node.kubernetes.io/unschedulable"
_IMPORT = ("ctr", "-n", "k8s.io", "images", "import", "-")


# --- what is in the hosts ---------------------------------------------------------------------


def image_files() -> dict[str, node.HostFile]:
    """The files that the image of all hosts gets for the cluster, by path."""
    return node.common_files(golang.labkube())


def image_setup() -> list[list[str]]:
    """The commands to run in the image once it has its files."""
    return [["systemctl", "enable", "kubelet.service"]]


def template_identity() -> str:
    """What `template_boot` depends on: another identity, another template."""
    return " ".join(archive.name for archive in _archives())


def template_boot(run: Run, put: object = None) -> None:
    """Import the container images, in a host that is to be the template of all."""
    for archive in _archives():
        run(_IMPORT, stdin=archive.read_bytes(), timeout=_IMPORT_SECONDS)


def _archives() -> list[Path]:
    root = debian.root()
    return [oci.pause(), oci.tester(root), oci.sriov(root)]


def identity() -> str:
    """What `first_boot` depends on: another identity, other hosts."""
    return cache.key(_archive(node.own_files(host)) for host in HOSTS)


def first_boot(host: str, run: Run, put: object = None) -> None:
    """Give a host what makes it a node; its kubelet stays stopped."""
    run(["tar", "-x", "-C", "/", "--no-same-owner"], stdin=_archive(node.own_files(host)))


# --- the control plane ------------------------------------------------------------------------


def external() -> Path | None:
    """The user's own kubeconfig, when it is to be used in place of the lab's cluster.

    That is the file of KUBECONFIG when its server is on this machine (a loopback address). A
    cluster elsewhere may be somebody's production: it counts only with USE_EXISTING_CLUSTER=true.
    """
    path = Path(os.environ.get("KUBECONFIG", ""))
    if not path.is_file():
        return None
    server = server_of(read_kubeconfig(path))
    if server == control_plane.SERVER:
        return None
    consent = os.environ.get(_CONSENT, "").lower() == "true"
    return path if consent or is_here(server) else None


def is_here(server: str) -> bool:
    """Whether the URL of a server is on this machine by its address."""
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def kubeconfig(path: Path) -> None:
    """Write the administrator's kubeconfig to path, mode 0600."""
    own = external()
    text = own.read_text() if own else pki.kubeconfig(pki.ADMIN, control_plane.SERVER)
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)


def tools(folder: Path) -> None:
    """Put what the inventory deploys with beside the kubeconfig: Helm, and the archive of the stand-in's chart."""
    link = folder / "helm"
    link.unlink(missing_ok=True)
    link.symlink_to(helm.helm())
    charts.package(folder, sriov_operator.chart())


def admin() -> Api:
    """The API as administrator."""
    own = external()
    if own:
        return Api.from_kubeconfig(own)
    path = RUN / "admin.kubeconfig"
    if not path.exists():
        kubeconfig(path)
    return Api.from_kubeconfig(path)


def asked(agent: str = "") -> dict[tuple[str, str], int]:
    """Requests to the lab's API server since it started, by (verb, resource), of people and their programs.

    The cluster's own parts are left out (`api.request_counts` has all). With an agent only requests
    of programs whose user agent begins so, such as `Helm` or `OpenAPI-Generator`.
    """
    if not control_plane.AUDIT_LOG.exists():
        return {}
    with control_plane.AUDIT_LOG.open(encoding="utf-8") as log:
        return audited(log, agent)


def audited(lines: Iterable[str], agent: str = "") -> dict[tuple[str, str], int]:
    """The same for the lines of an audit log."""
    counts: dict[tuple[str, str], int] = {}
    for line in lines:
        event = json.loads(line)
        if event["stage"] != "ResponseComplete" or not event.get("userAgent", "").startswith(agent):
            continue
        target = event.get("objectRef", {})
        resource = "/".join(filter(None, (target.get("resource"), target.get("subresource"))))
        key = (event["verb"], resource or event["requestURI"].partition("?")[0])
        counts[key] = counts.get(key, 0) + 1
    return counts


def start() -> None:
    """Start etcd and the API server, unless they run; `ready` starts the rest when they answer."""
    if external():
        return
    control_plane.write_files()
    if control_plane.API_SERVER not in process.running():
        cache.remove(control_plane.AUDIT_LOG)
    _start_missing(NAMES[:2])


def stop() -> None:
    """End the control plane, if it runs."""
    if external():
        return
    # Only etcd has something to keep; the others would take 10 s to say goodbye to each other.
    for name in reversed(NAMES[1:]):
        process.kill(name)
    process.stop([control_plane.ETCD])


def ready(timeout: float = 60.0) -> None:
    """Wait until pods can be created. LabError with the log of what is not ready."""
    deadline = time.monotonic() + timeout
    _wait("kube-apiserver", _api_ready, deadline)
    if external():
        return
    # They would give up if they were started before the API server answers.
    _start_missing(NAMES[2:])
    for name in HEALTH_PORTS:
        _wait(name, partial(_healthy, name), deadline)
    _wait("kube-controller-manager", _has_default_account, deadline)


def save(name: str) -> None:
    """Keep the state of the cluster under a name; the control plane is restarted for it."""
    if external():
        return
    stop()
    target = _state(name)
    cache.remove(target)
    _copy(ETCD_DATA, target)
    start()


def restore(name: str) -> None:
    """Put the cluster back to the state of that name and start it.

    A state that was never saved is an empty cluster: its nodes register again.
    """
    if external():
        return
    stop()
    cache.remove(ETCD_DATA)
    if _state(name).exists():
        _copy(_state(name), ETCD_DATA)
    start()


def status() -> list[str]:
    """A line for each part of the cluster and each node."""
    own = external()
    if own:
        return [f"cluster: yours, of {own} ({server_of(read_kubeconfig(own))})"]
    alive = process.running()
    lines = [f"{name}: process {alive[name]}" if name in alive else f"{name}: stopped" for name in NAMES]
    try:
        return lines + [f"node {name}: {_condition(item)}" for name, item in _nodes().items()]
    except (OSError, ApiError):
        return lines


# --- the nodes --------------------------------------------------------------------------------


def hosts_up(run_on: RunOn, hosts: Sequence[str] = HOSTS, timeout: float = _HOSTS_SECONDS) -> None:
    """Start the kubelets of hosts and wait until their nodes are ready, by their own new word.

    After a restore the API still tells what was true when it was saved, so a kubelet that was just
    started or thawed must have told something since.
    """
    if external():
        return
    deadline = time.monotonic() + timeout
    ready(timeout)
    before = _words()

    def begin(host: str) -> str:
        # A kubelet that ran already does not register again when its Node is gone.
        script = _START if host in before else _RESTART
        return run_on(host, ["sh", "-c", script]).strip()

    with ThreadPoolExecutor(len(hosts)) as pool:
        done = dict(zip(hosts, pool.map(begin, hosts)))
    for host in hosts:
        stale = before.get(host, {}).get(done[host], "")
        _wait(f"node {host}", partial(_node_ready, host, done[host], stale), deadline)


def hosts_down(run_on: RunOn, hosts: Sequence[str] = HOSTS) -> None:
    """Freeze the kubelets of hosts, for a snapshot: no word comes from them, and no start is needed.

    A start costs an emulated host 16 s of processor time. The cluster must be saved after this, so
    that it knows all that the kubelets know. Pods go on.
    """
    if external():
        return
    with ThreadPoolExecutor(len(hosts)) as pool:
        list(pool.map(lambda host: run_on(host, ["sh", "-c", f"echo 1 > {_FREEZER}"]), hosts))


def _words() -> dict[str, dict[str, str]]:
    """The last word of each node, as times of its own clock.

    A kubelet that was started tells its status anew; one that was thawed renews its lease.
    """
    leases = admin().get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")["items"]
    renewed = {item["metadata"]["name"]: item["spec"].get("renewTime", "") for item in leases}
    return {
        name: {
            "started": _ready_condition(item).get("lastHeartbeatTime", ""),
            "thawed": renewed.get(name, ""),
        }
        for name, item in _nodes().items()
    }


def _node_ready(host: str, word: str, stale: str) -> bool:
    """Whether a node is ready, and free of taints but that of a cordon; stale is the last word that does not count."""
    item = _nodes().get(host, {})
    fresh = not word or _words().get(host, {}).get(word, "") != stale
    ready_now = _ready_condition(item).get("status") == "True"
    taints = {taint["key"] for taint in item.get("spec", {}).get("taints", [])}
    return fresh and ready_now and taints <= {_CORDONED}


def _nodes() -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in admin().get("/api/v1/nodes")["items"]}


def _ready_condition(item: Mapping[str, Any]) -> dict[str, Any]:
    conditions = item.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == "Ready"), {})


def _condition(item: Mapping[str, Any]) -> str:
    return "ready" if _ready_condition(item).get("status") == "True" else "not ready"


# --- helpers ----------------------------------------------------------------------------------


def _start_missing(names: Sequence[str]) -> None:
    alive = process.running()
    for name in names:
        if name not in alive:
            process.start(name, control_plane.command_line(name))


def _wait(name: str, condition: Callable[[], bool], deadline: float) -> None:
    """Ask until it holds; a server that is not there yet, or not ready, is asked again."""
    while True:
        try:
            if condition():
                return
            last = "not ready"
        except (OSError, ApiError) as error:
            last = str(error)
        if time.monotonic() > deadline:
            raise LabError(f"{name} is not ready in time: {last}\n{_last_words(name)}".rstrip())
        time.sleep(_POLL_SECONDS)


def _last_words(name: str) -> str:
    return process.log_tail(name) if name in NAMES else ""


def _api_ready() -> bool:
    return admin().text("/readyz") == "ok"


def _has_default_account() -> bool:
    """Pods of a namespace are refused before the controller manager has made its account."""
    return bool(admin().get("/api/v1/namespaces/default/serviceaccounts/default"))


def _healthy(name: str) -> bool:
    # Its certificate is one that it made for itself.
    trust_any = ssl._create_unverified_context()
    url = f"https://127.0.0.1:{HEALTH_PORTS[name]}/healthz"
    try:
        with urllib.request.urlopen(url, context=trust_any, timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False


def _state(name: str) -> Path:
    """Where a state is kept: another etcd or API server must not meet it."""
    programs = f"{control_plane.etcd_program()} {control_plane.api_server_program()}"
    return cache.path_of("cluster-state", f"{name} {programs}")


def _copy(source: Path, target: Path) -> None:
    unfinished = target.with_name(f".copying-{target.name}")
    cache.remove(unfinished)
    shutil.copytree(source, unfinished)
    unfinished.rename(target)


def _archive(files: Mapping[str, node.HostFile]) -> bytes:
    """A tar of files, the same bytes for the same files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, (mode, content) in files.items():
            data = content if isinstance(content, bytes) else content.read_bytes()
            info = tarfile.TarInfo(path)
            info.mode, info.size = mode, len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
