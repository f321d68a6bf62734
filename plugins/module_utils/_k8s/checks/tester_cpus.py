# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many CPUs each tester in pods gets."""

from __future__ import annotations

from ..._common.errors import InputError


def whole(given: int) -> int:
    """Return the number; InputError for one below zero."""
    if given < 0:
        raise InputError(f"cpus: expected 0 or a number of whole CPUs, found {given}")
    return given
