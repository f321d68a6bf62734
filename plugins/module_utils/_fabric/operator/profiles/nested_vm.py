# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network model nested_vm: hosts are virtual machines, and a pod gets the whole PF or VF that each rail has there.

The objects are those of whole ports: the SR-IOV device plugin takes a VF without a PF for a port. The pod has the MAC
address that the hypervisor gave to the VF, so the hypervisor need not trust it.
"""

from __future__ import annotations

from dataclasses import replace

from ...intent.intent import Intent
from . import host_device
from .profile import Object


def _warns(intent: Intent, port: Object) -> str:
    # A port whose facts were not read from a host has no address.
    if port["mac"] and not port["passthrough"]:
        return "the host is not a virtual machine, where profile host_device gives pods the same"
    return host_device.PROFILE.warns(intent, port)


PROFILE = replace(host_device.PROFILE, name="nested_vm", warns=_warns)
