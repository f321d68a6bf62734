"""From which address a client connects, and rails with IPv6 addresses alone. Milliseconds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support import tester_logs

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence

HOSTS = ["gpu-1", "gpu-2"]
FLAT = {"subnet": "10.0.0.0/24", "host_prefix": None}
ROUTED = {"subnet": "10.0.0.0/24", "host_prefix": 31}
# The addresses of hosts are theirs (`addresses: keep`).
KEPT = {"subnet": None, "host_prefix": None}


@pytest.mark.parametrize(
    ("rail", "binds", "tests", "expected"),
    [
        (FLAT, "yes", {}, ""),
        (ROUTED, "yes", {}, "--bind_source_ip=10.0.0.1"),
        (KEPT, "yes", {}, "--bind_source_ip=10.0.0.1"),
        # perftest before 23.07 has no such option.
        (ROUTED, "no", {}, ""),
        (ROUTED, "yes", {"control": "management"}, ""),
        # RDMA-CM takes the device from the address.
        (FLAT, "yes", {"rdma_cm": True}, "--bind_source_ip=10.0.0.1"),
        (FLAT, "no", {"rdma_cm": True}, ""),
    ],
)
def test_source_of_the_client(rail: dict[str, Any], binds: str, tests: dict[str, Any], expected: str) -> None:
    made = tester_logs.plan(HOSTS, ["rail0"], **tests)
    made["rails"][0].update(rail)
    texts = {
        name: tester_logs.described(
            [f'rail0 device=mlx5_0 port=1 netdev=rail0 gid=3 gid_type="RoCE v2" address=10.0.0.{name[-1]}'],
            f"perftest=6.24 control=192.0.2.{name[-1]} binds={binds}",
        )
        for name in HOSTS
    }
    lines = step(made, "host", Evidence(texts, {})).lines
    words = [[word for word in lines[name][0].split() if "bind" in word] for name in HOSTS]
    assert words == [[expected] if expected else [], []]


def described(name: str, rail: str, version: int = 6, control: str = "yes") -> str:
    own = f"10.0.0.{name[-1]}" if version == 4 else f"- address6=fd00:0000:0000:0000:0000:0000:0000:000{name[-1]}"
    port = f'{rail} device=mlx5_0 port=1 netdev={rail} gid={name[-1]} gid_type="RoCE v2" address={own}'
    return tester_logs.described([port], f"perftest=6.24 control={f'192.0.2.{name[-1]}' if control else '-'}")


def test_rails_with_ipv6_alone_meet_on_the_management_network() -> None:
    # The mesh has no addresses to try, and leaves them to the measurement.
    made = tester_logs.plan(HOSTS, ["rail0"], mesh=True)
    lines = step(made, "host", Evidence({name: described(name, "rail0") for name in HOSTS}, {})).lines
    assert [lines[name][0].split()[2:5] for name in HOSTS] == [
        ["client", "192.0.2.2", "18500"],
        ["server", "192.0.2.1", "18500"],
    ]


@pytest.mark.parametrize(
    ("texts", "tests", "reason"),
    [
        (
            {"gpu-1": described("gpu-1", "rail0", 4), "gpu-2": described("gpu-2", "rail0")},
            {},
            "gpu-2 rail0: rail0 has no IPv4 address, as other ports of the rail have",
        ),
        (
            {name: described(name, "rail0") for name in HOSTS},
            {"rdma_cm": True},
            "gpu-1 rail0: rail0 has no IPv4 address, which rdma_cm needs; gpu-2 rail0: rail0 has no IPv4 address, which"
            " rdma_cm needs",
        ),
        (
            {"gpu-1": described("gpu-1", "rail0"), "gpu-2": described("gpu-2", "rail0", control="")},
            {},
            "gpu-2: its tester found no IPv4 address of the default route, which a port without an IPv4 address needs",
        ),
    ],
)
def test_what_such_rails_need(texts: dict[str, str], tests: dict[str, Any], reason: str) -> None:
    made = tester_logs.plan(HOSTS, ["rail0"], directions="one", **tests)
    (one,) = step(made, "host", Evidence(texts, {})).results
    assert (one["verdict"], one["reason"]) == ("no_data", reason)


@pytest.mark.parametrize(
    ("subnet", "versions", "without"),
    [
        # All lost their planned addresses, and have others of IPv6 from router advertisements.
        ("10.0.0.0/24", "666", {"gpu-1", "gpu-2", "gpu-3"}),
        ("10.0.0.0/24", "466", {"gpu-2", "gpu-3"}),
        ("fd00::/64", "666", set()),
        (None, "666", set()),
        # One host changes nothing of the others.
        (None, "466", {"gpu-1"}),
        ("fd00::/64", "664", {"gpu-3"}),
        (None, "446", {"gpu-3"}),
    ],
)
def test_which_ports_of_a_rail_are_measured(subnet: str | None, versions: str, without: set[str]) -> None:
    hosts = [*HOSTS, "gpu-3"]
    made = tester_logs.plan(hosts, ["rail0"])
    made["rails"][0]["subnet"] = subnet
    texts = {name: described(name, "rail0", int(version)) for name, version in zip(hosts, versions)}
    found = step(made, "host", Evidence(texts, {}))
    assert set(hosts) - set(found.lines) == (without if len(without) < 2 else set(hosts))
    if len(without) > 1:
        texts_of = {one["reason"] for one in found.results if one["client"] == "gpu-2"}
        assert all("gpu-2 rail0: rail0 has no IPv4 address, and the plan has 10.0.0.0/24" in text for text in texts_of)
        assert {one["verdict"] for one in found.results} == {"no_data"}
