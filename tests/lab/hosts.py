# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Making the three hosts' disks, with a snapshot of each running host in them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

from tests.lab import cache, command, image, machine, process, progress, qmp, ssh, switch
from tests.lab.errors import LabError
from tests.lab.settings import HOSTS, SNAPSHOT

#: Ends when a host has booted, well or with a failed unit.
BOOTED = ("sh", "-c", "systemctl is-system-running --wait || true")
_BOOT_SECONDS = 600
_STOP_SECONDS = 120
#: What each host has for itself and must not come from the template.
_FORGET = """set -e
update-grub 2>/dev/null
rm -f /etc/ssh/ssh_host_* /var/lib/systemd/random-seed /var/lib/dbus/machine-id
ln -sf /etc/machine-id /var/lib/dbus/machine-id
: > /etc/machine-id
journalctl -q --rotate && journalctl -q --vacuum-time=1s || true
sync
"""
_NAME = """set -e
echo "$1" > /etc/hostname
hostname "$1"
printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n::1 localhost ip6-localhost\\n' "$1" > /etc/hosts
systemctl restart systemd-journald systemd-networkd
"""
_PUBLIC_HOST_KEY = "/etc/ssh/ssh_host_ed25519_key.pub"


def disks(cluster: ModuleType | None) -> Path:
    """The folder with HOST.qcow2 and HOST.pub (its ssh key) of each host, built when needed.

    Each disk holds the snapshot of the running host. With a `cluster` its files are in the image
    and its part of the first boot is done.
    """
    template = _template(cluster)
    inputs = json.dumps([template.name, _NAME, SNAPSHOT, _cluster_identity(cluster), 4])
    state = cache.path_of("hosts", inputs).name
    return cache.artefact("hosts", inputs, partial(_build_hosts, template, cluster, state))


def paired_name(folder: Path) -> str:
    """The name of the cluster's state that belongs to these disks."""
    return folder.name


def _template(cluster: ModuleType | None) -> Path:
    """A disk that was booted once, with all that is the same on every host."""
    files = cluster.image_files() if cluster else {}
    setup = cluster.image_setup() if cluster else []
    base = image.base(files, setup)
    inputs = json.dumps([base.name, _FORGET, _template_identity(cluster), 1])
    return cache.artefact("template", inputs, partial(_build_template, base, cluster))


def _build_template(base: Path, cluster: ModuleType | None, target: Path) -> None:
    host = HOSTS[0]
    work = target.with_name(f"{target.name}.qcow2")
    _overlay(work, base, "raw")
    ssh.write_access({})
    switch.start()
    try:
        _boot(host, work)
        if cluster:
            with progress.step("images into containerd"):
                cluster.template_boot(partial(ssh.run, host), partial(_put, host))
        ssh.run(host, ["sh", "-c", _FORGET])
        _power_off(host)
    finally:
        process.stop([host, switch.NAME])
    command.run(["qemu-img", "convert", "-O", "qcow2", str(work), str(target)])
    cache.remove(work)


def _build_hosts(template: Path, cluster: ModuleType | None, state: str, target: Path) -> None:
    target.mkdir()
    ssh.write_access({})
    switch.start()
    try:
        for host in HOSTS:
            disk = target / f"{host}.qcow2"
            _overlay(disk, template, "qcow2")
            _boot(host, disk)
            ssh.run(host, ["sh", "-c", _NAME, "sh", host])
            (target / f"{host}.pub").write_text(ssh.run(host, ["cat", _PUBLIC_HOST_KEY]))
        if cluster:
            _join_cluster(cluster, state)
        for host in HOSTS:
            with progress.step(f"snapshot of {host}"):
                machine.save(host, SNAPSHOT)
                qmp.execute(machine.control(host), "quit")
    finally:
        process.stop([*HOSTS, switch.NAME])


def _join_cluster(cluster: ModuleType, state: str) -> None:
    for host in HOSTS:
        with progress.step(f"cluster files on {host}"):
            cluster.first_boot(host, partial(ssh.run, host))
    with progress.step("nodes join"):
        cluster.first_join(ssh.run, state)


def _overlay(path: Path, backing: Path, kind: str) -> None:
    cache.remove(path)
    command.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(backing), "-F", kind, str(path)])


def wait(host: str, argv: Sequence[str], seconds: float) -> None:
    """Wait until a starting host can be reached and run a program there (perhaps more than once).

    Raises LabError with the end of its console when it does not come, at once when its QEMU ended.
    """
    try:
        ssh.wait(host, argv, seconds, lambda: host in process.running())
    except LabError as error:
        raise LabError(f"{error}\nThe end of its console:\n{process.log_tail(host)}") from None


def _boot(host: str, disk: Path) -> None:
    with progress.step(f"boot of {host}"):
        machine.start(host, disk, image.boot_disk())
        wait(host, BOOTED, _BOOT_SECONDS)


def _power_off(host: str) -> None:
    ssh.run(host, ["systemctl", "poweroff", "--no-block"])
    deadline = time.monotonic() + _STOP_SECONDS
    while host in process.running():
        if time.monotonic() > deadline:
            raise LabError(f"{host} did not power off within {_STOP_SECONDS} s")
        time.sleep(0.2)


def _put(host: str, path: str, content: bytes | Path) -> None:
    """Write a file on a host."""
    data = content.read_bytes() if isinstance(content, Path) else content
    ssh.run(host, ["sh", "-c", 'cat > "$0"', path], stdin=data, timeout=_BOOT_SECONDS)


def _template_identity(cluster: ModuleType | None) -> str:
    return _ask(cluster, "template_identity")


def _cluster_identity(cluster: ModuleType | None) -> str:
    return _ask(cluster, "identity")


def _ask(cluster: ModuleType | None, name: str) -> str:
    question: Callable[[], str] | None = getattr(cluster, name, None)
    return question() if question else ""
