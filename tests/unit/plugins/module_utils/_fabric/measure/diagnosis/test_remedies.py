# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a host or a port, by the reasons of its failures. Less than a second."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.remedies import remedy

NO_CONTACT = "the ports do not reach each other: "
SWAPPED = "h1 rail0: its link leads to the network of rail1, where h2 rail1 answers: "
OTHERS = "other programs used the processors of the host (cpu_percent_of_others +70)"
BUSY = f"8 Mb/s measured, 15 Mb/s expected (floor); at {{}}: {OTHERS}"


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([SWAPPED + "exchanged cables of rail0 and rail1"], "exchange these two cables"),
        (
            [SWAPPED + "wrong port of a cable, or a wrong VLAN"],
            "check to which switch port its cable leads, and the VLAN there",
        ),
        (
            [NO_CONTACT + "frames from h2 do not arrive at h1, those of the opposite direction do"],
            "check its receiving side: cable, transceiver and switch port",
        ),
        (
            [NO_CONTACT + "frames from h1 do not arrive at h2, those of the opposite direction do"],
            "check its sending side: cable, transceiver and switch port",
        ),
        (
            [
                NO_CONTACT
                + "the address of h1 rail0 is answered by 02:ff:00:00:00:01, which is not a port of this run: a"
            ],
            "look for this MAC address in the tables of the switch, and remove the IP address from that device",
        ),
        (
            ["h1 rail0: the link went down (netdev_carrier_down_count +1)"],
            "check its cable, transceiver and switch port",
        ),
        ([BUSY.format("h1")], "stop the other programs of the host, and validate again"),
        # Two of three show it; one of two, or what is seen of the other end, does not.
        ([BUSY.format("h1"), BUSY.format("h1"), "no data"], "stop the other programs of the host, and validate again"),
        ([BUSY.format("h1"), "no data"], "usual"),
        ([BUSY.format("h2")], "usual"),
        ([BUSY.format("h11")], "usual"),
        (["h2 rail0: the link went down"], "usual"),
        ([], "usual"),
    ],
)
def test_the_remedy_follows_from_what_most_reasons_show(reasons: list[str], expected: str) -> None:
    assert remedy("h1", reasons, "usual") == expected


def test_a_name_is_no_pattern() -> None:
    assert remedy("h.1", [BUSY.format("hx1")], "usual") == "usual"
