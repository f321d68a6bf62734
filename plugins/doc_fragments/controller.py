# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation shared by the modules that run on the controller and access neither a host nor the cluster."""

from __future__ import annotations


class ModuleDocFragment:
    """Attributes of controller modules."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    description: Can run in check mode and return the same result.
    support: full
  diff_mode:
    description: The module changes nothing.
    support: none
  idempotent:
    description: When run twice in a row outside check mode with the same arguments, the second run reports no change.
    support: full
  platform:
    description: Where the module can run.
    platforms: posix
    support: full
"""
