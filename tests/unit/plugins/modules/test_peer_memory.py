"""peer_memory through main() on a GPU server whose kernel, driver and RDMA core vary."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run
from tests.unit.support.sysfs_tree import Host

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build  (builder)\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
OLD = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  460.32.03  Sun Dec 27 19:00:34 UTC 2020\n"
BOTH = "0 T ib_umem_dmabuf_get\t[ib_uverbs]\n0 t ib_register_peer_memory_client\t[ib_core]\n"
INBOX = "0 T ib_umem_dmabuf_get\t[ib_uverbs]\n0 T printk\n"
UNIT = "etc/systemd/system/gpufabric-peer-memory.service"
HELP = "/usr/bin/ib_write_bw --help"
TARGETS = ["multi-user.target", "openibd.service", "rdma-hw.target"]
LEGACY = ("nv_peer_mem", "nvidia-peer-memory", "nvidia-peer-memory-dkms", "nvidia_peer_memory")
DPKG = "dpkg-query --show --showformat=${Package} ${Version} ${db:Status-Want} ${db:Status-Status}\n "
CLOSED_REASON = (
    "DMA-BUF is not possible: NVIDIA driver 535.129.03 (closed kernel modules) does not export it, only the open "
    "kernel modules do"
)


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A server whose nvidia_peermem is not loaded."""
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.reacts = lambda argv: obey(made, argv)
    made.prints["/usr/bin/dpkg-query"] = ""
    made.prints[HELP] = "      --use_cuda=<cuda device id>\n      --use_cuda_dmabuf Use CUDA DMA-BUF\n"
    (tmp_path / "proc/kallsyms").write_text(BOTH)
    unload(made, "nvidia_peermem")
    return made


def load(host: Host, module: str, users: int = 0) -> None:
    with (host.root / "proc/modules").open("a") as stream:
        stream.write(f"{module} 16384 {users} - Live 0x0\n")
    if module == "nvidia_peermem":
        (host.root / "sys/kernel/mm/memory_peers/nv_mem").mkdir(exist_ok=True)


def unload(host: Host, module: str) -> None:
    path = host.root / "proc/modules"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith(f"{module} ")))
    if module == "nvidia_peermem":
        peer = host.root / "sys/kernel/mm/memory_peers/nv_mem"
        (peer / "version").unlink(missing_ok=True)
        peer.rmdir()


def obey(host: Host, argv: list[str]) -> str | None:
    """Do what modprobe and systemctl do."""
    folder = host.root / "etc/systemd/system"
    links = [folder / f"{target}.wants/gpufabric-peer-memory.service" for target in TARGETS]
    if argv[:2] == ["modprobe", "--remove"]:
        unload(host, argv[2])
    elif argv[0] == "modprobe":
        load(host, argv[1])
    elif argv[:2] == ["systemctl", "enable"]:
        for link in links:
            link.parent.mkdir(exist_ok=True)
            os.symlink("../gpufabric-peer-memory.service", link)
    elif argv[:2] == ["systemctl", "disable"]:
        for link in links:
            link.unlink()
            link.parent.rmdir()
    return None


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    return run("peer_memory", capsys, check, **{**host.options(), **params})


def driver(host: Host, text: str) -> None:
    (host.root / "proc/driver/nvidia/version").write_text(text)


def tree(host: Host) -> dict[str, str]:
    paths = [path for top in ("etc", "var", "run") for path in (host.root / top).rglob("*") if path.is_file()]
    return {**{str(path): path.read_text() for path in paths}, "modules": (host.root / "proc/modules").read_text()}


def changing(host: Host) -> list[list[str]]:
    return [argv for argv in host.ran if argv[0] in ("systemctl", "modprobe")]


def test_open_modules_need_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys)
    assert (result["changed"], result["mode"], result["findings"], result["proof"]) == (False, "dmabuf", [], None)
    assert result["reason"] == (
        "NVIDIA driver 555.58.02 (open kernel modules) on kernel 6.8.0-51-generic exports DMA-BUF"
    )
    assert changing(host) == []


@pytest.mark.proves("peer_memory", "Ubuntu 24.04", by="fixture")
def test_closed_modules_get_peermem_that_stays(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    driver(host, CLOSED)
    result = call(host, capsys)
    assert (result["changed"], result["mode"], result["reason"]) == (True, "peermem", CLOSED_REASON)
    assert result["proof"] == {
        "clients": ["nv_mem"], "users": 0, "symbols": ["ib_register_peer_memory_client", "ib_umem_dmabuf_get"]
    }  # fmt: skip
    unit = (host.root / UNIT).read_text()
    assert "PartOf=rdma-hw.target openibd.service\n" in unit
    assert "WantedBy=multi-user.target openibd.service rdma-hw.target\n" in unit
    assert "ExecStop=-modprobe --remove nvidia_peermem\n" in unit
    assert changing(host) == [
        ["systemctl", "daemon-reload"],
        ["modprobe", "nvidia_peermem"],
        ["systemctl", "enable", "gpufabric-peer-memory.service"],
        ["systemctl", "start", "gpufabric-peer-memory.service"],
    ]


def test_a_second_run_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    driver(host, CLOSED)
    call(host, capsys)
    before = tree(host)
    host.ran.clear()
    result = call(host, capsys)
    assert (result["changed"], result["proof"]["clients"]) == (False, ["nv_mem"])
    assert (tree(host), changing(host)) == (before, [])


def test_check_mode_predicts_and_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    driver(host, CLOSED)
    before = tree(host)
    predicted = call(host, capsys, check=True)
    assert (predicted["changed"], predicted["mode"], predicted["proof"]) == (True, "peermem", None)
    assert tree(host) == before
    assert call(host, capsys)["diff"] == predicted["diff"]


def test_absent_takes_everything_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    driver(host, CLOSED)
    before = tree(host)
    call(host, capsys)
    assert call(host, capsys, state="absent")["changed"] is True
    assert tree(host) == before
    assert call(host, capsys, state="absent")["changed"] is False


@pytest.mark.parametrize("mine", [True, False], ids=["loaded before us", "in use"])
def test_a_module_of_others_stays(host: Host, capsys: pytest.CaptureFixture[str], mine: bool) -> None:
    driver(host, CLOSED)
    if mine:
        load(host, "nvidia_peermem")
    call(host, capsys)
    if not mine:
        unload(host, "nvidia_peermem")
        load(host, "nvidia_peermem", users=3)
    result = call(host, capsys, state="absent")
    assert result["diff"]["after"] == {"files": {}, "wants": [], "loaded": True, "legacy": False}
    assert "nvidia_peermem" in (host.root / "proc/modules").read_text()


def test_a_stack_that_was_loaded_again_gets_it_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    driver(host, CLOSED)
    call(host, capsys)
    unload(host, "nvidia_peermem")
    result = call(host, capsys)
    assert (result["changed"], result["diff"]["before"]["loaded"], result["proof"]["clients"]) == (
        True, False, ["nv_mem"]
    )  # fmt: skip


def test_peermem_is_taken_back_when_the_driver_became_open(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    driver(host, CLOSED)
    before = tree(host)
    call(host, capsys)
    driver(host, OPEN)
    result = call(host, capsys)
    assert (result["changed"], result["mode"]) == (True, "dmabuf")
    assert tree(host) == before


def test_the_legacy_module_goes_with_its_packages(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    load(host, "nv_peer_mem")
    host.prints[DPKG + " ".join(LEGACY)] = (
        "nvidia-peer-memory 1.3-0 install installed\nnvidia-peer-memory-dkms 1.2-0 deinstall config-files\n"
    )
    result = call(host, capsys)
    assert (result["changed"], result["mode"]) == (True, "dmabuf")
    assert result["packages"] == {"remove": ["nvidia-peer-memory"]}
    assert changing(host) == [["modprobe", "--remove", "nv_peer_mem"]]


def test_the_legacy_module_in_use_stops(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    load(host, "nv_peer_mem", users=2)
    assert call(host, capsys)["msg"] == (
        "peer_memory: nv_peer_mem is in use on gpu-11 (count 2). Stop the programs that use GPU memory over RDMA, "
        "then rerun the playbook"
    )
    assert changing(host) == []


def test_peermem_that_registers_nothing_is_said(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    driver(host, CLOSED)
    load(host, "nvidia_peermem")
    (host.root / "sys/kernel/mm/memory_peers/nv_mem").rmdir()
    assert call(host, capsys)["msg"] == (
        "peer_memory: nvidia_peermem is loaded on gpu-11, but it is not a client in "
        "/sys/kernel/mm/memory_peers (found: "
        "none). Rebuild the NVIDIA driver after the RDMA stack is installed"
    )


def test_a_module_that_the_kernel_refuses_is_said(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    driver(host, CLOSED)
    host.reacts = lambda argv: "Invalid argument" if argv == ["modprobe", "nvidia_peermem"] else obey(host, argv)
    assert call(host, capsys)["msg"] == (
        "peer_memory: 'modprobe nvidia_peermem' failed with status 2: Invalid argument"
    )


def test_a_host_without_gpu_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = sysfs_tree.materialise("odd-host", tmp_path, monkeypatch)
    result = call(host, capsys, mode="peermem")
    assert (result["changed"], result["mode"], result["reason"]) == (False, "none", "there is no GPU on this host")
    assert [argv[0] for argv in host.ran] == ["ip"]


def test_no_driver_yet(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    driver(host, "")
    result = call(host, capsys)
    assert (result["changed"], result["mode"]) == (False, "none")
    assert result["findings"] == [
        "no NVIDIA driver is loaded: GPU memory is not prepared for RDMA. Rerun the playbook after the driver is loaded"
    ]
    assert call(host, capsys, mode="dmabuf")["msg"] == (
        "peer_memory: dmabuf is not possible on gpu-11: no NVIDIA driver is loaded. Load it and rerun the playbook"
    )


@pytest.mark.parametrize(
    ("text", "symbols", "mode", "message"),
    [
        (CLOSED, INBOX, "auto",
         "(mode: auto): dmabuf: NVIDIA driver 535.129.03 (closed kernel modules) does not export it, only the "
         "open kernel modules do; peermem: the loaded RDMA core has no peer memory interface, which DOCA-OFED "
         "provides"),
        (CLOSED, BOTH, "dmabuf",
         "(mode: dmabuf): dmabuf: NVIDIA driver 535.129.03 (closed kernel modules) does not export it, only "
         "the open kernel modules do"),
        (OPEN, INBOX, "peermem",
         "(mode: peermem): peermem: the loaded RDMA core has no peer memory interface, which DOCA-OFED "
         "provides"),
        (OLD, BOTH, "peermem",
         "(mode: peermem): peermem: NVIDIA driver 460.32.03 (closed kernel modules) is older than 470, kernel "
         "module nvidia_peermem is not installed"),
        (OPEN, "0 T printk\n", "dmabuf",
         "(mode: dmabuf): dmabuf: the loaded RDMA stack has no ib_umem_dmabuf_get"),
    ],
)  # fmt: skip
def test_no_way_is_refused_with_the_reasons(
    host: Host, capsys: pytest.CaptureFixture[str], text: str, symbols: str, mode: str, message: str
) -> None:
    driver(host, text)
    (host.root / "proc/kallsyms").write_text(symbols)
    if text == OLD:
        host.reacts = lambda argv: "not found" if argv[0] == "modinfo" else obey(host, argv)
    assert call(host, capsys, mode=mode)["msg"] == (
        f"peer_memory: GPU memory is not accessible to RDMA on gpu-11 {message}. Resolve this, or set mode: none"
    )
    assert changing(host) == []


def test_old_kernel_and_old_gpus(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / "proc/sys/kernel/osrelease").write_text("5.4.0-200-generic")
    (host.root / "sys/bus/pci/devices/0000:1b:00.0/device").write_text("0x1db6")
    result = call(host, capsys)
    assert (result["mode"], result["reason"]) == (
        "peermem",
        "DMA-BUF is not possible: kernel 5.4.0-200-generic is older than 5.12, GPUs older than Turing: 0000:1b:00.0",
    )


def test_perftest_that_cannot_measure_is_said(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.prints[HELP] = "  -a, --all  Run sizes from 2 till 2^23\n"
    result = call(host, capsys)
    assert (result["mode"], result["findings"]) == (
        "dmabuf", ["perftest was built without --use_cuda_dmabuf and cannot measure GPU memory on this host"]
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "peermem", "none"])
def test_other_vendors(host: Host, capsys: pytest.CaptureFixture[str], mode: str) -> None:
    for device in (host.root / "sys/bus/pci/devices").iterdir():
        if (device / "vendor").is_file() and (device / "vendor").read_text() == "0x10de":
            (device / "vendor").write_text("0x1002")
    result = call(host, capsys, mode=mode)
    said = {
        "auto": "the kernel's driver of these GPUs exports DMA-BUF",
        "none": "mode is none",
        "peermem": "peer_memory: nvidia-peermem supports NVIDIA GPUs only, and gpu-11 has none. Set mode: auto",
    }
    assert (result.get("reason") or result["msg"]) == said[mode]
