"""Faults that are there for a while, and the diagnosis that each must end in: at the lab's switch or inside a host."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.lab import settings
from tests.scenario import FABRIC, HOSTS, host, lab

# Kind, host and rail of a diagnosis, as tests.scenario.diagnosed has them; of a port that is not measured the kind is
# `unmeasured`.
Told = tuple[str, str | None, str | None]
# Rates of a rail whose ports all have one, and of a port at half of it. What emulated hosts reach without a limit is
# more, so the limit is what is measured.
RATE, HALF, LINK_SPEED = "16mbit", "8mbit", 0.016
# No floor: what a link must reach is computed from link_speed. Soft-RoCE on emulated processors fills three quarters of
# such a link and more.
TOLERANCE = 0.65
_WITHOUT_FLOOR = {key: value for key, value in FABRIC["thresholds"].items() if key != "floor"}
COMPUTED: Mapping[str, Any] = {
    "link_speed": LINK_SPEED,
    "thresholds": {**_WITHOUT_FLOOR, "tolerance": TOLERANCE},
    # Acknowledgements of larger messages take longer on such a port than the device waits before it sends again.
    "tests": {"size": 16384},
}
# A loop in a host that acts only while perftest runs, so that everything else takes as long as always.
_BESIDE = "while :; do if pgrep -x ib_write_bw >/dev/null; then {act}; else sleep 0.5; fi; done"
_HOGS, _HELD_SECONDS = 6, 20
_FREEZERS = "/sys/fs/cgroup/system.slice/gpufabric-tester*/cgroup.freeze"
_FROZEN = f"for f in {_FREEZERS}; do [ ! -e $f ] || echo {{value}} >$f; done"


@dataclass(frozen=True)
class Planted:
    """A fault: `plant` makes it for a while at a host and a rail, `told` is what a report must say of it.

    `fabric`: keys of the intent in a run with it. `mesh`: the mesh comes first, as it does by default; without it a run
    has one pass less.
    """

    plant: Callable[[str, int], AbstractContextManager[None]]
    told: Callable[[str, str], set[Told]]
    fabric: Mapping[str, Any] = field(default_factory=dict)
    mesh: bool = False


@contextmanager
def at_switch(kind: str, *place: str, value: str = "") -> Iterator[None]:
    """A fault of the lab: python3 -m tests.lab fault."""
    lab("fault", kind, *place, *([value] if value else []))
    try:
        yield
    finally:
        lab("heal", kind, *place)


@contextmanager
def in_host(name: str, begin: str, end: str) -> Iterator[None]:
    """A fault that one command in a host makes and another one takes away."""
    host(name).check_output(begin)
    try:
        yield
    finally:
        host(name).check_output(end)


@contextmanager
def flapping(name: str, rail: int) -> Iterator[None]:
    """A cable that goes off and on: three seconds each."""
    stop = threading.Event()

    def flap() -> None:
        while not stop.wait(3):
            lab("fault", "cable", name, str(rail))
            stop.wait(3)
            lab("heal", "cable", name, str(rail))

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def one_way(name: str, rail: int) -> AbstractContextManager[None]:
    """What others send to a port is lost, what it sends arrives."""
    return at_switch("oneway", name, str(rail))


def duplicate_address(name: str, rail: int) -> AbstractContextManager[None]:
    """A host has the address of another one, besides its own."""
    address = host(other(name)).check_output(f"ip -4 -o addr show rail{rail}").split()[3]
    return in_host(name, f"ip addr add {address} dev rail{rail}", f"ip addr del {address} dev rail{rail}")


def other(name: str) -> str:
    """The host whose address `name` has, too."""
    return HOSTS[(HOSTS.index(name) + 1) % len(HOSTS)]


def exchanged_cables(name: str, _rail: int) -> AbstractContextManager[None]:
    return at_switch("swapped", name)


@contextmanager
def half_rate(name: str, rail: int) -> Iterator[None]:
    """All ports of both rails are limited, one of them to half of that."""
    with ExitStack() as stack:
        for number in range(settings.RAILS):
            stack.enter_context(at_switch("slow", str(number), value=RATE))
        stack.enter_context(at_switch("slow", name, str(rail), value=HALF))
        yield


def load(name: str, _rail: int) -> AbstractContextManager[None]:
    """Programs that need the processor of a host as soon as it is measured."""
    hog = "timeout 2 sh -c 'while :; do :; done' &"
    return beside(name, "load", f"{hog * _HOGS} wait", "true")


def late(name: str, _rail: int) -> AbstractContextManager[None]:
    """The testers of a host stand still for longer than a slot, again and again."""
    on, off = (_FROZEN.format(value=value) for value in (1, 0))
    return beside(name, "late", f"{on}; sleep {_HELD_SECONDS}; {off}; sleep 1", off)


def beside(name: str, unit: str, act: str, after: str) -> AbstractContextManager[None]:
    loop = _BESIDE.format(act=act).replace("'", "'\\''")
    begin = f"systemd-run --quiet --collect --expand-environment=no --unit=planted-{unit} sh -c '{loop}'"
    return in_host(name, begin, f"systemctl stop planted-{unit}; {after}")


def missing_nic(name: str, rail: int) -> AbstractContextManager[None]:
    """A NIC that its driver does not find; afterwards the host has the rail again with all that belongs to it."""
    driver, pci = "/sys/bus/pci/drivers/igb", settings.pci_address(rail)
    active = f"rdma link show | grep 'netdev rail{rail}' | grep -q ACTIVE"
    back = f"for i in $(seq 120); do {active} && exit 0; sleep 0.5; done; exit 1"
    return in_host(name, f"echo {pci} >{driver}/unbind", f"echo {pci} >{driver}/bind; {back}")


def _port(name: str, rail: str) -> set[Told]:
    return {("port", name, rail)}


FAULTS: Mapping[str, Planted] = {
    "cable": Planted(lambda name, rail: at_switch("cable", name, str(rail)), _port),
    "slow port": Planted(lambda name, rail: at_switch("slow", name, str(rail), value="10mbit"), _port),
    "black hole of a port": Planted(
        lambda name, rail: at_switch("blackhole", name, str(rail)), lambda name, rail: {("mtu", name, rail)}
    ),
    "black hole of a rail": Planted(
        lambda _name, rail: at_switch("blackhole", str(rail)), lambda _name, rail: {("mtu", None, rail)}
    ),
    "one-way loss": Planted(one_way, _port, mesh=True),
    "duplicate address": Planted(duplicate_address, lambda name, rail: {("address", name, rail)}, mesh=True),
    "exchanged cables": Planted(
        exchanged_cables,
        lambda name, _rail: {("port", name, f"rail{number}") for number in range(settings.RAILS)},
        mesh=True,
    ),
    "flapping link": Planted(flapping, _port),
    "half rate": Planted(half_rate, _port, fabric=COMPUTED),
    "host under load": Planted(load, lambda name, _rail: {("host", name, None)}),
    "late host": Planted(late, lambda name, _rail: {("overload", name, None)}),
    "missing NIC": Planted(
        missing_nic, lambda name, rail: {("unmeasured", name, rail)}, fabric={"absent_hosts": "report"}
    ),
}
# Faults of one run: those of a group do not hide each other.
GROUPS: Sequence[tuple[str, ...]] = (
    ("cable", "slow port"),
    ("black hole of a port", "black hole of a rail"),
    ("one-way loss", "duplicate address"),
    ("exchanged cables",),
    ("late host",),
    ("half rate",),
    ("missing NIC", "host under load"),
    ("flapping link",),
)
