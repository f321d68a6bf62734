"""A host with rails whose QoS programs and files keep what they are set to."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import files

FIRST, SECOND = "0000:18:00.0", "0000:40:00.0"
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures/qos"
QOS = {"trust": "dscp", "pfc": [3], "ecn": [3], "cnp_dscp": 48, "dscp": 26, "roce": "v2", "pause": False}
UNIT = "gpufabric-qos-rail0.service"


def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host with the driver and the tools of DOCA-OFED."""
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.idle()
    for program in ("mlnx_qos", "ethtool"):
        made.prints[f"/usr/bin/{program}"] = ""
    for netdev in ("enp24s0np0", "enp64s0np0"):
        made.prints[f"mlnx_qos -i {netdev}"] = (FIXTURES / "mlnx_qos-default.txt").read_text()
        made.prints[f"ethtool -g {netdev}"] = (FIXTURES / "ethtool-g-mlx5.txt").read_text()
        made.prints[f"ethtool -a {netdev}"] = (FIXTURES / "ethtool-a.txt").read_text()
        ecn = tmp_path / "sys/class/net" / netdev / "ecn"
        for point in ("roce_np", "roce_rp"):
            for priority in range(8):
                put(ecn / point / "enable" / str(priority), "1")
        put(ecn / "roce_np/cnp_dscp", "48")
    for path in sorted((tmp_path / "sys/class/infiniband").iterdir()):
        put(path / "tc/1/traffic_class", "")
    made.reacts = lambda argv: obey(made, argv)
    tell = files.tell_kernel

    def told(path: str, value: str) -> None:
        # A file of a test keeps what a longer value had left; the kernel does not.
        Path(path).write_text("")
        tell(path, value)
        fill_tclass(made)

    monkeypatch.setattr(files, "tell_kernel", told)
    return made


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def obey(host: Host, argv: list[str]) -> str | None:
    """Do what the programs do."""
    if argv[0] == "mlnx_qos" and len(argv) > 3:
        shown = " ".join(argv[:3])
        text = host.prints[shown]
        if argv[3] == "--trust":
            text = text.replace("state: pcp", f"state: {argv[4]}").replace("state: dscp", f"state: {argv[4]}")
        if argv[3] == "--pfc":
            row = next(line for line in text.splitlines() if line.strip().startswith("enabled"))
            text = text.replace(row, "\tenabled     " + "   ".join(argv[4].split(",")) + "   ")
        host.prints[shown] = text
    elif argv[:2] == ["ethtool", "-A"]:
        words = dict(zip(argv[3::2], argv[4::2]))
        host.prints[f"ethtool -a {argv[2]}"] = f"Autonegotiate:\toff\nRX:\t\t{words['rx']}\nTX:\t\t{words['tx']}\n"
    elif argv[0] == "mkdir":
        put(Path(argv[2]) / "ports/1/default_roce_mode", "RoCE v2")
        put(Path(argv[2]) / "ports/1/default_roce_tos", "0")
    elif argv[0] == "rmdir":
        shutil.rmtree(argv[1])
    elif argv[:2] == ["systemctl", "enable"]:
        units = host.root / "etc/systemd/system"
        put(units / f"sys-subsystem-net-devices-{argv[2][14:-8]}.device.wants" / argv[2], "")
    elif argv[:2] == ["systemctl", "disable"]:
        for path in (host.root / "etc/systemd/system").glob(f"*.device.wants/{argv[2]}"):
            path.unlink()
    return None


def fill_tclass(host: Host) -> None:
    """The driver shows its traffic class in another way than it takes it."""
    for path in host.root.glob("sys/class/infiniband/*/tc/1/traffic_class"):
        text = path.read_text()
        if text.lstrip("-").isdigit():
            path.write_text(f"Global tclass={text}\n" if int(text) >= 0 else "")


def rail(name: str, pci: str) -> dict[str, Any]:
    return {"rail": name, "netdev": name, "pci": pci, "driver": "mlx5_core", "address": None, "mtu": 9000}


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    given = {"rails": [rail("rail0", FIRST)], "settings": QOS}
    return run("rail_qos", capsys, check, **{**given, **host.options(), **params})


def snapshot(host: Host) -> dict[str, str]:
    paths = [path for top in ("etc", "var", "sys/class", "sys/kernel/config") for path in (host.root / top).rglob("*")]
    texts = {str(path): path.read_text() for path in paths if path.is_file()}
    texts.update({str(path): path.read_text() for path in host.root.glob("sys/class/infiniband/*/tc/1/*")})
    return {**texts, **host.prints}
