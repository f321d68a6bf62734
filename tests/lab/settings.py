# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, addresses, ports and folders of the lab.

There is one lab per user and machine, because its ports are fixed: inventories/lab names them.
"""

from __future__ import annotations

import os
from pathlib import Path

HOSTS = ("lab-1", "lab-2", "lab-3")
RAILS = 2

SSH_PORT = 20022
KUBELET_PORT = 20250
API_PORT = 26443
ETCD_PORT = 22379
ETCD_PEER_PORT = 22380

#: The outer machine as the hosts see it, through the management network.
OUTSIDE = "10.0.2.2"

REPO = Path(__file__).resolve().parents[2]
#: What the inventory and the user need to reach the lab; ignored by git.
ACCESS = REPO / ".lab"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpufabric-lab"
#: Sockets, logs, disks and state of the running lab.
RUN = CACHE / "run"

SNAPSHOT = "ready"
MEMORY_MIB = 2048
#: Of a host. Where three hosts share two real processors, emulating two in each costs a seventh more time.
CPUS = 1


def number(host: str) -> int:
    """The place of a host in HOSTS, from 1."""
    return HOSTS.index(host) + 1


def address(host: str) -> str:
    """The loopback address that stands for this host on the outer machine."""
    return f"127.0.0.1{number(host)}"


def inside_address(host: str) -> str:
    """The host's own address in its management network."""
    return f"10.0.2.1{number(host)}"


def mac(host: str, nic: int) -> str:
    """A fixed, locally administered MAC: nic 0 is management, 1 and up are rails."""
    return f"52:54:00:1a:{number(host):02x}:{nic:02x}"


def rail_mac(host: str, rail: int) -> str:
    """The MAC of a rail, counted from 0."""
    return mac(host, rail + 1)


def pci_address(rail: int) -> str:
    """Where a rail's NIC sits in every host: behind its own root port, bus 1 and up."""
    return f"0000:{rail + 1:02x}:00.0"
