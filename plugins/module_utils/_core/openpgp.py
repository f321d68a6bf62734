# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fingerprint of an OpenPGP public key, computed from its text (RFC 4880 and 9580). Pure.

No program is needed for it, so a key can be checked before anything of it is on the host, in check mode too.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

from .errors import InputError

_ARMOR = re.compile(
    r"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(?:[^\n]*:[^\n]*\n)*\s*\n(?P<body>[A-Za-z0-9+/=\s]+?)"
    r"(?:\n=[A-Za-z0-9+/]{4})?\s*-----END PGP PUBLIC KEY BLOCK-----"
)
_FINGERPRINT = re.compile(r"[0-9A-F]{40}")
_PUBLIC_KEY = 6
_NO_KEY = "the package key is no ASCII-armoured OpenPGP public key; export it with 'gpg --armor --export'"


def check_key(text: str, fingerprint: str) -> None:
    """Make sure that ``text`` holds one public key, with this fingerprint; InputError otherwise.

    A short key id would not do: others can make keys that have it.
    """
    wanted = re.sub(r"[\s:]", "", fingerprint).upper()
    if not _FINGERPRINT.fullmatch(wanted):
        raise InputError(
            f"'{fingerprint}' is not the full fingerprint of a key; expected 40 hexadecimal digits, as "
            "'gpg --show-keys' prints them; correct rdma_stack_doca_fingerprint"
        )
    found = fingerprints(text)
    if found != [wanted]:
        raise InputError(
            f"the package key has the fingerprint {' and '.join(found)}, expected {wanted} alone; nothing was changed. "
            "Ask the vendor which one is right, then correct rdma_stack_doca_key or rdma_stack_doca_fingerprint"
        )


def fingerprints(text: str) -> list[str]:
    """Return the fingerprints of the primary keys in an armoured text; InputError when it holds none."""
    match = _ARMOR.search(text)
    try:
        data = base64.b64decode(re.sub(r"\s", "", match.group("body")), validate=True) if match else b""
        found = [_fingerprint(body) for tag, body in _packets(data) if tag == _PUBLIC_KEY]
    except (binascii.Error, IndexError, ValueError) as error:
        raise InputError(_NO_KEY) from error
    if not found:
        raise InputError(_NO_KEY)
    return found


def _fingerprint(body: bytes) -> str:
    if body[0] != 4:
        raise ValueError("not a version 4 key")
    # SHA-1 is what a version 4 fingerprint is; the packages' signatures do not rest on it.
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False).hexdigest().upper()


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and body of each packet."""
    place = 0
    while place < len(data):
        head = data[place]
        if not head & 0x80:
            raise ValueError("not a packet")
        tag, sizes, length = _new(data, place) if head & 0x40 else _old(data, place)
        start = place + 1 + sizes
        if start + length > len(data):
            raise ValueError("a packet is cut off")
        yield tag, data[start : start + length]
        place = start + length


def _old(data: bytes, place: int) -> tuple[int, int, int]:
    """Return tag, number of length bytes and length of a packet with a header of the old form."""
    size = 1 << (data[place] & 3)
    if size == 8:
        raise ValueError("a key of unknown length")
    return (data[place] >> 2) & 15, size, int.from_bytes(data[place + 1 : place + 1 + size], "big")


def _new(data: bytes, place: int) -> tuple[int, int, int]:
    """The same for a header of the new form."""
    tag, first = data[place] & 63, data[place + 1]
    if first < 192:
        return tag, 1, first
    if first < 224:
        return tag, 2, ((first - 192) << 8) + data[place + 2] + 192
    if first == 255:
        return tag, 5, int.from_bytes(data[place + 2 : place + 6], "big")
    raise ValueError("a packet in parts")
