# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts hang on one leaf switch or are one block, from a topology file as topograph and Slurm write it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.errors import ParseError
from ..._common.reader import describe

Groups = dict[str, list[str]]
# More names than any cluster has: a slip such as n[1-999999999] must not fill the memory.
_MOST_NAMES = 200_000
_PAIR = re.compile(r"(\w+)=(\S*)")
_SPLIT = re.compile(r",(?![^\[]*\])")
_RANGES = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def parse_conf(text: str) -> Groups:
    """Return leaf switch or block -> nodes of a ``topology.conf`` (its man page: plugins tree and block).

    Switches above the leaves have no nodes of their own and are left out. ParseError names the line.
    """
    groups: Groups = {}
    lines = re.sub(r"\\\n", " ", text).splitlines()
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        pairs = [_PAIR.fullmatch(word) for word in words]
        keys = {pair[1].lower(): pair[2] for pair in pairs if pair}
        name = keys.get("switchname") or keys.get("blockname")
        if words and (None in pairs or not (name or "blocksizes" in keys)):
            found = line.strip()[:80]
            raise ParseError(f'line {number}: expected SwitchName=, BlockName= or BlockSizes=, found "{found}"')
        if name and keys.get("nodes"):
            groups.setdefault(name, []).extend(expand(keys["nodes"]))
    return _some(groups)


def parse_data(data: Any) -> Groups:
    """Return leaf switch or block -> nodes of a ``topology.yaml`` of Slurm, or of the JSON of topograph's engine graph.

    Of several topologies the cluster's default one counts, or else the first with switches or blocks.
    """
    if isinstance(data, Mapping) and isinstance(data.get("instances"), list):
        return _some(_instances(data["instances"]))
    if not isinstance(data, list):
        raise ParseError(f"expected a list of topologies or a dict with instances, found {describe(data)}")
    known = [item for item in data if isinstance(item, Mapping) and ("tree" in item or "block" in item)]
    known.sort(key=lambda item: not (item.get("cluster_default") or item.get("clusterDefault")))
    if not known:
        raise ParseError("no topology with a tree or with blocks is in it")
    groups: Groups = {}
    for name, nodes in _members(known[0]):
        groups.setdefault(name, []).extend(expand(nodes))
    return _some(groups)


def _members(topology: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    where, plural, key = ("tree", "switches", "switch") if "tree" in topology else ("block", "blocks", "block")
    part = topology[where]
    rows = part.get(plural) if isinstance(part, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get(key) and row.get("nodes"):
            yield str(row[key]), str(row["nodes"])


def _instances(instances: Sequence[Any]) -> Groups:
    """The lowest layer of each instance comes first."""
    groups: Groups = {}
    for item in instances:
        layers = item.get("network_layers") if isinstance(item, Mapping) else None
        if isinstance(layers, list) and layers and item.get("id"):
            groups.setdefault(str(layers[0]), []).append(str(item["id"]))
    return groups


def _some(groups: Groups) -> Groups:
    if not groups:
        raise ParseError("no switch and no block in it has nodes")
    return groups


def expand(text: str) -> list[str]:
    """Return the names of a hostlist: ``gpu[1-3,7],login`` gives gpu1, gpu2, gpu3, gpu7, login; zeros in front stay.

    ParseError for brackets that hold something else than numbers and ranges.
    """
    names: list[str] = []
    for part in filter(None, _SPLIT.split(text)):
        pieces = _RANGES.split(part)
        if any(bracket in piece for piece in pieces for bracket in "[]"):
            raise ParseError(f'"{part}" is not a list of names such as gpu[1-3,7]')
        # Texts and contents of brackets take turns.
        choices = [_numbers(piece, part) if at % 2 else [piece] for at, piece in enumerate(pieces)]
        if len(names) + math.prod(map(len, choices)) > _MOST_NAMES:
            raise ParseError(f'"{part}" is more than {_MOST_NAMES} names')
        names += ("".join(chosen) for chosen in itertools.product(*choices))
    return names


def _numbers(text: str, whole: str) -> list[str]:
    numbers: list[str] = []
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        if not match:
            raise ParseError(f'"{whole}" is not a list of names such as gpu[1-3,7]')
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first >= _MOST_NAMES:
            raise ParseError(f'"{whole}" is more than {_MOST_NAMES} names')
        numbers += (f"{number:0{len(match[1])}d}" for number in range(first, last + 1))
    return numbers
