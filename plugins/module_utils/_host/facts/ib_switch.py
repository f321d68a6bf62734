# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""To which switch port an InfiniBand port is connected, by ``smpquery`` of infiniband-diags. It may be missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .lldp import Neighbour

# Long enough for every name in use, short enough for the facts of a host.
_LONGEST = 64
_FIELD = re.compile(r"([A-Z][A-Za-z ]{1,40}):\.{0,60}(.*)")
_GUID = re.compile(r"0x[0-9a-f]{16}")


def parse(raw: Mapping[str, Sequence[str]]) -> dict[str, Neighbour]:
    """Return netdev -> neighbour from the output of ``smpquery nodeinfo`` and ``smpquery nodedesc`` for each.

    Text in another form, and the port of another host, says nothing.
    """
    found = {}
    for netdev, texts in raw.items():
        matches = (_FIELD.fullmatch(line.strip()) for text in texts for line in text.splitlines())
        fields = {match[1]: match[2].strip() for match in matches if match}
        guid, port = fields.get("Guid", ""), fields.get("LocalPort", "")
        if fields.get("NodeType") == "Switch" and _GUID.fullmatch(guid) and port.isdigit():
            name = fields.get("Node Description", "")[:_LONGEST]
            found[netdev] = Neighbour(name if name.isprintable() else "", guid, port[:5])
    return found
