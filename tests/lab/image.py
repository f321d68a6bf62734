# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disks that hosts start from: the boot disk and the image of the root disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab import cache, command, debian, ssh

#: A file of the image: its mode, and its content or the file that has it.
ImageFile = tuple[int, "bytes | Path"]

_SIZE = "6G"
#: Without tsc=reliable a busy machine makes the kernel give up the TSC, and perftest's clock sampling fails for good.
#: The watchdog waits for what the kernel says of a stall: 21 s are the kernel's own default, Debian's are 60.
_KERNEL_ARGUMENTS = "console=ttyS0 mitigations=off nokaslr tsc=reliable rcupdate.rcu_cpu_stall_timeout=21"
#: Looks for a file that the root disk has and the loader's own memory disk has not.
_LOADER_CONFIG = """insmod ext2
insmod linux
search --no-floppy --set=root --file /etc/debian_version
set prefix=($root)/boot/grub
configfile $prefix/grub.cfg
"""
_LOADER_MODULES = (
    "part_gpt part_msdos ext2 linux normal configfile search search_fs_file search_label test "
    "echo gzio all_video loadenv"
)
#: Replaced by update-grub in the template's first boot; this one only starts it.
_FIRST_GRUB_CFG = f"""search --no-floppy --set=root --file /etc/debian_version
linux /vmlinuz root=LABEL=lab rw {_KERNEL_ARGUMENTS} quiet
initrd /initrd.img
boot
"""
#: Who Ansible logs in as.
USER = "ops"
_FILES = {
    "etc/fstab": "LABEL=lab / ext4 defaults 0 1\n",
    "etc/hostname": "lab\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
    "etc/resolv.conf": "nameserver 10.0.2.3\n",
    "etc/machine-id": "",
    "etc/default/grub": f"""GRUB_TIMEOUT=0
GRUB_TERMINAL=console
GRUB_DISABLE_OS_PROBER=true
GRUB_CMDLINE_LINUX_DEFAULT=quiet
GRUB_CMDLINE_LINUX="{_KERNEL_ARGUMENTS}"
""",
    "boot/grub/grub.cfg": _FIRST_GRUB_CFG,
    "etc/systemd/network/10-mgmt.network": "[Match]\nDriver=virtio_net\n\n[Network]\nDHCP=ipv4\n",
    "etc/ssh/sshd_config.d/lab.conf": "UseDNS no\n",
    # As on hosts of others: Ansible comes as a user who may become root.
    f"etc/sudoers.d/{USER}": f"{USER} ALL=(ALL) NOPASSWD: ALL\n",
    # Started by tests alone, and then for the rails alone.
    "etc/NetworkManager/conf.d/10-lab.conf": "[keyfile]\nunmanaged-devices=except:driver:igb\n",
    # Each host makes its own keys, in its first boot.
    "etc/systemd/system/ssh.service.d/keys.conf": """[Service]
ExecStartPre=
ExecStartPre=/usr/bin/ssh-keygen -A
ExecStartPre=/usr/sbin/sshd -t
""",
}
_MASKED = (
    "systemd-networkd-wait-online.service apt-daily.timer apt-daily-upgrade.timer "
    "e2scrub_all.timer e2scrub_reap.service fstrim.timer"
)
#: There for tests that start them.
_DISABLED = "NetworkManager.service NetworkManager-wait-online.service lldpd.service"
_SETUP = (
    ("systemctl", "enable", "systemd-networkd.service", "ssh.service"),
    ("systemctl", "disable", *_DISABLED.split()),
    ("systemctl", "mask", *_MASKED.split()),
    ("sh", "-c", "rm -f /etc/ssh/ssh_host_*"),
    ("useradd", "--create-home", "--shell", "/bin/bash", USER),
    ("cp", "--recursive", "/root/.ssh", f"/home/{USER}"),
    ("chown", "--recursive", f"{USER}:{USER}", f"/home/{USER}/.ssh"),
)


def boot_disk() -> Path:
    """A small EFI disk whose loader reads grub.cfg from the root disk."""
    return cache.artefact("boot-disk", _LOADER_CONFIG + _LOADER_MODULES, _build_boot_disk)


def base(files: Mapping[str, ImageFile], setup: Sequence[Sequence[str]]) -> Path:
    """The raw image of a root disk that no host has booted yet.

    `files` (by path) are added to the lab's own, then the commands `setup` run inside.
    """
    tree = debian.root()
    authorized = {"root/.ssh/authorized_keys": (0o600, ssh.public_key().encode())}
    own = {path: (0o644, text.encode()) for path, text in _FILES.items()}
    contents: dict[str, ImageFile] = {**own, **authorized, **files}
    steps = [*_SETUP, *setup]
    inputs = json.dumps([tree.parent.name, _SIZE, _described(contents), steps])
    return cache.artefact("base-image", inputs, lambda to: _build_base(to, tree, contents, steps))


def _build_base(target: Path, tree: Path, files: Mapping[str, ImageFile], setup: Sequence[Sequence[str]]) -> None:
    work = target.with_name(f"{target.name}-root")
    cache.remove(work)
    command.run(["cp", "-a", "--reflink=auto", str(tree), str(work)])
    for name, (mode, content) in files.items():
        _put(work / name.lstrip("/"), mode, content)
    for argv in setup:
        command.in_root(work, argv)
    arguments = ["-q", "-L", "lab", "-t", "ext4", "-E", "root_owner=0:0", "-d", str(work)]
    command.run(["mke2fs", *arguments, str(target), _SIZE])
    cache.remove(work)


def _put(path: Path, mode: int, content: bytes | Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    path.chmod(mode)


def _described(files: Mapping[str, ImageFile]) -> list[list[object]]:
    return [[name, mode, _hash(content)] for name, (mode, content) in sorted(files.items())]


def _hash(content: bytes | Path) -> str:
    return cache.key([content]) if isinstance(content, bytes) else cache.file_hash(content)


def _build_boot_disk(target: Path) -> None:
    work = target.with_name(f"{target.name}-files")
    cache.remove(work)
    work.mkdir()
    config, loader = work / "early.cfg", work / "BOOTX64.EFI"
    config.write_text(_LOADER_CONFIG)
    nothing = ["--locales=", "--fonts=", "--themes="]
    build = ["grub-mkstandalone", "-O", "x86_64-efi", f"--modules={_LOADER_MODULES}", *nothing]
    command.run([*build, "-o", str(loader), f"boot/grub/grub.cfg={config}"])
    command.run(["truncate", "-s", "16M", str(target)])
    command.run(["mformat", "-i", str(target), "::"])
    command.run(["mmd", "-i", str(target), "::/EFI", "::/EFI/BOOT"])
    command.run(["mcopy", "-i", str(target), str(loader), "::/EFI/BOOT/"])
    cache.remove(work)
