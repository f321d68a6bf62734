"""What tests between InfiniBand ports need of perftest. Pure tables: milliseconds."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings import ib_port
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.described import checked_rail

PORT = {
    "device": "mlx5_0",
    "port": "1",
    "netdev": "ib0",
    "gid": "0",
    "gid_type": "IB",
    "address": "-",
    "addresses": "",
    "mtu": "-",
    "rate": "400 Gb/sec (4X NDR)",
    "lid": "0x1a",
    "sm_lid": "0x1",
    "prefix": "fe80:0000:0000:0000",
    "pkeys": "0:0xffff 1:0x0001 3:0x8001",
    "vf": "no",
    "full": "-",
}


def port(**change: str) -> dict[str, str]:
    return {**PORT, **change}


def test_what_a_tester_prints_of_a_port_is_valid() -> None:
    assert checked_rail(PORT) == PORT
    assert checked_rail(port(address="10.0.0.1", addresses="10.0.0.1", pkeys="", lid="-", full="link_downed")).keys()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"lid": "26"}, "lid='26' is invalid; expected a LID"),
        # Testers accept numbers of 9 digits for --dlid, so this one would end the test of another host.
        ({"lid": "0xffffffff"}, "lid='0xffffffff' is invalid; expected a LID"),
        ({"sm_lid": "0x123456789"}, "sm_lid='0x123456789' is invalid; expected a LID"),
        ({"prefix": "fe80:0:0:0"}, "prefix='fe80:0:0:0' is invalid; expected the prefix of a subnet"),
        ({"pkeys": "0:0xffff -S 3"}, "pkeys='0:0xffff -S 3' is invalid; expected partition keys with their indexes"),
        ({"pkeys": " ".join(["1:0xffff"] * 129)}, "expected partition keys with their indexes"),
        ({"vf": "maybe"}, "vf='maybe' is invalid; expected yes or no"),
        ({"full": "a;b"}, "full='a;b' is invalid; expected names of counters"),
        ({"gid_type": "RoCE v2"}, "address='-' is invalid; expected an IPv4 address"),
    ],
)
def test_other_values_keep_the_port_from_use(change: dict[str, str], expected: str) -> None:
    assert checked_rail(port(**change))["error"].endswith(expected)


@pytest.mark.parametrize(
    ("one", "other", "grh"),
    [
        ({}, {}, False),
        ({"vf": "yes"}, {}, True),
        ({}, {"vf": "yes"}, True),
        ({}, {"prefix": "fec0:0000:0000:0001"}, True),
        ({"gid_type": "RoCE v2"}, {"gid_type": "RoCE v2", "prefix": "fec0:0000:0000:0001"}, False),
    ],
)
def test_a_grh_where_lids_are_not_enough(one: dict[str, str], other: dict[str, str], grh: bool) -> None:
    assert ib_port.needs_grh(port(**one), port(**other)) is grh


@pytest.mark.parametrize(
    ("partition", "pkeys", "index"),
    [
        (None, "0:0xffff 1:0x8001", 0),
        (0x0001, "0:0xffff 1:0x8001", 1),
        # A port may be a limited and a full member.
        (0x0001, "0:0xffff 1:0x0001 3:0x8001", 3),
        (0x0001, "0:0x0001", 0),
        (0x0002, "0:0xffff 1:0x8001", None),
        (0x0001, "", None),
    ],
)
def test_each_end_has_its_own_index_of_a_partition(partition: int | None, pkeys: str, index: int | None) -> None:
    assert ib_port.pkey_index(port(pkeys=pkeys), partition) == index


def test_the_partition_of_the_plan_by_place() -> None:
    rail = {"pkey": {"host": "0x8001", "pod": "0x0002"}}
    assert [ib_port.pkey_of(rail, where) for where in ("host", "pod")] == [1, 2]
    assert ib_port.pkey_of({"pkey": {"pod": "0x8001"}}, "host") is None
    assert ib_port.pkey_of({}, "host") is None


def test_a_port_that_is_not_in_the_partition() -> None:
    assert ib_port.partition_flaw(PORT, 1) == ib_port.partition_flaw(PORT, None) == ""
    assert ib_port.partition_flaw(PORT, 5) == (
        "mlx5_0 is not in the partition 0x0005, it is in 0xffff, 0x0001, 0x8001. Let the administrator of the subnet"
        " manager add the port to the partition"
    )
    assert "it is in none. Let" in ib_port.partition_flaw(port(pkeys=""), 5)


@pytest.mark.parametrize(
    ("one", "other", "partition", "flaw"),
    [
        ("0:0xffff", "0:0xffff", None, ""),
        # A limited member reaches full ones.
        ("0:0x7fff", "0:0xffff", None, ""),
        (
            "0:0x7fff",
            "0:0x7fff",
            None,
            "a rail0: it is a limited member of the partition 0x7fff, and so is b rail0. Limited members do not reach"
            " each other. Let the administrator of the subnet manager make them full members",
        ),
        (
            "0:0x8001 1:0xffff",
            "0:0xffff 1:0x8001",
            None,
            "a rail0: its first partition is 0x8001, that of b rail0 is 0xffff. Set rdma_fabric.pkey to the partition"
            " of the rails",
        ),
        ("0:0x8001 1:0xffff", "0:0xffff 1:0x8001", 1, ""),
        ("0:0x8001", "", None, ""),
    ],
)
def test_partitions_keep_ports_apart(one: str, other: str, partition: int | None, flaw: str) -> None:
    assert ib_port.apart(("a rail0", port(pkeys=one)), ("b rail0", port(pkeys=other)), partition) == flaw


@pytest.mark.parametrize(
    ("partition", "grh", "level", "options"),
    [(None, False, None, ""), (1, False, 3, "--pkey_index=3 -S 3"), (1, True, 0, "-x 0 --pkey_index=3 -S 0")],
)
def test_options_of_an_end(partition: int | None, grh: bool, level: int | None, options: str) -> None:
    assert ib_port.options(PORT, partition, grh=grh, level=level) == options
