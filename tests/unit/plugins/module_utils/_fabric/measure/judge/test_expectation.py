"""Expected rates against published and computed ceilings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.expectation import (
    Asked,
    Expectation,
    expect,
    side_of,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.verdict import judge
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import Sample
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.link_rates import (
    GRH,
    IPV6,
    coding,
    efficiency,
    pcie_rate,
    rdma_mtu,
)

RAIL = {"name": "rail0", "link_layer": "ethernet", "mtu": 9000}


def between(sides: dict[str, dict[str, Any]], planned: int | None, asked: Asked | None = None) -> Expectation:
    """Return what the pair must reach: its sides by name, the client first."""
    asked = asked or Asked()
    known = [side_of(RAIL, name, own, planned_mtu=planned, asked=asked) for name, own in sides.items()]
    return expect(RAIL, known, asked=asked)


def side(**change: Any) -> dict[str, Any]:
    return {"rate": 100.0, "mtu": 4096, "floor": None, "tolerance": 0.95, **change}


@pytest.mark.parametrize(
    ("mtu", "layer", "percent"),
    [(1024, "ethernet", 92.59), (2048, "ethernet", 96.15), (4096, "ethernet", 98.04), (4096, "infiniband", 99.37)],
)
def test_efficiency(mtu: int, layer: str, percent: float) -> None:
    assert round(efficiency(mtu, layer) * 100, 2) == percent


@pytest.mark.parametrize(("mtu", "percent"), [(256, 79.50), (512, 88.58), (1024, 93.94), (2048, 96.88), (4096, 98.41)])
def test_efficiency_of_infiniband_with_a_grh(mtu: int, percent: float) -> None:
    assert round(efficiency(mtu, "infiniband", GRH) * 100, 2) == percent


@pytest.mark.parametrize(("mtu", "percent"), [(1024, 90.94), (2048, 95.26), (4096, 97.57)])
def test_efficiency_of_ipv6(mtu: int, percent: float) -> None:
    assert round(efficiency(mtu, "ethernet", IPV6) * 100, 2) == percent


# Data rates of the generations, as the InfiniBand Trade Association lists them; rates as the kernel prints them.
@pytest.mark.parametrize(
    ("described", "data"),
    [
        ("2.5 Gb/sec (1X SDR)", 2),
        ("10 Gb/sec (4X SDR)", 8),
        ("10 Gb/sec (4X)", 8),
        ("20 Gb/sec (4X DDR)", 16),
        ("40 Gb/sec (4X QDR)", 32),
        ("40 Gb/sec (4X FDR10)", 40),
        ("56 Gb/sec (4X FDR)", 54.55),
        ("100 Gb/sec (4X EDR)", 100),
        ("100 Gb/sec (2X HDR)", 100),
        ("200 Gb/sec (4X HDR)", 200),
        ("400 Gb/sec (4X NDR)", 400),
        ("800 Gb/sec (4X XDR)", 800),
    ],
)
def test_data_rate_of_infiniband(described: str, data: float) -> None:
    rate = float(described.split()[0])
    assert round(rate * coding(rate, described), 2) == data
    # A port that came up at another rate since the plan was made.
    assert coding(rate, "1 Gb/sec (4X NDR)") == (0.8 if "FDR10" in described else coding(rate, described))


# Published payload rates by generation, lanes and MPS; 256 is what is assumed when MPS is not known.
@pytest.mark.parametrize(
    ("speed", "width", "payload", "rate"),
    [
        (8.0, 8, None, 57),
        (8.0, 16, 256, 113),
        (16.0, 16, None, 227),
        (32.0, 16, None, 454),
        (5.0, 8, None, 29),
        (8.0, 8, 128, 52),
        (8.0, 8, 512, 59),
        (16.0, 8, 512, 119),
        (16.0, 16, 128, 209),
        (32.0, 16, 512, 474),
    ],
)
def test_pcie_rate(speed: float, width: int, payload: int | None, rate: int) -> None:
    assert round(pcie_rate(speed, width, payload)) == rate


@pytest.mark.parametrize(
    ("mtu", "layer", "expected"),
    [
        (9000, "ethernet", 4096),
        (1500, "ethernet", 1024),
        (4096, "ethernet", 4096),
        (None, "ethernet", None),
        (2044, "infiniband", None),
        (2048, "infiniband", 2048),
    ],
)
def test_rdma_mtu(mtu: int | None, layer: str, expected: int | None) -> None:
    assert rdma_mtu(mtu, layer) == expected


def bound(found: Expectation) -> tuple[float | None, str, float | None]:
    return (found.least and round(found.least, 2), found.bound_by, found.ceiling and round(found.ceiling, 2))


GEN4_X8 = {"speed": 16.0, "width": 8, "max_payload": 512}


@pytest.mark.parametrize(
    ("a", "b", "planned", "expected"),
    [
        (side(), side(), None, (93.14, "link", 98.04)),
        (side(), side(rate=25.0), None, (23.28, "link", 24.51)),
        (side(), side(), 1024, (87.96, "link", 92.59)),
        # The ceiling is what the link carries: PCIe may do better than computed, a link cannot.
        (side(pcie={"speed": 8.0, "width": 8}), side(), None, (53.91, "pcie", 98.04)),
        (side(rate=200.0, pcie=GEN4_X8), side(rate=200.0), None, (112.65, "pcie", 196.07)),
        (side(pcie={"speed": None, "width": None}), side(), None, (93.14, "link", 98.04)),
        # A floor says what is enough, not what is possible.
        (side(floor=0.5), side(), None, (0.5, "floor", 98.04)),
        (side(floor=180.0), side(floor=90.0), None, (90.0, "floor", 98.04)),
        (side(floor=50.0, rate=None), side(floor=50.0), None, (50.0, "floor", 98.04)),
        (side(floor=50.0, mtu=None), side(floor=50.0, rate=None), None, (50.0, "floor", 98.04)),
        # Who gives a floor above what the link carries does not believe its rate; nor is a device believed there.
        (side(floor=99.0), side(floor=99.0), None, (99.0, "floor", None)),
        (side(floor=0.5, rate=None, described_rate=2.5), side(floor=0.5, rate=None), None, (0.5, "floor", None)),
        (side(rate=None, described_rate=25.0), side(), None, (23.28, "link", 24.51)),
        # The end without a floor is the slower one.
        (side(rate=400.0, floor=180.0), side(rate=100.0), None, (93.14, "link", 98.04)),
        (side(floor=0.5), side(rate=None), None, (0.5, "floor", 98.04)),
        (side(rate=None), side(), None, (None, "unknown", None)),
        ({}, side(), None, (None, "unknown", None)),
        # A limit of a VF holds for the sender, and that is the client of a write.
        (side(vf_rate=50.0), side(), None, (46.57, "vf", 98.04)),
        (side(), side(vf_rate=50.0), None, (93.14, "link", 98.04)),
        (side(tolerance=0.9), side(), None, (88.23, "link", 98.04)),
        (side(kinds={"write_bw": {"tolerance": 0.5}, "read_bw": {"floor": 1.0}}), side(), None, (49.02, "link", 98.04)),
    ],
)
def test_expect(a: dict[str, Any], b: dict[str, Any], planned: int | None, expected: tuple[Any, ...]) -> None:
    assert bound(between({"a": a, "b": b}, planned)) == expected


@pytest.mark.parametrize(
    ("meant", "rate", "expected"),
    [
        # What limits a link on the way is no property of the port: its own rate stays the ceiling.
        (50.0, 100.0, (46.57, "link", 98.04)),
        (0.016, 1.0, (0.01, "link", 0.98)),
        (200.0, 100.0, (93.14, "link", 98.04)),
        (None, 100.0, (93.14, "link", 98.04)),
    ],
)
def test_links_are_expected_at_the_rate_that_they_are_meant_to_have(
    meant: float | None, rate: float, expected: tuple[Any, ...]
) -> None:
    known = [side_of({**RAIL, "speed": meant}, name, side(rate=rate), planned_mtu=None, asked=Asked()) for name in "ab"]
    assert bound(expect(RAIL, known, asked=Asked())) == expected


def test_the_reason_names_the_rate_that_links_are_meant_to_have() -> None:
    known = [side_of({**RAIL, "speed": 0.016}, name, side(), planned_mtu=None, asked=Asked()) for name in "ab"]
    found = expect(RAIL, known, asked=Asked())
    assert found.why == "95 % of the 0.016 Gb/s of link_speed for the link of a at RDMA MTU 4096"
    told = f"8 Mb/s measured, 14.9 Mb/s expected ({found.why})"
    assert judge(Sample(65536, 100, 0.008), "", found) == ("fail", told)


def shared(*rails: str) -> dict[str, Any]:
    return {"pci": "0000:00:01.0", "speed": 16.0, "width": 8, "rails": list(rails)}


@pytest.mark.parametrize(
    ("asked", "a", "b", "expected"),
    [
        (Asked("read_bw"), side(vf_rate=50.0), side(), (93.14, "link", 98.04)),
        (Asked("read_bw"), side(), side(vf_rate=50.0), (46.57, "vf", 98.04)),
        (Asked(bidirectional=True), side(bidirectional=0.9), side(bidirectional=0.9), (176.47, "link", 196.07)),
        (Asked(bidirectional=True), side(bidirectional=0.9), side(vf_rate=50.0), (88.23, "vf", 196.07)),
        (Asked(bidirectional=True), side(floor=150.0), side(), (150.0, "floor", 196.07)),
        # Two ports of a card share its PCIe link, but only when both are measured at once.
        (Asked(), side(pcie={**GEN4_X8, "ports": 2}), side(), (56.33, "pcie", 98.04)),
        (Asked(together=False), side(pcie={**GEN4_X8, "ports": 2}), side(), (93.14, "link", 98.04)),
        # So do NICs behind one switch, and a link above the NIC may be slower than its own.
        (Asked(), side(pcie=GEN4_X8, uplinks=[shared("rail0", "rail1")]), side(), (56.33, "pcie", 98.04)),
        (Asked(together=False), side(pcie=GEN4_X8, uplinks=[shared("rail0", "rail1")]), side(), (93.14, "link", 98.04)),
        (
            Asked(together=False),
            side(pcie=GEN4_X8, uplinks=[{**shared("rail0"), "speed": 5.0}]),
            side(),
            (28.6, "pcie", 98.04),
        ),
        (Asked(), side(gpu="PIX"), side(gpu="PXB"), (90.34, "gpu", 98.04)),
        (Asked(), side(gpu="SYS"), side(), (None, "unknown", None)),
        (Asked(gpu_paths={"SYS": 0.5}), side(gpu="SYS"), side(gpu="PIX"), (46.57, "gpu", 98.04)),
        (Asked(gpu_paths={"PIX": 1.0}), side(gpu="PIX"), side(), (93.14, "link", 98.04)),
        (Asked(gpu_paths=dict.fromkeys(["PIX", "SYS"])), side(gpu="PIX"), side(), (90.34, "gpu", 98.04)),
    ],
)
def test_what_is_asked_counts(asked: Asked, a: dict[str, Any], b: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert bound(between({"a": a, "b": b}, None, asked=asked)) == expected


@pytest.mark.parametrize(
    ("a", "b", "asked", "why"),
    [
        (side(), side(rate=25.0), Asked(), "95 % of the 25 Gb/s link of b at RDMA MTU 4096"),
        (side(), side(rate=None), Asked(), "the link rate or MTU of b is not known; give rdma_fabric.thresholds.floor"),
        (
            side(rate=200.0, pcie=GEN4_X8),
            side(rate=200.0),
            Asked(),
            "95 % of the PCIe x8 16 GT/s link of a at MPS 512 (119 Gb/s on a 200 Gb/s port)",
        ),
        (
            side(pcie={"speed": 8.0, "width": 16, "ports": 2}),
            side(),
            Asked(),
            "95 % of the PCIe x16 8 GT/s link of a at MPS 256, which is assumed, shared by 2 rails (56.7 Gb/s on a "
            "100 Gb/s port)",
        ),
        (
            side(bidirectional=0.9),
            side(vf_rate=50.0, bidirectional=0.9),
            Asked(bidirectional=True),
            "90 % of twice the 50 Gb/s limit of a VF of b at RDMA MTU 4096",
        ),
        (
            side(gpu="PIX"),
            side(),
            Asked(),
            "95 % of the 97 % that GPU memory by PIX of a gets of the 100 Gb/s link of a at RDMA MTU 4096",
        ),
        (
            side(gpu="SYS"),
            side(),
            Asked(),
            "NIC and GPU of a meet at SYS, for which no usual rate is known; give rdma_fabric.thresholds.gpu_paths.SYS",
        ),
    ],
)
def test_why_names_the_bound_and_the_host(a: dict[str, Any], b: dict[str, Any], asked: Asked, why: str) -> None:
    assert between({"a": a, "b": b}, None, asked=asked).why == why


def reading(value: float) -> Sample:
    return Sample(65536, 1000, value)


@pytest.mark.parametrize(
    ("limits", "value", "verdict", "reason"),
    [
        ((None, None), 900.0, "pass", ""),
        ((5.0, None), 4.9, "pass", ""),
        ((5.0, None), 5.13, "fail", "5.13 us measured, at most 5 us expected (latency_us of the inventory)"),
        ((5.0, 8.0), 5.13, "pass", ""),
    ],
)
def test_latency_has_a_limit_only_when_one_was_given(
    limits: tuple[float | None, float | None], value: float, verdict: str, reason: str
) -> None:
    sides = {name: side(rate=None, latency_us=limit) for name, limit in zip("ab", limits)}
    found = between(sides, None, asked=Asked("write_lat"))
    assert (found.unit, found.most, found.least) == ("us", max(filter(None, limits), default=None), None)
    assert judge(reading(value), "", found) == (verdict, reason)
    assert judge(None, "server: was killed", found) == ("no_data", "server: was killed")


@pytest.mark.parametrize(
    ("value", "verdict"), [(112.0, "fail"), (113.0, "pass"), (124.0, "pass"), (199.9, "pass"), (200.1, "no_data")]
)
def test_more_than_the_link_carries_is_no_reading(value: float, verdict: str) -> None:
    found = between({"a": side(rate=200.0, pcie=GEN4_X8), "b": side(rate=200.0)}, None)
    assert judge(reading(value), "", found)[0] == verdict


@pytest.mark.parametrize(
    ("floor", "value", "verdict"),
    [
        (50.0, 5000.0, "no_data"),
        (50.0, 99.9, "pass"),
        (50.0, 49.0, "fail"),
        (180.0, 95.0, "fail"),
        (180.0, 190.0, "pass"),
    ],
)
def test_a_floor_does_not_make_the_impossible_pass(floor: float, value: float, verdict: str) -> None:
    found = between({"a": side(floor=floor), "b": side(floor=floor)}, None)
    assert judge(reading(value), "", found)[0] == verdict
    doubt = "the floor of 180 Gb/s is above the 98 Gb/s of the 100 Gb/s link of a"
    assert found.doubt == (doubt if floor == 180.0 else "")


RATES = st.sampled_from([10.0, 25.0, 100.0, 200.0, 400.0, 800.0])
PCIE = st.none() | st.fixed_dictionaries(
    {
        "speed": st.sampled_from([5.0, 8.0, 16.0, 32.0, 64.0]),
        "width": st.sampled_from([1, 4, 8, 16]),
        "max_payload": st.sampled_from([None, 128, 256, 512, 4096]),
        "ports": st.sampled_from([1, 2]),
    }
)
SIDES = st.builds(
    side,
    rate=RATES,
    mtu=st.sampled_from([1024, 2048, 4096]),
    pcie=PCIE,
    vf_rate=st.none() | RATES,
    tolerance=st.floats(0.01, 1.0),
    bidirectional=st.floats(0.01, 1.0),
    gpu=st.sampled_from([None, "PIX", "PXB"]),
)
ASKED = st.builds(
    Asked,
    st.sampled_from(["write_bw", "read_bw", "send_bw"]),
    st.booleans(),
    st.booleans(),
    headers=st.sampled_from([0, IPV6, GRH]),
)


@given(SIDES, SIDES, ASKED)
def test_a_healthy_reading_is_possible_and_the_order_of_the_ends_is_free(a: Any, b: Any, asked: Asked) -> None:
    found = between({"a": a, "b": b}, None, asked=asked)
    assert found.least is not None and found.ceiling is not None
    assert 0 < found.least <= found.ceiling
    ways = 2 if asked.bidirectional else 1
    assert found.ceiling <= ways * min(a["rate"], b["rate"])
    assert judge(reading(found.ceiling), "", found)[0] == "pass"
    if not (a["vf_rate"] or b["vf_rate"]):
        assert between({"b": b, "a": a}, None, asked=asked).least == found.least


@given(SIDES, SIDES, ASKED, st.sampled_from(["rate", "tolerance", "bidirectional"]))
def test_a_worse_end_never_raises_what_is_expected(a: Any, b: Any, asked: Asked, key: str) -> None:
    worse = {**b, key: b[key] / 2}
    before, after = (between({"a": a, "b": other}, None, asked=asked).least for other in (b, worse))
    assert before is not None and after is not None and after <= before
