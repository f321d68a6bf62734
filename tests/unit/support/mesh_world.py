"""A fabric of ports on networks, and what testers print there of the contacts of a mesh (tester.sh).

It knows frames, ARP and two kinds of hosts, and nothing of how contacts are judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.unit.support import tester_logs

Port = tuple[str, str]


@dataclass
class World:
    """``network``: by port the name of its network, by default that of its rail; "" is a cut cable.

    ``ignore``: hosts answer ARP on the port of the address only. ``mtu``: by network the largest packet.
    ``deaf``: ports that receive nothing. ``routes``: ports without a route. ``answers``: address to a MAC address that
    also answers for it. ``filtered``: hosts do not answer ping and TCP. ``rdma``: ports whose RDMA traffic is lost.
    ``programs``: of which hosts have which; by default all have both. ``routed``: all hosts have a router between them.
    ``stale``: in the first pass all hosts still have the entries of neighbors of a time without faults.
    """

    hosts: Sequence[str]
    rails: Sequence[str]
    network: dict[Port, str] = field(default_factory=dict)
    ignore: bool = True
    mtu: dict[str, int] = field(default_factory=dict)
    deaf: set[Port] = field(default_factory=set)
    unrouted: set[Port] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)
    filtered: bool = False
    rdma: set[Port] = field(default_factory=set)
    programs: dict[str, Sequence[str]] = field(default_factory=dict)
    routed: bool = False
    stale: bool = False

    def address(self, port: Port) -> str:
        return f"10.{self.rails.index(port[1])}.0.{self.hosts.index(port[0]) + 1}"

    def mac(self, port: Port) -> str:
        return f"02:00:00:00:{self.rails.index(port[1]):02x}:{self.hosts.index(port[0]) + 1:02x}"

    def on(self, port: Port) -> str:
        return self.network.get(port, port[1])

    def hears(self, one: Port, other: Port) -> bool:
        """Whether frames of a port arrive at another one."""
        return bool(self.on(one)) and self.on(one) == self.on(other) and other not in self.deaf

    def resolve(self, port: Port, peer: Port) -> str:
        """The MAC address that a port learns for the address of another one: none without an answer."""
        candidates = [peer] if self.ignore else [peer, *((peer[0], rail) for rail in self.rails)]
        for one in candidates:
            if self.hears(port, one) and self.hears(one, port):
                return self.answers.get(self.address(peer), self.mac(one))
        return "none"

    def learned(self, port: Port, peer: Port, number: int) -> str:
        """Who is asked learns the MAC address of who asks, also when the answer is lost."""
        if self.stale and number == 1 and port[1] == peer[1]:
            return self.mac(peer)
        if self.routed:
            return "-"
        found = self.resolve(port, peer)
        return self.mac(peer) if found == "none" and self.hears(peer, port) else found

    def ping(self, port: Port, peer: Port, size: int) -> str:
        if port in self.unrouted:
            looked_up = "RTNETLINK answers: Network is unreachable\n" if size > 84 else ""
            return f"rc=1\n{looked_up}3 packets transmitted, 0 received, 100% packet loss, time 407ms"
        well = (
            self.resolve(port, peer) != "none"
            and self.resolve(peer, port) != "none"
            and size <= self.mtu.get(self.on(port), 9000)
            and not self.filtered
            and peer not in self.unrouted
        )
        return f"rc={0 if well else 1}\n3 packets transmitted, {3 if well else 0} received, 0% packet loss, time 400ms"

    def connect(self, role: str, port: Port, peer: Port, mtu: int) -> str:
        small = self.ping(port, peer, 84).startswith("rc=0") and self.ping(peer, port, 84).startswith("rc=0")
        if not small:
            return "rc=124" if role == "server" else f"rc=1\nCouldn't connect to {self.address(peer)}:18500"
        own = self.resolve(port, peer) == self.mac(peer) and self.resolve(peer, port) == self.mac(port)
        if own and mtu + 60 <= self.mtu.get(self.on(port), 9000) and not {port, peer} & self.rdma:
            return "rc=0\n163840 bytes in 0.00 seconds = 3000.51 Mbit/sec\n20 iters in 0.00 seconds = 21.84 usec/iter"
        return "rc=124" if role == "server" else "rc=1\nFailed status transport retry counter exceeded (12) for wr_id 2"

    def text(self, port: Port, line: Sequence[str], number: int) -> str:
        """What a tester prints of a line of its schedule in pass ``number``."""
        role, peer, size, mtu = line[2], self.port_of(line[3]), int(line[7]), int(line[9])
        programs = self.programs.get(port[0], ("ping", "pingpong"))
        told = [f"mesh mac={self.mac(port)} neighbour={self.learned(port, peer, number)}"]
        if "ping" not in programs:
            told = [f"mesh mac={self.mac(port)} neighbour=-", f"ping size={size} rc=125"]
            told.append("gpufabric: ping of iputils is not installed")
        else:
            large = self.ping(port, peer, size)
            told.append(f"ping size={size} {large}")
            if not large.startswith("rc=0") and role != "probe":
                told.append(f"ping size=84 {self.ping(port, peer, 84)}")
        if role != "probe" and "pingpong" not in programs:
            told += ["connect rc=125", "gpufabric: ibv_rc_pingpong is not installed"]
        elif role != "probe":
            told.append(f"connect {self.connect(role, port, peer, mtu)}")
        return "\n".join(told)

    def port_of(self, address: str) -> Port:
        parts = address.split(".")
        return self.hosts[int(parts[3]) - 1], self.rails[int(parts[1])]

    def logs(self, number: int, lines: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """The logs of pass ``number`` by host."""
        found = {}
        for host, own in lines.items():
            frames = (
                tester_logs.frame(line, 0, self.text((host, line.split()[1]), line.split(), number))
                for line in own
                if not line.startswith("END")
            )
            found[host] = tester_logs.log(number, own, frames)
        return found

    def described(self, host: str) -> str:
        rails = [
            f'{rail} device=mlx5_{at} port=1 netdev={rail} gid=3 gid_type="RoCE v2" '
            f'address={self.address((host, rail))} mtu=4096 rate="100 Gb/sec (4X EDR)" numa=0 cpus=0'
            for at, rail in enumerate(self.rails)
        ]
        return tester_logs.described(rails, f"memlock=unlimited perftest=6.24 control=192.0.2.1 machine_id={host}")
