# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Section ``ofedDriver`` of the NicClusterPolicy: the driver container, which replaces the drivers of the nodes."""

from __future__ import annotations

from typing import Any

from ..intent.driver import Driver, Upgrade
from ..intent.intent import Intent
from ..intent.releases import Line
from . import sections

_PERIOD = 20


def driver_section(intent: Intent, line: Line) -> dict[str, Any]:
    """Return the section, nothing without the driver container."""
    driver = intent.operator.driver
    if not driver.enabled:
        return {}
    # Its tag is never that of the other components, which the section ``global`` would give it.
    found = {**sections.image(intent, line, "doca_driver"), "version": driver.version, **_probe(driver)}
    if driver.precompiled:
        found["forcePrecompiled"] = True
    if driver.env:
        found["env"] = [{"name": name, "value": value} for name, value in driver.env.items()]
    for key, name in (("certConfig", driver.cert_config), ("repoConfig", driver.repo_config)):
        if name:
            found[key] = {"name": name}
    return {"ofedDriver": {**found, "upgradePolicy": _upgrade_policy(driver.upgrade)}}


def _probe(driver: Driver) -> dict[str, Any]:
    """Return the probe after which a driver that still compiles would be killed."""
    tries = -(-driver.startup_minutes * 60 // _PERIOD)
    return {"startupProbe": {"initialDelaySeconds": 10, "periodSeconds": _PERIOD, "failureThreshold": tries}}


def _upgrade_policy(upgrade: Upgrade) -> dict[str, Any]:
    # Without the section drain the operator replaces the driver below running pods.
    found: dict[str, Any] = {
        "autoUpgrade": upgrade.auto,
        "maxParallelUpgrades": upgrade.max_parallel,
        "safeLoad": upgrade.safe_load,
        "drain": {
            "enable": upgrade.drain,
            "force": upgrade.drain_force,
            "deleteEmptyDir": upgrade.drain_empty_dir,
            "timeoutSeconds": upgrade.drain_timeout,
        },
    }
    if upgrade.wait_selector:
        wait = {"podSelector": upgrade.wait_selector, "timeoutSeconds": upgrade.wait_timeout}
        found["waitForCompletion"] = wait
    return found
