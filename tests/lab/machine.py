# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host of the lab: a QEMU with two rails, and what is asked of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.lab import process, qmp, settings
from tests.lab.errors import LabError
from tests.lab.settings import REPO, RUN

_ACCEL_VARIABLE = "GPUFABRIC_LAB_ACCEL"
_EMULATION = "tcg,thread=multi,tb-size=512"
_FIRMWARE = (Path("/usr/share/ovmf/OVMF.fd"), Path("/usr/share/OVMF/OVMF.fd"))


def start(host: str, disk: Path, boot_disk: Path, snapshot: str = "") -> None:
    """Start a host and its watchdog from its disk: a boot, or where the snapshot was taken."""
    restore = ["-loadvm", snapshot] if snapshot else []
    watchdog = [sys.executable, "-m", "tests.lab.watchdog"]
    process.start(host, [*watchdog, *_arguments(host, disk, boot_disk), *restore], env={"PYTHONPATH": str(REPO)})


def control(host: str) -> Path:
    """The host's QMP socket."""
    return RUN / f"{host}.qmp"


def freeze(host: str) -> None:
    """Stop the time of a running host."""
    qmp.execute(control(host), "stop")


def save(host: str, name: str) -> None:
    """Take a snapshot of the running host, memory and disk."""
    qmp.monitor(control(host), f"savevm {name}")


def set_cable(host: str, rail: int, plugged: bool) -> None:
    """Plug a rail's cable in or pull it out; the host sees its carrier come and go."""
    qmp.execute(control(host), "set_link", name=f"rail{rail}", up=plugged)


def accelerator() -> str:
    """QEMU's -accel argument: KVM where it can run a stock kernel, else emulation.

    /dev/kvm alone proves nothing: a nested guest may have it without the processor's support.
    """
    chosen = os.environ.get(_ACCEL_VARIABLE, "")
    if chosen:
        return _EMULATION if chosen == "tcg" else chosen
    flags = Path("/proc/cpuinfo").read_text().split()
    usable = os.access("/dev/kvm", os.R_OK | os.W_OK) and ("svm" in flags or "vmx" in flags)
    return "kvm" if usable else _EMULATION


def firmware() -> Path:
    """The UEFI firmware that QEMU boots with."""
    for path in _FIRMWARE:
        if path.exists():
            return path
    raise LabError("no UEFI firmware in /usr/share/ovmf: install the package ovmf")


def _arguments(host: str, disk: Path, boot_disk: Path) -> list[str]:
    machine = ["-name", host, "-machine", "q35", "-accel", accelerator(), "-cpu", "max"]
    size = ["-smp", str(settings.CPUS), "-m", str(settings.MEMORY_MIB)]
    # A new generation id after each restore: else all restored hosts draw the same random numbers.
    screen = ["-display", "none", "-serial", "stdio", "-device", "vmgenid,guid=auto"]
    control_socket = ["-qmp", f"unix:{control(host).name},server=on,wait=off"]
    return [
        "qemu-system-x86_64",
        *[*machine, *size, *screen, *control_socket, "-bios", str(firmware())],
        *_disk("esp", boot_disk, "format=raw,readonly=on", 1),
        *_disk("root", disk, "format=qcow2,cache=unsafe,discard=unmap", 2),
        *_management(host),
        *[word for rail in range(settings.RAILS) for word in _rail(host, rail)],
    ]


def _disk(name: str, path: Path, options: str, order: int) -> list[str]:
    drive = f"file={path},if=none,id={name},{options}"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive={name},bootindex={order}"]


def _management(host: str) -> list[str]:
    outside = settings.address(host)
    forwards = ((settings.SSH_PORT, 22), (settings.KUBELET_PORT, settings.KUBELET_PORT))
    rules = ",".join(f"hostfwd=tcp:{outside}:{here}-:{there}" for here, there in forwards)
    netdev = f"user,id=mgmt,ipv6=off,dhcpstart={settings.inside_address(host)},{rules}"
    return ["-netdev", netdev, "-device", f"virtio-net-pci,netdev=mgmt,mac={settings.mac(host, 0)}"]


def _rail(host: str, rail: int) -> list[str]:
    socket = f"r{rail}h{settings.number(host)}.sock"
    port = f"port{rail}"
    return [
        "-netdev",
        f"stream,id=rail{rail},server=off,addr.type=unix,addr.path={socket}",
        "-device",
        f"pcie-root-port,id={port},bus=pcie.0,chassis={rail + 1},slot={rail + 1}",
        "-device",
        f"igb,netdev=rail{rail},bus={port},mac={settings.rail_mac(host, rail)}",
    ]
