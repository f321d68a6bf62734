"""What recorded output of ethtool and mlxlink shows of ports. Milliseconds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.port_state import (
    RECEIVED,
    SENT,
    TEMPERATURE,
    Shown,
    before_and_after,
    parse,
    shown,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass

FIXTURES = Path(__file__).parents[6] / "fixtures/ports"
PORT = "=== gpufabric port rail0 eth0\n"


def read(name: str) -> Shown:
    return shown((FIXTURES / name).read_text())


def test_a_module_of_eight_lanes_with_its_thresholds() -> None:
    found = read("ethtool-qsfp-dd.txt")
    assert found.module == "Arista Networks QDD-400G-XDR4, serial number XKT242211481"
    assert found.values[TEMPERATURE] == {0: 70.49}
    assert found.values[SENT][4] == 1.58 and found.values[SENT][5] == -math.inf
    assert found.values[RECEIVED] == {1: 3.52, 2: 2.7, 3: 2.65, 4: 2.6, **dict.fromkeys((5, 6, 7, 8), -math.inf)}
    assert (found.bias[4], found.bias[5]) == (110.1, 0)
    assert found.limits[RECEIVED, "low", "warning"] == -6.9
    assert found.limits[SENT, "high", "alarm"] == 5.5
    assert found.limits[TEMPERATURE, "high", "warning"] == 70
    assert len(found.limits) == 12 and not found.counters


def test_modules_of_four_lanes_and_of_one() -> None:
    found = read("ethtool-qsfp.txt")
    assert (found.values[RECEIVED][1], found.bias[1], found.bias[2]) == (-1.15, 6.662, 0)
    assert found.limits[SENT, "low", "alarm"] == -math.inf
    found = read("ethtool-sfp.txt")
    assert found.values == {SENT: {0: -2.42}, RECEIVED: {0: -33.98}, TEMPERATURE: {0: 30.14}}
    assert found.bias == {0: 7.934}


def test_what_the_firmware_shows() -> None:
    found = read("mlxlink-cx8.json")
    assert found.module == "ACCELINK RTXM600-2401, serial number MODSN0001"
    assert found.values == {
        RECEIVED: {1: 0, 2: 2, 3: -9, 4: 0},
        SENT: dict.fromkeys((1, 2, 3, 4), 2),
        TEMPERATURE: {0: 48},
    }
    assert (found.limits[RECEIVED, "low", "limit"], found.limits[TEMPERATURE, "high", "limit"]) == (-8, 75)
    assert found.fec == "Standard_RS-FEC - (544,514)"
    assert found.raw == 2e-9
    assert found.counters == {"mlxlink_effective_errors": 0}


def test_a_copper_cable_has_no_values() -> None:
    found = read("mlxlink-copper.json")
    assert (found.values, found.limits, found.module) == ({}, {}, "FS OSFPFL-400G-PC01, serial number C2604279049-2")


def test_ethtool_takes_precedence_over_the_firmware() -> None:
    both = "".join((FIXTURES / name).read_text() for name in ("ethtool-sfp.txt", "mlxlink-cx8.json"))
    found = shown(both)
    assert found.values[RECEIVED] == {0: -33.98} and (RECEIVED, "low", "limit") not in found.limits
    assert found.module.startswith("FINISAR")


def test_fec_and_counters() -> None:
    found = read("ethtool-fec.txt")
    assert (found.fec, found.counters) == ("RS", {"corrected_blocks": 0, "uncorrectable_blocks": 0})
    histogram = "fec_symbol_err_0: 445 [ per_lane: 125, 120 ]\n rx_prio3_bytes: 77"
    assert shown(histogram).counters == {"fec_symbol_err_0": 445, "rx_prio3_bytes": 77}
    assert shown("unread=ethtool is not installed").unread == "ethtool is not installed"
    assert shown("unread=another text of a host").unread == ""


def test_ports_are_found_after_the_description_and_in_the_last_logs() -> None:
    described = f"=== gpufabric described 1\n{PORT}uncorrectable_blocks: 1\n"
    passes = (
        Pass({"a": f"x\n{PORT}uncorrectable_blocks: 2\n", "b": f"x\n{PORT}uncorrectable_blocks: 3\n"}, {}),
        Pass({"a": f"x\n{PORT}uncorrectable_blocks: 4\n=== gpufabric batch 2 done 1 0", "c": "killed"}, {}),
    )
    before, after = before_and_after(Evidence({"a": described, "c": "="}, {}, passes))
    assert {host: ports["rail0"]["eth0"].counters for host, ports in before.items()} == {
        "a": {"uncorrectable_blocks": 1}
    }
    assert {host: ports["rail0"]["eth0"].counters for host, ports in after.items()} == {
        "a": {"uncorrectable_blocks": 4},
        "b": {"uncorrectable_blocks": 3},
    }


def test_pods_are_those_of_their_hosts() -> None:
    read_there = ({"a": f"{PORT}corrected_blocks: 1"}, {"a": f"{PORT}corrected_blocks: 5"})
    before, after = before_and_after(Evidence({"a": PORT}, {}, (Pass({"a": PORT}, {}),), ports=read_there))
    assert [one["a"]["rail0"]["eth0"].counters for one in (before, after)] == [
        {"corrected_blocks": 1},
        {"corrected_blocks": 5},
    ]


def test_what_a_hostile_host_prints_is_bounded() -> None:
    many = "".join(f"=== gpufabric port rail0 eth{number}\nVendor SN : {'x' * 40}\n" for number in range(50))
    found = parse(many + "=== gpufabric port rail0 eth;1\n=== gpufabric port\n" + PORT + "a: " + "9" * 99999)
    assert list(found) == ["rail0"] and len(found["rail0"]) == 16
    assert shown(f"Vendor PN : a\x1b[31mb{'c' * 10}").names == {"PN": "a?[31mbcccccccccc"}


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    parse(PORT + text)
    shown(
        "\n".join(f"{name} : {text}" for name in ("Module temperature", "Laser rx power low alarm threshold", '"FEC"'))
    )


@pytest.mark.parametrize("text", ["Module temperature : 1e9 degrees C", '"Raw Physical BER" : "1E-9999"', '"FEC" : 3'])
def test_values_of_other_forms_are_left_out(text: str) -> None:
    found = shown(text)
    assert (found.values, found.raw) == ({}, None)
