"""Meanings of counters: the names of the drivers, and that the grave ones come first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.counters import (
    KINDS,
    link_went_down,
    meaning,
    sentences,
)

# hw_counters of the kernel's mlx5 driver (drivers/infiniband/hw/mlx5/counters.c), without those of traffic.
MLX5 = {
    "out_of_buffer": "host",
    "out_of_sequence": "order",
    "duplicate_request": "loss",
    "rnr_nak_retry_err": "host",
    "packet_seq_err": "loss",
    "implied_nak_seq_err": "loss",
    "local_ack_timeout_err": "loss",
    "rp_cnp_ignored": "congestion",
    "rp_cnp_handled": "congestion",
    "np_ecn_marked_roce_packets": "congestion",
    "np_cnp_sent": "congestion",
    "resp_local_length_error": "host",
    "resp_cqe_error": "host",
    "req_cqe_error": "host",
    "req_remote_invalid_request": "host",
    "req_remote_access_errors": "host",
    "resp_remote_access_errors": "host",
    "resp_cqe_flush_error": "host",
    "req_cqe_flush_error": "host",
    "req_transport_retries_exceeded": "loss",
    "req_rnr_retries_exceeded": "host",
    "roce_adp_retrans": "loss",
    "roce_adp_retrans_to": "loss",
    "roce_slow_restart": "loss",
    "roce_slow_restart_cnps": "loss",
    "roce_slow_restart_trans": "loss",
    "rx_icrc_encapsulated": "link",
    "cc_rx_ce_pkts": "congestion",
    "cc_rx_cnp_pkts": "congestion",
    "cc_tx_cnp_pkts": "congestion",
    "vport_out_of_sequence": "order",
}
# InfiniBand's port counters, rxe, ethtool's of mlx5, and the network device's.
OTHERS = {
    "link_downed": "link",
    "netdev_carrier_down_count": "link",
    "link_down_events_phy": "link",
    "symbol_error": "link",
    "port_rcv_errors": "link",
    "port_rcv_remote_physical_errors": "link",
    "local_link_integrity_errors": "link",
    "link_error_recovery": "link",
    "port_xmit_discards": "loss",
    "excessive_buffer_overrun_errors": "loss",
    "port_xmit_wait": "congestion",
    "port_rcv_constraint_errors": "host",
    "VL15_dropped": "host",
    "out_of_seq_request": "order",
    "rcvd_seq_err": "loss",
    "retry_exceeded_err": "loss",
    "retry_rnr_exceeded_err": "host",
    "rcvd_rnr_err": "host",
    "send_err": "host",
    "completer_retry_err": "loss",
    "rx_prio3_pause": "congestion",
    "tx_prio3_pause": "congestion",
    "rx_prio3_discards": "loss",
    "rx_discards_phy": "loss",
    "rx_prio3_buf_discard": "loss",
    "rx_pcs_symbol_err": "link",
    "rx_pfc_ena_frames_pri3": "congestion",
    "tx_pause_storm_error_events": "host",
    "rx_crc_errors_phy": "link",
    "netdev_rx_crc_errors": "link",
    "netdev_rx_dropped": "host",
    "something_new": "other",
}


@pytest.mark.parametrize(("name", "kind"), [*MLX5.items(), *OTHERS.items()])
def test_kind(name: str, kind: str) -> None:
    found, text = meaning(name)
    assert found == kind and bool(text) == (kind != "other")


def test_the_gravest_comes_first_and_what_means_the_same_is_one_sentence() -> None:
    grown = {"something_new": 1, "np_cnp_sent": 9, "rp_cnp_handled": 8, "out_of_sequence": 3, "link_downed": 2}
    assert sentences(grown) == [
        "the link went down (link_downed +2)",
        "packets came out of order: lost, or sent over several paths (out_of_sequence +3)",
        "the network signalled congestion (np_cnp_sent +9, rp_cnp_handled +8)",
        "something_new +1",
    ]
    assert sentences({}) == []
    assert sentences({"not_listed": 4}) == ["more counters increased than the tester lists (not_listed +4)"]


@pytest.mark.parametrize(
    ("peer", "text"),
    [
        (None, "packets came out of order: lost, or sent over several paths (out_of_sequence +3)"),
        (
            {"not_listed": 3},
            "packets came out of order: lost, or sent over several paths (out_of_sequence +3)",
        ),
        (
            {"packet_seq_err": 3, "not_listed": 3},
            "packets came out of order and were sent again: lost, or sent over several paths that the NIC does not"
            " support (out_of_sequence +3)",
        ),
        (
            {"np_cnp_sent": 3},
            "packets came out of order, and the sender counted none that was sent again: several paths (adaptive"
            " routing) rather than loss (out_of_sequence +3)",
        ),
    ],
)
def test_another_order_is_no_loss(peer: dict[str, int] | None, text: str) -> None:
    assert sentences({"out_of_sequence": 3}, peer) == [text]


@pytest.mark.parametrize(
    ("name", "down"),
    [
        ("link_downed", True),
        ("netdev_carrier_down_count", True),
        ("link_error_recovery", False),
        ("out_of_sequence", False),
    ],
)
def test_a_lost_link(name: str, down: bool) -> None:
    assert link_went_down({name: 1, "np_cnp_sent": 2}) is down


@given(st.dictionaries(st.text(), st.integers(min_value=1)))
def test_any_counter_is_told(grown: dict[str, int]) -> None:
    told = " ".join(sentences(grown))
    assert all(f"{name} +{growth}" in told for name, growth in grown.items())
    assert all(meaning(name)[0] in KINDS for name in grown)
