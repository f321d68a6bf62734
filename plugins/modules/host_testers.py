#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of plugins/action/host_testers.py; no module runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_testers
short_description: Run fabric testers on hosts
version_added: "0.1.0"
description:
  - Performs one step of a measurement on a host, through the connection of the host. The role C(rdma_validate) calls the steps in order.
  - O(state=prepared) reserves the host, copies the tester to O(folder), and stores the description of the rails.
  - O(state=delivered) sends the schedule of a pass. O(state=scheduled) sets the common start time of all testers, and O(state=started)
    starts the tester as a transient systemd unit.
  - O(state=awaited) waits until the pass ends and shows its progress once per minute. Run it once for all hosts.
  - O(state=collected) fetches the log of a pass. O(state=recovered) fetches the log of an unfinished run.
  - O(state=absent) stops the tester and removes its files.
  - A host that does not respond within O(timeout) does not fail the task. The reason is shown as a warning and stored as C(HOST.error) next to the logs.
    Without O(run), O(state=absent) fails on such a host.
notes:
  - Never reports a change, because all files are removed again and measuring changes nothing.
extends_documentation_fragment:
  - gpufabric.rdma.controller
seealso:
  - module: gpufabric.rdma.fabric_testers
  - module: gpufabric.rdma.fabric_judge
  - name: Role rdma_validate
    description: The role that uses this module.
    link: https://github.com/gpufabric/gpufabric.rdma/blob/main/docs/roles/rdma_validate.md
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  state:
    description: Step to perform.
    type: str
    choices: [recovered, prepared, delivered, scheduled, started, awaited, collected, absent]
    required: true
  folder:
    description: Private directory of the tester on the host. A file with the suffix C(.run) next to it reserves the host.
    type: str
    required: true
  unit:
    description: Name of the systemd unit of the tester.
    type: str
    required: true
  run:
    description: ID of the run. With O(state=absent), only a tester of this run is removed. If empty, any tester is removed.
    type: str
    default: ""
  timeout:
    description: Maximum time in seconds to wait for a response from the host.
    type: int
    default: 120
  evidence:
    description: Directory on the controller for descriptions and logs of the hosts.
    type: path
  script:
    description: Path of the tester script on the controller.
    type: path
  rails:
    description: Rails of the plan, with C(name) and C(netdev).
    type: list
    elements: dict
  continued:
    description: ID of the run that this run resumes and whose host reservation it takes over.
    type: str
    default: ""
  leftover:
    description: The unfinished run whose logs are fetched, as returned by M(gpufabric.rdma.fabric_run).
    type: dict
  resumed:
    description: Whether this run resumes O(leftover). It then fails if O(leftover) is still in progress.
    type: bool
    default: false
  pass:
    description: Number of the pass.
    type: int
  rounds:
    description: Number of rounds of the pass.
    type: int
  slot:
    description: Length of a round in seconds.
    type: int
  seconds:
    description: Duration of the pass in seconds.
    type: int
  lines:
    description: Schedule lines of the host.
    type: list
    elements: str
  lead:
    description: Least number of seconds from O(state=scheduled) to the first round.
    type: int
    default: 0
  deliveries:
    description:
      - Results of O(state=delivered) on all hosts. The first round starts no earlier than after the time that they took, since the
        starts on all hosts take as long, whatever C(forks) is.
    type: list
    elements: dict
    default: []
  start:
    description: Start of the first round on the clock of the controller, as returned by O(state=scheduled).
    type: float
  not_started:
    description: RV(why) of O(state=started).
    type: str
    default: ""
  verdicts:
    description: Number of tests by verdict in earlier passes, shown with the progress.
    type: dict
    default: {}
attributes:
  check_mode:
    description: The task is skipped in check mode.
    support: none
  idempotent:
    support: partial
    details: Never reports a change, but O(state=started) measures each time.
"""

EXAMPLES = r"""
- name: Remove the testers of an interrupted measurement
  gpufabric.rdma.host_testers:
    state: absent
    folder: /run/gpufabric/tester
    unit: gpufabric-tester
"""

RETURN = r"""
start:
  description: Start of the first round on the clock of the controller.
  type: float
  returned: with O(state=scheduled)
  sample: 5312.5
start_in:
  description: Seconds from this task to the first round.
  type: int
  returned: with O(state=scheduled)
  sample: 15
why:
  description: Reason why the tester did not start; empty if it started.
  type: str
  returned: with O(state=started)
  sample: ""
prepared:
  description: Whether the host is reserved and its rails are described.
  type: bool
  returned: with O(state=prepared)
delivered:
  description: Whether the host has the schedule of the pass.
  type: bool
  returned: with O(state=delivered)
began:
  description: When the delivery began, on the clock of the controller.
  type: float
  returned: with O(state=delivered)
  sample: 5290.5
ended:
  description: When the delivery ended, on the clock of the controller.
  type: float
  returned: with O(state=delivered)
  sample: 5291.5
fetched:
  description: Whether the log of the host was fetched.
  type: bool
  returned: with O(state=collected) or O(state=recovered)
"""
