# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit that sets the QoS of a rail again: the settings are lost at boot and with the driver."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ..system import systemd
from . import settings
from .setting import Device, Step

TITLE = systemd.title("rail_qos")
PREFIX = "gpufabric-qos-"
# Seconds that the RDMA device gets to appear after the network device.
PATIENCE = 120


def name(netdev: str) -> str:
    """Return the unit of a rail by the name of its network device."""
    return f"{PREFIX}{netdev}.service"


def text(device: Device, steps: Iterable[Step]) -> str:
    """Return the text of a rail's unit; its commands are those of ``steps``.

    It is bound to the network device: it runs when the device appears, after a boot or when the driver is back.
    """
    link = f"sys-subsystem-net-devices-{systemd.escape(device.netdev)}.device"
    wait = f"until test -e {shlex.quote(f'{device.sysfs}/class/infiniband/{device.rdma}')}; do sleep 1; done"
    sections = {
        "Unit": [
            ("Description", f"QoS of {systemd.literal(device.netdev)}"),
            ("BindsTo", link),
            ("After", f"{link} systemd-modules-load.service sys-kernel-config.mount"),
        ],
        "Service": [
            ("Type", "oneshot"),
            ("RemainAfterExit", "yes"),
            ("TimeoutStartSec", str(PATIENCE)),
            ("SuccessExitStatus", " ".join(str(status) for status in settings.unchanged_statuses())),
            *([("ExecStartPre", _shell(wait))] if device.rdma else []),
            *(("ExecStart", _line(step)) for step in steps),
        ],
        "Install": [("WantedBy", link)],
    }
    return systemd.file_text(TITLE, sections)


def _line(step: Step) -> str:
    if step.argv:
        return systemd.exec_line(step.argv)
    return _shell(f'echo "{step.value}" > {shlex.quote(step.path)}')


def _shell(script: str) -> str:
    return systemd.exec_line(["/bin/sh", "-c", script])
