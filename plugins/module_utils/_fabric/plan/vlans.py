# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VLAN of each rail: its interface on the hosts has the address, and is the master of the networks of pods."""

from __future__ import annotations

from collections.abc import Sequence

from ..._common.reader import raise_problems
from ..intent.intent import Intent
from ..operator.profiles import registry

# The kernel's limit for names of network devices.
_LONGEST = 15


def netdev(name: str, number: int) -> str:
    """Return the name of the interface that has the address of a rail, whose port is called ``name``."""
    return f"{name}.{number}" if number else name


def checked(intent: Intent, names: Sequence[str], netdevs: Sequence[str]) -> tuple[str, ...]:
    """Return ``netdevs``; raise one InputError with all VLANs that cannot be. ``names`` are those of the rails."""
    own = [(name, port, number) for name, port in zip(names, netdevs) if (number := intent.vlan_of(name))]
    problems = [
        f"rdma_fabric.vlan: {netdev(port, number)}, the name of the VLAN interface of {name}, is longer than {_LONGEST}"
        " characters. Shorten the name of the rail"
        for name, port, number in own
        if len(netdev(port, number)) > _LONGEST
    ]
    if own and "vlan" not in registry.get(intent.profile).own_sections:
        problems.append(
            f"rdma_fabric.rails: pods of profile {intent.profile} do not use a VLAN interface of the host. Remove vlan"
        )
    if own and intent.addresses != "plan":
        problems.append(
            "rdma_fabric.addresses: a VLAN interface has an address of the plan, but addresses is keep. Remove one"
        )
    raise_problems(problems)
    return tuple(netdevs)
