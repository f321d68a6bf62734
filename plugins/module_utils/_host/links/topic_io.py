# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The links of a host as the module rail_links and preflight plan them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..facts.inventory import HostInventory
from ..facts.rail_ports import parse_rails
from ..system import arguments
from ..system.files import Roots
from . import io, ipv6, network_managers, routing
from . import plan as links_plan

NAME = "rail_links"
ARGUMENTS = {
    **arguments.ROOT,
    **arguments.RAILS,
    **arguments.STATE,
    **arguments.CONSENT,
    "manager": {"type": "str", "choices": list(network_managers.CHOICES), "default": "auto"},
    "source_routing": {"type": "str", "choices": list(routing.CHOICES), "default": "auto"},
    "timeout": {"type": "int", "default": 20},
    "only_configured": {"type": "bool", "default": False},
}


def read_plan(
    params: Mapping[str, Any], roots: Roots, record: Mapping[str, Any], *, inventory: HostInventory
) -> links_plan.LinkPlan:
    """Read the host and work out what to do; ConflictError where that would disturb users."""
    used = params["state"] == "present" and (record or not params["only_configured"])
    rails = parse_rails(params["rails"] if used else [])
    asked = params["source_routing"]
    routes, has_ipv6 = bool(routing.tables(rails, asked)), ipv6.is_used(rails, record)
    have = io.read_have(roots, roots.lib, inventory, routes=routes, ipv6=has_ipv6)
    wish = links_plan.Wish(params["manager"], asked, roots.etc, params["disrupt_users"])
    return links_plan.plan_links(inventory, rails, record, have=have, wish=wish)
