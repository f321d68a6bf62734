"""How fast a port can be, from the bytes of the kernel's struct ethtool_link_settings."""

from __future__ import annotations

import errno
import fcntl
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import ethtool_io, link_modes

NAMES = Path(__file__).resolve().parents[5] / "fixtures" / "ethtool" / "link_modes.txt"
WORDS = 4
# Bits that say nothing of a speed: autonegotiation, connectors, pause, FEC.
OTHERS = (6, 7, 10, 13, 14, 16, 49, 50, 51, 74)


def modes() -> dict[str, int]:
    """Name -> bit of the kernel's link modes."""
    lines = [line.split() for line in NAMES.read_text().splitlines() if not line.startswith("#")]
    return {name: int(bit) for bit, name in lines}


def reply(*bits: int, advertised: tuple[int, ...] = (), words: int = WORDS) -> bytes:
    """What the kernel answers: ``bits`` are supported. Speed and autonegotiation are there to be ignored."""
    head = struct.pack("=II7Bb32x", 0x4C, 100000, 1, 3, 0, 1, 0, 0, 0, words)
    masks = [sum(1 << bit for bit in some) for some in (bits, advertised, ())]
    return head + b"".join(mask.to_bytes(4 * words, "little") for mask in masks)


def named(*names: str) -> bytes:
    return reply(*OTHERS, *(modes()[name] for name in names))


@pytest.mark.parametrize(
    ("answer", "speed"),
    [
        # igb, emulated or not.
        (named("10baseT_Half", "10baseT_Full", "100baseT_Half", "100baseT_Full", "1000baseT_Full"), 1.0),
        # mlx5: ConnectX-5 of 100 Gb/s, ConnectX-7 of 400 Gb/s.
        (named("1000baseKX_Full", "25000baseCR_Full", "50000baseKR2_Full", "100000baseCR4_Full"), 100.0),
        (named("10000baseKR_Full", "100000baseCR_Full", "200000baseSR4_Full", "400000baseCR4_Full"), 400.0),
        # A card of 40 Gb/s that has 56 Gb/s with its own kind.
        (named("40000baseCR4_Full", "56000baseCR4_Full"), 40.0),
        (named("800000baseSR4_Full", "400000baseSR4_Full"), 800.0),
        # virtio and veth support nothing that they know of.
        (reply(), None),
        (reply(*OTHERS), None),
        # What is advertised or in the reserved bytes is not what is supported.
        (reply(5, advertised=(85,)), 1.0),
        # A newer kernel: more words, modes that are not known here.
        (reply(38, 150, words=5), 100.0),
        (None, None),
        (b"", None),
        (reply(38)[:48], None),
        (reply(38)[:40], None),
    ],
)
def test_the_highest_speed_that_is_supported(answer: bytes | None, speed: float | None) -> None:
    assert link_modes.max_speed(answer) == speed


def test_every_mode_of_the_kernel_counts_with_the_speed_in_its_name() -> None:
    told = {}
    for name, bit in modes().items():
        match = re.match(r"(\d+)base", name)
        speed = int(match[1]) / 1000 if match and "FEC" not in name else 0
        told[name] = (link_modes.max_speed(reply(bit)), speed if speed >= 1 and speed != 56 else None)
    assert {name: pair for name, pair in told.items() if pair[0] != pair[1]} == {}
    assert len(told) == 125


def test_the_kernel_is_asked_for_its_words_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    whole = reply(85)

    def answer(_asker: Any, netdev: str, question: bytes) -> bytes:
        asked.append((netdev, len(question)))
        # As recorded of Linux 6.18: the command, and the words it has as a number below 0.
        return bytes.fromhex("4c" + "00" * 14 + "fc" + "00" * 32) if len(question) == 48 else whole

    monkeypatch.setattr(ethtool_io, "_ask", answer)
    assert ethtool_io.link_settings("rail0") == whole
    assert asked == [("rail0", 48), ("rail0", 96)]


def test_a_driver_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(fcntl, "ioctl", refuse)
    assert ethtool_io.link_settings("lo") is None


def test_a_kernel_that_answers_without_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "ioctl", lambda *_args: 0)
    assert ethtool_io.link_settings("rail0") is None


def test_ports_say_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    host.settings["enp154s0np0"] = named("100000baseCR4_Full", "800000baseCR8_Full")
    found = {port["pci"]: port["max_speed"] for port in host.inventory().to_dict()["ports"]}
    assert (found["0000:9a:00.0"], found["0000:18:00.0"]) == (800.0, None)
