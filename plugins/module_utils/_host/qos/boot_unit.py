# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit that sets the QoS of a rail again: the settings are lost at boot and with the driver."""

from __future__ import annotations

from collections.abc import Iterable

from ..naming.systemd_files import instance
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
    link = f"sys-subsystem-net-devices-{instance(device.netdev)}.device"
    wait = f"until test -e {device.sysfs}/class/infiniband/{device.rdma}; do sleep 1; done"
    lines = [
        f"# {TITLE}",
        "[Unit]",
        f"Description=QoS of {device.netdev}",
        f"BindsTo={link}",
        f"After={link} systemd-modules-load.service sys-kernel-config.mount",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        f"TimeoutStartSec={PATIENCE}",
        f"SuccessExitStatus={' '.join(str(status) for status in settings.unchanged_statuses())}",
        *([f"ExecStartPre=/bin/sh -c '{wait}'"] if device.rdma else []),
        *(f"ExecStart={_line(step)}" for step in steps),
        "",
        "[Install]",
        f"WantedBy={link}",
    ]
    return "\n".join(lines) + "\n"


def _line(step: Step) -> str:
    if step.argv:
        return " ".join(step.argv)
    return f"/bin/sh -c 'echo \"{step.value}\" > {step.path}'"
