# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a port in files of the kernel: ECN and CNP, the traffic class of verbs, RoCE mode and ToS of RDMA-CM.

ECN and traffic class are files of NVIDIA's own drivers only; RDMA-CM's are in configfs of every kernel, in a
folder that exists once it is made. Removing the folder does not reset what was set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..._common.errors import ParseError
from .setting import CLASSES, NO_RDMA, Device, KernelFiles, Reason, Step

# Both ends of congestion control: notification point (who gets marked packets), reaction point (who sends).
POINTS = ("roce_np", "roce_rp")
MODES = {"v1": "IB/RoCE v1", "v2": "RoCE v2"}
# What the kernel starts with on a device that can RoCE v2.
RDMA_CM_DEFAULTS = {"roce": "v2", "tos": 0}
# Removes the driver's own traffic class, so that programs choose again.
NO_TRAFFIC_CLASS = -1
NO_ECN = Reason("has no ECN settings in sysfs", "use the driver of DOCA-OFED, which provides them")


def read(files: KernelFiles, device: Device, texts: Mapping[str, str | None]) -> Any:
    """Return the value of a setting, or the Reason why there is none, or None where it is left out silently.

    ``texts`` is path -> text, None where there is no such file. ParseError when a file holds something else.
    """
    if files.needs_rdma and device.rdma is None:
        return NO_RDMA
    found = [text for path in files.paths(device) for text in [texts.get(path)] if text is not None]
    return files.parse(found) if len(found) == len(files.paths(device)) else files.absent


def number_file(path: Callable[[Device], str], absent: Any = None) -> KernelFiles:
    """Return a setting that is a number in one file."""
    return KernelFiles(
        paths=lambda device: [path(device)],
        parse=lambda found: _number(found[0]),
        steps=lambda device, value: [Step(path=path(device), value=str(value))],
        absent=absent,
    )


def _ecn_paths(device: Device) -> list[str]:
    folder = f"{device.sysfs}/class/net/{device.netdev}/ecn"
    return [f"{folder}/{point}/enable/{priority}" for point in POINTS for priority in range(CLASSES)]


def _parse_ecn(found: Sequence[str]) -> list[int]:
    on = [text == "1" for text in found]
    return [priority for priority in range(CLASSES) if on[priority] and on[CLASSES + priority]]


def _ecn_steps(device: Device, value: Sequence[int]) -> list[Step]:
    values: Iterable[str] = ["1" if priority in value else "0" for _point in POINTS for priority in range(CLASSES)]
    return [Step(path=path, value=text) for path, text in zip(_ecn_paths(device), values)]


def _class_path(device: Device) -> str:
    return f"{device.sysfs}/class/infiniband/{device.rdma}/tc/1/traffic_class"


def _parse_class(found: Sequence[str]) -> int:
    match = re.search(r"Global tclass=(\d+)", found[0])
    return int(match.group(1)) if match else NO_TRAFFIC_CLASS


def _manager(device: Device) -> str:
    return f"{device.sysfs}/kernel/config/rdma_cm/{device.rdma}"


def _manager_paths(device: Device) -> list[str]:
    return [f"{_manager(device)}/ports/1/default_roce_{name}" for name in ("mode", "tos")]


def _manager_steps(device: Device, value: Mapping[str, Any]) -> list[Step]:
    # {} is how it is without the folder.
    desired = value or RDMA_CM_DEFAULTS
    texts = {"roce": MODES.get(str(desired.get("roce")), ""), "tos": str(desired.get("tos", ""))}
    paths = zip(_manager_paths(device), ("roce", "tos"))
    writes = [Step(path=path, value=texts[key]) for path, key in paths if key in desired]
    if not value:
        return [*writes, Step(("rmdir", _manager(device)))]
    return [Step(("modprobe", "rdma_cm")), Step(("mkdir", "-p", _manager(device))), *writes]


def _mode(text: str) -> str:
    for name, shown in MODES.items():
        if text == shown:
            return name
    raise ParseError(f"'{text}' is not a RoCE mode; expected {' or '.join(MODES.values())}")


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ParseError(f"'{text}' is not a number")
    return int(text)


ECN = KernelFiles(paths=_ecn_paths, parse=_parse_ecn, steps=_ecn_steps, absent=NO_ECN)
CNP_DSCP = number_file(lambda device: f"{device.sysfs}/class/net/{device.netdev}/ecn/roce_np/cnp_dscp", NO_ECN)
# A driver without a traffic class of its own is fine: programs that use RDMA-CM get it there.
TRAFFIC_CLASS = KernelFiles(
    paths=lambda device: [_class_path(device)],
    parse=_parse_class,
    steps=lambda device, value: [Step(path=_class_path(device), value=str(value))],
    needs_rdma=True,
)
RDMA_CM = KernelFiles(
    paths=_manager_paths,
    parse=lambda found: {"roce": _mode(found[0]), "tos": _number(found[1])},
    steps=_manager_steps,
    absent={},
    needs_rdma=True,
)
