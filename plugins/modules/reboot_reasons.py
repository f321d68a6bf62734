#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_reasons
short_description: Say why a host must be rebooted, and after it whether that helped
version_added: "0.1.0"
description:
  - Modules of this collection leave their reasons to reboot in C(/run/gpufabric/reboot.d), which a boot takes away. This module reads them
    all, so that one reboot serves them all. It never reboots.
  - What a reboot is for is recorded before it. So reasons that stay are found after it, also by a later run, and a host is not rebooted
    again and again for what a reboot does not cure.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.consent
options:
  state:
    description:
      - V(read) changes nothing, and fails when the host must be rebooted and may not be.
      - V(begun) records the reasons and the boot id, before the reboot. It fails when a reboot would end the work of users of RDMA ports.
      - V(verified) fails when the host did not boot since then, or when there are reasons again.
      - V(finished) removes the record.
    type: str
    choices: [read, begun, verified, finished]
    default: read
  inventory_host:
    description: Name of the host for messages; default is its own.
    type: str
    default: ""
  allowed:
    description: Whether the host may be rebooted.
    type: bool
    default: false
  required:
    description: Whether V(read) fails when the host may not be rebooted; otherwise, and in check mode, that is a warning.
    type: bool
    default: true
  expected:
    description: Further reasons, such as those that modules announced in check mode, where they leave none.
    type: list
    elements: str
    default: []
  repeat:
    description: Whether the host may be rebooted again for a reason that a reboot of ours did not cure.
    type: bool
    default: false
  drain:
    description:
      - What O(state=begun) takes for users. TCP connections on the device of the default route or of the ssh connection never count, nor do those
        of kubelets and container runtimes.
      - V(none), when the node is not drained, means all mounts over RDMA ports, TCP connections on their addresses, and queue pairs.
      - V(next), when it is drained after this, leaves out pods with their mounts, and what only the kernel holds, since that may be a pod's.
      - V(done), when it was drained, leaves out pods alone. Those are of DaemonSets or static, and the module warns of them.
    type: str
    choices: [none, next, done]
    default: none
  controller_boot_id:
    description: Boot id of the machine that runs Ansible. A host with the same boot id is that machine, or runs its container, and is refused.
    type: str
    default: ""
  var_root:
    description: The host's folder of variable data, where kubelets keep theirs.
    type: path
    default: /var
attributes:
  check_mode:
    details: There was no reboot, so there is nothing to verify.
  diff_mode:
    description: The record is bookkeeping and no change, so there is no difference.
    support: none
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Read why this host must be rebooted
  gpufabric.rdma.reboot_reasons:
    allowed: "{{ host_reboot_allowed }}"
  register: found

- name: Show it
  ansible.builtin.debug:
    var: found.reasons
"""

RETURN = r"""
reasons:
  description: Every reason to reboot.
  returned: always
  type: list
  elements: str
boot_id:
  description: Id of the running boot.
  returned: success
  type: str
identity:
  description:
    - Which machine this is, for M(gpufabric.rdma.node_drain). C(machine_id), C(hostname), C(addresses); C(kubelet), a list of signs that it runs or
      ran a kubelet; C(control_plane), whether it runs an API server or etcd.
  returned: success
  type: dict
  sample: {machine_id: 3f0c, hostname: gpu-1, addresses: [10.0.0.1], kubelet: [kubelet.service is active], control_plane: false}
due:
  description: Whether there is something to do, a reboot or the rest of one that was cut off.
  returned: success
  type: bool
go:
  description: Whether that may be done.
  returned: success
  type: bool
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError
from ..module_utils._host.facts import disruption, kubelet_io, port_use_io
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.reboot import reasons as reboot_reasons
from ..module_utils._host.system import arguments, files, lock, records

RECORD = "host_reboot"
ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.CONSENT,
    "drain": {"type": "str", "choices": ["none", "next", "done"], "default": "none"},
    "state": {"type": "str", "choices": ["read", "begun", "verified", "finished"], "default": "read"},
    "inventory_host": {"type": "str", "default": ""},
    "allowed": {"type": "bool", "default": False},
    "required": {"type": "bool", "default": True},
    "expected": {"type": "list", "elements": "str", "default": []},
    "repeat": {"type": "bool", "default": False},
    "controller_boot_id": {"type": "str", "default": ""},
    "var_root": {"type": "path", "default": "/var"},
}


def read(params: Mapping[str, Any]) -> reboot_reasons.Due:
    """Read reasons, boot id and record."""
    roots = files.Roots.from_params(params)
    return reboot_reasons.Due(
        host=params["inventory_host"] or files.read_text(f"{roots.proc}/sys/kernel/hostname") or "this host",
        boot_id=facts_io.boot_id(roots),
        reasons=tuple(dict.fromkeys([*facts_io.reboot_reasons(roots.run), *params["expected"]])),
        record=records.load(params["state_root"], RECORD),
        controller=params["controller_boot_id"],
    )


def check_users(params: Mapping[str, Any], host: str) -> list[str]:
    """ConflictError when a reboot would end the work of users; return warnings of what it ends in pods."""
    roots, drain = files.Roots.from_params(params), params["drain"]
    inventory = facts_io.read_inventory(roots)
    connections = port_use_io.connection_holders(roots.proc, disruption.work_addresses(inventory))
    held = [*(inventory.activity.queue_pairs or {}).values(), *(connections or {}).values()]
    found = disruption.work(
        inventory, connections, port_use_io.places(roots.proc, {one for part in held for one in part})
    )
    reboot_reasons.check_users(host, disruption.in_the_way(found, drain), params["disrupt_users"])
    left = "; ".join(disruption.left_in_pods(found, drain))
    text = f"{host}: the reboot ends work of pods that the drain left (DaemonSets, static pods): {left}"
    return [text] if left else []


def keep(params: Mapping[str, Any], due: reboot_reasons.Due) -> list[str]:
    """Verify, and bring the record to where ``state`` says; return warnings."""
    if params["state"] == "verified":
        reboot_reasons.verify(due)
    warnings = check_users(params, due.host) if params["state"] == "begun" else []
    if params["state"] in ("begun", "finished"):
        records.save(params["state_root"], RECORD, reboot_reasons.begin(due) if params["state"] == "begun" else {})
    return warnings


def main() -> None:
    """Read, judge, record."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    warnings: list[str] = []
    try:
        due = read(params)
        if not module.check_mode:
            with lock.held(params, "reboot_reasons", params["state"] in ("read", "verified")):
                warnings = keep(params, due)
    except FabricError as error:
        module.fail_json(msg=f"reboot_reasons: {error}")
    for text in warnings:
        module.warn(text)
    refusal = due.refusal(params["allowed"], params["repeat"]) if params["state"] == "read" else ""
    reasons = list(due.reasons)
    if refusal and params["required"] and not module.check_mode:
        module.fail_json(msg=f"reboot_reasons: {refusal}", reasons=reasons)
    if refusal:
        module.warn(refusal)
    identity = kubelet_io.identity(files.Roots.from_params(params), params["var_root"])
    result = {"reasons": reasons, "boot_id": due.boot_id, "identity": identity}
    module.exit_json(changed=False, due=due.due, go=due.due and not refusal, **result)


if __name__ == "__main__":
    main()
