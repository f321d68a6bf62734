#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_qos
short_description: Manage trust mode, PFC, ETS, ECN, RoCE mode, rings and pause frames of rails
version_added: "0.1.0"
description:
  - Applies only the requested settings, with C(mlnx_qos) (for mlx drivers), C(dcb) of iproute2, C(ethtool), or kernel files. Reads all
    settings again and reports the values that the hardware did not accept.
  - The settings do not survive a reboot or driver reload, so each rail gets a systemd unit that applies them when its network device
    appears.
  - All rails are checked before the first write. The module fails with the name and reason of each NIC that does not support a setting.
  - Original values are recorded once per setting. They are restored if the setting is no longer requested, and with O(state=absent).
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
  - gpufabric.rdma.host.consent
options:
  state:
    description:
      - V(present) applies O(settings) to the rails.
      - V(absent) restores the recorded values of all ports and removes the units. O(rails) and O(settings) are ignored.
    type: str
    choices: [present, absent]
    default: present
  settings:
    description:
      - Settings to apply to all rails. Omitted keys are not changed. Values out of range and contradictions are reported in one message.
    type: dict
    default: {}
    suboptions:
      pause:
        description:
          - Whether global pause frames are sent and honored. Configured by C(ethtool -A).
        type: bool
      rings:
        description:
          - Number of descriptors in the rings, up to the limits of the NIC. Configured by C(ethtool -G).
        type: dict
        suboptions:
          rx:
            description:
              - Receive ring.
            type: int
          tx:
            description:
              - Transmit ring.
            type: int
      trust:
        description:
          - Field of a packet that determines its priority. Configured by C(mlnx_qos) or C(dcb); requires DCB.
        type: str
        choices: [dscp, pcp]
      buffer:
        description:
          - The eight receive buffers. Configured by C(mlnx_qos) or C(dcb); requires DCB.
        type: dict
        suboptions:
          size:
            description:
              - Size of each of the eight buffers in bytes.
            type: list
            elements: int
          priorities:
            description:
              - Buffer of each of the eight priorities.
            type: list
            elements: int
      ets:
        description:
          - The eight traffic classes (ETS). Configured by C(mlnx_qos) or C(dcb); requires DCB.
        type: dict
        suboptions:
          tsa:
            description:
              - Scheduling of each of the eight traffic classes.
            type: list
            elements: str
            choices: [ets, strict]
            required: true
          bandwidth:
            description:
              - Share of each of the eight traffic classes in percent. V(0) for strict classes; the other shares must add up to
                100.
            type: list
            elements: int
            required: true
          priorities:
            description:
              - Traffic class of each of the eight priorities.
            type: list
            elements: int
      pfc:
        description:
          - Priorities with priority flow control, V(0) to V(7); all others have none. Mutually exclusive with
            O(settings.pause=true). Configured by C(mlnx_qos) or C(dcb); requires DCB.
        type: list
        elements: int
      ecn:
        description:
          - Priorities with congestion control, V(0) to V(7); all others have none. Configured in sysfs; requires the driver of
            DOCA-OFED, because with in-tree drivers the firmware controls congestion.
        type: list
        elements: int
      cnp_dscp:
        description:
          - DSCP of congestion notification packets, V(0) to V(63). Configured in sysfs; requires the driver of DOCA-OFED.
        type: int
      dscp:
        description:
          - DSCP of RDMA packets, V(0) to V(63). It sets the traffic class with ECN enabled, such as traffic class 106 for DSCP
            26. Mutually exclusive with O(settings.traffic_class). Requires an RDMA device.
        type: int
      traffic_class:
        description:
          - Traffic class of RDMA packets, V(0) to V(255). It is the default of RDMA-CM in configfs and, with the driver of
            DOCA-OFED, also of programs that connect without RDMA-CM. Requires an RDMA device.
        type: int
      roce:
        description:
          - Default RoCE mode of RDMA-CM in configfs, which determines the GID that RDMA-CM selects. Requires an RDMA device.
        type: str
        choices: [v1, v2]
seealso:
  - module: gpufabric.rdma.rail_links
  - name: Role rail_links
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rail_links.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Configure lossless RoCE v2 on priority 3
  gpufabric.rdma.rail_qos:
    rails:
      - {rail: rail0, pci: "0000:18:00.0", driver: mlx5_core, netdev: rail0, mtu: 9000}
    settings: {trust: dscp, pfc: [3], ecn: [3], cnp_dscp: 48, dscp: 26, roce: v2, pause: false}

- name: Restore the original values of all ports
  gpufabric.rdma.rail_qos:
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
from ..module_utils._host.qos import io as qos_io
from ..module_utils._host.qos import plan as qos_plan
from ..module_utils._host.qos import topic_io
from ..module_utils._host.system import files, restore
from ..module_utils._host.system.converge import converge


def unsettled(plan: qos_plan.QosPlan, _earlier: Mapping[str, Any], merged: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record while the plan is carried out."""
    return restore.unsettled(merged, plan.change.before["rails"], plan.change.after["rails"])


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=topic_io.ARGUMENTS, supports_check_mode=True)
    params, roots = module.params, files.Roots.under(module.params["root"])
    try:
        done = converge(
            topic_io.NAME,
            roots,
            module.check_mode,
            read_plan=lambda record: topic_io.read_plan(
                params, roots, record, inventory=facts_io.read_inventory(roots), check_mode=module.check_mode
            ),
            apply=qos_io.apply,
            restores=params["state"] == "absent",
            unsettled=unsettled,
        )
    except FabricError as error:
        module.fail_json(msg=f"{topic_io.NAME}: {error}")
    for text in done.first.warnings:
        module.warn(text)
    module.exit_json(**done.result)


if __name__ == "__main__":
    main()
