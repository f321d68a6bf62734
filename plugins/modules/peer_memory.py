#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: peer_memory
short_description: Enable GPUDirect RDMA with DMA-BUF or nvidia-peermem
version_added: "0.1.0"
description:
  - Selects how RDMA accesses GPU memory on the host and returns the reason. DMA-BUF only requires a supported kernel and driver. For
    nvidia-peermem, the module is loaded, and a systemd unit bound to the RDMA stack keeps it loaded when the stack is reloaded.
  - Fails with the reasons if neither mode is possible. Hosts without a GPU are not changed.
extends_documentation_fragment:
  - gpufabric.rdma.host
options:
  state:
    description: V(absent) reverts the changes of this module. Removed packages of the legacy module are not reinstalled.
    type: str
    choices: [present, absent]
    default: present
  mode:
    description:
      - V(auto) uses DMA-BUF if the host supports it, otherwise nvidia-peermem. Hosts whose NVIDIA driver is not loaded are not changed.
      - V(dmabuf) and V(peermem) require one mode and fail if it is not possible. V(none) requires no mode.
    type: str
    choices: [auto, dmabuf, peermem, none]
    default: auto
  legacy_packages:
    description: Packages of the legacy module C(nv_peer_mem) to remove if GPUDirect RDMA is enabled.
    type: list
    elements: str
    default: [nv_peer_mem, nvidia-peer-memory, nvidia-peer-memory-dkms, nvidia_peer_memory]
seealso:
  - module: gpufabric.rdma.rdma_stack
  - module: gpufabric.rdma.pcie_acs
  - name: Role peer_memory
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/peer_memory.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Enable GPUDirect RDMA
  gpufabric.rdma.peer_memory:

- name: Require DMA-BUF
  gpufabric.rdma.peer_memory:
    mode: dmabuf
"""

RETURN = r"""
mode:
  description: The selected mode, V(dmabuf), V(peermem) or V(none).
  returned: always
  type: str
reason:
  description: Reason for the selection.
  returned: always
  type: str
proof:
  description: >-
    Evidence that V(peermem) is in use, with C(clients) of the RDMA core, C(users) of the module and C(symbols) of the kernel. Null for other
    modes, and if check mode would load the module.
  returned: always
  type: dict
findings:
  description: Warnings that do not stop the run.
  returned: always
  type: list
  elements: str
packages:
  description: Package changes to make. C(remove) lists the installed packages of the legacy module.
  returned: always
  type: dict
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
reboot_required:
  description: Whether a change takes effect only at the next boot. Always false for this module.
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
from ..module_utils._host.gpu_direct import peer_memory, peer_memory_io
from ..module_utils._host.gpu_direct import peer_memory_topic_io as topic_io
from ..module_utils._host.system import files
from ..module_utils._host.system.converge import converge


def values(params: Mapping[str, Any], last: topic_io.Decision, proven: bool) -> dict[str, Any]:
    """Return the module's own values of the result; with ``proven`` the proof that nvidia-peermem serves."""
    choice = last.choice
    return {
        "mode": choice.mode,
        "reason": choice.reason if params["state"] == "present" else "state is absent",
        "findings": list(choice.warnings),
        "proof": peer_memory.prove(last.inventory, last.have) if proven and choice.mode == "peermem" else None,
        "packages": {"remove": list(last.have.packages) if choice.mode != "none" else []},
    }


def main() -> None:
    """Decide and carry it out."""
    module = AnsibleModule(argument_spec=topic_io.ARGUMENTS, supports_check_mode=True)
    params, roots = module.params, files.Roots.under(module.params["root"])
    try:
        done = converge(
            topic_io.NAME,
            roots,
            module.check_mode,
            read_plan=lambda record: topic_io.read_plan(
                params, roots, record, inventory=facts_io.read_inventory(roots)
            ),
            apply=lambda decision: peer_memory_io.apply(decision.change.before, decision.change.after),
            restores=params["state"] == "absent",
        )
        own = values(params, done.last, proven=not (module.check_mode and done.first.change.changed))
    except FabricError as error:
        module.fail_json(msg=f"{topic_io.NAME}: {error}")
    for text in own["findings"]:
        module.warn(text)
    module.exit_json(**done.result, **own)


if __name__ == "__main__":
    main()
