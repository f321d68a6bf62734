# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error that a user of the lab sees."""

from __future__ import annotations


class LabError(Exception):
    """What failed, on which object, and what to do about it."""
