#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reboot_reasons
short_description: Read reboot reasons and verify the host after a reboot
version_added: "0.1.0"
description:
  - The modules of this collection record reboot reasons in C(/run/gpufabric/reboot.d), which is cleared at boot. This module reads all of
    them, so that one reboot serves all reasons. It never reboots the host.
  - The reasons are recorded before the reboot. The module, also in a later run, can therefore detect reasons that a reboot did not
    resolve, and the host is not rebooted repeatedly for the same reason.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.consent
options:
  state:
    description:
      - V(read) changes nothing, and fails if the host requires a reboot that is not allowed.
      - V(begun) records the reasons and the boot ID before the reboot. It fails if RDMA ports are in use.
      - V(verified) fails if the host has not booted since then, or if reasons remain.
      - V(finished) removes the record.
    type: str
    choices: [read, begun, verified, finished]
    default: read
  inventory_host:
    description: Name of the host, used in messages. Defaults to its hostname.
    type: str
    default: ""
  allowed:
    description: Whether the host may be rebooted.
    type: bool
    default: false
  required:
    description: Whether V(read) fails if a required reboot is not allowed. Otherwise, and in check mode, it issues a warning.
    type: bool
    default: true
  expected:
    description: Additional reasons, such as those predicted by modules in check mode.
    type: list
    elements: str
    default: []
  repeat:
    description: Allow another reboot for a reason that an earlier reboot did not resolve.
    type: bool
    default: false
  drain:
    description:
      - Determines which users O(state=begun) considers. TCP connections on the device of the default route or the ssh connection, and those
        of kubelets and container runtimes, are always ignored.
      - V(none) means that the node is not drained. All mounts over RDMA ports, TCP connections on their addresses, and queue pairs count.
      - V(next) means that the node is drained later. Pods with their mounts, and resources held only by the kernel, are ignored.
      - V(done) means that the node has been drained. Only pods are ignored. These are DaemonSet or static pods, and the module warns about
        them.
    type: str
    choices: [none, next, done]
    default: none
  controller_boot_id:
    description: Boot ID of the controller. A host with the same boot ID is the controller, or runs its container, and is rejected.
    type: str
    default: ""
attributes:
  check_mode:
    details: V(verified) has nothing to verify without a reboot.
  diff_mode:
    description: The record is internal and not reported as a change.
    support: none
seealso:
  - module: gpufabric.rdma.node_drain
  - name: Role host_reboot
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/host_reboot.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Read the reboot reasons
  gpufabric.rdma.reboot_reasons:
    allowed: "{{ host_reboot_allowed }}"
  register: found

- name: Show the reboot reasons
  ansible.builtin.debug:
    var: found.reasons
"""

RETURN = r"""
reasons:
  description: All reboot reasons.
  returned: always
  type: list
  elements: str
boot_id:
  description: Boot ID of the running system.
  returned: success
  type: str
identity:
  description:
    - Identity of the host, for M(gpufabric.rdma.node_drain), with C(machine_id), C(hostname), C(addresses), C(kubelet) (signs that it runs
      or has run a kubelet), and C(control_plane) (whether it runs an API server or etcd).
  returned: success
  type: dict
  sample: {machine_id: 3f0c, hostname: gpu-1, addresses: [10.0.0.1], kubelet: [kubelet.service is active], control_plane: false}
due:
  description: Whether a reboot, or the completion of an interrupted one, is due.
  returned: success
  type: bool
go:
  description: Whether the due action is allowed.
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
    **arguments.ROOT,
    **arguments.CONSENT,
    "drain": {"type": "str", "choices": ["none", "next", "done"], "default": "none"},
    "state": {"type": "str", "choices": ["read", "begun", "verified", "finished"], "default": "read"},
    "inventory_host": {"type": "str", "default": ""},
    "allowed": {"type": "bool", "default": False},
    "required": {"type": "bool", "default": True},
    "expected": {"type": "list", "elements": "str", "default": []},
    "repeat": {"type": "bool", "default": False},
    "controller_boot_id": {"type": "str", "default": ""},
}


def read(params: Mapping[str, Any]) -> reboot_reasons.Due:
    """Read reasons, boot id and record."""
    roots = files.Roots.under(params["root"])
    return reboot_reasons.Due(
        host=params["inventory_host"] or files.read_text(f"{roots.proc}/sys/kernel/hostname") or "this host",
        boot_id=facts_io.boot_id(roots),
        reasons=tuple(dict.fromkeys([*facts_io.reboot_reasons(roots.run), *params["expected"]])),
        record=records.load(roots.state, RECORD),
        controller=params["controller_boot_id"],
    )


def check_users(params: Mapping[str, Any], host: str) -> list[str]:
    """ConflictError when a reboot would end the work of users; return warnings of what it ends in pods."""
    roots, drain = files.Roots.under(params["root"]), params["drain"]
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
        records.save(
            files.Roots.under(params["root"]).state,
            RECORD,
            reboot_reasons.begin(due) if params["state"] == "begun" else {},
        )
    return warnings


def main() -> None:
    """Read, judge, record."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params, roots = module.params, files.Roots.under(module.params["root"])
    warnings: list[str] = []
    try:
        due = read(params)
        if not module.check_mode:
            with lock.held(roots.run, "reboot_reasons", params["state"] in ("read", "verified")):
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
    identity = kubelet_io.identity(roots, roots.var)
    result = {"reasons": reasons, "boot_id": due.boot_id, "identity": identity}
    module.exit_json(changed=False, due=due.due, go=due.due and not refusal, **result)


if __name__ == "__main__":
    main()
