"""reboot_reasons through main(): consent, the record of a reboot, what stays after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run, warned

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import command

FIRST = "iommu=pt is not in /proc/cmdline"
SECOND = "0000:18:00.0 gets its name rail0 (now eth0) at the next boot: it has the address 10.0.0.1/24"


class Machine:
    """Just enough of a host: its boot id, its reasons, and what it remembers over a boot."""

    host: sysfs_tree.Host

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.put("etc/machine-id", "abc\n")
        self.boot("boot-1")

    def put(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def boot(self, name: str) -> None:
        self.put("proc/sys/kernel/random/boot_id", f"{name}\n")
        for path in self.root.glob("run/gpufabric/reboot.d/*"):
            path.unlink()

    def wants(self, **reasons: str) -> None:
        for module, reason in reasons.items():
            self.put(f"run/gpufabric/reboot.d/{module}", reason + "\n")

    def call(self, state: str = "read", check: bool = False, **params: Any) -> dict[str, Any]:
        return run(
            "reboot_reasons", self.capsys, check, state=state, inventory_host="gpu-1", root=str(self.root), **params
        )

    @property
    def record(self) -> Any:
        path = self.root / "var/lib/gpufabric/host_reboot.json"
        return json.loads(path.read_text()) if path.exists() else None


@pytest.fixture
def machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Machine:
    return Machine(tmp_path, capsys)


def test_a_host_without_reasons_needs_nothing(machine: Machine) -> None:
    result = machine.call()
    assert {key: result[key] for key in ("changed", "due", "go", "reasons", "boot_id")} == {
        "changed": False,
        "due": False,
        "go": False,
        "reasons": [],
        "boot_id": "boot-1",
    }


def test_the_host_says_which_machine_it_is(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [("10.0.0.1", "fe80::1"), ("127.0.0.1", "::1"), ("fd00::1", None)]
    links = [{"addr_info": [{"local": text} for text in pair]} for pair in shown]
    monkeypatch.setattr(command, "run", lambda argv: command.Result(0, json.dumps(links), ""))
    machine.put("proc/sys/kernel/hostname", "gpu-1.lab\n")
    assert machine.call()["identity"] == {
        "machine_id": "abc",
        "hostname": "gpu-1.lab",
        "addresses": ["10.0.0.1", "fd00::1"],
        "kubelet": [],
        "control_plane": False,
    }


@pytest.mark.parametrize(
    ("path", "signs", "control_plane"),
    [
        ("var/lib/kubelet/config.yaml", ["ROOT/var/lib/kubelet is not empty"], False),
        ("var/lib/k0s/kubelet/pods/x", ["ROOT/var/lib/k0s/kubelet is not empty"], False),
        ("sys/fs/cgroup/system.slice/kubelet.service/cgroup.procs", ["kubelet.service is active"], False),
        ("sys/fs/cgroup/systemd/system.slice/k3s.service/tasks", ["k3s.service is active"], True),
        ("proc/77/comm:kubelet", ["process kubelet is running"], False),
        ("proc/77/comm:etcd", [], True),
        ("etc/kubernetes/manifests/kube-apiserver.yaml", [], True),
        ("etc/kubernetes/manifests/kube-apiserver-pod.yaml", [], True),
        ("proc/77/comm:containerd", [], False),
        ("proc/77/comm:k3s-server", ["process k3s-server is running"], True),
        ("proc/77/comm:k3s-agent", ["process k3s-agent is running"], False),
        ("sys/fs/cgroup/system.slice/rke2-server.service/x", ["rke2-server.service is active"], True),
        ("sys/fs/cgroup/system.slice/rke2-agent.service/x", ["rke2-agent.service is active"], False),
        ("sys/fs/cgroup/system.slice/k0scontroller.service/x", ["k0scontroller.service is active"], True),
        ("sys/fs/cgroup/system.slice/k0sworker.service/x", ["k0sworker.service is active"], False),
        ("proc/77/comm:kubelite", ["process kubelite is running"], True),
        (
            "sys/fs/cgroup/system.slice/snap.microk8s.daemon-kubelite.service/x",
            ["snap.microk8s.daemon-kubelite.service is active"],
            True,
        ),
        ("proc/77/comm:k8s-dqlite", [], True),
        ("sys/fs/cgroup/system.slice/snap.microk8s.daemon-k8s-dqlite.service/x", [], True),
        ("sys/fs/cgroup/system.slice/snap.k8s.kubelet.service/x", ["snap.k8s.kubelet.service is active"], False),
        ("sys/fs/cgroup/system.slice/snap.k8s.kube-apiserver.service/x", [], True),
        ("proc/77/comm:microshift", ["process microshift is running"], True),
    ],
)
def test_signs_of_a_kubelet_and_of_a_control_plane(
    machine: Machine, path: str, signs: list[str], control_plane: bool
) -> None:
    name, _colon, text = path.partition(":")
    machine.put(name, text)
    (machine.root / "var/lib/kubelet").mkdir(parents=True, exist_ok=True)
    found = machine.call()["identity"]
    expected = [sign.replace("ROOT", str(machine.root)) for sign in signs]
    assert (found["kubelet"], found["control_plane"]) == (expected, control_plane)


def test_a_worker_of_microk8s_is_not_of_the_control_plane(machine: Machine) -> None:
    """Both run kubelite, with other parts in it. Workers alone reach the API server through a proxy of their own."""
    machine.put("proc/77/comm", "kubelite\n")
    machine.put("sys/fs/cgroup/system.slice/snap.microk8s.daemon-apiserver-proxy.service/x", "")
    assert machine.call()["identity"]["control_plane"] is False
    machine.put("proc/78/comm", "k8s-dqlite\n")
    assert machine.call()["identity"]["control_plane"] is True


def test_a_folder_of_a_kubelet_that_cannot_be_read_is_a_sign(machine: Machine) -> None:
    """A link that leads to itself stands for what even root cannot read."""
    (machine.root / "var/lib").mkdir(parents=True)
    (machine.root / "var/lib/kubelet").symlink_to("kubelet")
    folder = machine.root / "var/lib/kubelet"
    assert machine.call()["identity"]["kubelet"] == [f"{folder} cannot be read (Too many levels of symbolic links)"]


def test_the_machine_that_runs_ansible_is_not_rebooted(machine: Machine) -> None:
    machine.wants(kernel_cmdline=FIRST)
    result = machine.call(allowed=True, controller_boot_id="boot-1")
    assert result["msg"] == (
        f"reboot_reasons: gpu-1 must be rebooted before the run can continue on it: {FIRST}. Ansible runs on this "
        "machine or in a container on it (both have the boot id boot-1), and a reboot would end the run. Reboot it "
        "manually, then rerun the playbook, or run it from another machine"
    )
    reported = machine.call(allowed=True, controller_boot_id="boot-1", required=False)
    assert (reported["due"], reported["go"]) == (True, False)
    assert "Ansible runs on this machine" in json.dumps(reported["warnings"])
    assert machine.call(allowed=True, controller_boot_id="boot-7")["go"] is True


def test_without_consent_the_variable_and_every_reason_are_named(machine: Machine) -> None:
    machine.wants(kernel_cmdline=FIRST, netdev_names=SECOND)
    result = machine.call()
    assert result["msg"] == (
        f"reboot_reasons: gpu-1 must be rebooted before the run can continue on it: {FIRST}; {SECOND}. Set allowed: "
        "true, or reboot it manually; then rerun the playbook"
    )
    assert result["failed"] and result["reasons"] == [FIRST, SECOND]


@pytest.mark.parametrize(("check", "required"), [(True, True), (False, False)])
def test_the_refusal_can_be_a_warning(machine: Machine, check: bool, required: bool) -> None:
    machine.wants(kernel_cmdline=FIRST)
    result = machine.call(check=check, required=required)
    assert (result["due"], result["go"]) == (True, False)
    assert "gpu-1 must be rebooted before the run can continue on it" in json.dumps(result["warnings"])


def test_check_mode_knows_the_reasons_that_modules_announced(machine: Machine) -> None:
    machine.wants(kernel_cmdline=FIRST)
    result = machine.call(check=True, expected=[FIRST, SECOND])
    assert (result["go"], result["reasons"]) == (False, [FIRST, SECOND])
    assert machine.call(check=True, allowed=True, expected=[SECOND])["go"] is True


@pytest.mark.proves("host_reboot", "Debian 13", by="unit")
def test_one_reboot_for_all_reasons(machine: Machine) -> None:
    machine.wants(kernel_cmdline=FIRST, netdev_names=SECOND)
    assert machine.call(allowed=True)["go"] is True
    assert machine.call("begun", check=True)["changed"] is False and machine.record is None
    machine.call("begun")
    assert machine.record == {"boot_id": "boot-1", "reasons": [FIRST, SECOND]}
    machine.boot("boot-2")
    assert machine.call("verified")["boot_id"] == "boot-2"
    machine.call("finished")
    assert machine.record is None and not (machine.root / "state").exists()
    assert machine.call()["due"] is False


def test_a_host_that_did_not_boot_is_found(machine: Machine) -> None:
    machine.wants(kernel_cmdline=FIRST)
    machine.call("begun")
    assert machine.call("verified")["msg"] == "reboot_reasons: gpu-1 did not reboot: its boot id is still boot-1"


def test_reasons_that_stay_are_named_and_no_second_reboot_happens(machine: Machine) -> None:
    machine.wants(kernel_cmdline=FIRST, netdev_names=SECOND)
    machine.call("begun")
    machine.boot("boot-2")
    machine.wants(kernel_cmdline=FIRST, nic_firmware="LINK_TYPE_P1")
    assert machine.call("verified")["msg"] == (
        "reboot_reasons: gpu-1 rebooted, but its state is not as expected: still there after the reboot: "
        f"{FIRST}; new after the reboot: LINK_TYPE_P1"
    )
    assert machine.call(allowed=True)["msg"] == (
        f"reboot_reasons: gpu-1 was already rebooted, but these reasons remain: {FIRST}. Another reboot would not"
        " help. Find what undoes the change, or set repeat: true"
    )
    assert machine.call(allowed=True, repeat=True)["go"] is True


def test_a_run_that_was_cut_off_is_finished_without_consent(machine: Machine) -> None:
    machine.wants(kernel_cmdline=FIRST)
    machine.call("begun")
    machine.boot("boot-2")
    result = machine.call()
    assert (result["due"], result["go"], result["reasons"]) == (True, True, [])
    assert "failed" not in machine.call("verified")


def test_what_was_taken_back_before_the_reboot_needs_none(machine: Machine) -> None:
    machine.wants(kernel_cmdline=FIRST)
    machine.call("begun")
    (machine.root / "run/gpufabric/reboot.d/kernel_cmdline").unlink()
    assert machine.call()["go"] is True
    assert "failed" not in machine.call("verified")


@pytest.mark.parametrize("text", ["{", "5", "[1]", "null"])
def test_a_damaged_record_is_named(machine: Machine, text: str) -> None:
    machine.put("var/lib/gpufabric/host_reboot.json", text)
    assert machine.call()["msg"].startswith("reboot_reasons: the record ")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Machine:
    """A GPU server: a job in pid 7, a pod in 8, a kubelet in 9; storage network 10.1.1.11/24 on an RDMA port."""
    host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    host.idle()
    made = Machine(tmp_path, capsys)
    made.host = host
    for pid, comm, cgroup in ((7, "job", "system.slice/x"), (8, "pod", "kubepods.slice/x"), (9, "kubelet", "k")):
        made.put(f"proc/{pid}/cgroup", f"0::/{cgroup}\n")
        made.put(f"proc/{pid}/comm", f"{comm}\n")
        (tmp_path / f"proc/{pid}/fd").mkdir()
        (tmp_path / f"proc/{pid}/fd/3").symlink_to(f"socket:[{pid}00]")
    made.wants(kernel_cmdline=FIRST)
    return made


def refusals(server: Machine, **params: Any) -> list[str]:
    """What stops a reboot: without a drain, before one, and after one."""
    texts = [str(server.call("begun", drain=drain, **params).get("msg", "")) for drain in ("none", "next", "done")]
    head = "reboot_reasons: gpu-1 is not rebooted: a reboot would end "
    tail = ". Stop these users and rerun the playbook, or"
    assert all(text.startswith(head) and text.endswith(f"{tail} set {CONSENT}: true") for text in texts if text)
    return [text[len(head) :].partition(tail)[0] for text in texts]


CONSENT = "rdma_disrupt_users"
TCP = "   0: 0B01010A:0016 {peer}:C7F4 01 00000000:00000000 00:00000000 00000000  0  0 {inode} 1 0 20 4 30 10 -1\n"


@pytest.mark.parametrize(
    ("inode", "expected"),
    [
        ("700", ["TCP connections on 10.1.1.11 of job[7]"] * 3),
        ("800", ["TCP connections on 10.1.1.11 of pod[8]", "", ""]),
        ("900", ["", "", ""]),
        ("5", ["TCP connections on 10.1.1.11 of the kernel", "", "TCP connections on 10.1.1.11 of the kernel"]),
    ],
)
def test_connections_over_rdma_ports_stop_the_reboot(server: Machine, inode: str, expected: list[str]) -> None:
    server.put("proc/net/tcp", TCP.format(peer="0901010A", inode=inode))
    assert refusals(server) == expected


def test_connections_of_the_management_do_not_stop_the_reboot(server: Machine) -> None:
    """The same connection of a job, where the address has the ssh connection of this run."""
    server.put("proc/net/tcp", TCP.format(peer="0901010A", inode="700"))
    server.put("proc/self/environ", "SSH_CONNECTION=10.1.1.9 51188 10.1.1.11 22\0")
    assert refusals(server) == ["", "", ""]


def test_mounts_over_rdma_ports_stop_the_reboot(server: Machine) -> None:
    server.put("proc/mounts", "10.1.1.20:/d /scratch nfs4 rw,addr=10.1.1.20 0 0\n")
    assert refusals(server) == ["nfs4 mount /scratch from 10.1.1.20"] * 3
    server.put("proc/mounts", "10.9.9.9:/d /home nfs4 rw,addr=10.9.9.9 0 0\n")
    assert refusals(server) == [""] * 3


def test_programs_that_use_rdma_stop_the_reboot(server: Machine) -> None:
    pairs = [
        {"ifname": "mlx5_0", "pid": 7, "comm": "job", "type": "RC"},
        {"ifname": "mlx5_0", "pid": 8, "comm": "pod", "type": "RC"},
        {"ifname": "mlx5_0", "type": "GSI", "comm": "ib_core"},
    ]
    server.host.prints[sysfs_tree.QUEUE_PAIRS] = json.dumps(pairs)
    job = "RDMA queue pairs of job[7]"
    assert refusals(server) == [f"{job}; RDMA queue pairs of pod[8]", job, job]
    assert server.record is None
    assert refusals(server, disrupt_users=True) == ["", "", ""] and server.record is not None


def test_what_a_drain_left_in_pods_is_a_warning(server: Machine) -> None:
    pairs = [{"ifname": "mlx5_0", "pid": 8, "comm": "pod", "type": "RC"}]
    server.host.prints[sysfs_tree.QUEUE_PAIRS] = json.dumps(pairs)
    assert warned(server.call("begun", drain="next")) == []
    assert warned(server.call("begun", drain="done")) == [
        "gpu-1: the reboot ends work of pods that the drain left (DaemonSets, static pods): RDMA queue pairs of pod[8]"
    ]


def test_what_cannot_be_read_stops_the_reboot(server: Machine) -> None:
    server.host.prints[sysfs_tree.QUEUE_PAIRS] = ""
    assert refusals(server) == ["queue pairs that cannot be read (install the rdma tool of iproute2)"] * 3
    server.host.idle()
    (server.root / "proc/net/tcp").unlink()
    assert refusals(server) == ["TCP connections that cannot be read (/proc/net/tcp)"] * 3
    server.put("proc/net/tcp", "")
    (server.root / "proc/mounts").unlink()
    assert refusals(server) == ["mounts that cannot be read"] * 3
