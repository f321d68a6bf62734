# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decisions of the lab's switch."""

from __future__ import annotations

from tests.lab.fabric import Impairment, Pacer, Switch, join_frame, split_frames

PORTS = [(rail, host) for rail in (0, 1) for host in (1, 2, 3)]


def frame(target: int, source: int, length: int = 60) -> bytes:
    head = bytes([2, 0, 0, 0, 0, target, 2, 0, 0, 0, 0, source])
    return head + bytes(length - len(head))


def switch(random: float = 0.5) -> Switch:
    return Switch(PORTS, lambda: random)


def test_a_frame_to_nobody_known_goes_to_all_of_its_rail_but_back() -> None:
    assert sorted(switch().targets((0, 1), frame(2, 1))) == [(0, 2), (0, 3)]


def test_a_known_address_gets_its_frames_alone() -> None:
    fabric = switch()
    fabric.targets((0, 2), frame(1, 2))
    assert fabric.targets((0, 1), frame(2, 1)) == [(0, 2)]


def test_rails_know_nothing_of_each_other() -> None:
    fabric = switch()
    fabric.targets((0, 2), frame(1, 2))
    assert sorted(fabric.targets((1, 1), frame(2, 1))) == [(1, 2), (1, 3)]


def test_a_frame_to_where_it_came_from_goes_nowhere() -> None:
    fabric = switch()
    fabric.targets((0, 1), frame(2, 1))
    assert fabric.targets((0, 1), frame(1, 3)) == []


def test_a_black_hole_takes_long_frames_of_both_directions_only() -> None:
    fabric = switch()
    fabric.impairments = {(0, 2): Impairment(max_frame=1514)}
    assert fabric.targets((0, 2), frame(1, 2, 1515)) == []
    assert fabric.targets((0, 1), frame(2, 1, 1515)) == []
    assert fabric.targets((0, 1), frame(2, 1, 1514)) == [(0, 2)]
    assert fabric.targets((0, 1), frame(3, 1, 9014)) == [(0, 3)]


def test_loss_takes_a_part() -> None:
    fabrics = {chance: switch(chance) for chance in (0.01, 0.03)}
    for fabric in fabrics.values():
        fabric.impairments = {(0, 1): Impairment(loss=0.02)}
    passed = {chance: bool(fabric.targets((0, 1), frame(2, 1))) for chance, fabric in fabrics.items()}
    assert passed == {0.01: False, 0.03: True}


def test_one_way_loss_takes_what_one_host_gets_or_sends() -> None:
    deaf, mute = switch(), switch()
    deaf.impairments = {(0, 2): Impairment(loss_in=1.0)}
    mute.impairments = {(0, 2): Impairment(loss_out=1.0)}
    assert sorted(deaf.targets((0, 2), frame(1, 2))) == [(0, 1), (0, 3)]
    assert deaf.targets((0, 1), frame(2, 1)) == []
    assert mute.targets((0, 2), frame(1, 2)) == []
    assert mute.targets((0, 1), frame(2, 1)) == [(0, 2)]


def test_exchanged_cables_lead_each_rail_of_a_host_to_the_other_network() -> None:
    fabric = switch()
    fabric.targets((0, 3), frame(1, 3))
    fabric.cross([3])
    assert [fabric.wired(port) for port in ((0, 3), (1, 3), (0, 2))] == [(1, 3), (0, 3), (0, 2)]
    # Nobody knows any more where it was.
    assert sorted(fabric.targets((0, 1), frame(3, 1))) == [(0, 2), (0, 3)]
    fabric.cross([])
    assert fabric.wired((0, 3)) == (0, 3)


def test_a_lost_frame_still_tells_where_its_sender_is() -> None:
    fabric = switch()
    fabric.impairments = {(0, 2): Impairment(max_frame=1514)}
    fabric.targets((0, 2), frame(1, 2, 9000))
    assert fabric.targets((0, 1), frame(2, 1)) == [(0, 2)]


def test_a_pacer_lets_frames_through_one_after_the_other() -> None:
    pacer = Pacer()
    times = [pacer.leave_at(10.0, 1000, 8000.0), pacer.leave_at(10.0, 1000, 8000.0)]
    assert times == [11.0, 12.0]
    assert pacer.leave_at(20.0, 500, 8000.0) == 20.5


def test_a_healed_pacer_keeps_the_order() -> None:
    pacer = Pacer()
    pacer.leave_at(10.0, 1000, 8000.0)
    assert pacer.leave_at(10.1, 1000, 0) == 11.0
    assert pacer.leave_at(12.0, 1000, 0) == 12.0


def test_frames_come_off_a_stream_in_any_pieces() -> None:
    frames = [b"one", b"", b"three" * 100]
    stream = b"".join(map(join_frame, frames))
    found, buffer = [], bytearray()
    for start in range(0, len(stream), 7):
        buffer += stream[start : start + 7]
        found += split_frames(buffer)
    assert found == frames
    assert buffer == b""
