# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles of a run will refuse: each plans its change as in check mode, before any of them changes anything.

A topic is one module of a role. Its plan is the one that the module makes in check mode, so whatever the module refuses
before its first change is found here. Changes nothing.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..._common.errors import ConflictError, FabricError, InputError, InUseError
from ..facts.inventory import HostInventory
from ..firmware import plan as firmware_plan
from ..firmware import topic_io as firmware
from ..gpu_direct import peer_memory_topic_io as peer_memory
from ..kernel import cmdline_topic_io as kernel_cmdline
from ..kernel import settings, settings_topic_io
from ..links import topic_io as links
from ..naming import topic_io as naming
from ..qos import topic_io as qos
from ..rdma_stack import plan as rdma_stack_plan
from ..rdma_stack import topic_io as rdma_stack
from ..sriov import topic_io as sriov
from ..system import records
from ..system.files import Roots
from .checks import Finding

_RDMA_CORE = "ib_uverbs"
_CARD = "role nic_firmware changes the card and the host reboots first"
_KERNEL_NAME = re.compile(r"eth[0-9]+")


class Host(NamedTuple):
    """Where the host is, and its facts, which are read once for all topics."""

    roots: Roots
    inventory: HostInventory


@dataclasses.dataclass(frozen=True)
class Before:
    """What the roles before a topic do: packages and drivers that change, and whether the host reboots.

    ``firmware``: parameters of cards that change with the reboot; ``renamed``: former names of ports.
    """

    stack: tuple[str, ...] = ()
    reboots: bool = False
    firmware: frozenset[str] = frozenset()
    renamed: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Run:
    """Options of the run: ``roles`` by the name of the input of a role, and what its modules share."""

    roles: Mapping[str, Any]
    shared: Mapping[str, Any]
    skipped: Collection[str] = ()


class Topic(NamedTuple):
    """One module of a role.

    ``inputs``: option of the module -> input of the role where they differ. ``waits`` says why a refusal may be gone
    when the role runs, empty where it will be the same. ``is_due``: whether the role uses the module at all.
    """

    role: str
    name: str
    arguments: Mapping[str, Any]
    plan: Callable[[Mapping[str, Any], Host, Mapping[str, Any]], Any]
    inputs: Mapping[str, str] = {}
    waits: Callable[[FabricError, Host, Before], str] = lambda _error, _host, _before: ""
    is_due: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = lambda _params, _record: True


def refusals(host: Host, run: Run) -> Iterator[Finding]:
    """Yield what each role of the run will refuse; what earlier roles may resolve does not stop the run."""
    before = Before()
    for topic in TOPICS:
        if topic.role in run.skipped or run.roles.get(f"{topic.role}_state") != "present":
            continue
        try:
            record, params = records.load(host.roots.state, topic.name), options_of(topic, run)
            if not topic.is_due(params, record):
                continue
            plan = topic.plan(params, host, record)
        except FabricError as error:
            why = topic.waits(error, host, before)
            later = f". This does not stop the run, since {why}" if why else ""
            yield Finding(not why, f"role {topic.role}: {error}{later}")
        else:
            before = _following(before, plan, bool(run.roles.get("host_reboot_allowed")))


def with_vfs(roles: Mapping[str, Any], vfs: int) -> dict[str, Any]:
    """Return inputs of roles with those of sriov, if only the number of VFs is given, as to role preflight alone."""
    own = {"sriov_state": "present", "sriov_vfs": vfs} if vfs and "sriov_state" not in roles else {}
    return {**roles, **own}


def has_vendor_source(roles: Mapping[str, Any]) -> bool:
    """Whether the packages of the run have a source of the vendor, which the plan of the RDMA stack asks."""
    return roles.get("rdma_stack_provider") == rdma_stack_plan.DOCA


def options_of(topic: Topic, run: Run) -> dict[str, Any]:
    """Return the options that the role gives its module; InputError names those that the module does not accept."""
    inputs = {key: topic.inputs.get(key, f"{topic.role}_{key}") for key in topic.arguments}
    given = {
        key: found
        for key, name in inputs.items()
        for found in [_input(name, topic.arguments[key], run.roles)]
        if found is not None
    }
    shared = {key: value for key, value in run.shared.items() if key in topic.arguments}
    found = ArgumentSpecValidator(dict(topic.arguments)).validate({**given, **shared})
    if found.error_messages:
        raise InputError("; ".join(found.error_messages))
    validated: dict[str, Any] = found.validated_parameters
    return validated


def _input(name: str, argument: Mapping[str, Any], roles: Mapping[str, Any]) -> Any:
    """Return an input of a role; a dict may be several inputs, one for each key."""
    if name in roles or argument["type"] != "dict":
        return roles.get(name)
    found = {key: roles.get(f"{name}_{key}") for key in argument.get("options", ())}
    return {key: value for key, value in found.items() if value is not None}


def _following(before: Before, plan: Any, may_reboot: bool) -> Before:
    """Return what the next topics have to expect."""
    reboots = may_reboot and bool(plan.reasons)
    found = dataclasses.replace(before, reboots=before.reboots or reboots)
    if isinstance(plan, rdma_stack.Stack):
        return dataclasses.replace(found, stack=_stack(plan))
    if isinstance(plan, firmware_plan.FirmwarePlan) and reboots:
        return dataclasses.replace(found, firmware=_parameters(plan))
    if isinstance(plan, naming.Names):
        return dataclasses.replace(found, renamed=tuple(rename.link.name for rename in plan.netdevs.renames))
    return found


def _stack(plan: rdma_stack.Stack) -> tuple[str, ...]:
    """Return the packages and drivers that role rdma_stack changes, and what of the RDMA core it loads."""
    drivers = [new.title for _old, new in plan.reading.have.stale] if plan.reading.want.restart else []
    loads = {_RDMA_CORE} & (set(plan.change.after["modules"]) - set(plan.change.before["modules"]))
    return (*plan.plan.install, *plan.plan.remove, *drivers, *loads)


def _parameters(plan: firmware_plan.FirmwarePlan) -> frozenset[str]:
    before, after = plan.change.before, plan.change.after
    return frozenset(
        name for pci, values in after.items() for name in values if values[name] != before.get(pci, {}).get(name)
    )


def _after_reboot(error: FabricError, _host: Host, before: Before) -> str:
    return "the host reboots first" if before.reboots and isinstance(error, InUseError) else ""


def _after_stack(error: FabricError, host: Host, before: Before) -> str:
    if before.stack:
        return f"role rdma_stack installs, removes, loads or reloads {', '.join(before.stack)} first"
    return _after_card(error, host, before)


def _after_card(error: FabricError, host: Host, before: Before) -> str:
    """A port may have another link layer when the firmware of its card was changed."""
    if any(name.startswith("LINK_TYPE") for name in before.firmware):
        return _CARD
    return _after_reboot(error, host, before)


def _after_kernel(error: FabricError, host: Host, before: Before) -> str:
    following = host.inventory.next_kernel
    if before.reboots and following and following != host.inventory.kernel_release:
        return f"the host reboots into kernel {following} first"
    return _after_stack(error, host, before)


def _after_rdma(error: FabricError, host: Host, before: Before) -> str:
    """VFs on InfiniBand take their identity from the RDMA device, which a driver of the stack may have to make."""
    if any(port.infiniband and not port.rdma for port in host.inventory.ports):
        return "role rdma_stack loads the RDMA drivers of its InfiniBand ports first"
    # The number of VFs that the card itself has is known after the reboot; one that is set is known before.
    if "SRIOV_EN" in before.firmware and "NUM_OF_VFS" not in before.firmware and not isinstance(error, InUseError):
        return _CARD
    return _after_card(error, host, before)


def _after_names(error: FabricError, host: Host, before: Before) -> str:
    """A file that names a port eth2 no longer means it afterwards; other former names stay alternative names."""
    old = [name for name in before.renamed if _KERNEL_NAME.fullmatch(name)]
    if old and isinstance(error, ConflictError) and not isinstance(error, InUseError):
        return f"role rail_names renames {', '.join(old)} first"
    return _after_card(error, host, before)


# In the order of playbooks/prepare.yml. Role pcie_acs has checks of its own in checks.py: an IOMMU that translates
# now is no reason to stop, since this run may boot the host with another setting.
TOPICS = (
    Topic(
        "host_kernel",
        kernel_cmdline.NAME,
        kernel_cmdline.ARGUMENTS,
        lambda params, host, record: kernel_cmdline.read_plan(params, host.roots, record),
    ),
    Topic(
        "host_kernel",
        settings_topic_io.NAME,
        settings_topic_io.ARGUMENTS,
        lambda params, host, record: settings_topic_io.read_plan(settings.Want.from_params(params), host.roots, record),
    ),
    Topic(
        "nic_firmware",
        firmware.NAME,
        firmware.ARGUMENTS,
        lambda params, host, record: firmware.read_plan(params, host.roots, record, inventory=host.inventory),
    ),
    Topic(
        "rail_names",
        naming.NAME,
        naming.ARGUMENTS,
        lambda params, host, record: naming.read_plan(params, host.roots, record, inventory=host.inventory),
    ),
    Topic(
        "rdma_stack",
        rdma_stack.NAME,
        rdma_stack.ARGUMENTS,
        lambda params, host, record: rdma_stack.Topic(
            params, host.roots, inventory=host.inventory, check_mode=True
        ).read_plan(record),
    ),
    Topic(
        "sriov",
        sriov.NAME,
        sriov.ARGUMENTS,
        lambda params, host, record: sriov.read_plan(
            params, host.roots, record, inventory=host.inventory, check_mode=True
        ),
        waits=_after_rdma,
        is_due=lambda params, _record: params["vfs"] is not None or bool(params["vfs_by_rail"]),
    ),
    Topic(
        "rail_links",
        links.NAME,
        links.ARGUMENTS,
        lambda params, host, record: links.read_plan(params, host.roots, record, inventory=host.inventory),
        waits=_after_names,
    ),
    Topic(
        "rail_links",
        qos.NAME,
        qos.ARGUMENTS,
        lambda params, host, record: qos.read_plan(
            params, host.roots, record, inventory=host.inventory, check_mode=True
        ),
        {"settings": "rail_links_qos"},
        _after_stack,
        lambda params, record: bool(record or params["settings"]),
    ),
    Topic(
        "peer_memory",
        peer_memory.NAME,
        peer_memory.ARGUMENTS,
        lambda params, host, record: peer_memory.read_plan(params, host.roots, record, inventory=host.inventory),
        waits=_after_kernel,
    ),
)
