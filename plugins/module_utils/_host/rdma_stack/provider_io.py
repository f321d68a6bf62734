# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user wants of the RDMA stack, completed by what the host says to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..._common.errors import InputError
from ..facts import loaded_drivers
from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail
from ..system import command
from ..system.files import Roots
from . import doca, io, packages_io, plan, provider

PERFTEST = "ib_write_bw"


class Reading(NamedTuple):
    """Both sides, who keeps drivers from being loaded again, and what people should know."""

    want: plan.Want
    have: plan.Have
    users: tuple[str, ...]
    findings: tuple[str, ...]


def read(
    params: Mapping[str, Any], roots: Roots, inventory: HostInventory, *, record: Mapping[str, Any], netdevs: list[str]
) -> Reading:
    """Read the host and complete the wishes; an error of the family when a provider cannot be on this host."""
    name = params["provider"] if params["state"] == "present" else None
    wanted = doca.Wanted.from_params(params["doca"] or {}) if name == plan.DOCA else None
    own = _packages(params, inventory, name, wanted=wanted)
    have = io.read(roots, _asked(params, record, name, own=own), plan.DOCA in (name, record.get("provider")))
    want = plan.Want(name, netdevs=tuple(netdevs), packages=tuple(own))
    if wanted:
        doca.check(wanted, inventory, io.headers(roots, (inventory.kernel_release, inventory.next_kernel)))
        want = _with_source(want, wanted, inventory, roots=roots)
    provider.check_replacing(
        want, have, record, vendor=params["vendor_packages"], replace=params["replace"], hostname=inventory.hostname
    )
    loaded = io.loaded(roots)
    findings = doca.unsigned(wanted, inventory) if wanted else []
    soft = [f"soft-RoCE device {name}" for name in plan.foreign_devices(have)]
    users = [*loaded_drivers.users(inventory, loaded), *soft] if have.stale else []
    if params["restart"] == "never":
        users = ["restart is never", *users]
    want = dataclasses.replace(want, restart=not users)
    return Reading(want, have, tuple(users), tuple(findings))


def check_offer(params: Mapping[str, Any], roots: Roots, inventory: HostInventory, *, reading: Reading) -> None:
    """Ask the package source of DOCA-OFED for the version, when it is about to be installed."""
    wanted = doca.Wanted.from_params(params["doca"])
    url = doca.address(wanted, inventory)
    doca.check_offer(wanted, url, packages_io.offered(roots, wanted, reading.want.source, url=url))


def check_cuda() -> None:
    """Make sure that the perftest of the host is built with CUDA, by its own help; InputError says what to do."""
    if not command.find(PERFTEST):
        raise InputError(
            f"perftest_cuda: {PERFTEST} is not installed. Set install_packages: true, or install a perftest with CUDA"
        )
    # Asking for it exits with 1.
    help_ = command.run([PERFTEST, "--help"], timeout=10, check=False)
    shown = help_.stdout + help_.stderr
    if "--use_cuda_bus_id" in shown:
        return
    if "--report_gbits" not in shown:
        raise InputError(
            f"perftest_cuda: '{PERFTEST} --help' does not list the options of perftest: it ended with status {help_.rc}"
            f" and printed {help_.said[:200]}. Make it start on this host: one with CUDA needs the libraries of the GPU"
            " driver (libcuda.so.1)"
        )
    version = command.run([PERFTEST, "--version"], timeout=10, check=False).stdout.rpartition("Version: ")[2].strip()
    raise InputError(
        f"perftest_cuda: perftest {version or 'of an unknown version'} is built without CUDA (its help does not list"
        " --use_cuda_bus_id), as the packages of distributions are. Install one with CUDA: by provider doca_ofed if"
        " its release has one, or from a package source of your own by option packages. Otherwise set perftest_cuda:"
        " false, and measure GPU memory in pods with an image that has it (docs/tester-image.md)"
    )


def named(inventory: HostInventory, rail: Rail) -> bool:
    """Whether the port of a rail has its name already."""
    link = inventory.port(rail.pci).netdev
    return link is not None and link.name == rail.netdev


def recorded(want: plan.Want, found: plan.StackPlan, record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what to keep, with all packages as they were before an installation, and what it brought after it."""
    if want.provider != plan.DOCA:
        return found.record
    if found.install:
        return {**found.record, "snapshot": record.get("snapshot") or packages_io.everything()}
    return plan.settle(found.record, packages_io.everything()) if "snapshot" in found.record else found.record


def _packages(
    params: Mapping[str, Any], inventory: HostInventory, name: str | None, *, wanted: doca.Wanted | None
) -> list[str]:
    """Return the packages that must be there."""
    if wanted and not params["install_packages"]:
        raise InputError(
            "provider doca_ofed requires install_packages: true, found false. Set it to true, or choose another "
            "provider"
        )
    if name is None or not params["install_packages"]:
        return []
    if wanted:
        return [wanted.package, *params["packages"]]
    return params["packages"] or list(plan.packages_of(inventory))


def _asked(params: Mapping[str, Any], record: Mapping[str, Any], name: str | None, *, own: list[str]) -> list[str]:
    """Return the packages to look at: those wanted, those of the record, and those that do not go together."""
    known = [name for key in ("packages", "came", "replaced", "hold") for name in record.get(key, ())]
    vendor = params["vendor_packages"] if name in (plan.DOCA, plan.CONTAINER) else []
    return [*own, *known, *vendor]


def _with_source(want: plan.Want, wanted: doca.Wanted, inventory: HostInventory, *, roots: Roots) -> plan.Want:
    if wanted.hold:
        packages_io.check_holds(roots.etc)
    return dataclasses.replace(
        want,
        pins={wanted.package: wanted.version},
        source=doca.source(wanted, inventory, packages_io.manager(), etc=roots.etc),
        hold=want.packages if wanted.hold else (),
    )
