"""What can be wrong with a fabric, and what of a transfer it slows down.

Faults of hardware and paths are permanent, by flow (a queue pair is hit for its whole life), or by time (bursts of
seconds). Faults of hosts hit their testers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .fabric import Tree, mixed

#: By flow and by time: of single ports, of all that is behind a switch, of paths.
PLACES = ("host", "port", "send", "receive", "rail", "leaf", "uplinks", "uplink", "spine")
#: Of hosts and NICs: no fault of the fabric.
CONDITIONS = ("overloaded", "late", "throttled", "thermal")
ALWAYS, FLOW, TIME = "always", "flow", "time"
_SPAN = 1 << 32
_WARM = 60.0


@dataclass(frozen=True)
class Fault:
    """One bad thing.

    ``kind``: one of PLACES or CONDITIONS. ``host``: its number. ``group``: the leaf of an uplink, or the block of a
    spine; ``index``: which of its uplinks, or spines. ``share``: of flows, of seconds, or of rounds that are hit.
    ``factor``: what is left of the rate; 0 is nothing. ``hangs``: a test that is hit runs out of time.
    ``counter``: what grows at the host, or at the receiver, when it is hit.
    """

    kind: str
    rail: str | None = None
    host: int | None = None
    group: int | None = None
    index: int | None = None
    share: float = 1.0
    by: str = ALWAYS
    factor: float = 0.5
    burst: float = 4.0
    counter: str = ""
    hangs: bool = False
    salt: int = field(default=0, compare=False)

    def touches(self, tree: Tree, sender: int, receiver: int, rail: str) -> bool:
        """Whether a transfer may need what is bad; of one path of several, flows() tells."""
        if self.rail is not None and rail != self.rail:
            return False
        if self.kind in ("host", "port", "thermal", "throttled", "overloaded"):
            return self.host in (sender, receiver)
        if self.kind in ("send", "receive"):
            return self.host == (sender if self.kind == "send" else receiver)
        if self.kind == "leaf":
            return self.group in (tree.group(sender), tree.group(receiver))
        if self.kind in ("uplink", "uplinks"):
            return (tree.group(sender) == self.group) != (tree.group(receiver) == self.group)
        if self.kind == "spine":
            blocks = (tree.group(sender, 1), tree.group(receiver, 1))
            return self.group in blocks and tree.climb(sender, receiver) > 0
        return self.kind == "rail"

    def slowed(
        self, tree: Tree, ends: tuple[int, int], ports: Sequence[int], *, begin: float, duration: float
    ) -> float:
        """The share of a transfer that is hit. ``ports``: the UDP source port of each queue pair."""
        if self.by == TIME:
            hit = self._seconds(begin, duration)
            return hit * len(self._through(tree, ends, ports)) / len(ports) if hit else 0.0
        flows = self._through(tree, ends, ports)
        if self.by == FLOW:
            # So that this share of transfers is hit, whatever the number of queue pairs.
            each = 1 - (1 - self.share) ** (1 / len(ports))
            flows = [port for port in flows if mixed(port * 8191 + self.salt, ends[0] * 4099 + ends[1]) < each * _SPAN]
        return len(flows) / len(ports)

    def _through(self, tree: Tree, ends: tuple[int, int], ports: Sequence[int]) -> Sequence[int]:
        if self.kind not in ("uplink", "spine"):
            return ports
        return [port for port in ports if tree.choice(*ends, port, 0) == self.index]

    def _seconds(self, begin: float, duration: float) -> float:
        """The share of the seconds of a transfer that bursts cover."""
        if self.kind == "thermal":
            # The NIC is hot after a minute of load and cools down while it waits.
            return 1.0 if begin >= _WARM and self._on(begin, 4 * self.burst) else 0.0
        seconds = range(int(duration))
        return sum(self._on(begin + second, self.burst) for second in seconds) / len(seconds)

    def on(self, at: float) -> bool:
        """Whether a burst lasts at a time."""
        return self._on(at, self.burst)

    def _on(self, at: float, burst: float) -> bool:
        return mixed(int(at // burst), self.salt) < self.share * _SPAN
