# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When ports are not chosen automatically: servers differ, too little is known, or rails that exist would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..._common.errors import InputError
from ..._common.fold import fold
from ..._common.reader import MOST, and_more, some
from ..intent.intent import Intent
from .hosts import Host
from .select import Port, ServerClass, recorded_rail

CHOOSE = "choose the rails by PCI address (rdma_fabric.rails[].pci, or rdma_host.rails for one host)"


def check_classes(intent: Intent, classes: Sequence[ServerClass], unknown: Sequence[Host]) -> None:
    """Refuse to choose ports where identical servers differ, or where too few of them are known to tell."""
    problems = [problem for own in classes for problem in own.problems]
    if problems:
        raise InputError(
            f"rails cannot be chosen automatically: {some(problems)}. Identical servers must have the same ports free. "
            f"Free these ports, or {CHOOSE}"
        )
    if intent.rail_count is not None or not unknown:
        return
    new = [own for own in classes if not own.configured]
    doubtful = sorted({f"{pci} {own.left_out[pci]} on {own.title}" for own in new for pci in own.used})
    if not doubtful and any(not host.absent for host in unknown):
        doubtful = [f"{own.title} has no rails yet" for own in new]
    if doubtful:
        others = fold([host.name for host in unknown])
        raise InputError(
            f"rails cannot be chosen automatically: {some(doubtful)}, and facts of {others} are missing: they may use "
            f"the same ports for other traffic. Run without --limit, set rdma_fabric.rail_count, or {CHOOSE}"
        )


def check_lost_cards(classes: Sequence[ServerClass]) -> None:
    """Refuse a class that would be another one with a lost card, and whose rails would be other ports for that.

    Only cards that can carry rails count.
    """
    cards = [
        {(port["pci"], port["vendor"], port["device"]) for port in own.hosts[0].ports if port["pci"] in own.cards}
        for own in classes
    ]
    problems = []
    for own, few in zip(classes, cards):
        for other, many in zip(classes, cards):
            if few < many and len(own.candidates) == len(other.candidates) and own.candidates != other.candidates:
                lost = ", ".join(sorted(pci for pci, _vendor, _device in many - few))
                problems.append(f"{own.title} has no port at {lost}, otherwise it is identical to {other.title}")
    if problems:
        raise InputError(
            f"rails cannot be chosen automatically: {some(problems)}. Their rails would be different ports. Repair the "
            f"host, or {CHOOSE}"
        )


def check_kept(
    intent: Intent,
    classes: Iterable[ServerClass],
    names: Sequence[str],
    *,
    ports: Mapping[str, Sequence[Port | None]],
    missing: Mapping[str, Mapping[str, Sequence[str]]],
) -> None:
    """Refuse a rail that would be another port than the one that this collection configured, unless it is named.

    ``missing``: host -> rail without a port there -> the PCI addresses that it may have.
    """
    listed = {rail.name for rail in intent.rails if rail.pci}
    problems: dict[str, list[str]] = {}
    for own in classes:
        for host in own.hosts:
            chosen = {*listed, *host.rails}
            given = {pci: name for name, pcis in missing.get(host.name, {}).items() for pci in pcis}
            given.update({port["pci"]: name for name, port in zip(names, ports[host.name]) if port})
            for pci, rail, what in _recorded(host, given):
                now = given.get(pci, "")
                if now != rail and not chosen & {rail, now}:
                    text = f"{pci} {what} and would be {now or _why_none(own, pci)}"
                    problems.setdefault(text, []).append(host.name)
    if problems:
        raise InputError(f"rails that are configured would change. {folded(problems)}. Repair the host, or {CHOOSE}")


def _recorded(host: Host, given: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the ports that are rails already, also those that are not there any more, with what says so.

    ``given`` maps the ports that are chosen now to their rails.
    """
    known = {port["pci"]: recorded_rail(port) for port in host.ports if recorded_rail(port)}
    gone = {pci: rail for rail, pci in (host.facts or {})["lost_rails"].items()}
    yield from ((pci, rail, f"was configured as {rail}") for pci, rail in {**known, **gone}.items())
    # A first preparation names the ports of a host, and configures them after a reboot.
    for port in host.ports:
        if port["pci"] in given and port["pci"] not in known and port["netdev"] in given.values():
            yield port["pci"], port["netdev"], f"is named {port['netdev']}"


def _why_none(own: ServerClass, pci: str) -> str:
    known = {port["pci"] for port in own.hosts[0].ports}
    return f"no rail: {own.left_out.get(pci, 'it is not selected')}" if pci in known else "no rail: the port is missing"


def folded(problems: Mapping[str, Sequence[str]]) -> str:
    """Return texts with the hosts that each one is about."""
    shown = [f"{fold(hosts)}: {text}" for text, hosts in list(problems.items())[:MOST]]
    return "; ".join(shown) + and_more(list(problems))
