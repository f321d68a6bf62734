"""Identity, settings and users of VFs."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError, ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.sriov import vf

INDEX = st.integers(0, vf.MAX_VFS - 1)
TAIL = st.binary(min_size=3, max_size=3)
# Vendor prefixes of MAC addresses and GUIDs: universally administered, for one station.
PREFIX = st.binary(min_size=3, max_size=3).map(lambda b: bytes([b[0] & 0xFC]) + b[1:])


def mac(octets: bytes) -> str:
    return octets.hex(":")


@given(PREFIX, st.lists(st.tuples(TAIL, INDEX), unique=True, max_size=50))
def test_vfs_of_one_vendor_never_collide(prefix: bytes, vfs: list[tuple[bytes, int]]) -> None:
    pfs = [(prefix + tail, index) for tail, index in vfs if any(prefix + tail)]
    macs = [vf.vf_mac(mac(pf), index) for pf, index in pfs]
    guids = [vf.vf_guid(mac(pf[:3] + b"\x03\x00" + pf[3:]), index) for pf, index in pfs]
    assert len(set(macs)) == len(set(guids)) == len(pfs)


@given(PREFIX, TAIL, INDEX)
def test_identities_are_local_unicast_and_always_the_same(prefix: bytes, tail: bytes, index: int) -> None:
    pf = prefix + b"\x01" + tail[1:]
    derived = vf.vf_mac(mac(pf), index)
    assert int(derived[:2], 16) & 0x03 == 0x02
    assert derived == vf.vf_mac(mac(pf).upper(), index) != mac(pf)
    guid = vf.vf_guid(mac(pf + b"\x01\x02"), index)
    assert int(guid[:2], 16) & 0x02 and guid == vf.vf_guid(mac(pf + b"\x01\x02"), index)


def test_vendors_are_parted() -> None:
    # Most are of one maker of NICs; the last three bytes are equal.
    prefixes = ("b83fd2", "946dae", "a088c2", "08c0eb", "1c34da", "0c42a1", "ec0d9a", "e41d2d", "525400", "001b21")
    assert len({vf.vf_mac(f"{prefix}001800", 0) for prefix in prefixes}) == len(prefixes)


@pytest.mark.parametrize(
    ("derived", "expected"),
    [
        (vf.vf_mac("b8:3f:d2:00:18:00", 0), "a2:45:00:18:00:00"),
        (vf.vf_mac("52:54:00:1a:03:01", 6), "9a:7e:1a:03:01:06"),
        (vf.vf_guid("b83f:d203:0000:1800", 1), "ba:3f:d2:01:03:00:18:00"),
    ],
)
def test_an_identity_stays_the_same_over_releases(derived: str, expected: str) -> None:
    assert derived == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: vf.vf_mac("00:00:00:00:00:00", 0),
            "'00:00:00:00:00:00' is not a MAC address; the identities of VFs are derived from their PF's",
        ),
        (lambda: vf.vf_guid("", 0), "'' is not a GUID; the identities of VFs are derived from their PF's"),
        (
            lambda: vf.vf_mac("b8:3f:d2:00:18:00", 256),
            "VF 256 cannot have an identity; expected an index from 0 to 255",
        ),
    ],
)
def test_what_cannot_be_derived(call: Any, message: str) -> None:
    with pytest.raises(InputError, match="^" + message.replace("(", r"\(") + "$"):
        call()


@given(st.text(), INDEX)
def test_any_text_is_an_identity_or_an_error_of_ours(text: str, index: int) -> None:
    for derive in (vf.vf_mac, vf.vf_guid):
        with contextlib.suppress(FabricError):
            derive(text, index)


# Made by hand after print_vfinfo of iproute2: Ethernet with the newer attributes, InfiniBand, and an old kernel.
LINK = [
    {
        "ifname": "rail0",
        "vfinfo_list": [
            {
                "vf": 0,
                "link_type": "ether",
                "address": "7A:9C:00:18:00:00",
                "vlan_list": [{}],
                "rate": {"max_tx": 1000, "min_tx": 0},
                "spoofchk": True,
                "link_state": "auto",
                "trust": False,
                "query_rss_en": False,
            },
            {
                "vf": 1,
                "link_type": "infiniband",
                "address": "00:00:00:00:fe:80:00:00:00:00:00:00:ba:3f:d2:01:03:00:18:00",
                "spoofchk": False,
                "node guid": "ba:3f:d2:01:03:00:18:00",
                "port guid": "ba:3f:d2:01:03:00:18:00",
                "link_state": "disable",
            },
            {"vf": 2, "mac": "00:00:00:00:00:00", "tx_rate": 500, "node guid": "00", "port guid": "01"},
        ],
    }
]


def test_settings_of_vfs() -> None:
    assert vf.parse_vfs(json.dumps(LINK))["rail0"] == {
        0: {
            "mac": "7a:9c:00:18:00:00",
            "trust": False,
            "spoof_check": True,
            "max_tx_rate": 1000,
            "link_state": "auto",
        },
        1: {"guid": "ba:3f:d2:01:03:00:18:00", "spoof_check": False, "link_state": "disable"},
        2: {"guid": "00/01", "max_tx_rate": 500},
    }
    assert vf.parse_vfs("[{},{}]") == vf.parse_vfs("") == {}


@given(st.one_of(st.text(), st.recursive(st.none() | st.text(), lambda s: st.lists(s) | st.just(LINK)).map(json.dumps)))
def test_any_text_is_settings_or_an_error_of_ours(text: str) -> None:
    with contextlib.suppress(ParseError):
        vf.parse_vfs(text)
    vf.parse_holders(text)


def test_holders_are_the_processes_of_user_space() -> None:
    text = json.dumps(
        [
            {"ifname": "mlx5_4", "pdn": 1, "comm": "[ib_core]"},
            {"ifname": "mlx5_4", "pdn": 2, "pid": 71, "comm": "ib_write_bw"},
            {"ifname": "mlx5_4", "pdn": 3, "pid": 71, "comm": "ib_write_bw"},
            {"ifname": "mlx5_5", "pdn": 2, "pid": 8},
        ]
    )
    assert vf.parse_holders(text) == {"mlx5_4": ("ib_write_bw[71]",), "mlx5_5": ("?[8]",)}


@pytest.mark.parametrize(
    ("one", "infiniband", "expected"),
    [
        (vf.Vf(0, "0000:18:00.1", None), False, []),
        (vf.Vf(0, "0000:18:00.1", "mlx5_core", netdevs=("v0",)), False, []),
        (vf.Vf(0, "0000:18:00.1", "mlx5_core", rdma=("mlx5_9",)), True, []),
        (
            vf.Vf(0, "0000:18:00.1", "mlx5_core", netdevs=("v0",), addresses=("10.0.0.1/24",), uppers=("mac0",)),
            False,
            ["it has the address 10.0.0.1/24", "mac0 is configured on it"],
        ),
        (
            vf.Vf(0, "0000:18:00.1", "mlx5_core", rdma=("mlx5_9",)),
            False,
            ["mlx5_core has bound it, but its device is in another network namespace, such as that of a pod"],
        ),
        (
            vf.Vf(0, "0000:18:00.1", "vfio-pci", holders=("qemu-system-x86[7]",)),
            False,
            ["it is bound to vfio-pci", "qemu-system-x86[7] holds it"],
        ),
    ],
)
def test_who_uses_a_vf(one: vf.Vf, infiniband: bool, expected: list[str]) -> None:
    assert one.users(infiniband) == expected


def test_two_guids_come_back_as_two() -> None:
    assert [argv[7:] for argv in vf.vf_commands("ib0", 0, {}, after={"guid": "00:01/00:02"})] == [
        ["node_guid", "00:01"],
        ["port_guid", "00:02"],
    ]


def test_commands_set_what_differs() -> None:
    wanted = {
        "mac": "02:00:00:00:00:01",
        "guid": "02:00:00:00:00:00:00:01",
        "trust": True,
        "spoof_check": False,
        "max_tx_rate": 0,
        "link_state": "auto",
        "mtu": 9000,
    }
    head = ["ip", "link", "set", "dev", "rail0", "vf", "3"]
    assert vf.vf_commands("rail0", 3, {"trust": True, "max_tx_rate": 10}, after=wanted) == [
        [*head, "mac", "02:00:00:00:00:01"],
        [*head, "node_guid", "02:00:00:00:00:00:00:01"],
        [*head, "port_guid", "02:00:00:00:00:00:00:01"],
        [*head, "spoofchk", "off"],
        [*head, "max_tx_rate", "0"],
        [*head, "state", "auto"],
    ]
    assert vf.vf_commands("rail0", 3, wanted, after=wanted) == []
