# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the running kernel as the module kernel_settings and preflight plan them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..system import arguments
from ..system.files import Roots
from . import settings, settings_io

NAME = "kernel_settings"
ARGUMENTS = {
    **arguments.ROOT,
    **arguments.STATE,
    **arguments.HUGEPAGES,
    "modules": {"type": "list", "elements": "str", "default": []},
    "module_options": {"type": "dict", "default": {}},
    "sysctl": {"type": "dict", "default": {}},
    "memlock": {"type": "str", "default": "unlimited"},
}


def read_plan(want: settings.Want, roots: Roots, record: Mapping[str, Any]) -> settings.SettingsPlan:
    """Read the host and work out what to do."""
    return settings.plan_settings(want, settings_io.read(roots, roots.lib, want, record=record), record, etc=roots.etc)
