#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Check whether a host can be prepared
version_added: "0.1.0"
description:
  - Reads the host and compares it with its part of the plan. Fails with all problems of the host in one message. Changes nothing.
  - Checks the operating system and kernel, Secure Boot, IOMMU and VFs, the space for an initramfs, package sources, the requirements of
    DOCA-OFED, pending kernel updates, the network manager, conflicting interface names, links and PCIe links, and users of RDMA.
  - Computes the change of each role in O(roles) as its modules do in check mode, and reports what they would refuse.
  - Checks the availability of missing packages. With apt, the smallest package of each server is downloaded to a temporary directory. With
    dnf, the repository metadata is refreshed.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
  - gpufabric.rdma.host.consent
options:
  installs_packages:
    description: Whether the run installs missing packages.
    type: bool
    default: true
  packages:
    description: Packages to install. An empty list selects the packages that the distribution requires.
    type: list
    elements: str
    default: []
  unsigned_modules:
    description: Whether the run builds unsigned kernel modules, as DKMS does.
    type: bool
    default: false
  vfs:
    description: Number of VFs per rail.
    type: int
    default: 0
  kernel_arguments:
    description: Whether the run sets kernel arguments. M(gpufabric.rdma.kernel_cmdline) must then support the boot loader.
    type: bool
    default: false
  acs:
    description: Whether the run disables PCIe ACS with M(gpufabric.rdma.pcie_acs). The host must then not rely on ACS.
    type: bool
    default: false
  links_manager:
    description: Network manager that configures the rails, as in M(gpufabric.rdma.rail_links).
    type: str
    choices: [auto, networkd, networkmanager, netplan]
    default: auto
  names_vfs:
    description: Whether the run also names the VFs of the rails.
    type: bool
    default: false
  names_representors:
    description: Whether the run also names the representors of the VFs.
    type: bool
    default: false
  roles:
    description:
      - Inputs of the roles of the run by their names, such as C(sriov_vfs). The changes of a role are computed if its input
        C(ROLE_state) is V(present). C(rdma_stack_doca_key) is the text of the key.
      - With C(host_reboot_allowed), users that a reboot of this run ends do not stop the run.
    type: dict
    default: {}
  skipped_roles:
    description: Roles whose changes are not computed.
    type: list
    elements: str
    default: []
attributes:
  diff_mode:
    description: The module changes nothing.
    support: none
seealso:
  - module: gpufabric.rdma.rdma_facts
  - module: gpufabric.rdma.fabric_plan
  - name: Role preflight
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/preflight.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Check the host
  gpufabric.rdma.preflight:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, address: 192.168.0.1/24, mtu: 9000}
"""

RETURN = r"""
problems:
  description: All problems that stop the run on this host.
  returned: always
  type: list
  elements: str
findings:
  description: Warnings that do not stop the run, for example no carrier or a slow PCIe link.
  returned: always
  type: list
  elements: str
host:
  description: Summary of the host, for information. C(virtual) is true for virtual machines.
  returned: always
  type: dict
  sample:
    {virtual: false, os: debian 13, kernel: 6.12.0-amd64, next_kernel: 6.12.0-amd64, secure_boot: false, iommu_groups: 42,
     managers: [systemd-networkd]}
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.facts.inventory import HostInventory
from ..module_utils._host.facts.rail_ports import parse_rails
from ..module_utils._host.links import network_managers
from ..module_utils._host.preflight import io as preflight_io
from ..module_utils._host.preflight import roles_io
from ..module_utils._host.preflight.checks import Consent
from ..module_utils._host.preflight.plan import Findings, check, joined
from ..module_utils._host.system import arguments, files, image_based

ARGUMENTS = {
    **arguments.ROOT,
    **arguments.RAILS,
    **arguments.CONSENT,
    "installs_packages": {"type": "bool", "default": True},
    "packages": {"type": "list", "elements": "str", "default": []},
    "unsigned_modules": {"type": "bool", "default": False},
    "vfs": {"type": "int", "default": 0},
    "kernel_arguments": {"type": "bool", "default": False},
    "acs": {"type": "bool", "default": False},
    "links_manager": {"type": "str", "choices": list(network_managers.CHOICES), "default": "auto"},
    "names_vfs": {"type": "bool", "default": False},
    "names_representors": {"type": "bool", "default": False},
    "roles": {"type": "dict", "default": {}},
    "skipped_roles": {"type": "list", "elements": "str", "default": []},
}


def consent_of(params: Mapping[str, Any]) -> Consent:
    """Return what the settings make acceptable."""
    return Consent(
        installs=params["installs_packages"],
        busy=params["disrupt_users"],
        unsigned=params["unsigned_modules"],
        vfs=params["vfs"],
        manager=params["links_manager"],
        names_vfs=params["names_vfs"],
        names_representors=params["names_representors"],
    )


def summary(inventory: HostInventory) -> dict[str, Any]:
    """Return what the host is, for people."""
    return {
        "virtual": inventory.virtual,
        "os": f"{inventory.os['id']} {inventory.os['version']}",
        "kernel": inventory.kernel_release,
        "next_kernel": inventory.next_kernel,
        "secure_boot": inventory.secure_boot,
        "iommu_groups": inventory.iommu_groups,
        "managers": list(inventory.managers),
    }


def judge(params: Mapping[str, Any], roots: files.Roots, inventory: HostInventory) -> Findings:
    """Return what stands in the way of the run: of the host itself, and what its roles will refuse."""
    image_based.refuse(roots)
    rails, consent = parse_rails(params["rails"]), consent_of(params)
    # The vendor's packages have a source of their own, which rdma_stack asks.
    vendor = roles_io.has_vendor_source(params["roles"])
    wanted = params["packages"] if consent.installs and not vendor else None
    boots = roots.boots if params["kernel_arguments"] else ()
    peers = [rail.pci for rail in rails] if params["acs"] else ()
    own = preflight_io.read(roots, roots.lib, roots.var, inventory=inventory, wanted=wanted, boots=boots, peers=peers)
    shared = {key: params[key] for key in ("root", "rails", "disrupt_users")}
    run = roles_io.Run(roles_io.with_vfs(params["roles"], params["vfs"]), shared, params["skipped_roles"])
    refusals = roles_io.refusals(roles_io.Host(roots, inventory), run)
    return joined(check(inventory, rails, own, consent=consent), refusals)


def main() -> None:
    """Read, judge, fail with everything that was found."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    roots = files.Roots.under(module.params["root"])
    try:
        inventory = facts_io.read_inventory(roots)
        findings = judge(module.params, roots, inventory)
    except FabricError as error:
        module.fail_json(msg=f"preflight: {error}")
    for text in findings.warnings:
        module.warn(text)
    result = {"problems": list(findings.problems), "findings": list(findings.warnings), "host": summary(inventory)}
    if findings.problems:
        count = len(findings.problems)
        module.fail_json(msg=f"preflight: {count} problem(s): " + "; ".join(findings.problems), **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
