# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a port or a host, where the reasons of its failures show more than which one it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Patterns in reasons (mesh.py, counters.py) and the remedy; {host}: the host that is named. The first that fits counts.
_REMEDIES = (
    (r"{host} \S+: its link leads to the network of .*: exchanged cables of ", "exchange these two cables"),
    (
        r"{host} \S+: its link leads to the network of ",
        "check to which switch port its cable leads, and the VLAN there",
    ),
    (
        r"is answered by \S+, which is not a port of this run",
        "look for this MAC address in the tables of the switch, and remove the IP address from that device",
    ),
    (r"frames from \S+ do not arrive at {host},", "check its receiving side: cable, transceiver and switch port"),
    (r"frames from {host} do not arrive at ", "check its sending side: cable, transceiver and switch port"),
    (r"{host} \S+: the link went down", "check its cable, transceiver and switch port"),
    (r"at {host}: [^;]*cpu_percent_of_others", "stop the other programs of the host, and validate again"),
)
# Share of the failures whose reasons must show it.
_MOST = 2 / 3


def remedy(host: str, reasons: Sequence[str], usual: str) -> str:
    """Return what to do about ``host`` or a port of it, by what most ``reasons`` show; ``usual`` without it."""
    for pattern, told in _REMEDIES:
        shown = re.compile(pattern.replace("{host}", re.escape(host)))
        if sum(bool(shown.search(reason)) for reason in reasons) >= max(1, _MOST * len(reasons)):
            return told
    return usual
