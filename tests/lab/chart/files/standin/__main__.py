# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``python3 -m standin``: run the stand-in until it is told to end."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path

from .api import Api
from .components import Settings
from .lease import DURATION, RENEW, Lease
from .operator import Operator
from .sriov_operator import SriovOperator

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def options() -> argparse.Namespace:
    """The command line; in the pod everything has its default or comes from the chart."""
    parser = argparse.ArgumentParser(description="Stand-in of the NVIDIA Network Operator, for tests only.")
    parser.add_argument("--server", required=True, help="https://host:port of the API server")
    parser.add_argument("--namespace", default="nvidia-network-operator")
    parser.add_argument("--ca", type=Path, default=ACCOUNT / "ca.crt")
    parser.add_argument("--token", type=Path, help="file with a token; default the service account's")
    parser.add_argument("--cert", type=Path, help="PEM file with client certificate and key, instead of a token")
    parser.add_argument("--crds", type=Path, required=True, help="folder with the CRDs of nv-ipam as JSON")
    parser.add_argument("--no-flap", action="store_true", help="bring all device plugins up at once")
    parser.add_argument("--rdma-plugin", default="", help="image with the real RDMA shared device plugin")
    parser.add_argument("--pace", type=float, default=1.0, help="what to multiply the times of the recordings by")
    parser.add_argument("--sriov-image", help="play the SR-IOV operator, too, with this image of its daemon")
    parser.add_argument("--sriov-prefix", default="nvidia.com", help="prefix of the resources of the SR-IOV operator")
    return parser.parse_args()


def main() -> int:
    """Lead, work, and give the lease back at the end."""
    asked = options()
    token = None if asked.cert else asked.token or ACCOUNT / "token"
    api = Api(asked.server, asked.ca, token, asked.cert)
    crds = tuple(json.loads(one.read_text()) for one in sorted(asked.crds.glob("*.json")))
    settings = Settings(asked.namespace, crds, not asked.no_flap, asked.rdma_plugin, asked.pace)
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    lease = Lease(api, asked.namespace, os.environ.get("POD_NAME") or socket.gethostname())
    print("This is a stand-in of the tests, not the NVIDIA Network Operator.", flush=True)
    lease.acquire()
    Operator(api, settings).start()
    if asked.sriov_image:
        SriovOperator(api, settings, asked.sriov_image, asked.sriov_prefix).start()
    print("leading and working", flush=True)
    missed = 0
    while not done.wait(RENEW):
        missed = 0 if lease.renew() else missed + RENEW
        if missed >= DURATION:
            print("the lease was lost", file=sys.stderr)
            return 1
    lease.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
