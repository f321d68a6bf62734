# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS of a port in files of the kernel: ECN and CNP, the traffic class of verbs, RoCE mode and ToS of RDMA-CM.

ECN and traffic class are files of NVIDIA's own drivers only; RDMA-CM's are in configfs of every kernel, in a
folder that exists once somebody makes it. Removing the folder does not reset what was set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..._common.errors import ParseError
from .settings import CLASSES

FILE_SETTINGS = ("ecn", "cnp_dscp", "traffic_class", "rdma_cm")
# Both ends of congestion control: notification point (who gets marked packets), reaction point (who sends).
POINTS = ("roce_np", "roce_rp")
MODES = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}
# What the kernel starts with on a device that can RoCE v2.
RDMA_CM_DEFAULTS = {"roce": "v2", "tos": 0}
# Takes the driver's own traffic class back, so that programs choose again.
NO_TRAFFIC_CLASS = -1


class Step(NamedTuple):
    """One change: a command, or a value for a file."""

    argv: tuple[str, ...] = ()
    path: str = ""
    value: str = ""


class Device(NamedTuple):
    """Where the files of a port are: its network device, its RDMA device (None without one), sysfs."""

    netdev: str
    rdma: str | None
    sysfs: str = "/sys"


def paths(setting: str, device: Device) -> list[str]:
    """Return the files that hold a setting; none when it needs an RDMA device and there is none."""
    if setting == "ecn":
        return [_ecn(device, point, priority) for point in POINTS for priority in range(CLASSES)]
    if setting == "cnp_dscp":
        return [f"{device.sysfs}/class/net/{device.netdev}/ecn/roce_np/cnp_dscp"]
    if device.rdma is None:
        return []
    if setting == "traffic_class":
        return [f"{device.sysfs}/class/infiniband/{device.rdma}/tc/1/traffic_class"]
    return [f"{_manager(device)}/ports/1/default_roce_{name}" for name in ("mode", "tos")]


def parse(setting: str, device: Device, texts: Mapping[str, str | None]) -> Any:
    """Return the value of a setting; ``texts`` is path -> text, None where there is no such file.

    LookupError when the kernel has no such setting, ParseError when a file holds something else.
    """
    found = [texts.get(path) for path in paths(setting, device)]
    if setting == "rdma_cm" and found:
        return {} if None in found else {"roce": _mode(found[0] or ""), "tos": _number(found[1] or "")}
    if not found or None in found:
        raise LookupError(setting)
    if setting == "ecn":
        on = [text == "1" for text in found]
        return [priority for priority in range(CLASSES) if on[priority] and on[CLASSES + priority]]
    if setting == "cnp_dscp":
        return _number(found[0] or "")
    match = re.search(r"Global tclass=(\d+)", found[0] or "")
    return int(match.group(1)) if match else NO_TRAFFIC_CLASS


def steps(setting: str, device: Device, value: Any) -> list[Step]:
    """Return the steps that set a setting; ``{}`` for RDMA-CM is how it is without the folder."""
    files = paths(setting, device)
    if setting == "rdma_cm":
        return _manager_steps(device, files, value)
    if setting == "ecn":
        values: Iterable[str] = ["1" if priority in value else "0" for _point in POINTS for priority in range(CLASSES)]
        return [Step(path=path, value=text) for path, text in zip(files, values)]
    return [Step(path=path, value=str(value)) for path in files]


def _manager_steps(device: Device, files: list[str], value: Mapping[str, Any]) -> list[Step]:
    wanted = value or RDMA_CM_DEFAULTS
    texts = {"roce": MODES.get(str(wanted.get("roce")), ""), "tos": str(wanted.get("tos", ""))}
    writes = [Step(path=path, value=texts[key]) for path, key in zip(files, ("roce", "tos")) if key in wanted]
    if not value:
        return [*writes, Step(("rmdir", _manager(device)))]
    return [Step(("modprobe", "rdma_cm")), Step(("mkdir", "-p", _manager(device))), *writes]


def _manager(device: Device) -> str:
    return f"{device.sysfs}/kernel/config/rdma_cm/{device.rdma}"


def _ecn(device: Device, point: str, priority: int) -> str:
    return f"{device.sysfs}/class/net/{device.netdev}/ecn/{point}/enable/{priority}"


def _mode(text: str) -> str:
    for name, shown in MODES.items():
        if text == shown:
            return name
    raise ParseError(f"'{text}' is not a RoCE mode; expected {' or '.join(MODES.values())}")


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ParseError(f"'{text}' is not a number")
    return int(text)
