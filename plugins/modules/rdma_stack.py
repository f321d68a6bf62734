#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_stack
short_description: Load the RDMA stack of a host and keep it over boots
version_added: "0.1.0"
description:
  - Loads the kernel modules of user space RDMA and has them loaded at boot. With V(soft_roce) also makes one soft-RoCE device C(rxe_NETDEV)
    on each rail, by a systemd unit that is bound to the network device.
  - Says which packages are missing; installing them is left to a package module, whose change it is. Packages that were missing are
    recorded, so that O(state=absent) can say which ones came with us.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
  - gpufabric.rdma.host.state_root
options:
  state:
    description: V(absent) takes back what this module did, and names the packages that came with us.
    type: str
    choices: [present, absent]
    default: present
  provider:
    description: V(inbox) uses the drivers of the distribution, V(soft_roce) puts software RDMA on plain NICs.
    type: str
    choices: [inbox, soft_roce]
    default: inbox
  install_packages:
    description: Whether packages are looked at.
    type: bool
    default: true
  packages:
    description: Packages that must be there; none means those that the distribution needs.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Can run in check mode and says what would change, without changing it.
    support: full
  diff_mode:
    description: Returns the state before and after.
    support: full
  platform:
    description: Where the module can run.
    platforms: linux
    support: full
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Load the distribution's RDMA stack
  gpufabric.rdma.rdma_stack:
    provider: inbox

- name: Have soft-RoCE on the rails
  gpufabric.rdma.rdma_stack:
    provider: soft_roce
    rails:
      - {rail: rail0, pci: "0000:01:00.0", driver: igb, netdev: rail0, mtu: 9000}
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
  description: Whether something waits for the next boot.
  returned: always
  type: bool
reasons:
  description: What waits for the next boot, and why.
  returned: always
  type: list
  elements: str
packages:
  description: C(install) lists packages that are missing, C(remove) those that came with us and are there.
  returned: always
  type: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core import arguments, stack
from ..module_utils._core.errors import CommandError, FabricError
from ..module_utils._core.inventory import HostInventory
from ..module_utils._core.rail import Rail, parse_rails
from ..module_utils._host import stack as host_stack
from ..module_utils._host import state, sysfs

NAME = "rdma_stack"
ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.RAILS,
    **arguments.STATE,
    "provider": {"type": "str", "choices": list(stack.PROVIDERS), "default": "inbox"},
    "install_packages": {"type": "bool", "default": True},
    "packages": {"type": "list", "elements": "str", "default": []},
}


def wanted_packages(params: Mapping[str, Any], inventory: HostInventory) -> list[str]:
    """Return the packages that must be there, or, on the way back, those that came with us."""
    if params["state"] == "absent":
        return list(state.load(params["state_root"], NAME).get("packages", []))
    if not params["install_packages"]:
        return []
    return params["packages"] or list(stack.packages_of(inventory))


def named(inventory: HostInventory, rail: Rail) -> bool:
    """Whether the port of a rail has its name already."""
    link = inventory.port(rail.pci).netdev
    return link is not None and link.name == rail.netdev


def converge(params: Mapping[str, Any], check_mode: bool) -> tuple[stack.StackPlan, list[str]]:
    """Plan, apply unless in check mode, read again; return the plan and what waits for a boot."""
    roots = sysfs.Roots.from_params(params)
    inventory = sysfs.read_inventory(roots)
    present = params["state"] == "present"
    rails = parse_rails(params["rails"]) if present else ()
    packages = wanted_packages(params, inventory)
    # In check mode the rename before us was not done either.
    ready = [rail for rail in rails if check_mode or named(inventory, rail)]
    soft = params["provider"] == "soft_roce"
    reasons = [
        f"soft-RoCE on {rail.netdev} waits for {rail.pci} to get its name" for rail in rails if rail not in ready
    ]

    def read_plan() -> stack.StackPlan:
        return stack.plan_stack(
            params["provider"] if present else None,
            [rail.netdev for rail in ready],
            packages,
            host_stack.read(roots, packages),
            state.load(params["state_root"], NAME),
            host_stack.folders(roots),
        )

    plan = read_plan()
    if not check_mode:
        state.save(params["state_root"], NAME, plan.record)
        if plan.change.changed or plan.unload:
            host_stack.apply(plan)
        left = read_plan().change
        if left.changed:
            raise CommandError(f"the stack is {left.before} after the change, expected {left.after}")
        state.set_reasons(roots, NAME, reasons if soft else [])
    return plan, reasons if soft else []


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        plan, reasons = converge(module.params, module.check_mode)
    except FabricError as error:
        module.fail_json(msg=f"{NAME}: {error}")
    module.exit_json(
        changed=plan.change.changed,
        diff=plan.change.diff(),
        reboot_required=bool(reasons),
        reasons=reasons,
        packages={"install": list(plan.install), "remove": list(plan.remove)},
    )


if __name__ == "__main__":
    main()
