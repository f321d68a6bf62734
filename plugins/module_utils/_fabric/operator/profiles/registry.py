# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network models by name; the first is the default of ``rdma_fabric.profile``."""

from __future__ import annotations

from ...._common.errors import InputError
from ...._common.reader import describe
from ...intent import platforms
from ...intent.intent import Intent
from ...intent.sriov import DEVICE_PLUGIN, DRA
from .. import nic_configuration
from . import host_device, ipoib, macvlan, nested_vm, raw, sriov, sriov_ib
from .kinds import NODE_POLICY
from .profile import Kind, Profile

PROFILES: dict[str, Profile] = {
    macvlan.PROFILE.name: macvlan.PROFILE,
    host_device.PROFILE.name: host_device.PROFILE,
    sriov.PROFILE.name: sriov.PROFILE,
    raw.PROFILE.name: raw.PROFILE,
    ipoib.PROFILE.name: ipoib.PROFILE,
    sriov_ib.PROFILE.name: sriov_ib.PROFILE,
    nested_vm.PROFILE.name: nested_vm.PROFILE,
}

# Why InfiniBand carries no more than the largest MTU of its models.
_NO_CONNECTED_MODE = (
    "InfiniBand carries more in the connected mode of IPoIB only, which drivers of ConnectX-4 and newer do not have."
    " Set a smaller mtu"
)

# Kinds that options bring, whatever the model.
FURTHER: tuple[Kind, ...] = (NODE_POLICY, *nic_configuration.KINDS)


def names() -> tuple[str, ...]:
    """Return the names of all models, the default first."""
    return tuple(PROFILES)


def sections() -> dict[str, tuple[str, ...]]:
    """Return the sections of ``rdma_fabric`` that only some models use -> the names of these."""
    keys = dict.fromkeys(key for profile in PROFILES.values() for key in profile.own_sections)
    return {key: tuple(name for name, own in PROFILES.items() if key in own.own_sections) for key in keys}


def get(name: str) -> Profile:
    """Return the model of a name; the default for an empty one."""
    found = PROFILES.get(name or names()[0])
    if found is None:
        raise InputError(f"profile: expected one of {', '.join(names())}, found {describe(name)}")
    return found


def mtu_of(intent: Intent) -> int:
    """Return the MTU of the rails; InputError when the model cannot have the one that is set."""
    profile = get(intent.profile)
    mtu = intent.mtu or profile.mtu.default
    if mtu > profile.mtu.most:
        why = f". {_NO_CONNECTED_MODE}" if profile.link_layer == "infiniband" else ""
        raise InputError(
            f"rdma_fabric.mtu: at most {profile.mtu.most} is possible with profile {profile.name}, found {mtu}{why}"
        )
    return mtu


def resource(intent: Intent, name: str) -> str:
    """Return the resource that a pod requests for a rail, with the prefix that it has on the platform."""
    profile = get(intent.profile)
    found = profile.resource(name)
    if not profile.by_sriov or intent.sriov.assigned_by == DEVICE_PLUGIN:
        return found
    return intent.operator.platform.sriov_domain + found.removeprefix(platforms.get("").sriov_domain)


def by_claims(intent: Intent) -> bool:
    """Return whether pods claim their devices (Dynamic Resource Allocation), so that nodes offer no resources."""
    return get(intent.profile).by_sriov and intent.sriov.assigned_by == DRA


def kinds() -> tuple[Kind, ...]:
    """Return the kinds of all models and of options of all models, in the order to apply their objects."""
    every = (*FURTHER, *(kind for profile in PROFILES.values() for kind in profile.kinds))
    found = {(kind.api_version, kind.kind): kind for kind in every}
    return tuple(found.values())


def is_patched(kind: str) -> bool:
    """Return whether objects of a kind are changed only, and neither created nor deleted."""
    return any(own.kind == kind for own in kinds() if own.patched)


def resource_prefixes() -> tuple[str, ...]:
    """Return how the full names of all models' resources begin."""
    found = [name for profile in PROFILES.values() for name in platforms.variants(profile.resource_prefix)]
    return tuple(dict.fromkeys(found))
