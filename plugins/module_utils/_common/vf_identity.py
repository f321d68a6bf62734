# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity that a virtual function (VF) gets from its port (PF): the host sets it, and the plan lists it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from .errors import InputError

# The last byte of a VF's MAC address is its index.
MAX_VFS = 256
_LOCAL, _MULTICAST = 0x02, 0x01


def vf_mac(pf_mac: str, index: int) -> str:
    """Return the MAC address of a VF: locally administered, the same for the same PF and index.

    It holds the last three bytes of the PF's address and the index, so no two VFs of PFs with one vendor prefix
    collide. The rest is a digest of that prefix, which parts the vendors. InputError without a proper MAC.
    """
    octets = _octets(pf_mac, 6, "MAC address")
    _check(index)
    digest = hashlib.sha256(bytes(octets[:3])).digest()
    first = (digest[0] | _LOCAL) & ~_MULTICAST
    return _text([first, digest[1], *octets[3:], index])


def vf_guid(pf_guid: str, index: int) -> str:
    """Return the node and port GUID of a VF, local as ``vf_mac`` is; one GUID serves both, a VF has one port.

    Of the PF's GUID the vendor prefix and the last three bytes stay; the two bytes between, constant within a
    vendor, are folded into one and give way to the index. InputError without a proper GUID.
    """
    octets = _octets(pf_guid.replace(":", ""), 8, "GUID")
    _check(index)
    return _text([octets[0] | _LOCAL, octets[1], octets[2], index, octets[3] ^ octets[4], *octets[5:]])


def _octets(text: str, count: int, what: str) -> list[int]:
    try:
        octets = list(bytes.fromhex(text.replace(":", "")))
    except ValueError:
        octets = []
    if len(octets) != count or not any(octets):
        raise InputError(f"'{text}' is not a {what}; the identities of VFs are derived from their PF's")
    return octets


def _check(index: int) -> None:
    if not 0 <= index < MAX_VFS:
        raise InputError(f"VF {index} cannot have an identity; expected an index from 0 to {MAX_VFS - 1}")


def _text(octets: Iterable[int]) -> str:
    return ":".join(f"{octet:02x}" for octet in octets)
