"""Identities of VFs: derived from their port, the same over releases, without collisions."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.vf_identity import MAX_VFS, vf_guid, vf_mac

INDEX = st.integers(0, MAX_VFS - 1)
TAIL = st.binary(min_size=3, max_size=3)
# Vendor prefixes of MAC addresses and GUIDs: universally administered, for one station.
PREFIX = st.binary(min_size=3, max_size=3).map(lambda b: bytes([b[0] & 0xFC]) + b[1:])


def mac(octets: bytes) -> str:
    return octets.hex(":")


@given(PREFIX, st.lists(st.tuples(TAIL, INDEX), unique=True, max_size=50))
def test_vfs_of_one_vendor_never_collide(prefix: bytes, vfs: list[tuple[bytes, int]]) -> None:
    pfs = [(prefix + tail, index) for tail, index in vfs if any(prefix + tail)]
    macs = [vf_mac(mac(pf), index) for pf, index in pfs]
    guids = [vf_guid(mac(pf[:3] + b"\x03\x00" + pf[3:]), index) for pf, index in pfs]
    assert len(set(macs)) == len(set(guids)) == len(pfs)


@given(PREFIX, TAIL, INDEX)
def test_identities_are_local_unicast_and_always_the_same(prefix: bytes, tail: bytes, index: int) -> None:
    pf = prefix + b"\x01" + tail[1:]
    derived = vf_mac(mac(pf), index)
    assert int(derived[:2], 16) & 0x03 == 0x02
    assert derived == vf_mac(mac(pf).upper(), index) != mac(pf)
    guid = vf_guid(mac(pf + b"\x01\x02"), index)
    assert int(guid[:2], 16) & 0x02 and guid == vf_guid(mac(pf + b"\x01\x02"), index)


def test_vendors_are_parted() -> None:
    # Most are of one maker of NICs; the last three bytes are equal.
    prefixes = ("b83fd2", "946dae", "a088c2", "08c0eb", "1c34da", "0c42a1", "ec0d9a", "e41d2d", "525400", "001b21")
    assert len({vf_mac(f"{prefix}001800", 0) for prefix in prefixes}) == len(prefixes)


@pytest.mark.parametrize(
    ("derived", "expected"),
    [
        (vf_mac("b8:3f:d2:00:18:00", 0), "a2:45:00:18:00:00"),
        (vf_mac("52:54:00:1a:03:01", 6), "9a:7e:1a:03:01:06"),
        (vf_guid("b83f:d203:0000:1800", 1), "ba:3f:d2:01:03:00:18:00"),
    ],
)
def test_an_identity_stays_the_same_over_releases(derived: str, expected: str) -> None:
    assert derived == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: vf_mac("00:00:00:00:00:00", 0),
            "'00:00:00:00:00:00' is not a MAC address; the identities of VFs are derived from their PF's",
        ),
        (lambda: vf_guid("", 0), "'' is not a GUID; the identities of VFs are derived from their PF's"),
        (
            lambda: vf_mac("b8:3f:d2:00:18:00", 256),
            "VF 256 cannot have an identity; expected an index from 0 to 255",
        ),
    ],
)
def test_what_cannot_be_derived(call: Any, message: str) -> None:
    with pytest.raises(InputError, match="^" + message.replace("(", r"\(") + "$"):
        call()


@given(st.text(), INDEX)
def test_any_text_is_an_identity_or_an_error_of_ours(text: str, index: int) -> None:
    for derive in (vf_mac, vf_guid):
        with contextlib.suppress(FabricError):
            derive(text, index)
