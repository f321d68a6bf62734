#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: peer_memory
short_description: Let NICs reach GPU memory, by DMA-BUF or by nvidia-peermem
version_added: "0.1.0"
description:
  - Decides for the host how RDMA reaches GPU memory and says why. DMA-BUF needs nothing but the right kernel and driver; with nvidia-peermem the
    module is loaded, and a systemd unit that is bound to the RDMA stack keeps it loaded when the stack is loaded again.
  - Fails with the reasons when no way is possible. A host without a GPU is left alone.
extends_documentation_fragment:
  - gpufabric.rdma.host
options:
  state:
    description: V(absent) takes back what this module did; packages of the legacy module are not installed again.
    type: str
    choices: [present, absent]
    default: present
  mode:
    description:
      - V(auto) takes DMA-BUF where the host can, nvidia-peermem otherwise, and leaves hosts alone whose NVIDIA driver is not loaded yet.
      - V(dmabuf) and V(peermem) ask for one way and fail without it; V(none) asks for nothing.
    type: str
    choices: [auto, dmabuf, peermem, none]
    default: auto
  legacy_packages:
    description: Packages of the legacy module C(nv_peer_mem), to be removed where GPU memory is prepared.
    type: list
    elements: str
    default: [nv_peer_mem, nvidia-peer-memory, nvidia-peer-memory-dkms, nvidia_peer_memory]
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Let NICs reach GPU memory
  gpufabric.rdma.peer_memory:

- name: Insist on DMA-BUF
  gpufabric.rdma.peer_memory:
    mode: dmabuf
"""

RETURN = r"""
mode:
  description: The way that is taken, V(dmabuf), V(peermem) or V(none).
  returned: always
  type: str
reason:
  description: Why this way.
  returned: always
  type: str
proof:
  description: >-
    With V(peermem) what shows that it serves, C(clients) of the RDMA core, C(users) of the module, C(symbols) of the kernel; null otherwise and
    when check mode would load it.
  returned: always
  type: dict
findings:
  description: What people should know, though it does not stop the run.
  returned: always
  type: list
  elements: str
packages:
  description: C(remove) lists packages of the legacy module that are installed.
  returned: always
  type: dict
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
  description: Whether a change is pending until the next boot; never true for this module.
  returned: always
  type: bool
reasons:
  description: The changes that are pending until the next boot, and why.
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
from ..module_utils._host.gpu_direct import peer_memory, peer_memory_io
from ..module_utils._host.system import arguments, files, lock, records

NAME = "peer_memory"
LEGACY_PACKAGES = ["nv_peer_mem", "nvidia-peer-memory", "nvidia-peer-memory-dkms", "nvidia_peer_memory"]
ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.STATE,
    "mode": {"type": "str", "choices": list(peer_memory.MODES), "default": "auto"},
    "legacy_packages": {"type": "list", "elements": "str", "default": LEGACY_PACKAGES},
}


def converge(params: Mapping[str, Any], check_mode: bool) -> tuple[Change, dict[str, Any]]:
    """Decide, apply unless in check mode, read again and prove; return the change and the result's values."""
    roots = files.Roots.from_params(params)
    present = params["state"] == "present"

    def read_plan() -> tuple[Any, ...]:
        inventory = facts_io.read_inventory(roots)
        have = peer_memory_io.read(roots, inventory, params["legacy_packages"])
        choice = peer_memory.choose(params["mode"] if present else "none", inventory, have)
        record = records.load(params["state_root"], NAME)
        mode, folder = choice.mode if present else None, peer_memory_io.folder(roots)
        return inventory, have, choice, peer_memory.plan_peer_memory(mode, inventory, have, record, folder)

    inventory, have, choice, plan = read_plan()
    first = plan.change
    if first.changed and not check_mode:
        if plan.record:
            records.save(params["state_root"], NAME, plan.record)
        peer_memory_io.apply(first.before, first.after)
        inventory, have, choice, plan = read_plan()
        if plan.change.changed:
            raise CommandError(
                f"peer memory is {plan.change.before} after the change, expected {plan.change.after}; see the kernel's log"
            )
    if not check_mode:
        records.save(params["state_root"], NAME, plan.record)
    proven = choice.mode == "peermem" and not (check_mode and first.changed)
    return first, {
        "mode": choice.mode,
        "reason": choice.reason if present else "state is absent",
        "findings": list(choice.warnings),
        "proof": peer_memory.prove(inventory, have) if proven else None,
        "packages": {"remove": list(have.packages) if choice.mode != "none" else []},
    }


def main() -> None:
    """Decide and carry it out."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        with lock.held(module.params, NAME, module.check_mode):
            change, values = converge(module.params, module.check_mode)
    except FabricError as error:
        module.fail_json(msg=f"{NAME}: {error}")
    for text in values["findings"]:
        module.warn(text)
    module.exit_json(changed=change.changed, diff=change.diff(), reboot_required=False, reasons=[], **values)


if __name__ == "__main__":
    main()
