# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts whose system is an image (CoreOS, ostree): packages, files and boot loader are not changed on the host."""

from __future__ import annotations

import os

from ..._common.errors import ConflictError
from . import files

REMEDY = (
    "Configure such hosts by the MachineConfig and the NodeNetworkConfigurationPolicies that the playbook plan writes"
    " to rdma_manifests_dir (docs/openshift.md), and leave out the playbook prepare"
)


def refuse(roots: files.Roots) -> None:
    """ConflictError when the system of this host is an image."""
    values = dict(
        line.partition("=")[::2] for line in (files.read(f"{roots.etc}/os-release") or "").splitlines() if "=" in line
    )
    own = {key: value.strip("\"' ") for key, value in values.items()}
    coreos = own.get("ID") == "rhcos" or own.get("VARIANT_ID") == "coreos"
    if coreos or os.path.exists(f"{roots.run}/ostree-booted"):
        raise ConflictError(
            f"the system of this host is an image ({own.get('PRETTY_NAME') or 'booted by ostree'}), and this collection"
            f" does not change packages, files or boot loader of such hosts. {REMEDY}"
        )
