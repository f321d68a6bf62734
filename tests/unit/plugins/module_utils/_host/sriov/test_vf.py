"""Settings and users of VFs."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.sriov import vf

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
