# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which machine this is to a cluster: names, addresses, and what shows that a kubelet or a control plane runs."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Collection, Iterator
from typing import Any

from ..._common.errors import CommandError
from ..system import command, files, systemd

# Data folders of kubelets, below /var.
FOLDERS = ("lib/kubelet", "lib/k0s/kubelet", "snap/microk8s/common/var/lib/kubelet")
# k3s, RKE2, k0s, MicroK8s and MicroShift have the kubelet in a program of their own.
UNITS = ("kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "k0scontroller", "k0sworker",
         "snap.microk8s.daemon-kubelite", "snap.k8s.kubelet", "microshift")  # fmt: skip
PROGRAMS = ("kubelet", "k3s-server", "k3s-agent", "rke2", "k0s", "kubelite", "microshift")
CONTROL_UNITS = ("k3s", "rke2-server", "k0scontroller", "snap.microk8s.daemon-k8s-dqlite", "snap.k8s.kube-apiserver",
                 "microshift")  # fmt: skip
CONTROL_PROGRAMS = ("kube-apiserver", "etcd", "k3s-server", "k8s-dqlite", "microshift")
# MicroK8s has the API server in the same program as the kubelet. Workers run it without, and reach the API server
# through a proxy that no other node runs.
_KUBELITE_UNIT, _KUBELITE = "snap.microk8s.daemon-kubelite", "kubelite"
_WORKER_UNIT = "snap.microk8s.daemon-apiserver-proxy"
# Container runtimes, as /proc calls them.
RUNTIMES = ("containerd", "crio", "dockerd")
CONTROL_PODS = ("etcd.yaml", "kube-apiserver.yaml", "etcd-pod.yaml", "kube-apiserver-pod.yaml")


def identity(roots: files.Roots, var: str) -> dict[str, Any]:
    """Return what tells this machine's Node from others, see RETURN of the module reboot_reasons."""
    programs = _programs(roots.proc)
    return {
        "machine_id": files.read_text(f"{roots.etc}/machine-id") or "",
        "hostname": files.read_text(f"{roots.proc}/sys/kernel/hostname") or "",
        "addresses": addresses(),
        "kubelet": list(_kubelet(roots, var, programs)),
        "control_plane": _control_plane(roots, programs),
    }


def addresses() -> list[str]:
    """Return the machine's addresses that others can reach; none when they cannot be read."""
    try:
        links = json.loads(command.run(["ip", "-j", "addr", "show"]).stdout or "[]")
    except (CommandError, ValueError):
        return []
    found = [str(entry.get("local") or "") for link in links for entry in link.get("addr_info") or []]
    return sorted({text for text in found if _reachable(text)})


def _reachable(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_link_local)


def _kubelet(roots: files.Roots, var: str, programs: Collection[str]) -> Iterator[str]:
    """Yield every sign of a kubelet. A folder that cannot be read counts: it may hold anything."""
    for folder in FOLDERS:
        try:
            if os.listdir(f"{var}/{folder}"):
                yield f"{var}/{folder} is not empty"
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            yield f"{var}/{folder} cannot be read ({error.strerror})"
    yield from (f"{unit}.service is active" for unit in UNITS if _active(roots, unit))
    yield from (f"process {name} is running" for name in PROGRAMS if name in programs)


def _control_plane(roots: files.Roots, programs: Collection[str]) -> bool:
    pods = files.names(f"{roots.etc}/kubernetes/manifests")
    kubelite = _KUBELITE in programs or _active(roots, _KUBELITE_UNIT)
    return (
        (kubelite and not _active(roots, _WORKER_UNIT))
        or any(name in pods for name in CONTROL_PODS)
        or any(name in programs for name in CONTROL_PROGRAMS)
        or any(_active(roots, unit) for unit in CONTROL_UNITS)
    )


def _active(roots: files.Roots, unit: str) -> bool:
    """Return whether a service runs: then it has a control group."""
    return systemd.runs(roots, f"{unit}.service")


def _programs(proc: str) -> set[str]:
    return {files.read_text(f"{proc}/{name}/comm") or "" for name in files.names(proc) if name.isdigit()}
