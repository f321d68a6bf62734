# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network model raw: that of macvlan, with plain NetworkAttachmentDefinitions in place of the operator's networks.

For clusters that do not want the operator's kinds of networks, or whose tools read definitions alone.
"""

from __future__ import annotations

from dataclasses import replace

from . import macvlan
from .kinds import DEFINITION, POOLS

PROFILE = replace(macvlan.PROFILE, name="raw", networks=macvlan.definitions, kinds=(*POOLS, DEFINITION))
