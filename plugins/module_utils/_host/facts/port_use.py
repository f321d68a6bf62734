# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a network port: addresses, routes, mounts, stacked devices, TCP connections, queue pairs. Pure.

The network namespace of the host is visible, and so are all queue pairs while namespaces share the RDMA devices (the
default of the kernel). Not visible are TCP connections of pods in namespaces of their own, and routes outside the main
table. What cannot be read is a use of the kind ``unknown``, which counts as busy.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..._common.host_facts import HIDDEN_QUEUE_PAIRS, IN_KERNEL, ON_VFS, Use
from ..system import json_text
from .devices import Port
from .network import Interface, Network, is_local, parse_ipv6_routes, stacked_on
from .tcp import EXAMPLES, Connections

# Kind of a device that has the port as a member; all others (bridge, openvswitch, vrf) are bridges here.
_BONDS = ("bond", "team")
_TITLES = {"vlan": "VLAN", "openvswitch": "Open vSwitch"}
_MAX_USES = 12
_MAX_HOLDERS = 4
_NETWORK_MOUNTS = (
    "nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "9p", "afs", "fuse.glusterfs", "fuse.sshfs",
)  # fmt: skip
_SERVER_OPTIONS = ("addr", "mon_addr", "ip")
_IPV4 = re.compile(r"(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
# Connections of storage in the kernel; other queue pairs without a program are the kernel's own for each port.
_CONNECTED = ("RC", "UC", "XRC_INI", "XRC_TGT")
_IPOIB = "ib_ipoib"
_PAIRS = ("queue pair", "queue pairs")
# How a mount is called that is a block device.
NVME = "NVMe-oF controller"


HIDDEN_CONNECTIONS = Use("unknown", "TCP connections that cannot be read (/proc/net/tcp)")


class Mount(NamedTuple):
    """A mounted network file system or a block device over a network, and the address of a server of it."""

    title: str
    server: str


@dataclasses.dataclass(frozen=True)
class Activity:
    """What runs over the network of a host; None where it cannot be read.

    ``routes`` are (netdev, network), ``ways`` maps servers of mounts to the netdevs that lead there, ``connections``
    maps local addresses, ``queue_pairs`` maps RDMA devices to the holder of each queue pair.
    """

    routes: tuple[tuple[str, Network], ...] = ()
    mounts: tuple[Mount, ...] | None = ()
    ways: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    connections: Mapping[str, Connections] | None = dataclasses.field(default_factory=dict)
    queue_pairs: Mapping[str, tuple[str, ...]] | None = dataclasses.field(default_factory=dict)

    @classmethod
    def from_raw(
        cls, raw: Mapping[str, Any], routes: Iterable[tuple[str, Network]], interfaces: Iterable[Interface]
    ) -> Activity:
        """Build it from what ``_host.sysfs.read_raw`` returns."""
        text = raw["mounts"]
        mounts = None if text is None else (*parse_mounts(text), *nvme_mounts(raw["nvme"]))
        ipv4 = [(netdev, net) for netdev, net in routes if not is_local(net)]
        known = (*ipv4, *parse_ipv6_routes(raw["ipv6_route"], learned=True))
        connected = [(one.name, ipaddress.ip_interface(item).network) for one in interfaces for item in one.addresses]
        return cls(
            routes=(*ipv4, *parse_ipv6_routes(raw["ipv6_route"], learned=False)),
            mounts=mounts,
            ways={server: ways(server, (*known, *connected)) for server in {mount.server for mount in mounts or ()}},
            connections=raw["tcp"],
            queue_pairs=parse_queue_pairs(raw["queue_pairs"]),
        )


def uses(
    port: Port,
    interfaces: Collection[Interface],
    activity: Activity,
    *,
    own: Collection[str] = (),
    vlans: Collection[str] = (),
) -> list[Use]:
    """Return all uses of a port; those of a rail of this collection are none.

    ``own``: its addresses, and networks of its routes; ``vlans``: its interfaces.
    """
    found = _queue_pair_uses(port, activity)
    if port.netdev is None:
        return found
    uppers = stacked_on(interfaces, port.netdev.name)
    names = (port.netdev.name, *(upper.name for upper in uppers))
    addresses = [*port.netdev.addresses, *(address for upper in uppers for address in upper.addresses)]
    found = [
        *_stacked_uses(port, [upper for upper in uppers if upper.name not in vlans]),
        *(_address_use(address, interfaces) for address in addresses if address not in own),
        *_route_uses(names, [*addresses, *own], activity),
        *mount_uses(names, activity),
        *_tcp_uses(addresses, activity),
        *found,
    ]
    left = len(found) - _MAX_USES
    return found if left <= 0 else [*found[:_MAX_USES], Use("unknown", f"{left} more uses")]


def _address_use(address: str, interfaces: Iterable[Interface]) -> Use:
    """Return the use of an address; one that the network gave by itself is of the kind ``dynamic``."""
    is_dynamic = any(address in one.dynamic for one in interfaces)
    return Use("dynamic" if is_dynamic else "address", f"address {address}")


def _stacked_uses(port: Port, uppers: Iterable[Interface]) -> list[Use]:
    link = port.netdev
    found = []
    named = set()
    for upper in uppers:
        named.add(upper.name)
        title = f"{_TITLES.get(upper.kind, upper.kind) or 'virtual device'} {upper.name}"
        found.append(Use("vlan" if upper.lower else "bond" if upper.kind in _BONDS else "bridge", title))
    if link and link.master and link.master not in named:
        found.append(Use("bridge", f"master device {link.master}"))
    return found


def _route_uses(names: Collection[str], addresses: Iterable[str], activity: Activity) -> list[Use]:
    connected = {ipaddress.ip_interface(address).network for address in addresses}
    routes = [net for name, net in activity.routes if name in names and net not in connected]
    found = []
    if any(net.prefixlen == 0 for net in routes):
        found.append(Use("route", "the default route"))
    others = [str(net) for net in routes if net.prefixlen]
    if others:
        found.append(Use("route", _folded(others, "route", "routes", link="to ")))
    return found


def mount_uses(names: Collection[str], activity: Activity) -> list[Use]:
    """Return the mounts over network devices, by their names."""
    if activity.mounts is None:
        return [Use("unknown", "mounts that cannot be read")]
    return [
        Use("mount", f"{mount.title} from {mount.server}")
        for mount in activity.mounts
        if not activity.ways.get(mount.server, frozenset()).isdisjoint(names)
    ]


def ways(server: str, networks: Iterable[tuple[str, Network]]) -> frozenset[str]:
    """Return the netdevs that lead to an address: all with the longest prefix, whatever their metric."""
    address = ipaddress.ip_address(server)
    found = [(net.prefixlen, name) for name, net in networks if address.version == net.version and address in net]
    longest = max((length for length, _name in found), default=0)
    return frozenset(name for length, name in found if length == longest)


def _tcp_uses(addresses: Iterable[str], activity: Activity) -> list[Use]:
    if activity.connections is None:
        return [HIDDEN_CONNECTIONS]
    local = [address.split("/")[0] for address in addresses]
    known = [activity.connections[address] for address in local if address in activity.connections]
    count = sum(one.count for one in known)
    if not count:
        return []
    examples = [example for one in known for example in one.examples][:EXAMPLES]
    return [Use("tcp", f"{count} TCP connection{'s' if count > 1 else ''}, e.g. {', '.join(examples)}")]


def _queue_pair_uses(port: Port, activity: Activity) -> list[Use]:
    if not port.rdma:
        return []
    if activity.queue_pairs is None:
        return [HIDDEN_QUEUE_PAIRS]
    holders = [holder for device in port.rdma for holder in activity.queue_pairs.get(device, ())]
    kernel = [holder for holder in holders if holder.startswith(IN_KERNEL)]
    parts = (kernel, [holder for holder in holders if holder not in kernel])
    return [Use("queue_pairs", f"{len(own)} RDMA {_PAIRS[len(own) > 1]} of {listed(own)}") for own in parts if own]


def vf_uses(activity: Activity, devices: Collection[str]) -> list[Use]:
    """Return the queue pairs on RDMA devices of VFs: all but the known ``devices`` of ports."""
    pairs = activity.queue_pairs or {}
    holders = {holder for device in pairs if device not in devices for holder in pairs[device]}
    return [Use("queue_pairs", f"{ON_VFS} of {listed(holders)}")] if holders else []


def listed(names: Iterable[str]) -> str:
    """Return the names of holders, of which the first ones stand for many."""
    known = sorted(set(names))
    return ", ".join(known[:_MAX_HOLDERS]) + (", ..." if len(known) > _MAX_HOLDERS else "")


def _folded(items: list[str], one: str, many: str, *, link: str) -> str:
    if len(items) == 1:
        return f"{one} {link}{items[0]}"
    return f"{len(items)} {many}, e.g. {link}{', '.join(items[:EXAMPLES])}"


def parse_mounts(text: str) -> list[Mount]:
    """Parse /proc/mounts: network file systems whose servers are named by address.

    Others keep TCP connections or queue pairs, which are seen as such.
    """
    found = []
    for fields in (line.split() for line in text.splitlines()):
        if len(fields) < 4 or fields[2] not in _NETWORK_MOUNTS:
            continue
        options = dict(option.partition("=")[::2] for option in fields[3].split(","))
        texts = [fields[0], *(options[key] for key in _SERVER_OPTIONS if key in options)]
        servers = dict.fromkeys(address for one in texts for address in _addresses(one))
        target = fields[1].replace("\\040", " ")
        found += [Mount(f"{fields[2]} mount {target}", server) for server in servers]
    return found


def nvme_mounts(controllers: Mapping[str, str | None]) -> list[Mount]:
    """Return NVMe controllers over fabrics; ``controllers`` maps names to /sys/class/nvme/NAME/address."""
    found = []
    for name, address in controllers.items():
        fields = dict(field.partition("=")[::2] for field in (address or "").split(","))
        servers = dict.fromkeys(_addresses(fields.get("traddr", "")))
        found += [Mount(f"{NVME} {name}", server) for server in servers]
    return found


def _addresses(text: str) -> list[str]:
    found = []
    for word in [text, *_IPV4.findall(text)]:
        try:
            found.append(str(ipaddress.ip_address(word)))
        except ValueError:
            continue
    return found


def parse_queue_pairs(text: str | None) -> dict[str, tuple[str, ...]] | None:
    """Parse ``rdma -j resource show qp`` into the holders of each device's queue pairs; None when it cannot be read."""
    found: dict[str, list[str]] = {}
    try:
        for pair in json_text.loads(text or ""):
            holder = _holder(pair)
            if holder:
                found.setdefault(str(pair.get("ifname", "?")), []).append(holder)
    except (ValueError, TypeError, AttributeError):
        return None
    return {device: tuple(holders) for device, holders in found.items()}


def _holder(pair: Mapping[str, Any]) -> str:
    if "pid" in pair:
        return f"{pair.get('comm', '?')}[{pair['pid']}]"
    module = str(pair.get("comm", "")).strip("[]")
    connected = pair.get("type") in _CONNECTED and module != _IPOIB
    return f"{IN_KERNEL} {module or '?'}" if connected else ""
