"""Findings about transceivers, FEC and bit errors. Milliseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import transceivers
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.port_state import Ports, shown

FIXTURES = Path(__file__).parents[6] / "fixtures/ports"


def hosts(*texts: str) -> dict[str, Ports]:
    return {f"gpu-{number}": {"rail0": {"eth0": shown(text)}} for number, text in enumerate(texts, 1)}


def fixture(name: str, *changes: tuple[str, str]) -> str:
    text = (FIXTURES / name).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def findings(before: str, after: str | None = None, **known: Any) -> list[tuple[str, str]]:
    last = hosts(before if after is None else after)
    found = transceivers.findings(hosts(before), last, rails=["rail0"], **known)
    return [(one["kind"], one["text"]) for one in found]


def test_a_module_that_is_too_warm() -> None:
    """As recorded; lanes without laser current are not in use."""
    (found,) = transceivers.findings(hosts(fixture("ethtool-qsfp-dd.txt")), {}, rails=["rail0"])
    assert found == {
        "host": "gpu-1",
        "rail": "rail0",
        "kind": "optics",
        "found": "70.49 degrees C",
        "expected": "at most 70 degrees C",
        "text": "gpu-1 rail0: the transceiver has 70.49 degrees C, expected at most 70 degrees C (warning threshold of"
        " the module) before the tests. Check the airflow at the port and the fans of the host. Module: Arista Networks"
        " QDD-400G-XDR4, serial number XKT242211481",
    }


COOL = fixture("ethtool-qsfp-dd.txt", ("70.49 degrees C", "55.00 degrees C"))
RX = "Rcvr signal avg optical power (Channel {}) : "
CLEAN = "Clean the connectors. If it remains, replace the fiber or the transceiver at the other end"
OF = " Module: Arista Networks QDD-400G-XDR4, serial number XKT242211481"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            [(RX.format(2) + "1.8629 mW / 2.70", RX.format(2) + "0.1862 mW / -7.30")],
            "lane 2 receives -7.3 dBm, expected at least -6.9 dBm (warning threshold of the module) before and after"
            f" the tests. {CLEAN}.{OF}",
        ),
        (
            [
                (RX.format(2) + "1.8629 mW / 2.70", RX.format(2) + "0.0862 mW / -10.64"),
                (RX.format(3) + "1.8427 mW / 2.65", RX.format(3) + "0.0000 mW / -inf"),
            ],
            "lanes 2, 3 receive no light to -10.64 dBm, expected at least -8.9 dBm (alarm threshold of the module)"
            f" before and after the tests. {CLEAN}.{OF}",
        ),
        (
            # One is beyond the alarm threshold, the other one only beyond the warning.
            [
                (RX.format(2) + "1.8629 mW / 2.70", RX.format(2) + "0.0862 mW / -10.64"),
                (RX.format(3) + "1.8427 mW / 2.65", RX.format(3) + "0.1862 mW / -7.30"),
            ],
            "lanes 2, 3 receive -10.64 to -7.3 dBm, expected at least -6.9 dBm (warning threshold of the module)"
            f" before and after the tests. {CLEAN}.{OF}",
        ),
        (
            [("1.4387 mW / 1.58", "0.0800 mW / -10.97")],
            "lane 4 sends -10.97 dBm, expected at least -3.9 dBm (alarm threshold of the module) before and after the"
            f" tests. Replace the transceiver.{OF}",
        ),
    ],
)
def test_light_levels_of_lanes_in_use(changes: list[tuple[str, str]], text: str) -> None:
    for old, _new in changes:
        assert old in COOL
    bad = COOL
    for old, new in changes:
        bad = bad.replace(old, new)
    assert findings(bad) == [("optics", f"gpu-1 rail0: {text}")]
    assert findings(COOL, bad)[0][1] == f"gpu-1 rail0: {text}".replace("before and after", "after")


@pytest.mark.parametrize(
    "text",
    [
        COOL,
        fixture("ethtool-qsfp.txt"),
        fixture("mlxlink-copper.json"),
        fixture("mlxlink-cx8.json", ("0,2,-9,0", "0,2,-7,0")),
        # A module without laser current, as of a port that is down: its link is a finding already.
        fixture("ethtool-sfp.txt", ("7.934 mA", "0.000 mA")),
        # Thresholds of zero are none.
        "Module temperature : 40.00 degrees C\nModule temperature high alarm threshold : 0.00 degrees C\n"
        "Module temperature low alarm threshold : 0.00 degrees C",
        "",
    ],
)
def test_healthy_modules_and_those_without_values(text: str) -> None:
    assert findings(text) == []


def test_a_module_has_one_temperature_whatever_a_host_prints() -> None:
    hot = "".join(f"Module temperature (Channel {lane}) : 9{lane}.00 degrees C\n" for lane in (1, 2))
    limits = "".join(
        f"Module temperature {one} degrees C\n" for one in ("high alarm threshold : 80", "low alarm threshold : 0")
    )
    for text in (hot + limits, '"Temperature [C]" : "90,91,92,93 [-5..80]",'):
        ((kind, found),) = findings(text)
        assert kind == "optics" and found.startswith("gpu-1 rail0: the transceiver has 9"), found


def test_a_fiber_without_light() -> None:
    ((kind, text),) = findings(fixture("ethtool-sfp.txt"))
    assert kind == "optics" and "the transceiver receives -33.98 dBm, expected at least -20 dBm (alarm" in text
    ((kind, text),) = findings(fixture("mlxlink-cx8.json"))
    assert "lane 3 receives -9 dBm, expected at least -8 dBm (range of the module)" in text


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            "uncorrectable_blocks: 5",
            "uncorrectable_blocks: 9",
            ["FEC could not correct 4 blocks (ethtool --show-fec). Check cable and transceiver"],
        ),
        ("uncorrectable_blocks: 5", "uncorrectable_blocks: 5", []),
        # The counters were cleared meanwhile, or not read before.
        ("uncorrectable_blocks: 5", "uncorrectable_blocks: 2", []),
        ("", "uncorrectable_blocks: 9", []),
        (
            '"Effective Physical Errors" : "0",',
            '"Effective Physical Errors" : "7",',
            ["7 errors remained after FEC (mlxlink). Check cable and transceiver"],
        ),
        # Of the port itself, by perfquery -x.
        (
            "own_SymbolErrorCounter:..............70000",
            "own_SymbolErrorCounter:..............70009",
            ["errors on the wire that were not corrected (SymbolErrorCounter +9). Check cable and transceiver"],
        ),
        ("", "own_SymbolErrorCounter:..............70009", []),
        # Of InfiniBand these are sent again by the link; what is left are symbol errors.
        (
            '"Effective Physical Errors" : "0",\n"Symbol Errors" : "0",',
            '"Effective Physical Errors" : "7",\n"Symbol Errors" : "0",',
            [],
        ),
    ],
)
def test_errors_that_fec_left(before: str, after: str, expected: list[str]) -> None:
    assert findings(before, after) == [("signal", f"gpu-1 rail0: {text}") for text in expected]
    known = [{"host": "gpu-1", "rail": "rail0", "kind": "signal"}]
    assert findings(before, after, known=known) == []


def test_bits_that_are_wrong_before_fec() -> None:
    text = '"Raw Physical BER" : "{}",'
    assert findings(text.format("2E-9")) == []
    assert findings(text.format("3E-4")) == [
        (
            "fec",
            "gpu-1 rail0: 3.0e-04 of the bits are wrong before FEC (mlxlink, since its counters were cleared), at most"
            " 1e-05 expected. Check cable and transceiver",
        )
    ]


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (["RS", "RS", "RS", "None"], ["gpu-4"]),
        (["RS", "RS", "Off"], ["gpu-3"]),
        (["RS", "None"], []),
        (["None", "None", "None", "RS"], []),
        (["RS", "RS", "None", "None"], []),
        (["RS", "BaseR", "RS"], []),
    ],
)
def test_a_port_without_fec_among_ports_with_it(modes: list[str], expected: list[str]) -> None:
    ports = hosts(*(f"Active FEC encoding: {mode}" for mode in modes))
    found = transceivers.findings(ports, ports, rails=["rail0"])
    assert [one["host"] for one in found] == expected
    assert {one["text"].partition(": ")[2] for one in found} <= {
        "FEC is off, most ports of the rail use RS. Set the same FEC on this port and its switch port"
    }


def test_members_of_a_bond_are_named() -> None:
    ports = {"a": {"rail0": {"eth0": shown(COOL), "eth1": shown(fixture("ethtool-qsfp-dd.txt"))}}}
    (found,) = transceivers.findings(ports, ports, rails=["rail0"])
    assert found["text"].startswith("a rail0 eth1: the transceiver has 70.49 degrees C")
    assert transceivers.findings(ports, ports, rails=["rail1"]) == []


def test_what_was_read_is_told() -> None:
    ports = hosts(COOL, "", "unread=ethtool is not installed")
    ports["gpu-2"] = {**ports["gpu-2"], "foreign": {"eth0": shown("unread=ethtool is not installed")}}
    assert transceivers.told(ports, ports, rails=["rail0"]) == [
        "transceivers read at 1 of 3 ports",
        "transceivers not read at 1 of 3 ports (gpu-3): ethtool is not installed",
    ]
    assert transceivers.told(hosts("", ""), {}, rails=["rail0"]) == []


SWITCH = "switch 7 0x1070fd0300a00001 leaf1\n"


@pytest.mark.parametrize(
    ("before", "after", "kind", "text"),
    [
        (
            "SymbolErrorCounter:..............5\nPortRcvErrors:...................0",
            "SymbolErrorCounter:..............9\nPortRcvErrors:...................2",
            "signal",
            "received damaged data from this port (SymbolErrorCounter +4, PortRcvErrors +2). Check cable and"
            " transceiver",
        ),
        (
            "LinkDownedCounter:...............5",
            "LinkDownedCounter:...............6",
            "signal",
            "counted that the link went down (LinkDownedCounter +1). Check cable and transceiver",
        ),
        (
            "PortXmitDiscards:................5",
            "PortXmitDiscards:................6",
            "loss",
            "dropped packets to this port (PortXmitDiscards +1). Check whether this host receives too slowly",
        ),
    ],
)
def test_what_the_switch_port_counted(before: str, after: str, kind: str, text: str) -> None:
    known = [{"host": "gpu-1", "rail": "rail0", "kind": "signal"}]
    assert findings(SWITCH + before, SWITCH + after, known=known) == [
        (kind, f"gpu-1 rail0: its switch port (leaf1 port 7) {text}")
    ]
    assert findings(SWITCH + after, SWITCH + after) == findings(SWITCH, SWITCH + after) == []
    # The cable was moved meanwhile.
    assert findings(SWITCH + before, SWITCH.replace("7", "8", 1) + after) == []


@pytest.mark.parametrize(
    ("before", "after", "grown"),
    [
        # A counter of 16 bits stays at its largest value.
        ("wide_SymbolErrorCounter:..70000\nSymbolErrorCounter:..65535", ("70004", "65535"), "SymbolErrorCounter +4"),
        # The extended counters, which count separately, came only once.
        ("SymbolErrorCounter:..7", ("70004", "7"), ""),
        ("SymbolErrorCounter:..7", ("70004", "9"), "SymbolErrorCounter +2"),
        ("wide_SymbolErrorCounter:..7\nSymbolErrorCounter:..0", ("", "9"), "SymbolErrorCounter +9"),
    ],
)
def test_extended_counters_of_a_switch_port(before: str, after: tuple[str, str], grown: str) -> None:
    wide, narrow = after
    last = (f"wide_SymbolErrorCounter:..{wide}\n" if wide else "") + f"SymbolErrorCounter:..{narrow}"
    found = findings(SWITCH + before, SWITCH + last)
    assert [text.partition(" (")[2].partition("(")[2].partition(")")[0] for _kind, text in found] == [grown][
        : bool(grown)
    ]


def test_a_long_name_of_a_switch() -> None:
    """smpquery fills names with dots up to 32 characters."""
    found = shown("switch 7 0x1070fd0300a00001 ..MF0;lon-ib-leaf-017:MQM9700/U1")
    assert found.switch == {"switch": "MF0;lon-ib-leaf-017:MQM9700/U1", "port": "7"}


def test_switch_ports_that_the_plan_does_not_know() -> None:
    ports = {"a": {"rail0": {"ib0": shown(SWITCH)}, "rail1": {"ib1": shown("switch 8 0x1070fd0300a00001 ")}}}
    planned = {"rail0": {"a": {"switch": "spine", "port": "1"}, "b": {"switch": "spine", "port": "2"}}}
    assert transceivers.switches(planned, ports) == {
        **planned,
        "rail1": {"a": {"switch": "0x1070fd0300a00001", "port": "8"}},
    }
