#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Judge whether a host can be prepared, all problems at once
version_added: "0.1.0"
description:
  - Reads the host and compares it with its slice of the plan. Fails with every problem of the host in one message. Changes nothing.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
options:
  installs_packages:
    description: Whether the run installs missing packages by itself.
    type: bool
    default: true
  busy_hosts:
    description: Whether ports may be changed while programs use RDMA.
    type: bool
    default: false
attributes:
  check_mode:
    description: Can run in check mode and says what would change, without changing it.
    support: full
  diff_mode:
    description: Nothing changes, so there is no difference.
    support: none
  platform:
    description: Where the module can run.
    platforms: linux
    support: full
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Judge the host
  gpufabric.rdma.preflight:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, address: 192.168.0.1/24, mtu: 9000}
"""

RETURN = r"""
problems:
  description: Everything that stops the run on this host.
  returned: always
  type: list
  elements: str
findings:
  description: What people should know, though it does not stop the run (no carrier, a slow PCIe link).
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core import arguments
from ..module_utils._core.errors import FabricError
from ..module_utils._core.preflight import Consent, Findings, check
from ..module_utils._core.rail import parse_rails
from ..module_utils._host import sysfs

ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.RAILS,
    "installs_packages": {"type": "bool", "default": True},
    "busy_hosts": {"type": "bool", "default": False},
}


def main() -> None:
    """Read, judge, fail with everything that was found."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    findings = Findings((), ())
    try:
        rails = parse_rails(params["rails"])
        inventory = sysfs.read_inventory(sysfs.Roots.from_params(params))
        findings = check(inventory, rails, Consent(params["installs_packages"], params["busy_hosts"]))
    except FabricError as error:
        module.fail_json(msg=f"preflight: {error}")
    for text in findings.warnings:
        module.warn(text)
    result = {"problems": list(findings.problems), "findings": list(findings.warnings)}
    if findings.problems:
        count = len(findings.problems)
        module.fail_json(msg=f"preflight: {count} problem(s): " + "; ".join(findings.problems), **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
