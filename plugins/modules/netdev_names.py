#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: netdev_names
short_description: Give the ports of a host predictable names by PCI path
version_added: "0.1.0"
description:
  - Writes one systemd C(.link) file a rail, with a low number, that matches the port by PCI path and driver.
  - Refuses before the first write when another C(.link) file, netplan or a udev rule would give the port another name, when another
    network device has the name, or when a port carries the default route, the ssh connection or is a member of a bond.
  - The name before is recorded once and comes back with O(state=absent), unless another tool renamed the device since.
  - A port, VF or representor that has another owner now keeps its name.
  - Names the VFs of rails and their representors too when asked to, by udev rules that hold for VFs of any later time.
  - Makes a new initramfs when files changed and the driver of a port is in it, since the port would get its name there.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
options:
  state:
    description:
      - V(present) makes the host as the rails say. Ports that were rails before and are none now get their recorded state back.
      - V(absent) restores the recorded state of all ports and removes the files; O(rails) is ignored.
    type: str
    choices: [present, absent]
    default: present
  vfs:
    description:
      - Whether VF N of each rail is named after the rail, V(rail0v3) for VF 3 of V(rail0), by what the port's link C(virtfn3) leads to.
      - The rule holds for VFs that are made later, up to C(sriov_totalvfs) of the port, and for one that comes back from a pod.
      - Refused when a name has more than 15 characters, and like the names of ports when somebody else has or gives it.
    type: bool
    default: false
  representors:
    description:
      - Whether the representor of VF N, which a port in switchdev mode has, is named after the rail, V(rail0r3) for VF 3 of V(rail0).
      - Those of subfunctions, and of VFs of another controller (a DPU's host), keep their names.
    type: bool
    default: false
  apply:
    description:
      - V(now) renames at once what nothing uses (no address, nothing on top, no process on the RDMA device of a VF); the link goes down and
        up for it. A VF in another network namespace, as that of a pod, is left alone.
      - V(boot) leaves every rename to the next boot.
    type: str
    choices: [now, boot]
    default: boot
  rdma:
    description:
      - V(rail) gives the RDMA device of each rail's port the rail's name too, by a udev rule that calls rdma-core's C(rdma_rename). So the order
        of RDMA devices is that of the rails, whatever the driver counted. With O(vfs) the RDMA device of a VF has the name of the VF.
      - V(keep) leaves RDMA devices alone, and takes back what was done before.
    type: str
    choices: [keep, rail]
    default: keep
  lib_root:
    description: Where the distribution has its C(systemd/network) and C(udev/rules.d) folders.
    type: path
    default: /usr/lib
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Name the rails, at once where nothing uses them
  gpufabric.rdma.netdev_names:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}
      - {rail: rail1, pci: "0000:3a:00.0", driver: mlx5_core, netdev: rail1, mtu: 9000}
    apply: now

- name: Name the VFs of a rail too, those that are there and those that come, and their RDMA devices
  gpufabric.rdma.netdev_names:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}
    vfs: true
    rdma: rail

- name: Give all ports their first names back
  gpufabric.rdma.netdev_names:
    state: absent
    apply: now
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
reboot_required:
  description: Whether a change is pending until the next boot.
  returned: always
  type: bool
reasons:
  description: The changes that are pending until the next boot, and why.
  returned: always
  type: list
  elements: str
initramfs:
  description: The initramfs images that were made anew; they have the driver of a port whose files changed.
  returned: always
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.change import Change
from ..module_utils._common.errors import CommandError, FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.facts.inventory import HostInventory
from ..module_utils._host.facts.rail_ports import parse_rails
from ..module_utils._host.naming import io as naming_io
from ..module_utils._host.naming import model as naming_model
from ..module_utils._host.naming import plan as naming_plan
from ..module_utils._host.naming import rdma_io, recorded
from ..module_utils._host.naming.model import Wish
from ..module_utils._host.system import arguments, files, lock, records

NAME = "netdev_names"
ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.RAILS,
    **arguments.STATE,
    "vfs": {"type": "bool", "default": False},
    "representors": {"type": "bool", "default": False},
    "apply": {"type": "str", "choices": ["now", "boot"], "default": "boot"},
    "rdma": {"type": "str", "choices": ["keep", "rail"], "default": "keep"},
    "lib_root": {"type": "path", "default": "/usr/lib"},
}


def read_wish(params: Mapping[str, Any], wanted: bool) -> Wish:
    """Return whose names are asked for; nobody's when not ``wanted`` or when all is taken back."""
    given = wanted and params["state"] == "present"
    kinds = naming_model.kinds(params["vfs"], params["representors"])
    return Wish(parse_rails(params["rails"] if given else []), kinds, params["apply"] == "now")


def read_plan(inventory: HostInventory, params: Mapping[str, Any], roots: files.Roots) -> naming_plan.NamePlan:
    """Read the host's files and work out what to do."""
    functions = naming_io.read_functions(roots, inventory)
    record = records.load(params["state_root"], NAME)
    found = naming_io.read_files(roots, params["lib_root"])
    return naming_plan.plan_names(inventory, functions, read_wish(params, True), record, found)


def converge(plan: naming_plan.NamePlan, params: Mapping[str, Any], roots: files.Roots) -> list[str]:
    """Carry out the plan and make sure that nothing is left to do; return new initramfs images."""
    # There as long as the files and the initramfs may differ: a run that was cut off is finished by the next one.
    marker, images = f"{params['state_root']}/{NAME}.initramfs", []
    record = records.load(params["state_root"], NAME)
    records.save(params["state_root"], NAME, recorded.while_changing(record, plan.record))
    if plan.changes_links:
        files.write(marker, "")
    if plan.change.changed:
        naming_io.apply(plan)
        left = read_plan(facts_io.read_inventory(roots), params, roots).change
        if left.changed:
            raise CommandError(f"after renaming the host has {left.before['names']}, expected {left.after['names']}")
    if files.read(marker) is not None:
        images = naming_io.renew_initramfs(roots, list(plan.change.after["names"]))
        files.remove(marker)
    # Only now: a rename that failed half way still knows the first names.
    records.save(params["state_root"], NAME, plan.record)
    return images


def carry_out(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """Plan both kinds of names, carry them out unless in check mode; return the module's result."""
    roots = files.Roots.from_params(params)
    places = (roots, params["lib_root"], params["state_root"], read_wish(params, params["rdma"] == "rail"))
    inventory = facts_io.read_inventory(roots)
    plan = read_plan(inventory, params, roots)
    rdma = rdma_io.read_plan(inventory, *places)
    reasons = [*plan.reasons, *rdma.reasons]
    warnings = list(dict.fromkeys([*plan.warnings, *rdma.warnings]))
    images: list[str] = []
    if not check_mode:
        images = converge(plan, params, roots)
        rdma_io.apply(rdma, *places)
        records.set_reasons(roots, NAME, reasons)
    # Shown only where it matters: most hosts keep the names of their RDMA devices.
    used = rdma.change.changed or rdma.record
    change = Change(
        {**plan.change.before, **({"rdma": rdma.change.before} if used else {})},
        {**plan.change.after, **({"rdma": rdma.change.after} if used else {})},
    )
    result: dict[str, Any] = {"changed": change.changed, "diff": change.diff(), "initramfs": images}
    return {**result, "reboot_required": bool(reasons), "reasons": reasons, "warnings": warnings}


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        with lock.held(module.params, NAME, module.check_mode):
            result = carry_out(module.params, module.check_mode)
            warnings = result.pop("warnings")
    except FabricError as error:
        module.fail_json(msg=f"{NAME}: {error}")
    for text in warnings:
        module.warn(text)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
