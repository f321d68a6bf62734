# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of hosts as ``tests.groups`` gives them: named in the inventory, or where to take them from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._common.reader import Reader, describe

IBNETDISCOVER = "ibnetdiscover"
# Where groups come from -> the key that goes with it.
SOURCES: Mapping[str, str] = {
    "inventory_groups": "names",
    "node_label": "label",
    "lldp": "",
    "file": "path",
    IBNETDISCOVER: "path",
}


KEY = "rdma_fabric.tests.groups"


Groups = dict[str, list[str]]


def read_groups(reader: Reader) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return ``tests.groups``: group -> hosts (the leaves of a tree), or {from, and the key that goes with it}.

    Also return group -> the groups that it is in, the largest first, where there are such.
    """
    found = reader.mapping("groups")
    if isinstance(found.get("from"), str):
        return _source(reader.section("groups")), {}
    leaves = _leaves(reader, "groups", found)
    return {name: list(hosts) for name, (hosts, _up) in leaves.items()}, {n: up for n, (_h, up) in leaves.items() if up}


def _source(reader: Reader) -> dict[str, Any]:
    where = reader.text("from", None, choices=tuple(SOURCES))
    if where is None:
        return {}
    key = SOURCES[where]
    source: dict[str, Any] = {"from": where}
    if key:
        source[key] = list(reader.texts(key)) if key == "names" else reader.text(key, None)
        if not source[key]:
            reader.refuse(key, f"missing; from: {where} needs it")
    if key == "path" and source["path"] and not source["path"].startswith("/"):
        example = "{{ inventory_dir }}/topology.conf"
        reader.refuse(key, f'expected a whole path such as {example}, found "{source["path"]}"')
    reader.close()
    return source


def _leaves(reader: Reader, path: str, found: Mapping[Any, Any]) -> dict[str, tuple[list[str], list[str]]]:
    """Return the leaves of a tree of groups: name to its hosts, and to the groups that it is in."""
    groups: dict[str, tuple[list[str], list[str]]] = {}
    for name, value in found.items():
        own = f"{path}.{name}"
        if isinstance(value, Mapping):
            inner = _leaves(reader, own, value)
            # Switches of two branches may have one name.
            for key, (hosts, parents) in inner.items():
                groups[key if key not in groups else f"{name}.{key}"] = (hosts, [str(name), *parents])
        elif isinstance(value, (list, tuple)) and all(isinstance(host, str) for host in value):
            groups[str(name)] = (list(value), [])
        else:
            reader.refuse(own, f"expected a list of hosts, or a dict of smaller groups, found {describe(value)}")
    return groups


def topology_file(tests: Any) -> str:
    """Return the path of the file that ``tests`` take groups from, "" when they take none."""
    used = isinstance(tests, Mapping) and (tests.get("mode") == "topology" or tests.get("oversubscription"))
    groups = tests.get("groups") if used else None
    path = groups.get("path") if isinstance(groups, Mapping) and SOURCES.get(str(groups.get("from"))) == "path" else ""
    return path if isinstance(path, str) else ""
