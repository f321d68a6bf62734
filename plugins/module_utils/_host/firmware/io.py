# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask and set the firmware settings of NICs by mlxconfig or mstconfig, whichever is there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..._common.errors import CommandError
from ..system import command, files
from ..system.files import Roots, read_text
from . import mlxconfig
from .plan import NO_TOOL, TOOLS, Card, FirmwarePlan, Have

# A query of some parameters takes a second or two; a card whose semaphore is held answers late.
TIMEOUT = 120


class Tool(NamedTuple):
    """A program, and whether it can write JSON."""

    path: str
    json: bool


def installed() -> str | None:
    """Return the path of the tool, None when there is none."""
    return next((found for found in map(command.find, TOOLS) if found), None)


def find_tool() -> Tool:
    """Return the tool; CommandError when there is none."""
    path = installed()
    if path is None:
        raise CommandError(NO_TOOL)
    said = command.run([path, "--help"], check=False)
    return Tool(path, "--json_format" in said.stdout + said.stderr)


def read(tool: Tool, cards: Iterable[Card]) -> dict[str, Have]:
    """Return PCI address -> settings and unknown names of the cards, as far as they are wanted."""
    return {card.pci: _read(tool, card.pci, list(card.want)) for card in cards}


def apply(tool: Tool, pci: str, values: Mapping[str, str]) -> bool:
    """Set values for the next boot; return whether the tool says that only a power cycle loads them."""
    words = [f"{name}={value}" for name, value in values.items()]
    done = command.run([tool.path, "-y", "-d", pci, "set", *words], timeout=TIMEOUT)
    return "power cycle" in done.stdout


def describe(roots: Roots, card: Card, plan: FirmwarePlan) -> dict[str, Any]:
    """Return what a card is and has; the board id (PSID) is in its firmware images too."""
    found = (read_text(f"{roots.sysfs}/class/infiniband/{name}/board_id") for name in card.rdma)
    psid = next((one for one in found if one), None)
    return {"pci": card.pci, "firmware": card.firmware, "psid": psid, "settings": plan.shown(card.pci)}


def _read(tool: Tool, pci: str, names: list[str]) -> Have:
    """Ask for the wanted names only: a query of all takes long. The tool names one unknown parameter at a time."""
    unknown: list[str] = []
    while names:
        result, text = _query(tool, pci, names)
        if result.rc == 0:
            return Have(mlxconfig.parse_query(text), tuple(unknown))
        said = result.stdout + result.stderr
        refused = mlxconfig.unknown_parameter(said)
        lost = [name for name in names if refused in (name, name.partition("[")[0])]
        if not lost:
            words = " ".join(said.split())[:300] or "nothing"
            raise CommandError(f"{tool.path} could not read {pci} (status {result.rc}): {words}")
        unknown += lost
        names = [name for name in names if name not in lost]
    return Have({}, tuple(unknown))


def _query(tool: Tool, pci: str, names: list[str]) -> tuple[command.Result, str]:
    argv = [tool.path, "-e", "-d", pci, "query", *names]
    if not tool.json:
        result = command.run(argv, timeout=TIMEOUT, check=False)
        return result, result.stdout
    with tempfile.TemporaryDirectory(prefix="gpufabric-") as folder:
        path = os.path.join(folder, "query.json")
        result = command.run([tool.path, "-j", path, *argv[1:]], timeout=TIMEOUT, check=False)
        return result, files.read(path) or ""
