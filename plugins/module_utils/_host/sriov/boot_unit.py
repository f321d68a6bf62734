# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes VFs again at boot: a script of a PF, the udev rule that starts it, and the unit that runs it. Pure."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

from ..facts.devices import Port
from ..system import systemd
from . import vf

TITLE = systemd.title("sriov_vfs")
PREFIX = "gpufabric-sriov"
UNIT = f"{PREFIX}@.service"


@dataclasses.dataclass(frozen=True)
class Target:
    """One PF with the wanted settings of each VF; ``title`` is what messages call it.

    ``up`` is whether its link shall be up: several drivers (igb, ixgbe) give VFs their address only then.
    """

    port: Port
    title: str
    vfs: tuple[Mapping[str, Any], ...]
    up: bool

    @property
    def is_up(self) -> bool:
        """Whether the link is up now."""
        return self.port.netdev is not None and self.port.netdev.up

    @property
    def netdev(self) -> str:
        """The network device that the settings of VFs go through."""
        return self.port.netdev.name if self.port.netdev else ""


@dataclasses.dataclass(frozen=True)
class Folders:
    """Where the unit, the rules of udev and the scripts go, and where sysfs is."""

    units: str
    rules: str
    scripts: str
    sysfs: str


def paths(pci: str, folders: Folders) -> tuple[str, str]:
    """Return the paths of a PF's script and of its udev rule."""
    return f"{folders.scripts}/{PREFIX}-{pci}.sh", f"{folders.rules}/90-{PREFIX}-{pci}.rules"


def format_rule(pci: str) -> str:
    """Return the udev rule that starts the unit when the PF's network device appears, whatever its name is.

    VFs have PCI functions of their own and so never match; after a reload of the driver the rule works again.
    """
    unit = UNIT.replace("@", f"@{pci}")
    return (
        f"# {TITLE}\n"
        f'ACTION!="remove", SUBSYSTEM=="net", KERNELS=="{pci}", TAG+="systemd", ENV{{SYSTEMD_WANTS}}+="{unit}"\n'
    )


def format_unit(scripts: str) -> str:
    """Return the unit, one for all PFs; its instance is the PCI address."""
    script = f"{systemd.literal(scripts)}/{PREFIX}-%i.sh"
    sections = {
        "Unit": [
            ("Description", "SR-IOV VFs of %i"),
            ("ConditionPathExists", script),
            ("Before", "kubelet.service"),
        ],
        "Service": [("Type", "oneshot"), ("ExecStart", f"/bin/sh {systemd.word(script)}")],
    }
    return systemd.file_text(TITLE, sections)


def format_script(target: Target, sysfs: str) -> str:
    """Return the script that makes a PF's VFs at boot: the same steps as the module's, without Python.

    One setting that is refused does not keep the VFs from their drivers; the unit fails in the end.
    """
    number = len(target.vfs)
    settings = [
        f"set_vf {shlex.join(argv[6:])}"
        for index, want in enumerate(target.vfs)
        for argv in vf.vf_commands("PF", index, {}, after=want)
    ]
    mtu = next((f'ip link set dev "${{net##*/}}" mtu {want["mtu"]}' for want in target.vfs if "mtu" in want), ":")
    return f"""# {TITLE}
# Makes the VFs of {target.title} when its network device appears.
set -eu
failed=0
set_vf() {{ ip link set dev "$pf" vf "$@" || failed=1; }}
cd {sysfs}/bus/pci/devices/{target.port.pci}
read -r now <sriov_numvfs
[ "$now" -ne {number} ] || exit 0
set -- net/*
pf=${{1#net/}}
read -r probe <sriov_drivers_autoprobe
ip link set dev "$pf" up || failed=1
trap 'echo "$probe" >sriov_drivers_autoprobe' EXIT
echo 0 >sriov_drivers_autoprobe
[ "$now" -eq 0 ] || echo 0 >sriov_numvfs
echo {number} >sriov_numvfs
{chr(10).join(settings) or ":"}
trap - EXIT
echo "$probe" >sriov_drivers_autoprobe
[ "$probe" -eq 0 ] || for vf in virtfn*; do
    address=$(readlink "$vf")
    echo "${{address##*/}}" >{sysfs}/bus/pci/drivers_probe
done
udevadm settle --timeout=20 || :
for net in virtfn*/net/*; do
    [ ! -e "$net" ] || {mtu} || failed=1
done
exit "$failed"
"""
