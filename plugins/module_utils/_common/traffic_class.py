# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The traffic class of RDMA packets that QoS settings (``rail_links_qos``) ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The ECN bits of a traffic class: packets that can be marked, ECT(0).
ECT0 = 2


def traffic_class(settings: Mapping[str, Any]) -> int | None:
    """Return the byte: that of ``dscp`` with ECN enabled, else ``traffic_class``; None without both."""
    found: int | None = settings["dscp"] * 4 + ECT0 if "dscp" in settings else settings.get("traffic_class")
    return found
