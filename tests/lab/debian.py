# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Debian root file system that all hosts start from, as a folder."""

from __future__ import annotations

import json
from pathlib import Path

from tests.lab import cache, command
from tests.lab.aptsources import debian_mirror

RELEASE = "trixie"
ROOT_FOLDER = "root"
_PACKAGES = """
apt-utils conntrack containerd containernetworking-plugins dbus ethtool grub-common grub2-common
ibverbs-providers ibverbs-utils infiniband-diags initramfs-tools iproute2 iptables iputils-ping lldpd
kmod linux-image-amd64 mount mstflint netplan.io network-manager nftables numactl openssh-server pciutils
perftest procps python3
python3-apt rdma-core runc sudo systemd-sysv udev zstd
"""
#: Only what a disk of ours needs to boot: the usual initramfs costs ten more seconds a boot.
_INITRAMFS_MODULES = "virtio_pci\nvirtio_blk\next4\n"


def root() -> Path:
    """The folder of the root file system, built when needed; treat it as read-only."""
    inputs = json.dumps([RELEASE, _PACKAGES, _INITRAMFS_MODULES, 1])
    return cache.artefact("debian", inputs, _build) / ROOT_FOLDER


def _build(target: Path) -> None:
    target.mkdir()
    tree, log = target / ROOT_FOLDER, target / "build.log"
    include = ",".join(_PACKAGES.split())
    arguments = ["--variant=minbase", f"--include={include}", RELEASE, str(tree), debian_mirror()]
    command.contained(["debootstrap", *arguments], log=log)
    config = tree / "etc/initramfs-tools/initramfs.conf"
    config.write_text(config.read_text().replace("MODULES=most", "MODULES=list"))
    (tree / "etc/initramfs-tools/modules").write_text(_INITRAMFS_MODULES)
    command.in_root(tree, ["update-initramfs", "-u", "-k", "all"], log=log)
    command.in_root(tree, ["apt-get", "clean"], log=log)
    for lists in (tree / "var/lib/apt/lists").glob("*_*"):
        lists.unlink()
