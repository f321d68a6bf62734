# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Making the three hosts' disks, with a snapshot of each running host in them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType

from tests.lab import cache, command, image, machine, process, progress, qmp, settings, ssh, switch
from tests.lab.errors import LabError
from tests.lab.settings import HOSTS, SNAPSHOT

# With time for a watchdog to power a stalled host off and on, and other work beside.
_BOOT_SECONDS = 1200
_STOP_SECONDS = 120
#: The modules that make the hosts, beside the Go sources of the cluster.
_RECIPE = (
    "control_plane",
    "debian",
    "golang",
    "hosts",
    "image",
    "machine",
    "node",
    "oci",
    "pki",
    "settings",
    "sriov_operator",
    "watchdog",
)
_GO = ("controlplane", "modules")
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
#: A name under which no state of the cluster is ever saved.
_NO_STATE = "none"
_PUBLIC_HOST_KEY = "/etc/ssh/ssh_host_ed25519_key.pub"


def disks(cluster: ModuleType | None) -> Path:
    """The folder with HOST.qcow2 and HOST.pub (its ssh key) of each host, built when needed.

    Each disk holds the snapshot of the running host. With a `cluster` the hosts are nodes of it,
    and the state of the cluster of that very moment is saved under the folder's name.
    """
    template = _template(cluster)
    # A snapshot can only be loaded by a machine of the same size.
    size = [settings.CPUS, settings.MEMORY_MIB]
    inputs = json.dumps([template.name, _NAME, SNAPSHOT, _ask(cluster, "identity"), size, 5])
    state = paired_name(cache.path_of("hosts", inputs))
    return cache.artefact("hosts", inputs, partial(_build_hosts, template, cluster, state))


def recipe() -> str:
    """A hash of the sources that the hosts are made by: is a running lab still what they say?"""
    folder = Path(__file__).parent
    sources = [folder / f"{name}.py" for name in _RECIPE]
    sources += sorted(path for name in _GO for path in (folder / name).rglob("*") if path.is_file())
    return cache.key(path.read_bytes() for path in sources)


def paired_name(folder: Path) -> str:
    """The name of the cluster's state that belongs to these disks."""
    return folder.name


def _template(cluster: ModuleType | None) -> Path:
    """A disk that was booted once, with all that is the same on every host."""
    files = cluster.image_files() if cluster else {}
    setup = cluster.image_setup() if cluster else []
    base = image.base(files, setup)
    inputs = json.dumps([base.name, _FORGET, _ask(cluster, "template_identity"), 1])
    return cache.artefact("template", inputs, partial(_build_template, base, cluster))


def _build_template(base: Path, cluster: ModuleType | None, target: Path) -> None:
    host = HOSTS[0]
    work = target.with_name(f"{target.name}.qcow2")
    _overlay(work, base, "raw")
    ssh.write_access({})
    switch.start()
    try:
        with progress.step(f"boot of {host}"):
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
        with progress.step("boots of the hosts"), ThreadPoolExecutor(len(HOSTS)) as pool:
            list(pool.map(partial(_make_host, template, target), HOSTS))
        if cluster:
            _join(cluster, state)
        for host in HOSTS:
            with progress.step(f"snapshot of {host}"):
                machine.save(host, SNAPSHOT)
                qmp.execute(machine.control(host), "quit")
    finally:
        process.stop([*HOSTS, switch.NAME])


def _make_host(template: Path, folder: Path, host: str) -> None:
    """Boot a host for the first time, and give it its name."""
    disk = folder / f"{host}.qcow2"
    _overlay(disk, template, "qcow2")
    _boot(host, disk)
    ssh.run(host, ["sh", "-c", _NAME, "sh", host])
    (folder / f"{host}.pub").write_text(ssh.run(host, ["cat", _PUBLIC_HOST_KEY]))


def _join(cluster: ModuleType, state: str) -> None:
    """Make the hosts nodes of a new cluster, and keep its state."""
    try:
        with progress.step("new cluster"):
            cluster.restore(_NO_STATE)
            cluster.ready()
        with progress.step("nodes"):
            for host in HOSTS:
                cluster.first_boot(host, partial(ssh.run, host))
            cluster.hosts_up(ssh.run, timeout=_BOOT_SECONDS)
        for host in HOSTS:
            machine.freeze(host)
        cluster.save(state)
    finally:
        cluster.stop()


def _overlay(path: Path, backing: Path, kind: str) -> None:
    cache.remove(path)
    command.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(backing), "-F", kind, str(path)])


def wait(host: str, attempt: Callable[[str], bool], seconds: float) -> None:
    """Try again until the attempt on a starting host works.

    Raises LabError with the end of its console when it never does, at once when its QEMU ended.
    """
    deadline = time.monotonic() + seconds
    while not attempt(host):
        ended = host not in process.running()
        if ended or time.monotonic() > deadline:
            what = "has ended" if ended else f"cannot be reached over ssh after {seconds:.0f} s"
            raise LabError(f"{host} {what}. The end of its console:\n{process.log_tail(host)}")
        time.sleep(0.2)


def has_booted(host: str) -> bool:
    """Whether a host is up, well or with a failed unit; waits a while for it."""
    return ssh.succeeds(host, "systemctl is-system-running --wait || true", seconds=60)


def _boot(host: str, disk: Path) -> None:
    machine.start(host, disk, image.boot_disk())
    wait(host, has_booted, _BOOT_SECONDS)


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


def _ask(cluster: ModuleType | None, name: str) -> str:
    question: Callable[[], str] | None = getattr(cluster, name, None)
    return question() if question else ""
