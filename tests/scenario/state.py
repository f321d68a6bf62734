"""What a host and the cluster look like, for `as before` and `nothing changed` comparisons."""

from __future__ import annotations

import json
from typing import Any

from tests.lab import api
from tests.scenario import ACCESS, host

# Every place that a role may write to.
FOLDERS = (
    "/etc/systemd",
    "/etc/modules-load.d",
    "/etc/modprobe.d",
    "/etc/sysctl.d",
    "/etc/udev",
    "/etc/default",
    "/etc/security",
    "/etc/tmpfiles.d",
    "/etc/kernel",
    "/etc/gpufabric",
    "/etc/apt",
    "/etc/netplan",
    "/etc/NetworkManager",
    "/boot/grub/grub.cfg",
    "/var/lib/gpufabric",
    "/usr/local",
)
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
FABRIC_KINDS = (
    "/apis/mellanox.com/v1alpha1/nicclusterpolicies",
    "/apis/mellanox.com/v1alpha1/macvlannetworks",
    "/apis/nv-ipam.nvidia.com/v1alpha1/ippools",
    "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions",
)


def host_state(name: str) -> dict[str, Any]:
    """Links (name, MTU, up, addresses by MAC), files with their digests, units, modules and packages of one host."""
    machine = host(name)
    links = json.loads(machine.check_output("ip -json addr show"))
    return {
        "links": {link["address"]: link_state(link) for link in links if link["link_type"] == "ether"},
        "files": files(name),
        "units": machine.check_output("systemctl list-unit-files --no-legend | sort").split("\n"),
        "packages": machine.check_output("dpkg-query -W").split("\n"),
        "rdma": machine.check_output("rdma link show"),
    }


def files(name: str) -> dict[str, str]:
    """Digests by path of all files in the places that a role may write to."""
    found = host(name).check_output(f"find {' '.join(FOLDERS)} -type f -exec sha256sum {{}} + 2>/dev/null || true")
    return dict(reversed(line.split(maxsplit=1)) for line in found.splitlines())  # type: ignore[misc]


def link_state(link: dict[str, Any]) -> dict[str, Any]:
    addresses = sorted(f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["family"] == "inet")
    return {"name": link["ifname"], "mtu": link["mtu"], "up": "UP" in link["flags"], "addresses": addresses}


def cluster() -> api.Api:
    return api.Api.from_kubeconfig(ACCESS / "kubeconfig", agent="gpufabric-tests")


def names(path: str) -> list[str]:
    """Names of the objects of a collection; none when its kind is not served."""
    try:
        items = cluster().get(path)["items"]
    except api.ApiError as error:
        if error.status == 404:
            return []
        raise
    return sorted(f"{i['metadata'].get('namespace', '')}/{i['metadata']['name']}".lstrip("/") for i in items)


def cluster_state() -> dict[str, Any]:
    """Namespaces, definitions, our objects, workloads and node labels: what a teardown must bring back."""
    nodes = cluster().get("/api/v1/nodes")["items"]
    return {
        "namespaces": names("/api/v1/namespaces"),
        "definitions": names("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        "objects": {path.split("/")[-1]: names(path) for path in FABRIC_KINDS},
        "workloads": {kind: names(f"/apis/apps/v1/{kind}") for kind in ("daemonsets", "deployments")},
        "jobs": names("/apis/batch/v1/jobs"),
        "pods": names("/api/v1/pods"),
        "cluster_roles": [n for n in names(CLUSTER_ROLES) if "network-operator" in n],
        "labels": {n["metadata"]["name"]: sorted(n["metadata"]["labels"]) for n in nodes},
    }


def jobs_left(of: api.Api | None = None) -> list[str]:
    """Jobs, pods and ConfigMaps of the validation that are still in a cluster, by default the lab's."""
    found = of or cluster()
    selector = "app.kubernetes.io/managed-by=gpufabric,app.kubernetes.io/component=tester"
    paths = ("/apis/batch/v1/jobs", "/api/v1/pods", "/api/v1/configmaps")
    return [
        f"{path.split('/')[-1]} {item['metadata']['name']}"
        for path in paths
        for item in found.get(path, labelSelector=selector)["items"]
    ]


def leftovers(name: str) -> list[str]:
    """Processes, units and files of a measurement that are still on a host."""
    machine = host(name)
    processes = machine.run("pgrep -a -f 'ib_(write|read|send)_(bw|lat)|tester.sh'").stdout.splitlines()
    units = machine.check_output("systemctl list-units --all --no-legend --plain 'gpufabric-tester*'").splitlines()
    files = machine.run("ls -d /run/gpufabric/tester* 2>/dev/null").stdout.split()
    return [line for line in processes if "pgrep" not in line and "sh -c" not in line] + units + files
