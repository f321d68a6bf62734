# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the growth of a port's counters during a test means.

Names: InfiniBand's port counters, hw_counters of mlx5, bnxt_re and rxe, ethtool's names of mlx5, and the kernel's
statistics of a network device with "netdev_" before them (roles/rdma_validate/files/tester.sh).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LINK, LOSS, ORDER, CONGESTION, HOST, OTHER = KINDS = ("link", "loss", "order", "congestion", "host", "other")

_DOWN = "the link went down"
OUT_OF_ORDER = r"out_of_sequence|out_of_seq_request|oos_drop_count"
# What the sender counts when it has to send packets again, and so what tells loss from another order.
_SENT_AGAIN = re.compile(
    r"(vport_)?((packet|implied_nak|rcvd)_seq_err|seq_err_naks_rcvd|local_ack_timeout_err|to_retransmits|"
    r"roce_adp_retrans\w*|completer_retry_err)"
)
_LOST = "packets came out of order and were sent again: lost, or sent over several paths that the NIC does not support"
_OTHER_PATH = (
    "packets came out of order, and the sender counted none that was sent again: several paths (adaptive routing)"
    " rather than loss"
)
# Names that mean the same; the first line that fits decides.
MEANINGS: tuple[tuple[str, str, str], ...] = (
    (LINK, _DOWN, r"link_downed|link_down_events_phy|netdev_carrier_down_count"),
    (LINK, "the link recovered from errors: cable, transceiver", r"link_error_recovery"),
    (LINK, "damaged on the wire: cable, transceiver", r"symbol_error|local_link_integrity_errors|port_rcv_errors"),
    (LINK, "damaged on the wire: cable, transceiver", r"rx_(symbol_err|crc_errors|pcs_symbol_err)(_phy)?"),
    (LINK, "damaged on the wire: cable, transceiver", r"netdev_rx_(crc|frame)_errors"),
    (LINK, "damaged further away on the path: another cable or transceiver", r"port_rcv_remote_physical_errors"),
    (LINK, "damaged where the link checksum does not detect it: memory of a switch, a tunnel", r"rx_icrc_encapsulated"),
    (HOST, "the receiver had no buffer ready", r"(rx_)?out_of_buffer|\w*rnr_\w+"),
    (LOSS, "no acknowledgement came: loss, or a path broken one way", r"local_ack_timeout_err|to_retransmits"),
    (LOSS, "no acknowledgement came: loss, or a path broken one way", r"(\w+_)?retr(y|ies)_exceeded(_err)?"),
    (ORDER, "packets came out of order: lost, or sent over several paths", OUT_OF_ORDER),
    (LOSS, "the peer missed packets: lost on the way there", r"(packet|implied_nak|rcvd)_seq_err|seq_err_naks_rcvd"),
    (LOSS, "packets were sent again", r"roce_(adp_retrans|slow_restart)\w*|duplicate_request|completer_retry_err"),
    (LOSS, "dropped, no free buffers: flow control off or not obeyed", r"[rt]x_prio\d_(buf_)?discards?"),
    (LOSS, "dropped, no free buffers: flow control off or not obeyed", r"[rt]x_discards(_phy)?"),
    (LOSS, "dropped, no free buffers: flow control off or not obeyed", r"port_xmit_discards|excessive_buffer\w+"),
    (CONGESTION, "pause frames", r"[rt]x_(prio\d_pause|pause_ctrl_phy|pfc_ena_frames_pri\d)"),
    (CONGESTION, "the network signalled congestion", r"np_(cnp_sent|ecn_marked_roce_packets)|rp_cnp_handled|cc_\w+"),
    (CONGESTION, "the network signalled congestion", r"[rt]x_cnp_pkts|rx_ecn_marked_pkts"),
    (CONGESTION, "congestion notifications were ignored: the two sides have different settings", r"rp_cnp_ignored"),
    (CONGESTION, "the port had to wait to send", r"port_xmit_wait"),
    (HOST, "this port held the network up with pause frames: host or PCIe too slow", r"tx_pause_storm_\w+"),
    (HOST, "requests ended in errors", r"re(q|sp)_\w+|send_err|\w*constraint_errors|VL15_dropped"),
    (OTHER, "more counters increased than the tester lists", r"not_listed"),
    (HOST, "other programs used the processors of the host", r"cpu_percent_of_others"),
    (HOST, "dropped by the network device", r"netdev_[rt]x_(dropped|(missed|fifo|over)_errors)"),
)
_MEANINGS = tuple((re.compile(pattern), kind, text) for kind, text, pattern in MEANINGS)


def meaning(name: str) -> tuple[str, str]:
    """Return the kind (one of KINDS, in the order of how grave they are) and what growth of a counter means.

    A prefix of virtual ports does not matter. An unknown counter is of kind "other" and has no text.
    """
    plain = name[6:] if name.startswith("vport_") else name
    for pattern, kind, text in _MEANINGS:
        if pattern.fullmatch(plain):
            return kind, text
    return OTHER, ""


def sent_again(counters: Mapping[str, int]) -> bool:
    """Return whether a sender had to send packets again."""
    return any(_SENT_AGAIN.fullmatch(name) for name in counters)


def knows_all(counters: Mapping[str, int]) -> bool:
    """Return whether a tester listed all that grew, so that what is not there did not grow."""
    return "not_listed" not in counters


def sentences(counters: Mapping[str, int], peer: Mapping[str, int] | None = None) -> list[str]:
    """Return one sentence for each meaning of what grew, the gravest kind first; unknown counters by their names.

    ``peer``: what grew at the other end, None when it is not known.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name, growth in counters.items():
        kind, text = meaning(name)
        if kind == ORDER and peer is not None and (sent_again(peer) or knows_all(peer)):
            kind, text = (LOSS, _LOST) if sent_again(peer) else (ORDER, _OTHER_PATH)
        groups.setdefault((kind, text), []).append(f"{name} +{growth}")
    told = sorted(groups.items(), key=lambda group: KINDS.index(group[0][0]))
    return [f"{text} ({', '.join(grown)})" if text else ", ".join(grown) for (_kind, text), grown in told]


def link_went_down(counters: Mapping[str, int]) -> bool:
    """Return whether the port lost its link during a test: its result is worth nothing then, whatever it says."""
    return any(meaning(name)[1] == _DOWN for name in counters)
