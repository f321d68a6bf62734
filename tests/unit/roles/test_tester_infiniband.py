"""The tester script on ports of InfiniBand: sysfs of mlx5 as its driver writes it, made by hand. Two seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.roles.test_tester import PEER, SHELLS, Bench, line, only, write
from tests.unit.support.simulated_fabric import Fabric, simulated

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.port_state import parse
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import parse_describe

GUID = "e41d:2d03:0011:220{}"
# What ibv_devinfo of rdma-core 50 prints of a port, by hand.
DEVINFO = """#!/bin/sh
printf 'hca_id:\\t%s\\n\\tport:\\t%s\\n\\t\\tstate:\\t\\t\\tPORT_ACTIVE (4)\\n' "$2" "$4"
printf '\\t\\tmax_mtu:\\t\\t4096 (5)\\n\\t\\tactive_mtu:\\t\\t2048 (4)\\n\\t\\tlink_layer:\\t\\tInfiniBand\\n'
"""


def address_of(gid: str) -> str:
    """The address of an IPoIB netdev on a port with this GID."""
    octets = [one for part in gid.split(":") for one in (part[:2], part[2:])]
    return ":".join(["80", "00", "0a", "bc", *octets])


def add_port(bench: Bench, number: int, netdev: str, prefix: str = "fe80:0000:0000:0000") -> Path:
    """A port of InfiniBand with an IPoIB netdev, in place of what the bench has."""
    device = bench.sys / f"class/infiniband/mlx5_{number}"
    port = device / "ports/1"
    gid = f"{prefix}:{GUID.format(number)}"
    values = {
        "link_layer": "InfiniBand",
        "phys_state": "5: LinkUp",
        "state": "4: ACTIVE",
        "lid": "0x1a",
        "sm_lid": "0x1",
        "rate": "400 Gb/sec (4X NDR)",
        "gids/0": gid,
        "gids/1": "0000:0000:0000:0000:0000:0000:0000:0000",
        "pkeys/0": "0xffff",
        "pkeys/1": "0x0000",
        "pkeys/2": "0x8001",
        "counters/symbol_error": "65535",
        "counters/link_downed": "3",
    }
    for name, text in values.items():
        write(port / name, f"{text}\n")
    for name in ("types/2", "ndevs/2"):
        (port / "gid_attrs" / name).unlink(missing_ok=True)
    (port / "gids/2").unlink(missing_ok=True)
    write(device / "device/vendor", "0x15b3\n")
    write(device / "device/device", "0x1021\n")
    write(bench.sys / "class/net" / netdev / "address", address_of(gid) + "\n")
    write(bench.sys / "class/net" / netdev / "mtu", "2044\n")
    write(bench.sys / "class/net" / netdev / "carrier", "1\n")
    return device


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    made = Bench(tmp_path, request.param)
    for number, netdev in enumerate(("rail0", "rail1")):
        add_port(made, number, netdev)
    return made


def describe(bench: Bench) -> dict[str, dict[str, str]]:
    done = bench.run("describe", str(bench.folder / "rails"))
    assert (done.returncode, done.stderr) == (0, "")
    return {name: dict(rail) for name, rail in parse_describe(done.stdout).rails.items()}


def test_a_port_is_described(bench: Bench) -> None:
    write(bench.folder / "bin/ibv_devinfo", DEVINFO, 0o755)
    assert describe(bench)["rail1"] == {
        "device": "mlx5_1",
        "port": "1",
        "netdev": "rail1",
        "gid": "0",
        "gid_type": "IB",
        "address": "192.168.1.3",
        "addresses": "192.168.1.3",
        "mtu": "2048",
        "rate": "400 Gb/sec (4X NDR)",
        "numa": "1",
        "cpus": "0",
        "local_cpus": "0",
        "lid": "0x1a",
        "sm_lid": "0x1",
        "prefix": "fe80:0000:0000:0000",
        "pkeys": "0:0xffff 2:0x8001",
        "vf": "no",
        "full": "symbol_error",
    }


def test_a_child_in_a_pod_is_found_by_the_gid_in_its_address(bench: Bench) -> None:
    """It has no folder of a device, and its number is not that of the rail."""
    write(bench.folder / "rails", "rail rail0 net1 -\n")
    device = add_port(bench, 5, "net1", prefix="fec0:0000:0000:0007")
    write(device / "device/device", "0x101e\n")
    write(bench.proc / "net/route", "Iface\tDestination\n")
    rail = describe(bench)["rail0"]
    assert (rail["device"], rail["gid"], rail["prefix"]) == ("mlx5_5", "0", "fec0:0000:0000:0007")
    # It has no address of its own, and is a VF that a hypervisor passed through.
    assert (rail["address"], rail["addresses"], rail["vf"], rail["mtu"]) == ("-", "", "yes", "-")


def test_a_vf_of_this_host(bench: Bench) -> None:
    (bench.sys / "class/infiniband/mlx5_0/device/physfn").mkdir()
    assert [rail["vf"] for rail in describe(bench).values()] == ["yes", "no"]


def test_the_partitions_of_ports_are_no_rails(bench: Bench) -> None:
    done = bench.run("describe", str(bench.folder / "rails"))
    assert done.stdout.splitlines()[-1] == "=== gpufabric described 2"


@pytest.mark.parametrize("network", [False, True])
def test_without_ip_the_address_of_a_pod_is_not_that_of_a_rail_without_one(bench: Bench, network: bool) -> None:
    """Where eth0 has an address in a network, the /32 is not that of the default route."""
    trie = "     |-- 10.244.3.17\n        /32 host LOCAL\n"
    routes = "Iface\tDestination\neth0\t00000000\t0101FEA9\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    if network:
        trie += "     |-- 192.168.7.2\n        /32 host LOCAL\n"
        routes += "eth0\t0007A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    write(bench.proc / "net/fib_trie", f"Main:\n{trie}")
    write(bench.proc / "net/route", routes)
    only(bench, "timeout", "taskset", "cat")
    assert describe(bench)["rail0"]["address"] == ("10.244.3.17" if network else "-")


def test_ipoib_without_a_carrier_keeps_no_port_from_use(bench: Bench) -> None:
    write(bench.sys / "class/net/rail0/carrier", "0\n")
    rails = describe(bench)
    assert [rails[name]["address"] for name in ("rail0", "rail1")] == ["-", "192.168.1.3"]


def test_a_netdev_whose_address_has_no_gid_is_found_by_the_folder_of_the_device(bench: Bench) -> None:
    """As with the drivers that leave the address of the last subnet manager."""
    write(bench.sys / "class/net/rail0/address", address_of("fec0:0000:0000:0009:" + GUID.format(0)) + "\n")
    (bench.sys / "class/infiniband/mlx5_0/device/net/rail0").mkdir(parents=True)
    assert (describe(bench)["rail0"]["device"], describe(bench)["rail0"]["gid"]) == ("mlx5_0", "0")


@pytest.mark.parametrize(
    ("values", "error"),
    [
        (
            {"state": "2: INIT", "lid": "0x0"},
            "no subnet manager has configured mlx5_0/1 (rail0): its state is INIT and its LID 0x0. Start the subnet"
            " manager of the fabric, or check in its log why it does not activate the port",
        ),
        (
            {"state": "1: DOWN", "phys_state": "2: Polling", "lid": "0x0"},
            "port 1 of mlx5_0 (rail0) has no link, its physical state is Polling: cable, transceiver or switch port",
        ),
        ({"state": "1: DOWN"}, "port 1 of mlx5_0 (rail0) is DOWN"),
    ],
)
def test_describe_says_why_a_port_cannot_be_used(bench: Bench, values: dict[str, str], error: str) -> None:
    for name, text in values.items():
        write(bench.sys / "class/infiniband/mlx5_0/ports/1" / name, f"{text}\n")
    # As IPoIB has no carrier in these states.
    write(bench.sys / "class/net/rail0/carrier", "0\n")
    done = bench.run("describe", str(bench.folder / "rails"))
    found = parse_describe(done.stdout)
    assert (found.error("rail0"), found.error("rail1")) == (error, None)


def test_the_schedule_alone_decides_about_the_gid(bench: Bench) -> None:
    bench.play(line(0), f"{line(1, rail='rail1')} -x 0 --pkey_index=2 -S 3")
    calls = bench.calls.read_text().splitlines()
    assert " -d mlx5_0 -i 1 -p 18500 -F --report_gbits" in calls[0] and " -x " not in calls[0]
    assert calls[1].endswith(f" -x 0 --pkey_index=2 -S 3 {PEER}")


@simulated
def test_the_switch_port_and_its_counters(tmp_path: Path) -> None:
    """With the real smpquery and perfquery on a simulated fabric; only the name of the device is not passed on."""
    (tmp_path / "net-folder").mkdir()
    fabric = Fabric(tmp_path / "net-folder", {"gpu-0001": "ba3fd20003180001", "gpu-0002": "ba3fd20003180002"})
    bench = Bench(tmp_path, SHELLS[0].values[0])
    add_port(bench, 0, "rail0")
    (bench.sys / "class/net/rail0/device/infiniband").mkdir(parents=True)
    (bench.sys / "class/net/rail0/device/infiniband/mlx5_0").symlink_to(bench.sys / "class/infiniband/mlx5_0")
    try:
        fabric.configure("Default=0x7fff, ipoib : ALL=full ;\n")
        for name in ("smpquery", "perfquery"):
            write(bench.folder / "bin" / name, fabric.program(name, "gpu-0002"), 0o755)
        done = bench.run("ports", str(bench.folder / "rails"))
        shown = parse(done.stdout)["rail0"]["rail0"]
        assert shown.switch == {"switch": "SW", "port": "2"}
        assert shown.at_switch == {
            "SymbolErrorCounter": 0,
            "LinkErrorRecoveryCounter": 0,
            "LinkDownedCounter": 0,
            "PortRcvErrors": 0,
            "PortXmitDiscards": 0,
            "LocalLinkIntegrityErrors": 0,
        }
    finally:
        fabric.end()
