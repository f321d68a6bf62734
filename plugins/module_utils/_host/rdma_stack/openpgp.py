# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One OpenPGP public key in ASCII armor: its fingerprint, and the text to install (RFC 4880 and 9580). Pure.

No program is needed for it, so a key is checked before anything of it is on the host, also in check mode. What is
installed is written anew from the bytes that were checked (``armored``), never the text that was given: a reader with
other rules could find a second key in that. docs/decisions/0017-one-reader-of-package-keys.md.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

from ..._common.errors import InputError

_BEGIN, _END = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
_HEADER = re.compile(r"[A-Za-z][A-Za-z-]{0,30}: ?[^\x00-\x1f]{0,200}")
_CHECKSUM = re.compile(r"=[A-Za-z0-9+/]{4}")
_FINGERPRINT = re.compile(r"[0-9A-F]{40}")
# Keys of vendors have a few KB; with many signatures some dozens.
MAX_BYTES = 256 * 1024
_LINE = 64
_PUBLIC_KEY = 6
# What a transferable public key consists of: signatures, the key, trust, user ids, subkeys, user attributes.
_PARTS = frozenset((2, _PUBLIC_KEY, 12, 13, 14, 17))
_NO_KEY = (
    "The package key is not exactly one ASCII-armored OpenPGP public key. Remove all text outside of the key block, "
    "or export the key with 'gpg --armor --export FINGERPRINT'."
)


def check_key(text: str, fingerprint: str) -> None:
    """Make sure that ``text`` holds one public key, with this fingerprint; InputError otherwise.

    A short key id would not do: others can make keys that have it.
    """
    expected = re.sub(r"[\s:]", "", fingerprint).upper()
    if not _FINGERPRINT.fullmatch(expected):
        raise InputError(
            f"'{fingerprint}' is not the full fingerprint of a key; expected 40 hexadecimal digits, as "
            "'gpg --show-keys' prints them; correct doca.fingerprint"
        )
    found = fingerprints(text)
    if found != [expected]:
        raise InputError(
            f"The package key has the fingerprint {' and '.join(found)}, expected {expected} alone. Nothing was "
            "changed. Ask the vendor which one is right, then correct doca.key or doca.fingerprint."
        )


def fingerprints(text: str) -> list[str]:
    """Return the fingerprints of the primary keys in an armored text; InputError when it is not one block of keys."""
    try:
        packets = list(_packets(_decode(text)))
        found = [_fingerprint(body) for tag, body in packets if tag == _PUBLIC_KEY]
    except (binascii.Error, IndexError, ValueError) as error:
        raise InputError(_NO_KEY) from error
    if not found or not {tag for tag, _body in packets} <= _PARTS:
        raise InputError(_NO_KEY)
    return found


def armored(text: str) -> str:
    """Return the text to install: the bytes of the one block in ``text``, armored anew. InputError as above."""
    fingerprints(text)
    data = _decode(text)
    body = base64.b64encode(data).decode()
    rows = [body[start : start + _LINE] for start in range(0, len(body), _LINE)]
    # rpm does not read a key without this checksum.
    check = base64.b64encode(_crc24(data).to_bytes(3, "big")).decode()
    return "\n".join([_BEGIN, "", *rows, f"={check}", _END]) + "\n"


def _decode(text: str) -> bytes:
    """Return the bytes of the only block; ValueError where there is anything but white space outside of it."""
    if len(text) > MAX_BYTES:
        raise ValueError("too long for a key")
    lines = [line.strip() for line in text.strip().split("\n")]
    if len(lines) < 3 or lines[0] != _BEGIN or lines[-1] != _END:
        raise ValueError("not one block")
    inner = lines[1:-1]
    blank = inner.index("")
    if not all(_HEADER.fullmatch(line) for line in inner[:blank]):
        raise ValueError("not a header of an armor")
    body = [line for line in inner[blank + 1 :] if line]
    if body and _CHECKSUM.fullmatch(body[-1]):
        body.pop()
    return base64.b64decode("".join(body), validate=True)


def _crc24(data: bytes) -> int:
    """The checksum of an armor, RFC 4880 section 6.1."""
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _bit in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)
    return crc & 0xFFFFFF


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
