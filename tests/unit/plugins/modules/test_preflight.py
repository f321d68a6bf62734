"""preflight through main(): all problems of a host in one message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sysfs_tree
from module_run import run


def rail(name: str, pci: str, **more: Any) -> dict[str, Any]:
    return {"rail": name, "netdev": name, "pci": pci, "driver": "mlx5_core", "address": None, "mtu": 9000, **more}


def call(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **params: Any
) -> dict[str, Any]:
    host = sysfs_tree.materialise(name, tmp_path, monkeypatch)
    before = sorted(tmp_path.rglob("*"))
    result = run("preflight", capsys, **host.options(), **params)
    assert sorted(tmp_path.rglob("*")) == before
    return result


def test_all_problems_of_an_odd_host_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rails = [
        rail("rail0", "0000:01:00.0"),
        rail("rail1", "0000:41:00.0"),
        rail("rail2", "0000:61:00.0"),
        rail("rail3", "0000:81:00.0"),
    ]
    result = call("odd-host", tmp_path, monkeypatch, capsys, rails=rails, installs_packages=False)
    assert result["problems"] == [
        "rhel 8.6 is too old; expected 9 or newer",
        "kernel 4.18.0-372.el8.x86_64 is too old; expected 5.14 or newer",
        "perftest (ib_write_bw) is missing; install it, or let rdma_stack_install_packages be true",
        "rail rail1: 0000:41:00.0 has no network device (driver: vfio-pci); bind its network driver",
        "rail rail2: 0000:61:00.0: eno1 carries the default route; it can never be a rail",
        "rail rail3: no network port at 0000:81:00.0 on odd-1; its ports: 0000:01:00.0 (ens1np0), "
        "0000:21:00.0 (ibp33s0), "
        "0000:41:00.0, 0000:61:00.0 (eno1)",
    ]
    assert result["findings"] == [
        "rail rail0: 0000:01:00.0 (ens1np0) has no carrier; check the cable and the switch port",
        "rail rail0: 0000:01:00.0 (ens1np0) has a PCIe link of x8, the card can x16",
    ]
    assert result["msg"] == "preflight: 6 problem(s): " + "; ".join(result["problems"])


def test_missing_perftest_is_fine_when_the_run_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = call("odd-host", tmp_path, monkeypatch, capsys, rails=[], installs_packages=True)
    assert not [problem for problem in result["problems"] if "perftest" in problem]


BUSY = (
    "preflight: 1 problem(s): 2 RDMA queue pairs are in use by python3[4711], and rail0 would "
    "change; stop them, or set "
    "preflight_busy_hosts: true"
)
AS_IT_IS = rail("enp24s0np0", "0000:18:00.0", mtu=4200)


@pytest.mark.parametrize(
    ("wanted", "allowed", "message"),
    [
        (rail("rail0", "0000:18:00.0"), False, BUSY),
        (rail("rail0", "0000:18:00.0"), True, None),
        (AS_IT_IS, False, None),
        ({**AS_IT_IS, "rail": "rail0", "address": "10.0.0.1/24"}, False, BUSY),
    ],
)
def test_a_busy_host_stops_the_run_only_when_it_would_change(
    wanted: dict[str, Any],
    allowed: bool,
    message: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = call("gpu-server-8-rails", tmp_path, monkeypatch, capsys, rails=[wanted], busy_hosts=allowed)
    assert (result.get("failed", False), result.get("msg")) == (message is not None, message)
    assert result["changed"] is False if not message else True


def test_a_host_without_a_known_network_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = sysfs_tree.materialise("lab-igb-host", tmp_path, monkeypatch)
    (tmp_path / "sys/fs/cgroup/system.slice/systemd-networkd.service").rmdir()
    assert run("preflight", capsys, **host.options(), rails=[])["problems"] == [
        "network manager: found none, supported are systemd-networkd and NetworkManager, alone or below netplan",
    ]
