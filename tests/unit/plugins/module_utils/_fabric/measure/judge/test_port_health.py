"""What counters of ports prove of the traffic class, and which findings they are. Less than a second.

The counters are written by hand, by the names of mlx5, mlx4 and bnxt_en.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import complete
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import port_health
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.port_health import Port
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import Run, Sample
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import Measurement

SENT = int(400e9 / 8 * 10)
CLASS = {"traffic": {"r0": {"traffic_class": 106, "dscp": 26, "priority": 3}}}
NO_CLASS = {"traffic": {"r0": {"traffic_class": None, "dscp": None, "priority": None}}}
UNTRUSTED = (
    "a r0: packets with DSCP 26 were sent in priority 0, not in priority 3, so they are not in the class: the port does"
    " not trust DSCP. Set trust: dscp in the QoS settings of the host"
)


def run(amounts: dict[str, int] | None = None, counters: dict[str, int] | None = None, unread: str = "") -> Run:
    link = {"rate": "400 Gb/sec (4X NDR)", "mtu": "9000"}
    return Run(0, "", ran=11.5, amounts=amounts or {}, counters=counters or {}, unread=unread, link=link)


def absorbed(
    client: Run | None, server: Run | None, kind: str = "write_bw", average: float | None = 400.0, **tests: Any
) -> dict[tuple[str, str], Port]:
    """Two tests of 10 seconds at 400 Gb/s from host a to host b."""
    ports: dict[tuple[str, str], Port] = {}
    sample = Sample(65536, 1, average) if average else None
    for _turn in range(2):
        played = port_health.Played(Measurement("r0", "a", "b", kind), [client, server], sample)
        port_health.absorb(ports, [played], tests=complete(tests))
    return ports


def texts(ports: dict[tuple[str, str], Port], tests: dict[str, Any] = NO_CLASS, stars: bool = False) -> dict[str, str]:
    found = port_health.findings(tests, ports, stars=stars)
    return {one["kind"]: one["text"] for one in found if one["host"] == "a"}


@pytest.mark.parametrize(
    ("client", "server", "proofs"),
    [
        (
            run({"tx_prio3_bytes": SENT, "rx_prio3_bytes": 9}),
            run({"rx_prio_3_bytes": SENT}),
            ["traffic class proven by counters of its priority at 2 of 2 ports"],
        ),
        (
            run({"tx_bytes_pri3": SENT, "tx_bytes_pri0": SENT}),
            run(unread="the driver igb has no counters by priority"),
            [
                "traffic class proven by counters of its priority at 1 of 2 ports",
                "traffic class not proven at 1 of 2 ports (b): the driver igb has no counters by priority",
            ],
        ),
        (
            run({"tx_prio3_bytes": SENT // 2, "tx_prio0_bytes": SENT // 2}),
            run({"rx_prio3_bytes": SENT // 100}),
            [
                "traffic class proven by counters of its priority at 0 of 2 ports",
                "traffic class not proven at 1 of 2 ports (a): only 50% of the bytes were in priority 3",
                "traffic class not proven at 1 of 2 ports (b): the counters by priority do not include the packets of"
                " the tests",
            ],
        ),
        (
            run(unread="the port of net1 is not visible to its tester"),
            run(unread="the port of net1 is not visible to its tester"),
            [
                "traffic class proven by counters of its priority at 0 of 2 ports",
                "traffic class not proven at 2 of 2 ports (a, b): the port of net1 is not visible to its tester",
            ],
        ),
    ],
)
def test_proof(client: Run, server: Run, proofs: list[str]) -> None:
    ports = absorbed(client, server)
    assert port_health.proofs(CLASS, ports) == proofs
    assert port_health.proofs(NO_CLASS, ports) == port_health.proofs({}, ports) == []
    # None of this says that packets were in another priority.
    assert "class" not in texts(ports, CLASS)


def test_marked_but_in_another_priority() -> None:
    ports = absorbed(run({"tx_prio0_bytes": SENT * 2}), run({"rx_prio0_bytes": SENT}))
    found = [one for one in port_health.findings(CLASS, ports, stars=False) if one["kind"] == "class"]
    assert found[0]["text"] == UNTRUSTED
    assert (found[0]["found"], found[0]["expected"]) == ("priority 0", "priority 3")
    assert found[1]["host"] == "b" and found[1]["text"].endswith(
        "in the class: this port does not trust DSCP, or a switch changed the DSCP. Set trust: dscp on hosts and switch"
        " ports"
    )
    other = absorbed(run({"tx_prio5_bytes": SENT, "tx_prio3_bytes": SENT // 50}), None)
    assert "in priority 5, not in priority 3" in texts(other, CLASS)["class"]
    assert texts(other, CLASS)["class"].endswith("Compare it with that of the switches")
    assert port_health.proofs(CLASS, other)[0].endswith("at 0 of 1 ports")


@pytest.mark.parametrize(("kind", "way"), [("write_bw", "tx"), ("read_bw", "rx")])
def test_the_side_that_sends_is_judged_by_what_it_sent(kind: str, way: str) -> None:
    assert "class" in texts(absorbed(run({f"{way}_prio0_bytes": SENT}), None, kind), CLASS)
    other = {"tx": "rx", "rx": "tx"}[way]
    assert "class" not in texts(absorbed(run({f"{other}_prio0_bytes": SENT}), None, kind), CLASS)
    # Of both directions perftest prints the sum.
    both = absorbed(run({"tx_prio3_bytes": SENT, "rx_prio3_bytes": SENT}), None, kind, 800.0, directions="together")
    assert port_health.proofs(CLASS, both)[0].endswith("at 1 of 1 ports")


def test_tests_without_a_rate_prove_nothing() -> None:
    for ports in (absorbed(run({"tx_prio0_bytes": SENT}), None, average=None), absorbed(None, None)):
        assert port_health.proofs(CLASS, ports) == [] and texts(ports, CLASS) == {}


@pytest.mark.parametrize(
    ("client", "server", "expected"),
    [
        # Values of a healthy port.
        (
            run({"rx_corrected_bits_phy": 40_000_000, "rx_prio3_pause_duration": 400_000}, {"np_cnp_sent": 9000}),
            run(),
            {},
        ),
        (
            run({"rx_corrected_bits_phy": 100_000_000}),
            run(),
            {
                "fec": "a r0: FEC corrected 2.2e-05 of the received bits, at most 1e-05 expected. Check cable and"
                " transceiver"
            },
        ),
        (
            run({"rx_prio3_pause_duration": 2_000_000, "tx_prio3_pause_duration": 1_000}),
            run(),
            {
                "pause": "a r0: PFC paused priority 3 in 20% of the time of its tests: the switch paused this port."
                " Look for a slow receiver or a congested switch port"
            },
        ),
        (
            run({"tx_prio3_pause_duration": 30_000_000}),
            run(),
            {
                "pause": "a r0: PFC paused priority 3 in 100% of the time of its tests: this port paused its switch."
                " Check PCIe, memory and load of the host"
            },
        ),
        (
            run({}, {"tx_pause_storm_error_events": 1}),
            run(),
            {
                "pause": "a r0: PFC storm: this port paused its switch for so long that the NIC intervened"
                " (tx_pause_storm +2). Check PCIe, memory and load of the host"
            },
        ),
        (
            run({}, {"rx_pcs_symbol_err_phy": 1, "symbol_error": 2}),
            run(),
            {
                "signal": "a r0: errors on the wire that were not corrected (rx_pcs_symbol_err_phy +2, symbol_error"
                " +4). Check cable and transceiver"
            },
        ),
        (
            run({}, {"np_cnp_sent": 20_000}),
            run(),
            {
                "congestion": "a r0: this port sent 2000 congestion notifications (CNP) per second, at most 1000"
                " expected from one partner at a time. Check for other traffic and for uplinks with too few paths"
            },
        ),
    ],
)
def test_findings(client: Run, server: Run, expected: dict[str, str]) -> None:
    assert texts(absorbed(client, server)) == expected


def test_stars_are_congested() -> None:
    ports = absorbed(run({}, {"np_cnp_sent": 20_000}), run())
    assert texts(ports, stars=True) == {}


@pytest.mark.parametrize(
    ("again", "kind", "end"),
    [
        ({}, "order", "and no sender counted any that was sent again: adaptive routing, not loss"),
        (
            {"packet_seq_err": 1},
            "loss",
            "and senders sent packets again: loss, or several paths that the NIC does not support. Check drops and"
            " adaptive routing on the switches",
        ),
    ],
)
def test_another_order_is_loss_only_where_senders_sent_again(again: dict[str, int], kind: str, end: str) -> None:
    # Host a reads from host b, so it receives.
    found = texts(absorbed(run({}, {"out_of_sequence": 5000}), run({}, again), "read_bw"))
    assert list(found) == [kind]
    assert found[kind] == f"a r0: 10000 packets came out of order (4.1e-05 of those received), {end}"
    assert texts(absorbed(run({}, {"out_of_sequence": 50}), run({}, again), "read_bw")) == {}


def test_no_order_is_told_as_harmless_where_a_sender_did_not_list_all_counters() -> None:
    found = texts(absorbed(run({}, {"out_of_sequence": 5000}), run({}, {"not_listed": 2}), "read_bw"))
    assert found == {
        "order": "a r0: 10000 packets came out of order (4.1e-05 of those received): loss, or adaptive routing. Testers"
        " of senders did not list all counters, so it is not known which. Check drops on the switches"
    }
    lost = run({}, {"not_listed": 2, "packet_seq_err": 1})
    assert list(texts(absorbed(run({}, {"out_of_sequence": 5000}), lost, "read_bw"))) == ["loss"]


def test_order_is_compared_with_packets_of_the_mtu_and_only_in_tests_with_a_rate() -> None:
    disorder = run({}, {"out_of_sequence": 200})
    assert list(texts(absorbed(disorder, run(), "read_bw"))) == ["order"]
    # Four times as many packets.
    assert texts(absorbed(disorder, run()._replace(link={"mtu": "1500"}), "read_bw")) == {}
    assert texts(absorbed(disorder, run(), "read_bw", mtu=1024)) == {}
    ports = absorbed(run(), run(), "read_bw")
    failed = port_health.Played(
        Measurement("r0", "a", "b", "write_bw"), [run({}, {"out_of_sequence": 9000}), run()], None
    )
    port_health.absorb(ports, [failed], tests=complete({}))
    assert texts(ports) == {}


def test_one_test_that_was_not_read_hides_no_other() -> None:
    ports = absorbed(run({"tx_prio0_bytes": SENT}), run())
    unread = run(unread="ethtool did not print all counters of r0")
    one = port_health.Played(Measurement("r0", "a", "b", "write_bw"), [unread, unread], Sample(65536, 1, 400.0))
    port_health.absorb(ports, [one] * 3, tests=complete({}))
    assert texts(ports, CLASS)["class"] == UNTRUSTED
    assert ports["a", "r0"].asked["tx"] == 2 * SENT
    proven = absorbed(run({"tx_prio3_bytes": SENT}), None)
    port_health.absorb(proven, [one], tests=complete({}))
    assert port_health.proof(proven["a", "r0"], 3) == ""


@pytest.mark.parametrize("average", [1e305, 1e100, 3e9])
def test_an_impossible_rate_counts_as_none(average: float) -> None:
    ports = absorbed(run({"tx_prio0_bytes": SENT}), run(), average=average)
    assert port_health.proofs(CLASS, ports) == [] and texts(ports, CLASS) == {}


def test_the_centre_of_a_star_counts_once() -> None:
    """Three hosts send to one; each share at the centre reads the counters of all."""
    part = SENT // 3
    centre = run({"rx_prio0_bytes": 3 * part // 4 * 3, "rx_prio3_bytes": part * 3 // 4}, {"out_of_sequence": 60})
    star = [
        port_health.Played(
            Measurement("r0", name, "z", "write_bw", star="incast"),
            [run({"tx_prio3_bytes": part}), centre],
            Sample(65536, 1, 400 / 3),
        )
        for name in "abc"
    ]
    ports: dict[tuple[str, str], Port] = {}
    port_health.absorb(ports, star, tests=complete({}))
    own = ports["z", "r0"]
    assert port_health.proof(own, 3) == "only 25% of the bytes were in priority 3"
    assert (own.disorder, own.seconds) == (60, 10.0) and abs(own.asked["rx"] - SENT) < 4
    assert all(port_health.proof(ports[name, "r0"], 3) == "" for name in "abc")
    # A share whose counters were not read makes no difference.
    star[0].runs[1] = run(unread="why")
    again: dict[tuple[str, str], Port] = {}
    port_health.absorb(again, star, tests=complete({}))
    assert again["z", "r0"] == own


@given(
    st.dictionaries(st.from_regex(r"[rt]x_prio[0-7]_(bytes|pause_duration)", fullmatch=True), st.integers(0, 1 << 60)),
    st.dictionaries(st.sampled_from(["out_of_sequence", "np_cnp_sent", "symbol_error", "x"]), st.integers(0, 1 << 60)),
    st.sampled_from(["write_bw", "read_bw", "write_lat"]),
)
def test_proven_and_refuted_exclude_each_other(amounts: dict[str, int], counters: dict[str, int], kind: str) -> None:
    ports = absorbed(run(amounts, counters), run(amounts, counters), kind)
    found = port_health.findings(CLASS, ports, stars=False)
    proven = {host for (host, _rail), port in ports.items() if port_health.proof(port, 3) == ""}
    assert not proven & {one["host"] for one in found if one["kind"] == "class"}
