#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_bundle
short_description: Read a host for a support bundle
version_added: "0.1.0"
description:
  - Reads the facts of M(gpufabric.rdma.rdma_facts), the kernel log, links, addresses, routes, RDMA devices, failed units, the logs of the
    kubelet and of the units of this collection, its records, and the files that it wrote.
  - Passwords, tokens and private keys are removed. What cannot be read is listed with the reason, so the module also works without root.
    It changes nothing.
extends_documentation_fragment:
  - gpufabric.rdma.host
options:
  limit:
    description: Maximum number of characters to return. Of a long log, the end is returned.
    type: int
    default: 1048576
attributes:
  diff_mode:
    description: The module changes nothing.
    support: none
  idempotent:
    description: The module changes nothing. Logs grow between two runs.
    support: N/A
seealso:
  - module: gpufabric.rdma.fabric_bundle
  - module: gpufabric.rdma.rdma_facts
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Read the host
  gpufabric.rdma.host_bundle:
  become: true
  register: host_part
"""

RETURN = r"""
files:
  description: Text by file name.
  returned: success
  type: dict
  sample:
    kernel.log: "2026-01-02T03:04:05,000000+00:00 mlx5_core 0000:18:00.0: firmware version: 28.43.1014"
cut:
  description: Files of which only the end was returned.
  returned: success
  type: list
  elements: str
  sample: [kernel.log]
missing:
  description: The reason for each file that could not be read.
  returned: success
  type: dict
  sample:
    rdma.txt: "'rdma' is not installed"
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._host.bundle import io as bundle_io
from ..module_utils._host.system import arguments, files

SMALLEST = 1 << 12


def main() -> None:
    """Read and return."""
    spec = {**arguments.ROOT, "limit": {"type": "int", "default": 1 << 20}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    if module.params["limit"] < SMALLEST:
        module.fail_json(
            msg=f"host_bundle: limit: expected at least {SMALLEST}, found {module.params['limit']}. Use the default"
        )
    try:
        found = bundle_io.read(files.Roots.under(module.params["root"]), module.params["limit"])
    except FabricError as error:
        module.fail_json(msg=f"host_bundle: {error}")
    module.exit_json(changed=False, files=found.files, cut=found.cut, missing=found.missing)


if __name__ == "__main__":
    main()
