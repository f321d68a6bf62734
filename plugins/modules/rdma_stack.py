#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_stack
short_description: Have the RDMA stack of a provider on a host, now and over boots
version_added: "0.1.0"
description:
  - Loads the kernel modules of user space RDMA and has them loaded at boot. With V(soft_roce) also makes one soft-RoCE device C(rxe_NETDEV)
    on each rail, by a systemd unit that is bound to the network device.
  - With V(doca_ofed) the vendor's stack comes from a signed package source, in exactly the release and version that are asked for. Key, source,
    version, kernel headers and what the release supports are checked before anything changes, for the running kernel and for the one that boots next.
    Drivers are loaded again when nobody uses them; otherwise they wait for a boot, and RV(reasons) says who does.
  - Says which packages are missing; installing them is left to a package module, whose change it is. Run it again afterwards. Packages that came, and
    versions that were replaced, are recorded, so that O(state=absent) and another provider can say what to remove and what to bring back.
extends_documentation_fragment:
  - gpufabric.rdma.host
  - gpufabric.rdma.host.rails
  - gpufabric.rdma.host.consent
options:
  state:
    description: V(absent) takes back what this module did, and names the packages that came with us.
    type: str
    choices: [present, absent]
    default: present
  provider:
    description:
      - V(inbox) uses the drivers of the distribution, V(soft_roce) puts software RDMA on plain NICs, V(doca_ofed) installs the vendor's stack on the
        host. V(container) (the operator's driver container) is not supported yet and is refused, because nothing would deploy the container.
    type: str
    choices: [inbox, soft_roce, doca_ofed, container]
    default: inbox
  install_packages:
    description: Whether packages are looked at.
    type: bool
    default: true
  packages:
    description: Packages that must be there; none means those that the distribution needs.
    type: list
    elements: str
    default: []
  replace:
    description: Whether DOCA-OFED may be replaced by another provider, or packages of another vendor stack by this one.
    type: bool
    default: false
  restart:
    description: V(idle) loads the drivers again when nobody uses them, V(never) leaves that to a boot.
    type: str
    choices: [idle, never]
    default: idle
  vendor_packages:
    description: Packages that are a vendor stack on the host and do not go together with another one.
    type: list
    elements: str
    default: [doca-ofed, doca-all, mlnx-ofed-kernel-dkms, mlnx-ofed-kernel-modules, mlnx-ofa_kernel, mlnx-ofa_kernel-dkms, kmod-mlnx-ofa_kernel]
  doca:
    description: What provider V(doca_ofed) installs, and from where.
    type: dict
    suboptions:
      release:
        description: Release of DOCA-OFED, such as V(3.2.1). It says which systems and kernels are supported.
        type: str
      package:
        description: Package that brings the rest.
        type: str
        default: doca-ofed
      version:
        description: Exact version of that package.
        type: str
      repository:
        description: Address of the package source; C({release}), C({distribution}) and C({arch}) are filled in.
        type: str
        default: https://linux.mellanox.com/public/repo/doca/{release}/{distribution}/{arch}
      suite:
        description: Suite of a Debian package source; one that ends with a slash is a folder.
        type: str
        default: ./
      components:
        description: Components of the suite, none for a folder.
        type: list
        elements: str
        default: []
      key:
        description: The public key of the package source, ASCII-armoured text.
        type: str
      fingerprint:
        description: Full fingerprint that the key must have, 40 hexadecimal digits.
        type: str
      build:
        description: V(dkms) builds kernel modules on the host and needs the kernel's headers, V(precompiled) takes those of the source.
        type: str
        choices: [dkms, precompiled]
        default: dkms
      hold:
        description: Whether package managers must leave the version alone.
        type: bool
        default: true
      supported:
        description: Distribution to beginnings of kernel releases, in place of what is known of the release.
        type: dict
        default: {}
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Load the distribution's RDMA stack
  gpufabric.rdma.rdma_stack:
    provider: inbox

- name: Have DOCA-OFED on the host
  gpufabric.rdma.rdma_stack:
    provider: doca_ofed
    doca:
      release: 3.2.1
      version: 3.2.1-044000
      key: "{{ lookup('ansible.builtin.file', 'GPG-KEY-Mellanox.pub') }}"
      fingerprint: "{{ doca_key_fingerprint }}"

- name: Have soft-RoCE on the rails
  gpufabric.rdma.rdma_stack:
    provider: soft_roce
    rails:
      - {rail: rail0, pci: "0000:01:00.0", driver: igb, netdev: rail0, mtu: 9000}
"""

RETURN = r"""
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
  description: Whether a change is pending until the next boot.
  returned: always
  type: bool
reasons:
  description: The changes that are pending until the next boot, and why.
  returned: always
  type: list
  elements: str
packages:
  description: >-
    C(remove) lists packages that must go first, C(install) those that are missing or come back, with their version where one is asked for, C(manager)
    is C(apt) or C(dnf), C(pinned) whether versions are among them. C(new_source) is true where check mode would make the package source of which they come.
  returned: always
  type: dict
findings:
  description: What people should know, though it does not stop the run.
  returned: always
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import CommandError, FabricError
from ..module_utils._host.facts import disruption, loaded_drivers
from ..module_utils._host.facts import io as facts_io
from ..module_utils._host.facts.inventory import HostInventory
from ..module_utils._host.facts.rail_ports import Rail, parse_rails
from ..module_utils._host.rdma_stack import doca, packages_io, provider_io
from ..module_utils._host.rdma_stack import io as rdma_stack_io
from ..module_utils._host.rdma_stack import plan as rdma_stack_plan
from ..module_utils._host.system import arguments, files, lock, records

NAME = "rdma_stack"
VENDOR = ["doca-ofed", "doca-all", "mlnx-ofed-kernel-dkms", "mlnx-ofed-kernel-modules"]
VENDOR += ["mlnx-ofa_kernel", "mlnx-ofa_kernel-dkms", "kmod-mlnx-ofa_kernel"]
DOCA = {
    "release": {"type": "str"},
    "package": {"type": "str", "default": "doca-ofed"},
    "version": {"type": "str"},
    "repository": {"type": "str", "default": doca.REPOSITORY},
    "suite": {"type": "str", "default": "./"},
    "components": {"type": "list", "elements": "str", "default": []},
    "key": {"type": "str", "no_log": False},
    "fingerprint": {"type": "str"},
    "build": {"type": "str", "choices": list(doca.BUILDS), "default": "dkms"},
    "hold": {"type": "bool", "default": True},
    "supported": {"type": "dict", "default": {}},
}
ARGUMENTS = {
    **arguments.ROOTS,
    **arguments.RAILS,
    **arguments.STATE,
    **arguments.CONSENT,
    "provider": {"type": "str", "choices": list(rdma_stack_plan.PROVIDERS), "default": "inbox"},
    "install_packages": {"type": "bool", "default": True},
    "packages": {"type": "list", "elements": "str", "default": []},
    "replace": {"type": "bool", "default": False},
    "restart": {"type": "str", "choices": ["idle", "never"], "default": "idle"},
    "vendor_packages": {"type": "list", "elements": "str", "default": VENDOR},
    "doca": {"type": "dict", "options": DOCA},
}


def named(inventory: HostInventory, rail: Rail) -> bool:
    """Whether the port of a rail has its name already."""
    link = inventory.port(rail.pci).netdev
    return link is not None and link.name == rail.netdev


def recorded(
    want: rdma_stack_plan.Want, plan: rdma_stack_plan.StackPlan, record: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return what to keep, with all packages as they were before an installation, and what it brought after it."""
    if want.provider != rdma_stack_plan.DOCA:
        return plan.record
    if plan.install:
        return {**plan.record, "snapshot": record.get("snapshot") or packages_io.everything()}
    return rdma_stack_plan.settle(plan.record, packages_io.everything()) if "snapshot" in plan.record else plan.record


def converge(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """Plan, apply unless in check mode, read again; return the values of the result."""
    roots = files.Roots.from_params(params)
    inventory = facts_io.read_inventory(roots)
    soft = params["state"] == "present" and params["provider"] == "soft_roce"
    rails = parse_rails(params["rails"]) if soft else ()
    # In check mode the rename before us was not done either.
    ready = [rail.netdev for rail in rails if check_mode or named(inventory, rail)]
    waits = [f"soft-RoCE on {r.netdev} waits for {r.pci} to get its name" for r in rails if r.netdev not in ready]

    def read_plan() -> tuple[provider_io.Reading, rdma_stack_plan.StackPlan]:
        record = records.load(params["state_root"], NAME)
        reading = provider_io.read(params, roots, inventory, record, ready)
        plan = rdma_stack_plan.plan_stack(
            reading.want, reading.have, record, rdma_stack_io.folders(roots), whole=check_mode
        )
        return reading, plan

    reading, plan = read_plan()
    if reading.want.provider == rdma_stack_plan.DOCA and plan.install:
        provider_io.check_offer(params, roots, inventory, reading)
    change, why = plan.change, list(reading.users)
    disruption.check(inventory, rdma_stack_plan.removals(inventory, change), params["disrupt_users"])
    if not check_mode:
        records.save(params["state_root"], NAME, recorded(reading.want, plan, records.load(params["state_root"], NAME)))
        if change.changed or plan.unload:
            rdma_stack_io.apply(roots, plan)
            reading, left = read_plan()
            left_over = rdma_stack_plan.differences(left.change)
            if left_over:
                raise CommandError(f"the stack is not as expected after the change: {left_over}")
        why = why or ["the kernel kept them when they were loaded again"]
    kept = reading.have.stale if not check_mode or reading.users else ()
    waits += [loaded_drivers.reason(old, new, why) for old, new in kept]
    if not check_mode:
        records.set_reasons(roots, NAME, waits)
    return {
        "changed": change.changed,
        "diff": change.diff(),
        "reboot_required": bool(waits),
        "reasons": waits,
        "findings": list(reading.findings),
        "packages": rdma_stack_plan.packages_result(plan, reading.have),
    }


def main() -> None:
    """Carry out the plan."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        with lock.held(module.params, NAME, module.check_mode):
            values = converge(module.params, module.check_mode)
    except FabricError as error:
        module.fail_json(msg=f"{NAME}: {error}")
    for text in values["findings"]:
        module.warn(text)
    module.exit_json(**values)


if __name__ == "__main__":
    main()
