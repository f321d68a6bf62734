# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of an entry of the registry in settings.py: options of the user, and how a setting is read and written.

Everything here is a value; only io.py runs the commands and opens the files that these values name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

# Priorities, traffic classes and buffers of 802.1Q.
CLASSES = 8


class Reason(NamedTuple):
    """Why a setting cannot be set on a port, and what would help."""

    what: str
    cure: str


OF_PF = Reason("is a virtual function, and this is set for its PF", "set it on the hypervisor")
NO_RDMA = Reason("has no RDMA device", "bring it up first (role rdma_stack) and rerun the playbook")


class Step(NamedTuple):
    """One change: a command, or a value for a file; ``unchanged`` are statuses of a command that had nothing to do."""

    argv: tuple[str, ...] = ()
    path: str = ""
    value: str = ""
    unchanged: tuple[int, ...] = ()


class Device(NamedTuple):
    """Where the files of a port are: its network device, its RDMA device (None without one), sysfs."""

    netdev: str
    rdma: str | None
    sysfs: str = "/sys"


def _no_check(_value: Any) -> list[str]:
    return []


@dataclass(frozen=True)
class Option:
    """A key of the user: its argument spec, and a check of what the spec cannot express."""

    spec: Mapping[str, Any]
    check: Callable[[Any], list[str]] = _no_check


@dataclass(frozen=True)
class Limits:
    """Largest values by key, parsed from the output that also has the current ones, and the unit for messages."""

    parse: Callable[[str], dict[str, int]]
    unit: str


@dataclass(frozen=True)
class Program:
    """A program that shows and sets a setting.

    ``title`` names it in messages and ``feature`` what a port lacks for which it fails; ``drivers`` is the prefix of
    the drivers that it supports, and ``unchanged`` are statuses by which it reports that nothing had to change.
    ``parse`` may raise what reading text raises: see ``programs.parse``.
    """

    name: str
    read_argv: Callable[[str], list[str]]
    parse: Callable[[str], Any]
    set_argv: Callable[[str, Any], list[str]]
    title: str
    feature: str
    drivers: str = ""
    limits: Limits | None = None
    unchanged: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelFiles:
    """Files of the kernel that hold a setting.

    ``absent`` is what counts where a file does not exist: the Reason that refuses the setting, a value,
    or None where the setting is left out without a message.
    """

    paths: Callable[[Device], list[str]]
    parse: Callable[[Sequence[str]], Any]
    steps: Callable[[Device, Any], list[Step]]
    absent: Any = None
    needs_rdma: bool = False


# Programs are in order of preference: the first that supports the driver and is installed.
Source = Union[KernelFiles, tuple[Program, ...]]


@dataclass(frozen=True)
class Setting:
    """One setting of a NIC.

    ``options`` are the keys that it adds to those of the user. ``value`` computes it from all keys that are set, None
    when it is not requested; without it, the key of the same name is the value. ``labels`` are the keys that messages
    name when a port does not support it, ``excludes`` is the setting that a port turns off for this one. ``of_pf``: a
    VF does not have it.
    """

    name: str
    source: Source
    options: Mapping[str, Option]
    value: Callable[[Mapping[str, Any]], Any] | None = None
    labels: tuple[str, ...] = ()
    excludes: str = ""
    lost_at_boot: bool = True
    of_pf: bool = False

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs of the setting; none when it is in files of the kernel."""
        return self.source if isinstance(self.source, tuple) else ()

    @property
    def needs_rdma(self) -> bool:
        """Whether it exists on ports with an RDMA device only."""
        return isinstance(self.source, KernelFiles) and self.source.needs_rdma

    def requested(self, given: Mapping[str, Any]) -> Any:
        """Return its value from the keys of the user, None when it is not requested."""
        return self.value(given) if self.value else given.get(self.name)

    def steps(self, program: Program | None, device: Device, value: Any) -> list[Step]:
        """Return the steps that give it a value; ``program`` is the one of the port, None for files of the kernel."""
        if isinstance(self.source, KernelFiles):
            return self.source.steps(device, value)
        tool = program or self.source[-1]
        return [Step(tuple(tool.set_argv(device.netdev, value)), unchanged=tool.unchanged)]
