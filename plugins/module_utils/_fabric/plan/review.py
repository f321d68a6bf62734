# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as a table for people: which ports of each class of identical servers are rails, and why others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.fold import fold, fold_addresses
from ..intent.intent import Intent
from .gpu_affinity import CLASSES, path_class
from .rails import RailMap
from .select import Port, ServerClass, foreign_uses, ports_at, shared, supported_rate, together

_HEAD = ("rail", "PCI address", "interface", "max speed", "driver", "nearest GPU", "address")
# More GPUs than these are as near as each other only where none is near.
_MOST_GPUS = 2


def table(intent: Intent, rails: RailMap, hosts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of the table, a few for each class; ``hosts`` are those of the plan."""
    lines: list[str] = []
    for own in rails.classes:
        lines += _class_lines(intent, own, rails, hosts=hosts)
    known = {host.name for own in rails.classes for host in own.hosts}
    unknown = [name for name in hosts if name not in known]
    return [*lines, *([f"No facts of {fold(unknown)}"] if unknown else [])]


def differences(rails: RailMap) -> Iterator[str]:
    """Yield in what the rails of one class differ, though they should not, and whether their rates are unknown."""
    for own in rails.classes:
        ports = _rail_ports(own, rails)
        if all(supported_rate(found.values()) is None for found in ports.values()):
            yield f"no driver reports the rates that the rails of {own.title} support, so the ports were not compared"
        found = {
            "supported rate": {name: _rate(found.values()) for name, found in ports.items()},
            "driver": {name: shared(_drivers(found)) for name, found in ports.items()},
            "model": {name: _model(found) for name, found in ports.items()},
        }
        for what, values in found.items():
            by_value: dict[str, list[str]] = {}
            for name, value in values.items():
                by_value.setdefault(value, []).append(name)
            if len(by_value) > 1:
                told = "; ".join(f"{value} on {fold(names)}" for value, names in by_value.items())
                yield f"the rails of {own.title} differ in their {what}: {told}. Check that these ports are meant"


def _rail_ports(own: ServerClass, rails: RailMap) -> dict[str, dict[str, Port]]:
    """Return rail -> host -> port; ``rdma_host.rails`` can give hosts of one class different ports."""
    found = {
        name: {host.name: port for host in own.hosts if (port := rails.ports[host.name][index])}
        for index, name in enumerate(rails.names)
    }
    return {name: ports for name, ports in found.items() if ports}


def _class_lines(
    intent: Intent, own: ServerClass, rails: RailMap, *, hosts: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    count = len(own.hosts)
    yield f"{own.title}: {count} identical hosts" if count > 1 else f"{own.title}: 1 host of its kind"
    ports = _rail_ports(own, rails)
    rows: list[Sequence[str]] = [_HEAD]
    for name, found in ports.items():
        own_rails = [rail for host in found for rail in hosts[host]["rails"] if rail["rail"] == name]
        addresses = [own["address"] or "-" for own in own_rails]
        addresses += [own["ipv6"]["address"] or "-" for own in own_rails if "ipv6" in own]
        rows.append((name, *_columns(found), _gpus(own, list(found.values())[0]), fold_addresses(addresses)))
    yield from _aligned(rows)
    yield from _missing(own, rails)
    for name, found in ports.items():
        uses = {host: foreign_uses(port, intent.rail_networks) for host, port in found.items()}
        used = {host: texts for host, texts in uses.items() if texts}
        if used:
            yield f"  {name} {together(used)} on {fold(list(used))}"
    chosen = {port["pci"] for found in ports.values() for port in found.values()}
    rest = {port["pci"]: ports_at(own.hosts, port["pci"]) for port in own.hosts[0].ports if port["pci"] not in chosen}
    if rest:
        yield "  not rails:"
        reasons = {pci: own.left_out.get(pci, "not named in rdma_fabric.rails") for pci in rest}
        yield from _aligned([(*_columns(found), reasons[pci]) for pci, found in rest.items()])


def _missing(own: ServerClass, rails: RailMap) -> Iterator[str]:
    for name in rails.names:
        lacking = [host.name for host in own.hosts if name in rails.missing.get(host.name, {})]
        if lacking:
            yield f"  {name} has no port on {fold(lacking)}"


def _columns(ports: Mapping[str, Port]) -> tuple[str, str, str, str]:
    """Return what identifies a port: address, interface, rate and driver."""
    pcis, names = [port["pci"] for port in ports.values()], [port["netdev"] or "-" for port in ports.values()]
    return _usual(pcis), _usual(names), _rate(ports.values()), _usual(list(_drivers(ports).values()))


def _usual(values: Sequence[str]) -> str:
    """Return the most frequent value, and how many others there are."""
    value, count = Counter(values).most_common(1)[0]
    return value if count == len(values) else f"{value} ({len(values) - count} other)"


def _rate(ports: Any) -> str:
    rate = supported_rate(ports)
    return "unknown" if rate is None else f"{rate:g} Gb/s"


def _drivers(ports: Mapping[str, Port]) -> dict[str, str]:
    return {host: port["driver"] or "none" for host, port in ports.items()}


def _model(ports: Mapping[str, Port]) -> str:
    return shared({host: f"{port['vendor']}:{port['device']}" for host, port in ports.items()})


def _gpus(own: ServerClass, port: Port) -> str:
    """Return the GPUs nearest to a port, as on the first host of the class."""
    near: dict[str, list[str]] = {}
    for gpu in (own.hosts[0].facts or {}).get("gpus", ()):
        near.setdefault(path_class(port, gpu), []).append(gpu["pci"])
    best = min(near, key=CLASSES.index, default=None)
    if best is None:
        return "-"
    found = near[best]
    return f"{', '.join(found) if len(found) <= _MOST_GPUS else f'{len(found)} GPUs'} {best}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with columns of equal width; the last column is as it is."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
