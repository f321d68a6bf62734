# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collectives: who runs with whom, the settings of NCCL, what is read from the output, and what passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.nccl import DEFAULTS
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.nccl import environment, judge, limits
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.nccl.output import parse
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.nccl.units import (
    Collective,
    Unit,
    collectives,
    rounds,
    seconds,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import nccl as report

FIXTURES = Path(__file__).resolve().parents[6] / "fixtures" / "nccl"
FIRST, SECOND = ((FIXTURES / f"{name}.log").read_text() for name in ("first", "second"))
UNIT = Unit("h1 and h2", "pairs", ("h1", "h2"))
NETWORK, ALL = Collective("all_reduce", "network"), Collective("all_reduce", "all")


# Both rails as one device of NCCL.
MERGED = ("Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE", "Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}")


def plan(rate: float = 400.0, path: str = "PIX", **nccl: Any) -> dict[str, Any]:
    rails = ("rail0", "rail1")
    side = {"rate": rate, "mtu": 4096}
    return {
        "rails": [{"name": name, "link_layer": "ethernet"} for name in rails],
        "expectations": {name: {"h1": side, "h2": side} for name in rails},
        "nccl_gpus": {name: {host: {"bdf": name, "path": path} for host in ("h1", "h2")} for name in rails},
        "tests": {"nccl": {**DEFAULTS, "enabled": True, "collectives": ["all_reduce"], **nccl}},
    }


def judged(first: str = FIRST, second: str = SECOND, **given: Any) -> list[dict[str, Any]]:
    made = plan(**given)
    pods = {"h1": parse(first), "h2": parse(second)}
    return judge.judge(made, UNIT, collectives(made), pods=pods, gpus=2)


def test_a_good_run_passes_with_its_values() -> None:
    network, every = judged()
    # 0.9 of 2 x 400 Gb/s of payload, for each of 2 GPUs.
    assert (network["value"], network["expected"], network["verdict"], network["reason"]) == (46.8, 44.1, "pass", "")
    assert network["transports"] == {"NET/IB/GDRDMA": 6}
    assert (network["nccl"], network["gpu"]) == (["2.28.9+cuda13.0"], "NVIDIA H100 80GB HBM3")
    assert (every["value"], every["expected"], every["verdict"]) == (99.0, None, "pass")
    assert every["transports"] == {"NET/IB/GDRDMA": 4, "P2P": 1}


@pytest.mark.parametrize(
    ("first", "second", "given", "verdict", "reason"),
    [
        ((" 46.80   46.80", " 31.20   31.20"), None, {}, "fail", "31.2 GB/s, expected at least 44.1 GB/s (0.9 of the"),
        ((" 46.80   46.80       0", " 46.80   46.80      12"), None, {}, "fail", "12 values were wrong"),
        (("via NET/IB/0/GDRDMA", "via NET/Socket/0"), None, {}, "fail", "NCCL used NET/Socket instead of RDMA"),
        (("NET/IB/0/GDRDMA", "NET/IB/0"), None, {}, "fail", "2 of 6 connections over RDMA did not use GPUDirect"),
        (("NET/IB/0/GDRDMA", "NET/IB/0"), None, {"path": "SYS"}, "pass", ""),
        (None, (" [1]mlx5_1:1/RoCE", ""), {}, "fail", "NCCL found 1 RDMA devices of h2, which has 2 rails"),
        (("NET/IB/0/GDRDMA", "NET/IBext_v8/0"), None, {}, "fail", "2 of 6 connections over RDMA did not use GPUDirect"),
        (("NET/IB/1/", "NET/IB/0/"), None, {}, "fail", "NCCL used 1 rails of h1, which has 2"),
        (("NET/IB/1/", "NET/IB/0/"), None, {"path": "SYS"}, "pass", ""),
        (("NET/IB/", "NET/NCCL RDMA Plugin v10/"), ("NET/IB/", "NET/NCCL RDMA Plugin v10/"), {}, "pass", ""),
        (("NET/IB/", "NET/Strange Net/"), None, {}, "no_data", "it is not known whether NET/Strange Net uses RDMA"),
        ((MERGED[0], MERGED[1]), None, {}, "pass", ""),
        (("values : 0 OK", "values : 3 FAILED"), None, {}, "fail", "3 values were wrong"),
        (
            ("46.84       0\n# Out of bounds values : 0 OK", "46.84       4\n# Out of bounds values : 4 FAILED"),
            ("end 1 rc=0", "end 1 rc=1"),
            {},
            "fail",
            "4 values were wrong",
        ),
        ((" 46.80   46.80       0", " 46.80   46.80     N/A"), None, {}, "no_data", "values were not checked"),
        (("Group  1", "Group  0"), None, {}, "no_data", "communicators with 4 GPUs, expected 2 GPUs in each of 2"),
        (("end 1 rc=0", "end 1 rc=124"), None, {}, "no_data", "h1: it ended with exit code 124"),
        (None, ("=== gpufabric nccl end 1 rc=0\n", ""), {}, "no_data", "h2: it did not run"),
        (("via NET", "over NET"), ("via NET", "over NET"), {}, "no_data", "no connection over a network on h1, h2"),
        (
            ("  4294967296    1073741824", "    33554432       8388608"),
            None,
            {},
            "no_data",
            "the row is about 33554432 bytes",
        ),
        (
            ("=== gpufabric nccl log 1", "=== gpufabric nccl cut\n=== gpufabric nccl log 1"),
            None,
            {},
            "no_data",
            "was cut",
        ),
        ((" 46.80   46.80", " 99.80   99.80"), None, {}, "no_data", "99.8 GB/s, the rails carry 49 GB/s for each GPU"),
        ((" 46.80   46.80", "  0.00    0.00"), None, {}, "no_data", "1 pods reported a bus bandwidth above 0"),
    ],
)
def test_what_is_wrong_is_named(first: Any, second: Any, given: Any, verdict: str, reason: str) -> None:
    one = FIRST.replace(*first) if first else FIRST
    other = SECOND.replace(*second) if second else SECOND
    assert (one, other) != (FIRST, SECOND)
    result = judged(one, other, **given)[0]
    assert result["verdict"] == verdict
    assert reason in result["reason"]


@pytest.mark.parametrize(
    ("line", "transports", "used"),
    [
        ("x [0] NCCL INFO Channel 00/0 : 1[1] -> 0[0] [send] via NET/IB/3(2)/GDRDMA/Shared", {"NET/IB/GDRDMA": 1}, {3}),
        ("    12 via NET/IB/0/GDRDMA(PCI)", {"NET/IB/GDRDMA": 12}, {0}),
        (" 7 via NET/NCCL RDMA Plugin v10/1/GDRDMA", {"NET/NCCL RDMA Plugin v10/GDRDMA": 7}, {1}),
        (" 7 via NET/Socket/0", {"NET/Socket": 7}, {0}),
        (" 7 via P2P/CUMEM/read", {"P2P": 7}, set()),
        ("9999999999 via P2P/CUMEM", {}, set()),
    ],
)
def test_connections_are_counted_in_every_spelling(line: str, transports: Any, used: set[int]) -> None:
    run = parse(f"=== gpufabric nccl log 1\n{line}\n").runs[1]
    assert (dict(run.transports), run.used) == (transports, used)


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"], {"mlx5_0:1", "mlx5_1:1"}),
        (["NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]"], {"mlx5_0:1", "mlx5_1:1"}),
        (
            [
                "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]",
                "NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 ndevs=2",
            ],
            {"mlx5_0:1", "mlx5_1:1"},
        ),
    ],
)
def test_devices_are_read_in_every_spelling(lines: list[str], names: set[str]) -> None:
    log = "\n".join(["=== gpufabric nccl log 1", *lines])
    last = 2 if len(lines) > 1 else 0
    run = parse(f"{log}\n 1 via NET/IB/{last}/GDRDMA\n").runs[1]
    assert run.devices == names
    assert len(run.rails() or ()) == (1 if "[1]mlx5_1" in lines[0] and last == 0 else 2)


def test_without_a_list_of_devices_the_connections_must_name_all_rails() -> None:
    unlisted = FIRST.replace(MERGED[0], "Nothing")
    assert judged(unlisted)[0]["verdict"] == "pass"
    result = judged(unlisted.replace("NET/IB/1", "NET/IB/0"))[0]
    assert result["verdict"] == "no_data"
    assert "did not log its RDMA devices on h1" in result["reason"]


def test_a_pod_that_ended_early_tells_why() -> None:
    text = '=== gpufabric nccl environment\nrail rail1 error="no address"\n'
    result = judged(FIRST, text)[0]
    assert result["verdict"] == "no_data"
    assert judge.unmeasured(UNIT, [NETWORK], "h2: no pod")[0]["reason"] == "h2: no pod"


@pytest.mark.parametrize(
    "text", ["", "\x1b[2J" * 100, FIRST.replace("46.80", "9" * 400), FIRST.replace("nccl end", "x")]
)
def test_hostile_output_is_never_a_pass(text: str) -> None:
    assert judged(text)[0]["verdict"] == "no_data"


def test_limits_are_given_computed_or_published() -> None:
    eight = {**plan(), "expectations": {f"rail{at}": {"h1": {"rate": 400.0, "mtu": 4096}} for at in range(8)}}
    eight["rails"] = [{"name": f"rail{at}"} for at in range(8)]
    eight["nccl_gpus"] = {}
    unit = Unit("h1 and h1", "pairs", ("h1", "h1"))
    published = limits.limit(eight, unit, ALL, gpus=8, model="NVIDIA H100 80GB HBM3")
    assert published == limits.Limit(440.0, "gate of oracle-quickstart/oci-hpc, scripts/ncclscout.py")
    assert limits.limit(eight, unit, ALL, gpus=8, model="NVIDIA GH100").value is None
    narrow = {"h1": {**eight["expectations"]["rail7"]["h1"], "vf_rate": 100.0}}
    slow = {**eight, "expectations": {**eight["expectations"], "rail7": narrow}}
    assert limits.limit(slow, unit, ALL, gpus=8, model="NVIDIA H100 80GB HBM3").value is None
    assert limits.limit(eight, unit, NETWORK, gpus=8, model="").value == 44.1
    assert limits.limit(plan(rate=200.0), UNIT, ALL, gpus=2, model="NVIDIA H100 80GB HBM3").value is None
    assert limits.limit(plan(minimum={"all_reduce": 7.0}), UNIT, ALL, gpus=2, model="").value == 7.0
    unknown = plan()
    unknown["expectations"]["rail0"]["h2"] = {"rate": None, "mtu": 4096}
    assert limits.limit(unknown, UNIT, NETWORK, gpus=2, model="") == limits.Limit(
        None, "the rate of a rail is not known; set tests.nccl.minimum.all_reduce_network"
    )


PCIE = {"speed": 16.0, "width": 8, "max_payload": 256, "ports": 1}


@pytest.mark.parametrize(
    ("side", "tests", "expected", "source"),
    [
        ({}, {}, 44.1, "0.9 of the rails' rate (tests.nccl.network_share)"),
        ({"floor": 200.0}, {}, 22.5, "0.9 of the floor of the inventory"),
        ({"rate": None, "floor": 200.0}, {}, 22.5, "0.9 of the floor of the inventory"),
        ({"vf_rate": 100.0}, {}, 11.0, "0.9 of the 100 Gb/s limit of a VF of h2"),
        ({"pcie": PCIE}, {}, 12.8, "0.9 of the PCIe x8 16 GT/s link of h2"),
        (
            {"pcie": PCIE, "uplinks": [{**PCIE, "pci": "0000:01:00.0", "rails": ["rail0", "rail1"]}]},
            {},
            6.4,
            "shared by 2",
        ),
        ({"links": 2}, {}, 44.1, "0.9 of the rails' rate"),
        ({}, {"oversubscription": [2.0], "groups": {"a": ["h1"], "b": ["h2"]}}, 22.1, "uplinks oversubscribed 2:1"),
        ({}, {"oversubscription": [2.0], "groups": {"a": ["h1", "h2"]}}, 44.1, "0.9 of the rails' rate"),
    ],
)
def test_the_limit_is_what_the_slowest_rail_can_carry(side: Any, tests: Any, expected: float, source: str) -> None:
    made = plan()
    made["expectations"]["rail1"]["h2"] = {**made["expectations"]["rail1"]["h2"], **side}
    made["tests"].update(tests)
    found = limits.limit(made, UNIT, NETWORK, gpus=2, model="")
    assert found.value == expected
    assert source in found.source


def test_bonds_raise_the_ceiling_and_a_higher_floor_removes_it() -> None:
    assert limits.carried(plan(), UNIT.hosts, gpus=2).most == pytest.approx(784.0, abs=2)
    for extra, most in (({"links": 2}, pytest.approx(1568.0, abs=4)), ({"floor": 500.0}, None)):
        made = plan()
        made["expectations"] = {
            rail: {host: {**side, **extra} for host, side in own.items()} for rail, own in made["expectations"].items()
        }
        assert limits.carried(made, UNIT.hosts, gpus=2).most == most


def test_no_limit_where_a_gpu_is_far_from_the_rails() -> None:
    assert limits.limit(plan(), UNIT, NETWORK, gpus=4, model="").value is None
    near = plan()
    for own in near["nccl_gpus"].values():
        own.update({host: {**gpu, "near": 4} for host, gpu in own.items()})
    assert limits.limit(near, UNIT, NETWORK, gpus=4, model="").value == 22.1
    far = limits.limit(plan(path="SYS"), UNIT, NETWORK, gpus=2, model="")
    assert "not every GPU and rail of h1 is behind a PCIe switch" in far.source


def test_links_between_rail_and_gpu_count_not_those_to_host_memory() -> None:
    made = plan()
    narrow = [{"pci": "0000:01:00.0", "speed": 16.0, "width": 8, "rails": ["rail0", "rail1"]}]
    pcie = {"speed": 32.0, "width": 16, "max_payload": 256, "ports": 1}
    made["expectations"] = {
        rail: {host: {**side, "pcie": pcie, "uplinks": narrow} for host, side in own.items()}
        for rail, own in made["expectations"].items()
    }
    assert limits.limit(made, UNIT, NETWORK, gpus=2, model="").value < 10
    for own in made["nccl_gpus"].values():
        own.update({host: {**gpu, "uplinks": []} for host, gpu in own.items()})
    assert limits.limit(made, UNIT, NETWORK, gpus=2, model="").value == 44.1


def test_every_host_is_in_a_pair_and_groups_follow() -> None:
    hosts = ["h1", "h2", "h3"]
    assert [[unit.hosts for unit in units] for units in rounds(plan(), hosts)] == [
        [("h1", "h2")],
        [("h1", "h3")],
        [("h1", "h2", "h3")],
    ]
    grouped = plan()
    grouped["tests"]["groups"] = {"a": hosts, "b": ["h4"]}
    assert [unit.name for unit in rounds(grouped, [*hosts, "h4"])[-1]] == ["a"]
    assert [[unit.name for unit in units] for units in rounds(plan(), hosts[:2])] == [["h1 and h2"]]
    assert [unit.name for units in rounds(plan(scopes=["groups"]), hosts[:2]) for unit in units] == ["all"]
    assert rounds(plan(), ["h1"]) == []
    assert [unit.scope for units in rounds(plan(scopes=["pairs"]), hosts) for unit in units] == ["pairs", "pairs"]
    assert seconds(plan(), 16) > seconds(plan(), 2) > 90


def test_settings_follow_from_the_plan() -> None:
    made = plan(queue_pairs=4, gdr_level="PXB", service_level=1, pkey_index=2)
    made["tests"]["traffic_class"] = 106
    assert environment.common(made) == {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV",
        "NCCL_IB_TC": "106",
        "NCCL_IB_QPS_PER_CONNECTION": "4",
        "NCCL_NET_GDR_LEVEL": "PXB",
        "NCCL_IB_SL": "1",
        "NCCL_IB_PKEY": "2",
        "NCCL_CROSS_NIC": "0",
    }
    # By default the class of the measurement, where all rails have the same.
    made["tests"].update(traffic_class=None, traffic={name: {"traffic_class": 104} for name in ("rail0", "rail1")})
    assert environment.common(made)["NCCL_IB_TC"] == "104"
    made["tests"]["traffic"]["rail1"] = {"traffic_class": 96}
    assert "NCCL_IB_TC" not in environment.common(made)
    assert environment.common({"tests": {"service_level": 3}})["NCCL_IB_SL"] == "3"
    options = "-- -b 4294967296 -e 4294967296 -g 1 -n 20 -w 5 -c 1 -a 3"
    line = environment.line(made, 1, NETWORK, hosts=2, gpus=8)
    assert line == f"1 {seconds(made, 2)} all_reduce_perf NCCL_TESTS_SPLIT_MASK=0x7 NCCL_ALGO=RING {options}"
    assert "NCCL_TESTS_SPLIT=%6 " in environment.line(made, 1, NETWORK, hosts=2, gpus=6)
    assert environment.line(made, 2, ALL, hosts=2, gpus=8).endswith(f"all_reduce_perf {options}")


def test_report_sends_to_the_rails_first() -> None:
    results = judged(FIRST.replace(" 46.80   46.80", " 31.20   31.20"))
    passed = report.build(results, verbs={"verdict": "pass", "run": "R"}, run="N", left_out={})
    assert passed["verdict"] == "fail"
    assert passed["findings"][-1].startswith(
        "The rails passed in run R, and NCCL did not. Check the way between GPU and NIC"
    )
    absent = report.build(results, verbs={}, run="N", left_out={})
    assert absent["findings"][-1].startswith("The measurement of the rails is missing. Make it pass first")
    good = report.build(judged(), verbs={}, run="N", left_out={"h9": "no Node"})
    assert (good["verdict"], good["findings"]) == ("no_data", [])
    files = report.files(passed)
    assert "all_reduce, network alone, h1 and h2  31.2  44.1      fail" in files["nccl.txt"]
    assert 'failures="1"' in files["nccl-junit.xml"]
    assert (
        'nccl_bus_bandwidth_gigabytes{collective="all_reduce",path="network",unit="h1 and h2"} 31.2'
        in files["nccl.prom"]
    )
    assert report.started("N")["verdict"] == "no_data"
