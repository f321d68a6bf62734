# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the kernel about a network device as the program ethtool does, which hosts need not have."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

from . import link_modes

_SIOCETHTOOL = 0x8946
# struct ifreq: the name, then a pointer in a union of 24 bytes.
_IFREQ = struct.Struct("16sP16x")


def link_settings(netdev: str) -> bytes | None:
    """Return the kernel's answer to ETHTOOL_GLINKSETTINGS; None where the driver has none."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            size = link_modes.words(_ask(asker, netdev, link_modes.request()))
            return _ask(asker, netdev, link_modes.request(size)) if size else None
    except OSError:
        return None


def _ask(asker: socket.socket, netdev: str, question: bytes) -> bytes:
    buffer = array.array("B", question)
    fcntl.ioctl(asker, _SIOCETHTOOL, _IFREQ.pack(netdev.encode(), buffer.buffer_info()[0]))
    return buffer.tobytes()
