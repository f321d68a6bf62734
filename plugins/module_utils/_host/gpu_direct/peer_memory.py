# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the NICs of a host reach GPU memory: DMA-BUF or nvidia-peermem, and why. Pure.

The conditions are the vendor's. DMA-BUF needs open kernel modules of driver 515 or newer (CUDA 11.7), Linux 5.12, and
a GPU of the Turing generation or newer (GPU Operator documentation, GPUDirect RDMA). nvidia-peermem comes with drivers
from 470 on and needs an RDMA core with the peer memory interface, which DOCA-OFED and Ubuntu's kernels have (README of
the driver).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..._common.change import Change
from ..._common.errors import ConflictError, InUseError
from ..._common.units import version_numbers
from ..facts.inventory import HostInventory
from ..system import systemd

MODES = ("auto", "dmabuf", "peermem", "none")
TITLE = systemd.title("peer_memory")
MODULE, LEGACY = "nvidia_peermem", "nv_peer_mem"
UNIT = "gpufabric-peer-memory.service"
TARGETS = ("multi-user.target", "openibd.service", "rdma-hw.target")
# It registers with the RDMA core. PartOf: it is removed before the stack is reloaded, which it would block; WantedBy:
# it comes back with it. rdma-hw.target is rdma-core's, openibd.service that of DOCA-OFED.
UNIT_TEXT = systemd.file_text(
    TITLE,
    {
        "Unit": [
            ("Description", "GPU memory for RDMA by nvidia-peermem"),
            ("After", "systemd-modules-load.service rdma-hw.target openibd.service"),
            ("PartOf", "rdma-hw.target openibd.service"),
        ],
        "Service": [
            ("Type", "oneshot"),
            ("RemainAfterExit", "yes"),
            ("ExecStart", f"modprobe {MODULE}"),
            ("ExecStop", f"-modprobe --remove {MODULE}"),
        ],
        "Install": [("WantedBy", " ".join(TARGETS))],
    },
)
# Functions of the running RDMA core that each way needs.
DMABUF_SYMBOL, PEERMEM_SYMBOL = "ib_umem_dmabuf_get", "ib_register_peer_memory_client"
SYMBOLS = (DMABUF_SYMBOL, PEERMEM_SYMBOL)
OLDEST_KERNEL = (5, 12)
OLDEST_DMABUF_DRIVER, OLDEST_PEERMEM_DRIVER = 515, 470
NVIDIA = "10de"
# PCI device numbers of NVIDIA grow with the generations; the first Turing is TU102, 0x1e02.
FIRST_TURING = 0x1E00


@dataclasses.dataclass(frozen=True)
class Have:
    """The host's side: own files, what wants the unit, module on disk, symbols of the kernel, perftest's options.

    ``symbols`` is None where the kernel shows none, ``perftest`` None without perftest; ``packages`` are legacy ones.
    """

    files: Mapping[str, str]
    wants: tuple[str, ...]
    on_disk: bool
    symbols: tuple[str, ...] | None
    perftest: tuple[str, ...] | None
    packages: tuple[str, ...]


class Choice(NamedTuple):
    """The way that is taken, why, and what people should know."""

    mode: str
    reason: str
    warnings: tuple[str, ...] = ()


class PeerPlan(NamedTuple):
    """The change; whether the legacy module goes; what to keep of before us."""

    change: Change
    record: Mapping[str, bool]


def choose(wanted: str, inventory: HostInventory, have: Have) -> Choice:
    """Decide on a host; ConflictError when what is asked for (``auto``: any way) is not possible."""
    if wanted == "none":
        return Choice("none", "mode is none")
    if not inventory.gpus:
        return Choice("none", "there is no GPU on this host")
    if all(gpu.vendor != NVIDIA for gpu in inventory.gpus):
        return _amd(wanted, inventory)
    if inventory.nvidia_driver is None:
        reason = "no NVIDIA driver is loaded"
        if wanted != "auto":
            raise ConflictError(
                f"{wanted} is not possible on {inventory.hostname}: {reason}. Load it and rerun the playbook"
            )
        return Choice(
            "none",
            reason,
            (f"{reason}: GPU memory is not prepared for RDMA. Rerun the playbook after the driver is loaded",),
        )
    lacks = {"dmabuf": _dmabuf_lacks(inventory, have), "peermem": _peermem_lacks(inventory, have)}
    return _best(wanted, inventory, have, lacks=lacks)


def _best(wanted: str, inventory: HostInventory, have: Have, *, lacks: Mapping[str, list[str]]) -> Choice:
    possible = [mode for mode in (("dmabuf", "peermem") if wanted == "auto" else (wanted,)) if not lacks[mode]]
    if not possible:
        why = "; ".join(f"{mode}: {', '.join(lacks[mode])}" for mode in lacks if wanted in ("auto", mode))
        raise ConflictError(
            f"GPU memory is not accessible to RDMA on {inventory.hostname} (mode: {wanted}): {why}. Resolve this, "
            "or set mode: none"
        )
    title = inventory.nvidia_driver.title if inventory.nvidia_driver else ""
    if possible[0] == "dmabuf":
        return Choice("dmabuf", f"{title} on kernel {inventory.kernel_release} exports DMA-BUF", _unmeasured(have))
    why = f"DMA-BUF is not possible: {', '.join(lacks['dmabuf'])}" if lacks["dmabuf"] else "it is asked for"
    return Choice("peermem", why)


def _amd(wanted: str, inventory: HostInventory) -> Choice:
    if wanted == "peermem":
        raise ConflictError(
            f"nvidia-peermem supports NVIDIA GPUs only, and {inventory.hostname} has none. Set mode: auto"
        )
    if version_numbers(inventory.kernel_release)[:2] < OLDEST_KERNEL:
        raise ConflictError(f"kernel {inventory.kernel_release} is older than 5.12, the first with DMA-BUF for RDMA")
    return Choice("dmabuf", "the kernel's driver of these GPUs exports DMA-BUF")


def _dmabuf_lacks(inventory: HostInventory, have: Have) -> list[str]:
    driver, release = inventory.nvidia_driver, inventory.kernel_release
    lacks = []
    if version_numbers(release)[:2] < OLDEST_KERNEL:
        lacks.append(f"kernel {release} is older than 5.12")
    if driver and not driver.open:
        lacks.append(f"{driver.title} does not export it, only the open kernel modules do")
    elif driver and driver.branch < OLDEST_DMABUF_DRIVER:
        lacks.append(f"{driver.title} is older than {OLDEST_DMABUF_DRIVER}")
    old = [gpu.pci for gpu in inventory.gpus if gpu.vendor == NVIDIA and int(gpu.device or "0", 16) < FIRST_TURING]
    if old:
        lacks.append(f"GPUs older than Turing: {', '.join(old)}")
    if have.symbols is not None and DMABUF_SYMBOL not in have.symbols and "ib_uverbs" in inventory.modules:
        lacks.append(f"the loaded RDMA stack has no {DMABUF_SYMBOL}")
    return lacks


def _peermem_lacks(inventory: HostInventory, have: Have) -> list[str]:
    driver = inventory.nvidia_driver
    lacks = []
    if driver and driver.branch < OLDEST_PEERMEM_DRIVER:
        lacks.append(f"{driver.title} is older than {OLDEST_PEERMEM_DRIVER}")
    if not have.on_disk and MODULE not in inventory.modules:
        lacks.append(f"kernel module {MODULE} is not installed")
    if have.symbols is not None and PEERMEM_SYMBOL not in have.symbols:
        lacks.append("the loaded RDMA core has no peer memory interface, which DOCA-OFED provides")
    return lacks


def _unmeasured(have: Have) -> tuple[str, ...]:
    """Say when perftest cannot measure what was chosen; programs may use it all the same."""
    if have.perftest is None or "--use_cuda_dmabuf" in have.perftest:
        return ()
    return ("perftest was built without --use_cuda_dmabuf and cannot measure GPU memory on this host",)


def plan_peer_memory(
    mode: str | None, inventory: HostInventory, have: Have, *, record: Mapping[str, bool], folder: str
) -> PeerPlan:
    """Work out unit and modules; ``mode`` None takes everything back, ``folder`` is that of units.

    ConflictError when the legacy module is in the way and in use.
    """
    loaded, legacy = MODULE in inventory.modules, LEGACY in inventory.modules
    removes = mode in ("dmabuf", "peermem")
    if removes and inventory.modules.get(LEGACY):
        raise InUseError(
            f"{LEGACY} is in use on {inventory.hostname} (count {inventory.modules[LEGACY]}). Stop the programs that "
            "use GPU memory over RDMA, then rerun the playbook"
        )
    # What we loaded goes again, unless somebody uses it by now.
    stays = loaded and (record.get("loaded", True) or bool(inventory.modules.get(MODULE)))
    keep = mode == "peermem"
    before = {"files": dict(have.files), "wants": sorted(have.wants), "loaded": loaded, "legacy": legacy}
    after = {
        "files": {f"{folder}/{UNIT}": UNIT_TEXT} if keep else {},
        "wants": sorted(TARGETS) if keep else [],
        "loaded": keep or stays,
        "legacy": legacy and not removes,
    }
    kept = {"loaded": record.get("loaded", loaded)} if keep else {}
    return PeerPlan(Change(before, after), kept)


def prove(inventory: HostInventory, have: Have) -> dict[str, Any]:
    """Return what shows that nvidia-peermem serves; ConflictError when it is loaded and does not.

    Built without the interface it loads and registers nothing.
    """
    clients = [name for name in inventory.memory_peers if name.startswith("nv")]
    if not clients:
        raise ConflictError(
            f"{MODULE} is loaded on {inventory.hostname}, but it is not a client in /sys/kernel/mm/memory_peers "
            f"(found: {', '.join(inventory.memory_peers) or 'none'}). Rebuild the NVIDIA driver after the RDMA stack "
            "is installed"
        )
    return {"clients": clients, "users": inventory.modules.get(MODULE, 0), "symbols": list(have.symbols or ())}
