# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab as a whole: up, reset, down, faults. Each function needs the lock to be held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from tests.lab import cache, command, faults, hosts, image, machine, process, progress, qmp, ssh, state, switch
from tests.lab.errors import LabError
from tests.lab.faults import Fault
from tests.lab.settings import ACCESS, CACHE, HOSTS, RUN, SNAPSHOT
from tests.lab.state import State

# As generous as for a boot: on a busy machine a restored host takes minutes until it answers.
_RESTORE_SECONDS = 300
#: Artefacts that would fill the disk: what a change of the recipe made useless goes, in time.
_LARGE = ("debian", "base-image", "template", "hosts")
#: Two boots: the first one may stall.
_BOOT_SECONDS = 600
#: A host that stalled never answers.
_ANSWER_SECONDS = 60

Result = TypeVar("Result")


def up(with_cluster: bool) -> None:
    """Bring the lab up, reusing all that is there: built artefacts, and a lab that runs."""
    RUN.mkdir(parents=True, exist_ok=True)
    cluster = _cluster() if with_cluster else None
    current = state.load()
    if current and _is_whole(current, cluster):
        write_access(Path(current.disks), cluster)
        if all(_in_parallel(_answers, _alive(current))):
            progress.note("lab", "is up already")
            _start_nodes(cluster)
            return
    down()
    folder = hosts.disks(cluster)
    with progress.step("disks"):
        _copy_disks(folder)
    write_access(folder, cluster)
    _start_all(folder, cluster)
    state.store(State(str(folder), hosts.recipe(), cluster is not None))
    cache.prune(_LARGE, keep=2)


def reset() -> None:
    """Bring hosts and cluster back to where they were when `up` ended; no fault is left."""
    current = _must_be_up()
    state.forget()  # Half a reset is no lab that is up.
    with progress.step("stop"):
        process.stop([switch.NAME])
        _in_parallel(process.kill, HOSTS)
    _start_all(Path(current.disks), _cluster_of(current))
    state.store(replace(current, faults=[]))


def down() -> None:
    """End every program of the lab. None has anything to keep: the snapshots have it all."""
    state.forget()
    names = list(process.running())
    if names:
        with progress.step("stop"):
            _in_parallel(process.kill, names)


def clean() -> None:
    """End the lab and remove all that it built."""
    down()
    for path in (CACHE / "artefacts", RUN, ACCESS):
        cache.remove(path)


def add_fault(fault: Fault) -> None:
    """Make something go wrong, on top of what is wrong already."""
    current = _must_be_up()
    if fault.kind == "dead":
        process.kill(fault.host)
    elif fault.kind == "cut":
        _cut(fault.host)
        return  # It is over: the host is up again.
    elif fault.kind == "cable" and fault.rail is not None:
        machine.set_cable(fault.host, fault.rail, plugged=False)
    others = [one for one in current.faults if _place(one) != _place(fault)]
    _set_faults(current, [*others, fault])


def heal(words: Sequence[str]) -> list[Fault]:
    """Undo the faults that the words select, all when there are none; return them.

    A dead host comes back as it was when `up` ended.
    """
    current = _must_be_up()
    gone = faults.selected(current.faults, words)
    _set_faults(current, [one for one in current.faults if one not in gone])
    for fault in gone:
        if fault.kind == "cable" and fault.rail is not None and fault.host in process.running():
            machine.set_cable(fault.host, fault.rail, plugged=True)
        if fault.kind == "dead":
            _revive(fault.host, current)
    return gone


def cluster_status() -> list[str]:
    """A line for each part of the cluster; none when the lab has no cluster."""
    current = state.load()
    cluster = _cluster_of(current) if current else None
    lines: list[str] = cluster.status() if cluster else []
    return lines


def write_access(folder: Path, cluster: ModuleType | None) -> None:
    """Write .lab, which the inventory points to."""
    ssh.write_access({host: (folder / f"{host}.pub").read_text() for host in HOSTS})
    if cluster:
        cluster.kubeconfig(ACCESS / "kubeconfig")
        cluster.tools(ACCESS)


def _start_all(folder: Path, cluster: ModuleType | None) -> None:
    switch.start()
    with progress.step("hosts, control plane" if cluster else "hosts"), ThreadPoolExecutor(1) as pool:
        done = pool.submit(cluster.restore, hosts.paired_name(folder)) if cluster else None
        _in_parallel(_start_host, HOSTS)
        if done:
            done.result()
    _start_nodes(cluster)


def _start_host(host: str) -> None:
    machine.start(host, disk(host), image.boot_disk(), SNAPSHOT)
    hosts.wait(host, ssh.thaw, _RESTORE_SECONDS)


def _start_nodes(cluster: ModuleType | None) -> None:
    if cluster:
        with progress.step("nodes"):
            cluster.hosts_up(ssh.run)


def _revive(host: str, current: State) -> None:
    with progress.step(f"restart of {host}"):
        _start_host(host)
        cluster = _cluster_of(current)
        if cluster:
            cluster.hosts_up(ssh.run, [host])


def _cut(host: str) -> None:
    """As if its power failed for a moment: memory is lost, the disk is as it was."""
    with progress.step(f"power cut and boot of {host}"):
        qmp.execute(machine.control(host), "system_reset")
        hosts.wait(host, hosts.has_booted, _BOOT_SECONDS)


def _set_faults(current: State, wanted: list[Fault]) -> None:
    switch.impair(faults.impairments(wanted), faults.swapped(wanted))
    state.store(replace(current, faults=wanted))


def _place(fault: Fault) -> tuple[str, str, int | None]:
    return fault.kind, fault.host, fault.rail


def disk(host: str) -> Path:
    """The disk of a running host."""
    return RUN / f"{host}.qcow2"


def _copy_disks(folder: Path) -> None:
    for host in HOSTS:
        source, target = folder / f"{host}.qcow2", disk(host)
        cache.remove(target)
        command.run(["cp", "--reflink=auto", "--sparse=auto", str(source), str(target)])


def _is_whole(current: State, cluster: ModuleType | None) -> bool:
    """Whether everything that should run does; a host that is dead on purpose is missed by no one."""
    same = current.cluster == (cluster is not None) and current.recipe == hosts.recipe()
    return same and {switch.NAME, *_alive(current)} <= set(process.running()) and Path(current.disks).exists()


def _alive(current: State) -> list[str]:
    return [host for host in HOSTS if Fault("dead", host) not in current.faults]


def _answers(host: str) -> bool:
    return ssh.succeeds(host, "true", seconds=_ANSWER_SECONDS)


def _must_be_up() -> State:
    current = state.load()
    if current is None:
        raise LabError("the lab is not up: run `python3 -m tests.lab up`")
    return current


def _cluster_of(current: State) -> ModuleType | None:
    return _cluster() if current.cluster else None


def _cluster() -> ModuleType:
    """The cluster's part, which a lab of hosts alone does not need (nor what it is built with)."""
    from tests.lab import cluster

    return cluster


def _in_parallel(work: Callable[[str], Result], names: Sequence[str]) -> list[Result]:
    with ThreadPoolExecutor(len(names) or 1) as pool:
        return list(pool.map(work, names))
