#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_links
short_description: Manage MTU, addresses, ARP settings and source routing of rails
version_added: "0.1.0"
description:
  - Writes the configuration of the network manager for each rail (a systemd-networkd file, a NetworkManager connection or a netplan
    definition) and one sysctl file, applies both immediately, reads the state again and fails with the settings that the kernel rejected.
  - Only the links of rails are reconfigured. C(netplan apply) is never run, because it would restart other links.
  - All ports are checked before the first write. The module rejects ports that carry the default route or the ssh connection, are members
    of a bond, or are configured by another file with a higher priority, and hosts where the active network manager is ambiguous.
  - A rail can be a bond (O(rails[].members)). The bond is neither created nor removed. Its settings are added to those of its C(.network)
    file of systemd-networkd, also to one that netplan generated. With other network managers the bond must already have its MTU and address.
  - Ports are identified by PCI address, so the module works before and after a rename. The original state is recorded once and restored
    with O(state=absent).
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
  - gpufabric.rdma.host.consent
options:
  state:
    description:
      - V(present) configures the ports as described in O(rails). Ports that are no longer rails are restored to their recorded state.
      - V(absent) restores the recorded state of all ports and removes the files. O(rails) is ignored.
    type: str
    choices: [present, absent]
    default: present
  manager:
    description:
      - Network manager to configure. V(auto) selects netplan if it has files, otherwise the active service. It fails if both services are
        active and netplan is not in use.
      - If both services are active, V(networkd) makes NetworkManager ignore the rails.
    type: str
    choices: [auto, networkd, networkmanager, netplan]
    default: auto
  source_routing:
    description:
      - Configure one routing table and one rule per rail, so that traffic from the address of a rail leaves through that rail.
      - V(auto) applies to rails of a host that share a subnet, V(always) to all rails with an address in O(rails).
    type: str
    choices: [auto, always, never]
    default: auto
  timeout:
    description: Maximum time in seconds to wait until kernel and network manager have applied the new state.
    type: int
    default: 20
  only_configured:
    description: >-
      Change nothing on a host whose links this module has not configured before. To repair what another tool has reset.
    type: bool
    default: false
seealso:
  - module: gpufabric.rdma.netdev_names
  - module: gpufabric.rdma.rail_qos
  - name: Role rail_links
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rail_links.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Configure the rails
  gpufabric.rdma.rail_links:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, address: 192.168.0.1/24, mtu: 9000}

- name: Restore the original state of all ports
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
      description: State before the change.
      returned: always
      type: dict
    after:
      description: State after the change. In check mode, the predicted state.
      returned: always
      type: dict
has_qos:
  description: Whether M(gpufabric.rdma.rail_qos) has settings on this host that it may need to restore.
  returned: always
  type: bool
reboot_required:
  description: Whether a change takes effect only at the next boot.
  returned: always
  type: bool
reasons:
  description: Changes that take effect at the next boot, and why.
  returned: always
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.links import io as links_io
from ..module_utils._host.links import link_restore, topic_io
from ..module_utils._host.links import plan as links_plan
from ..module_utils._host.system import files, records
from ..module_utils._host.system.converge import converge


class Links:
    """How the links of a host are read and changed; ``warnings`` are those of the change."""

    def __init__(self, params: Mapping[str, Any], roots: files.Roots) -> None:
        self.params, self.roots = params, roots
        self.warnings: list[str] = []

    def read_plan(self, record: Mapping[str, Any]) -> links_plan.LinkPlan:
        """Read the host and work out what to do."""
        inventory = facts_io.read_inventory(self.roots)
        return topic_io.read_plan(self.params, self.roots, record, inventory=inventory)

    def apply(self, plan: links_plan.LinkPlan) -> None:
        """Write files and set links."""
        self.warnings += links_io.apply(plan, self.roots, self.params["timeout"])

    def unsettled(
        self, plan: links_plan.LinkPlan, earlier: Mapping[str, Any], merged: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the record while the plan is carried out."""
        now, after = plan.change.before["links"], plan.change.after["links"]
        return link_restore.unsettled(earlier, plan.record, merged, now=now, after=after)


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=topic_io.ARGUMENTS, supports_check_mode=True)
    roots = files.Roots.under(module.params["root"])
    topic = Links(module.params, roots)
    try:
        done = converge(
            topic_io.NAME,
            roots,
            module.check_mode,
            read_plan=topic.read_plan,
            apply=topic.apply,
            restores=module.params["state"] == "absent",
            unsettled=topic.unsettled,
        )
        has_qos = bool(records.load(roots.state, "rail_qos"))
    except FabricError as error:
        module.fail_json(msg=f"{topic_io.NAME}: {error}")
    for text in (*done.first.warnings, *topic.warnings):
        module.warn(text)
    module.exit_json(**done.result, has_qos=has_qos)


if __name__ == "__main__":
    main()
