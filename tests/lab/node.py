# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a host of the lab a node: its files, the same on all hosts or its own."""

from __future__ import annotations

import json
from pathlib import Path

from tests.lab import oci, pki, settings
from tests.lab.settings import API_PORT, KUBELET_PORT, OUTSIDE

FOLDER = "etc/kubernetes"

#: A file in a host: its mode, and its content or the file that has it. Paths have no leading slash.
HostFile = tuple[int, "bytes | Path"]

_CONTAINERD = f"""version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{oci.PAUSE}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
"""
# Enabled, so that a host that was rebooted comes back as a node; without its configuration (in the
# template, and in a host before it has joined) it does not start.
_UNIT = f"""[Unit]
Description=kubelet of the lab
Wants=containerd.service
After=containerd.service network-online.target
ConditionPathExists=/{FOLDER}/kubelet.json

[Service]
EnvironmentFile=/{FOLDER}/node.env
ExecStartPre=/usr/sbin/nft -f /{FOLDER}/service.nft
ExecStart=/usr/local/bin/labkube kubelet --config=/{FOLDER}/kubelet.json \\
  --kubeconfig=/{FOLDER}/kubelet.kubeconfig --hostname-override=${{NODE_NAME}} --node-ip=${{NODE_IP}} \\
  --housekeeping-interval=30s
Restart=always
RestartSec=1
KillMode=process

[Install]
WantedBy=multi-user.target
"""
#: There is no kube-proxy. The one service that pods need is the API server's.
_SERVICE = f"""table ip lab_service
flush table ip lab_service
table ip lab_service {{
  chain output {{
    type nat hook output priority -100;
    ip daddr {pki.SERVICE_ADDRESS} tcp dport 443 dnat to {OUTSIDE}:{API_PORT}
  }}
  chain prerouting {{
    type nat hook prerouting priority -100;
    ip daddr {pki.SERVICE_ADDRESS} tcp dport 443 dnat to {OUTSIDE}:{API_PORT}
  }}
}}
"""


def common_files(labkube: Path) -> dict[str, HostFile]:
    """The files that are the same on all hosts."""
    return {
        "usr/local/bin/labkube": (0o755, labkube),
        "etc/containerd/config.toml": (0o644, _CONTAINERD.encode()),
        "etc/systemd/system/kubelet.service": (0o644, _UNIT.encode()),
        "etc/modules-load.d/kubernetes.conf": (0o644, b"overlay\nbr_netfilter\n"),
        f"{FOLDER}/service.nft": (0o644, _SERVICE.encode()),
    }


def own_files(host: str) -> dict[str, HostFile]:
    """The files of one host: it is a node once it has them."""
    serving = pki.pair(host)
    server = f"https://{OUTSIDE}:{API_PORT}"
    names = f"NODE_NAME={host}\nNODE_IP={settings.inside_address(host)}\n"
    return {
        f"{FOLDER}/ca.crt": (0o644, pki.authority()),
        f"{FOLDER}/kubelet.crt": (0o644, serving.certificate),
        f"{FOLDER}/kubelet.key": (0o600, serving.key),
        f"{FOLDER}/kubelet.kubeconfig": (0o600, pki.kubeconfig(host, server).encode()),
        f"{FOLDER}/node.env": (0o644, names.encode()),
        "etc/cni/net.d/10-lab.conflist": (0o644, _json(_network(host))),
        f"{FOLDER}/kubelet.json": (0o644, _json(_kubelet())),
    }


def _network(host: str) -> dict[str, object]:
    """A bridge per host: pods that are not on the host's network reach out, not each other's hosts."""
    subnet = f"10.244.{settings.number(host)}.0/24"
    ranges = {
        "type": "host-local",
        "ranges": [[{"subnet": subnet}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "ipam": ranges}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "lab", "plugins": [bridge, ports]}


def _kubelet() -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "port": KUBELET_PORT,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"/{FOLDER}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"/{FOLDER}/kubelet.crt",
        "tlsPrivateKeyFile": f"/{FOLDER}/kubelet.key",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "systemd",
        "failSwapOn": False,
        "clusterDomain": "cluster.local",
        "clusterDNS": ["10.96.0.10"],
        "systemReserved": {"cpu": "50m", "memory": "128Mi"},
        "evictionHard": {"memory.available": "32Mi", "nodefs.available": "1%"},
        # An image that is removed cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        # Emulated processors are slow: nothing that looks around needlessly.
        "makeIPTablesUtilChains": False,
        "volumeStatsAggPeriod": "-1s",
        "serializeImagePulls": False,
        "maxPods": 50,
        # A thawed kubelet tells that it is there by its lease, a quarter of this later at most.
        "nodeLeaseDurationSeconds": 20,
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
