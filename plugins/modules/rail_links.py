#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_links
short_description: Set MTU, address and ARP rules of rails, now and after a boot
version_added: "0.1.0"
description:
  - Writes one systemd-networkd file a rail and one sysctl file, applies both at once, reads the state again and fails with what the
    kernel refused.
  - All ports are checked before the first write. A port that carries the default route, the ssh connection, or is a member of a bond
    is refused, and so is a host whose network is managed by something else than systemd-networkd.
  - Ports are found by PCI address, so the module works before and after a rename. The state before is recorded once and comes back
    with O(state=absent).
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
  - gpufabric.rdma.host.state_root
options:
  state:
    description:
      - V(present) makes the host as the rails say. Ports that were rails before and are none now get their recorded state back.
      - V(absent) gives all ports their recorded state back and removes the files; O(rails) is not looked at.
    type: str
    choices: [present, absent]
    default: present
  lib_root:
    description: Where the distribution has its C(systemd/network) folder.
    type: path
    default: /usr/lib
  timeout:
    description: Seconds that kernel and network manager get to take the new state over.
    type: int
    default: 20
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
- name: Configure the rails
  gpufabric.rdma.rail_links:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, address: 192.168.0.1/24, mtu: 9000}

- name: Give all ports their recorded state back
  gpufabric.rdma.rail_links:
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
reboot_required:
  description: Whether something waits for the next boot.
  returned: always
  type: bool
reasons:
  description: What waits for the next boot, and why.
  returned: always
  type: list
  elements: str
"""

import time
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core import arguments, linkfile, links
from ..module_utils._core.errors import CommandError, FabricError
from ..module_utils._core.inventory import HostInventory
from ..module_utils._core.rail import parse_rails
from ..module_utils._host import command, files, state, sysfs

NAME = "rail_links"
ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.RAILS,
    **arguments.STATE,
    "lib_root": {"type": "path", "default": "/usr/lib"},
    "timeout": {"type": "int", "default": 20},
}
# Between two looks at the links; networkd works beside us.
PAUSE = 0.5


def read_plan(params: Mapping[str, Any], roots: sysfs.Roots) -> links.LinkPlan:
    """Read the host and work out what to do."""
    folders = (f"{roots.etc}/systemd/network", f"{roots.etc}/sysctl.d")
    inventory = sysfs.read_inventory(roots)
    own = {
        **state.read_folder(folders[0], ".network", linkfile.PREFIX),
        **state.read_folder(folders[1], links.SYSCTL_FILE),
    }
    return links.plan_links(
        inventory,
        parse_rails(params["rails"] if params["state"] == "present" else []),
        state.load(params["state_root"], NAME),
        links.Have(own, state.read_systemd(roots, params["lib_root"], ".network"), read_sysctls(roots, inventory)),
        folders,
    )


def read_sysctls(roots: sysfs.Roots, inventory: HostInventory) -> dict[str, dict[str, str]]:
    """Return netdev -> ARP rules of all ports."""
    netdevs = [port.netdev.name for port in inventory.ports if port.netdev]
    return {
        netdev: {key: sysfs.read_text(f"{roots.proc}/sys/net/ipv4/conf/{netdev}/{key}") or "" for key in links.SYSCTLS}
        for netdev in netdevs
    }


def read_links(roots: sysfs.Roots) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the states of all ports that have a netdev, and their names, by PCI address."""
    inventory = sysfs.read_inventory(roots)
    sysctl = read_sysctls(roots, inventory)
    names = {port.pci: port.netdev.name for port in inventory.ports if port.netdev}
    return {pci: links.current_state(inventory.port(pci), sysctl) for pci in names}, names


def apply(plan: links.LinkPlan, roots: sysfs.Roots, timeout: int) -> None:
    """Write the files and bring the links there; CommandError says what is not as wanted."""
    before, after = plan.change.before["files"], plan.change.after["files"]
    state.write_files(before, after)
    if before != after:
        command.run(["networkctl", "reload"])
    wanted = plan.change.after["links"]
    end = time.monotonic() + timeout
    found, names = read_links(roots)
    while links.differences(wanted, found, names):
        if time.monotonic() > end:
            raise CommandError("; ".join(links.differences(wanted, found, names)))
        for pci, target in wanted.items():
            set_link(roots, names[pci], found[pci], target)
        time.sleep(PAUSE)
        found, names = read_links(roots)


def set_link(roots: sysfs.Roots, netdev: str, found: Mapping[str, Any], target: Mapping[str, Any]) -> None:
    """Set what differs on one link; networkd may have been faster, so refusals show when reading again."""
    for argv in links.link_commands(netdev, found, target):
        command.run(argv)
    for key, value in target["sysctl"].items():
        if found["sysctl"].get(key) != value:
            files.set_kernel(f"{roots.proc}/sys/net/ipv4/conf/{netdev}/{key}", value)


def converge(params: Mapping[str, Any], check_mode: bool) -> links.LinkPlan:
    """Plan, and apply unless in check mode."""
    roots = sysfs.Roots.from_params(params)
    plan = read_plan(params, roots)
    if check_mode:
        return plan
    if plan.change.changed:
        state.save(params["state_root"], NAME, {**state.load(params["state_root"], NAME), **plan.record})
        apply(plan, roots, params["timeout"])
    state.save(params["state_root"], NAME, plan.record)
    return plan


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        plan = converge(module.params, module.check_mode)
    except FabricError as error:
        module.fail_json(msg=f"{NAME}: {error}")
    module.exit_json(changed=plan.change.changed, diff=plan.change.diff(), reboot_required=False, reasons=[])


if __name__ == "__main__":
    main()
