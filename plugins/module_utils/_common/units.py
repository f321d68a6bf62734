# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers with units as the kernel prints them."""

from __future__ import annotations

import re

IB_MTUS = (4096, 2048, 1024, 512, 256)
# GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4: what the kernel's iboe_get_mtu() takes off.
ROCE_HEADERS = 96
# IPoIB in datagram mode keeps 4 bytes of the InfiniBand MTU for its own header.
IPOIB_HEADER = 4

_NUMBER = re.compile(r"[0-9]{1,18}(?![0-9])(?:\.[0-9]{1,18})?")
# The kernel prints no longer number, and Python refuses to convert very long ones.
_LONGEST = 40


def integer(text: str | None) -> int | None:
    """Return the whole number in ``text`` (``0x`` allowed), None when there is none."""
    try:
        return int(text or "", 0) if len(text or "") <= _LONGEST else None
    except ValueError:
        return None


def natural(text: str | None) -> int | None:
    """Return the number in ``text``; the kernel's -1 for "unknown" becomes None."""
    number = integer(text)
    return number if number is not None and number >= 0 else None


def leading_number(text: str | None) -> float | None:
    """Return the number that begins ``text`` (``16.0 GT/s PCIe``, ``100 Gb/sec (4X EDR)``).

    The unit stays that of the text; ``Unknown`` and absent text give None.
    """
    match = _NUMBER.match(text or "")
    return float(match.group()) if match else None


def gigabits(megabits: str | None) -> float | None:
    """Return Gb/s of a netdev's ``speed`` in Mb/s; None when the link does not know it."""
    number = natural(megabits)
    # 4294967295 is -1 as some drivers print it.
    return number / 1000 if number and number < 2**32 - 1 else None


def roce_mtu(netdev_mtu: int) -> int | None:
    """Return the RDMA MTU in bytes that RoCE uses over a netdev MTU; None below the smallest."""
    return next((mtu for mtu in IB_MTUS if netdev_mtu - ROCE_HEADERS >= mtu), None)


def ipoib_mtu(netdev_mtu: int) -> int | None:
    """Return the InfiniBand MTU under an IPoIB netdev in datagram mode, None in other modes."""
    mtu = netdev_mtu + IPOIB_HEADER
    return mtu if mtu in IB_MTUS else None


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: 6.8.0-51-generic gives (6, 8, 0), no number gives ()."""
    match = re.match(r"[0-9.]{1,99}", version)
    return tuple(int(part) for part in match.group().split(".") if part) if match else ()


def exact_version(version: str) -> tuple[int, ...] | None:
    """Return the numbers of a version that has nothing else, such as 28.43.1014; None for others."""
    parts = version.split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else None


def version_key(version: str) -> list[tuple[int, int, str]]:
    """Return a key that orders versions with words as people do: 6.12.9 before 6.12.10."""
    parts = re.findall(r"[0-9]{1,18}|[a-zA-Z]+", version)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]
