# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The marks with which a tester (tester.sh) begins its lines, and the only place that spells their beginning."""

from __future__ import annotations

MARK = "=== gpufabric "
DESCRIBE = f"{MARK}describe v1"
# Before the number of described rails.
DESCRIBED = f"{MARK}described "
# What follows MARK in the first and in the last line of the frame of a test.
TEST = "test "
END = "end"
# What follows MARK before the lines about a physical port of a rail: the names of rail and network device.
PORT = "port "


def begin(number: int | str) -> str:
    """Return the mark before the number of lines of a batch."""
    return f"{MARK}batch {number} begin "


def done(number: int | str) -> str:
    """Return the mark at the end of a batch, before how many tests were played and missed."""
    return f"{MARK}batch {number} done "


def kept(number: int | str) -> str:
    """Return the mark before the number of bytes that a tester kept in a file."""
    return f"{MARK}batch {number} kept "
