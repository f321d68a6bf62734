# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the switch at each InfiniBand port of a host who it is, with ``smpquery`` of infiniband-diags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..._common.errors import CommandError
from ..system import command
from ..system.files import names, read_text

SECONDS = 3


def read(rdma: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return netdev -> what smpquery prints of the node at the other end of its cable; {} without smpquery.

    ``rdma``: the raw RDMA devices by name.
    """
    found: dict[str, list[str]] = {}
    for name, raw in sorted(rdma.items()) if command.find("smpquery") else ():
        function = os.path.dirname(os.path.dirname(raw["realpath"]))
        active = raw["link_layer"] == "InfiniBand" and "ACTIVE" in (raw["state"] or "")
        # A virtual function has no cable of its own.
        if not active or os.path.exists(f"{function}/physfn"):
            continue
        asked = ["smpquery", "-C", name, "-P", "1", "-D"]
        try:
            texts = [command.run([*asked, what, "0,1"], timeout=SECONDS).stdout for what in ("nodeinfo", "nodedesc")]
        except CommandError:
            # Without access to management datagrams, or an answer, the other ports would only cost time.
            break
        # A device of mlx4 has two ports, and only the first was asked.
        first = [one for one in names(f"{function}/net") if read_text(f"{function}/net/{one}/dev_port") in (None, "0")]
        found.update(dict.fromkeys(first, texts))
    return found
