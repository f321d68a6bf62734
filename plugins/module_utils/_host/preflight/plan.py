# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host can be prepared: all problems at once, before anything changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..._common.errors import ConflictError, InputError
from ..._common.host_facts import HIDDEN_QUEUE_PAIRS, UNREAD_QUEUE_PAIRS
from ..._common.units import version_numbers
from ..facts import disruption
from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail, rail_link
from ..links import network_managers
from ..naming import plan as naming_plan
from ..naming.model import Wish, kinds
from . import guest
from .checks import Consent, Finding, Own, find, space

# Operating system -> oldest version.
SYSTEMS: Mapping[str, tuple[int, ...]] = {
    "debian": (12,),
    "ubuntu": (22, 4),
    "rhel": (9,),
    "rocky": (9,),
    "almalinux": (9,),
    "ol": (9,),
    "centos": (9,),
    "fedora": (40,),
    "sles": (15, 4),
}
OLDEST_KERNEL = (5, 14)
# What of a port is to change, in a message about its users.
_CHANGE = re.compile(r": [^:;]*(?= would disturb its users)")
# Uses of a port that show another purpose than a rail; jobs on a rail have queue pairs and TCP connections.
_OTHER_PURPOSES = ("address", "route", "mount", "bridge", "vlan", "bond")


class Findings(NamedTuple):
    """Problems stop the run; warnings are for people to read."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def check(inventory: HostInventory, rails: Iterable[Rail], own: Own, *, consent: Consent) -> Findings:
    """Judge a host against its slice of the plan."""
    rails = tuple(rails)
    inventory = inventory.through_bonds({rail.pci: rail.bond for rail in rails if rail.bond})
    ports = inventory.by_pci
    known = [(rail, ports[rail.pci]) for rail in rails if rail.pci in ports]
    named = [rail for rail, port in known if port.netdev and not rail.bond]
    moves = any(port.netdev and port.netdev.name != rail.netdev for rail, port in known)
    found = [
        *find(inventory, [(rail.name, port) for rail, port in known], own, consent=consent),
        *space(own, moves or consent.unsigned),
        *guest.find(inventory, known),
    ]
    problems = [
        *_system_problems(inventory),
        *_manager_problems(inventory, own, consent),
        *_perftest_problems(inventory, consent.installs),
        *(problem for rail in rails for problem in _rail_problems(inventory, rail)),
        *(problem for rail, port in known for problem in rail.doubts(port.netdev)),
        *_name_problems(inventory, named, own, consent=consent),
        *_busy_problems(inventory, rails, consent.busy),
        *(finding.text for finding in found if finding.stops),
    ]
    warnings = [text for rail, port in known for text in (*_link_warnings(rail, port), *_uses(inventory, rail, port))]
    warnings += _unread(inventory, [port for _rail, port in known], problems)
    return Findings(tuple(problems), (*warnings, *(finding.text for finding in found if not finding.stops)))


def joined(findings: Findings, refusals: Iterable[Finding]) -> Findings:
    """Return the findings and what the roles will refuse; what is known already is not repeated."""
    problems, warnings = list(findings.problems), list(findings.warnings)
    for refusal in refusals:
        if not _is_known(refusal.text, problems):
            (problems if refusal.stops else warnings).append(refusal.text)
    return Findings(tuple(problems), tuple(warnings))


def _is_known(text: str, problems: Iterable[str]) -> bool:
    """Whether each part of a message of a role is in a problem; roles name the change that disturbs in another way."""
    known = [_CHANGE.sub(": ", problem) for problem in problems]
    parts = _CHANGE.sub(": ", text.partition(": ")[2]).split("; ")
    return all(any(part in problem for problem in known) for part in parts)


def _system_problems(inventory: HostInventory) -> list[str]:
    system, version = inventory.os["id"], inventory.os["version"]
    oldest = SYSTEMS.get(system)
    problems = []
    if oldest is None:
        problems.append(
            f"operating system '{inventory.os['name'] or system or 'unknown'}' is not supported. Supported are "
            f"{', '.join(sorted(SYSTEMS))}"
        )
    elif version_numbers(version) < oldest:
        found = f"{inventory.os['name'] or system} does not report a version"
        if version:
            found = f"{system} {version} is too old"
        problems.append(f"{found}; expected {'.'.join(map(str, oldest))} or newer")
    if version_numbers(inventory.kernel_release)[:2] < OLDEST_KERNEL:
        problems.append(
            f"kernel {inventory.kernel_release} is too old; expected {'.'.join(map(str, OLDEST_KERNEL))} or newer"
        )
    return problems


def _manager_problems(inventory: HostInventory, own: Own, consent: Consent) -> list[str]:
    try:
        network_managers.choose(inventory, consent.manager, own.netplan)
    except InputError as error:
        return [str(error)]
    return []


def _perftest_problems(inventory: HostInventory, installs: bool) -> list[str]:
    if inventory.perftest or installs:
        return []
    return ["perftest (ib_write_bw) is not installed. Install it, or set installs_packages: true"]


def _rail_problems(inventory: HostInventory, rail: Rail) -> list[str]:
    try:
        rail_link(inventory, rail)
    except (InputError, ConflictError) as error:
        return [f"rail {rail.name}: {error}"]
    return []


def _name_problems(inventory: HostInventory, rails: Iterable[Rail], own: Own, *, consent: Consent) -> list[str]:
    wish = Wish(tuple(rails), kinds(consent.names_vfs, consent.names_representors), now=False)
    try:
        return naming_plan.conflicts(inventory, own.functions, wish, names=wish.names(own.functions), files=own.names)
    except InputError as error:
        return [str(error)]


def _busy_problems(inventory: HostInventory, rails: Iterable[Rail], allowed: bool) -> list[str]:
    moving = {rail.pci: f"a change of rail {rail.name}" for rail in rails if _would_change(inventory, rail)}
    try:
        disruption.check(inventory, moving, allowed)
    except ConflictError as error:
        return [str(error)]
    return []


def _unread(inventory: HostInventory, ports: Iterable[Port], problems: Iterable[str]) -> list[str]:
    """Return a warning where nothing shows whether jobs use the rails, unless a problem already states that."""
    unknown = inventory.activity.queue_pairs is None and any(port.rdma for port in ports)
    stated = any(HIDDEN_QUEUE_PAIRS.text in problem for problem in problems)
    return [UNREAD_QUEUE_PAIRS] if unknown and not stated else []


def _would_change(inventory: HostInventory, rail: Rail) -> bool:
    link = next((port.netdev for port in inventory.ports if port.pci == rail.pci), None)
    if link is None:
        return False
    has_address = all(address in link.addresses for address in rail.addresses)
    return link.name != rail.netdev or link.mtu != rail.mtu or not has_address


def _link_warnings(rail: Rail, port: Port) -> list[str]:
    warnings = []
    pcie = port.pcie
    if port.netdev and port.netdev.carrier is False:
        warnings.append(f"rail {rail.name}: {port.title} has no carrier. {guest.no_carrier(port)}")
    if pcie.width and pcie.max_width and pcie.width < pcie.max_width:
        warnings.append(
            f"rail {rail.name}: {port.title} has a PCIe link width of x{pcie.width}, expected x{pcie.max_width}. "
            "Check the slot"
        )
    if pcie.speed and pcie.max_speed and pcie.speed < pcie.max_speed:
        warnings.append(
            f"rail {rail.name}: {port.title} has a PCIe link speed of {pcie.speed:g} GT/s, expected "
            f"{pcie.max_speed:g}. Check the slot"
        )
    return warnings


def _uses(inventory: HostInventory, rail: Rail, port: Port) -> list[str]:
    """Return what a rail's port serves beside the rail; naming the port is consent, so it does not stop the run."""
    if _rail_problems(inventory, rail):
        return []
    # Without a planned address the rail keeps those that it has.
    own = [f"address {text}" for text in rail.addresses or _addresses(port)]
    found = [use.text for use in inventory.uses(port) if use.kind in _OTHER_PURPOSES and use.text not in own]
    told = ", ".join(found)
    text = (
        f"rail {rail.name}: {port.title} is also used for other purposes: {told}. Check that this port is the "
        "intended one"
    )
    return [text] if found else []


def _addresses(port: Port) -> tuple[str, ...]:
    return port.netdev.addresses if port.netdev else ()
