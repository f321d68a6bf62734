#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_cmdline
short_description: Have kernel arguments in the next boot, and others not
version_added: "0.1.0"
description:
  - Compares wanted kernel arguments with the running kernel and with the boot loader, and changes the latter. Repeated arguments
    (C(console=)), pairs whose order matters (C(hugepagesz=1G hugepages=16)) and quotes are kept.
  - "With GRUB and a menu made by C(grub-mkconfig) (Debian, Ubuntu, SUSE): a drop-in in C(/etc/default/grub.d), and C(grub.cfg) made anew
    beside the old one, looked at, and put in place in one step. Where C(grub-mkconfig) reads no such folder (SUSE) one line at the end of
    C(/etc/default/grub) reads the drop-in."
  - "With boot entries (GRUB of the RHEL family, systemd-boot): the options of each entry in C(loader/entries), and C(/etc/kernel/cmdline) for
    kernels that come later. Entries for rescue stay as they are."
  - Refuses a host whose boot loader it does not know for sure, and unified kernel images. Asks nothing of the boot loader when nothing is wanted.
  - Never reboots. What waits for a boot is in RV(reasons).
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.hugepages
options:
  state:
    description: V(absent) takes back what this module did, and nothing that others did since.
    type: str
    choices: [present, absent]
    default: present
  iommu:
    description:
      - V(auto) asks for passthrough (C(iommu=pt); C(iommu.passthrough=1) on arm64) where an IOMMU translates DMA now and the host is no virtual
        machine. Elsewhere there is nothing to gain.
      - V(passthrough) switches the IOMMU on, too (C(intel_iommu=on) or C(amd_iommu=on), by CPU vendor), as VFs for virtual machines need it.
      - V(none) asks for nothing.
      - An argument that O(arguments) or O(arguments_absent) names is left to them.
    type: str
    choices: [auto, passthrough, none]
    default: auto
  arguments:
    description: Kernel arguments that must be there. Several words in one item belong together, in this order.
    type: list
    elements: str
    default: []
  arguments_absent:
    description: Kernel arguments that must not be there; without a value all of that name.
    type: list
    elements: str
    default: []
  boot_roots:
    description: Folders in which C(grub/grub.cfg), C(grub2/grub.cfg) and C(loader/entries) are looked for.
    type: list
    elements: path
    default: [/boot, /boot/efi, /efi]
  lib_root:
    description: Where the distribution has its C(kernel/cmdline), if it has one.
    type: path
    default: /usr/lib
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Have what RDMA needs of the IOMMU, room for many VFs, and 16 big pages
  gpufabric.rdma.kernel_cmdline:
    arguments: [pci=realloc]
    arguments_absent: [quiet]
    hugepages:
      - {size: 1G, count: 16, at: boot}

- name: Take it back
  gpufabric.rdma.kernel_cmdline:
    state: absent
"""

RETURN = r"""
diff:
  description: State before and after.
  returned: always
  type: dict
  contains:
    before:
      description: State found.
      returned: always
      type: dict
    after:
      description: State wanted; with check mode off also the state reached.
      returned: always
      type: dict
arguments:
  description: For each argument that this module looks after, C(live) (in the running kernel), C(found) (in the boot loader, before) and C(next_boot).
  returned: always
  type: dict
loader:
  description: The boot loader found; empty when nothing was asked of it.
  returned: always
  type: str
reboot_required:
  description: Whether a change is pending until the next boot.
  returned: always
  type: bool
reasons:
  description: The changes that are pending until the next boot, and why.
  returned: always
  type: list
  elements: str
"""

import os
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import CommandError, FabricError
from ..module_utils._host.kernel import boot_loader, boot_loader_io, boot_plan, cmdline, requirements
from ..module_utils._host.kernel.cmdline import Wanted
from ..module_utils._host.system import arguments, files, lock, records

NAME = "kernel_cmdline"
ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.STATE,
    **arguments.BOOTS,
    **arguments.HUGEPAGES,
    "iommu": {"type": "str", "choices": list(requirements.IOMMU), "default": "auto"},
    "arguments": {"type": "list", "elements": "str", "default": []},
    "arguments_absent": {"type": "list", "elements": "str", "default": []},
    "lib_root": {"type": "path", "default": "/usr/lib"},
}


def dropin_path(roots: files.Roots) -> str:
    """Return where GRUB's drop-in is."""
    return f"{roots.etc}/default/grub.d/{boot_loader.DROPIN}"


def wanted_arguments(params: Mapping[str, Any], roots: files.Roots, record: Mapping[str, Any]) -> Wanted:
    """Return what the command line must have and must not have; nothing on the way back."""
    if params["state"] == "absent":
        return Wanted()
    absent = params["arguments_absent"]
    pages = [pages.argument for pages in requirements.parse_hugepages(params["hugepages"]) if pages.boot]
    own = Wanted.from_texts([*params["arguments"], *pages], absent)
    named = {word.name for group in (*own.groups, own.unwanted) for word in group}
    live = [word.text for word in boot_loader_io.read_live(roots)]
    # A drop-in without its record: what it asked for is in the running kernel.
    ours = record.get("groups", live if os.path.exists(dropin_path(roots)) else [])
    iommu = requirements.iommu_arguments(params["iommu"], boot_loader_io.read_cpu(roots), live, ours)
    texts = [text for text in iommu if cmdline.parse(text)[0].name not in named]
    return Wanted.from_texts([*texts, *params["arguments"], *pages], absent)


def converge(params: Mapping[str, Any], check_mode: bool) -> tuple[boot_plan.BootPlan, str]:
    """Plan, apply unless in check mode, read again; return the plan and the name of the boot loader."""
    roots = files.Roots.from_params(params)
    boots, record = params["boot_roots"], records.load(params["state_root"], NAME)
    wanted = wanted_arguments(params, roots, record)
    dropin = dropin_path(roots)
    idle = wanted == Wanted() and not record and not os.path.exists(dropin)
    loader = None if idle else boot_loader_io.detect(roots, boots)

    def read_plan(known: Mapping[str, Any]) -> boot_plan.BootPlan:
        return boot_plan.plan_boot(wanted, loader, boot_loader_io.read(roots, boots, params["lib_root"], loader), known)

    plan = read_plan(record)
    if not check_mode:
        if loader and plan.change.changed:
            records.save(params["state_root"], NAME, plan.first)
            boot_loader_io.apply(plan, loader, os.path.dirname(dropin), wanted)
            left = read_plan(plan.record).change
            if left.changed:
                raise CommandError(f"the boot loader has {left.before} after the change, expected {left.after}")
        records.save(params["state_root"], NAME, plan.record)
        records.set_reasons(roots, NAME, plan.reasons)
    return plan, loader.name if loader else ""


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        with lock.held(module.params, NAME, module.check_mode):
            plan, loader = converge(module.params, module.check_mode)
    except FabricError as error:
        module.fail_json(msg=f"{NAME}: {error}")
    module.exit_json(
        changed=plan.change.changed,
        diff=plan.change.diff(),
        arguments=plan.arguments,
        loader=loader,
        reboot_required=bool(plan.reasons),
        reasons=list(plan.reasons),
    )


if __name__ == "__main__":
    main()
