"""rdma_stack through main() on a machine that loads modules and starts units."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import package_fake, sysfs_tree
from tests.unit.support.module_run import run
from tests.unit.support.sysfs_tree import Host

NETDEV = "enp24s0np0"
RAILS = [{"rail": "rail0", "pci": "0000:18:00.0", "netdev": NETDEV, "driver": "mlx5_core", "mtu": 9000}]
LOAD = """\
# Written by gpufabric.rdma.rdma_stack, which removes it with state: absent.
ib_umad
ib_uverbs
rdma_rxe
rdma_ucm
"""


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.idle()
    made.reacts = lambda argv: obey(made, argv)
    (tmp_path / "sys/module/ib_uverbs").mkdir(parents=True)
    return made


@pytest.fixture(autouse=True)
def database(host: Host, monkeypatch: pytest.MonkeyPatch) -> package_fake.Database:
    made = package_fake.install(host, monkeypatch)
    have(made, "ibverbs-providers", "rdma-core", "perftest")
    return made


def have(database: package_fake.Database, *installed: str) -> None:
    database.installed = dict.fromkeys(installed, "50.0-2")


def obey(host: Host, argv: list[str]) -> str | None:
    """Do what modprobe and systemctl do."""
    modules, units = host.root / "sys/module", host.root / "etc/systemd/system"
    instance = argv[-1].partition("@")[2].replace(".service", "")
    wants = units / f"sys-subsystem-net-devices-{instance}.device.wants" / argv[-1]
    device = host.root / "sys/class/infiniband" / f"rxe_{instance}"
    if argv[:2] == ["modprobe", "--remove"]:
        (modules / argv[2]).rmdir()
    elif argv[0] == "modprobe":
        (modules / argv[1]).mkdir()
    elif argv[:2] == ["systemctl", "enable"]:
        wants.parent.mkdir(exist_ok=True)
        os.symlink("../gpufabric-soft-roce@.service", wants)
    elif argv[:2] == ["systemctl", "restart"]:
        device.mkdir()
        (device / "parent").write_text(instance)
    elif argv[:2] == ["systemctl", "disable"]:
        wants.unlink()
        (device / "parent").unlink()
        device.rmdir()
    return None


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**host.options()}
    return run("rdma_stack", capsys, check, **{"rails": RAILS, "provider": "soft_roce", **options, **params})


def files(host: Host) -> dict[str, str]:
    paths = [path for top in ("etc", "var", "run") for path in (host.root / top).rglob("*") if path.is_file()]
    modules = {str(path): "" for path in (host.root / "sys/module").iterdir()}
    return {**modules, **{str(path): path.read_text() for path in paths}}


def test_soft_roce_comes_now_and_at_boots(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys)
    assert (result["changed"], result["reboot_required"]) == (True, False)
    assert result["packages"] == {
        "install": [], "remove": [], "manager": "apt", "pinned": False, "new_source": False
    }  # fmt: skip
    after = result["diff"]["after"]
    assert (after["devices"], after["units"]) == ([f"rxe_{NETDEV}"], [f"gpufabric-soft-roce@{NETDEV}.service"])
    assert (host.root / "etc/modules-load.d/gpufabric-rdma.conf").read_text() == LOAD
    unit = (host.root / "etc/systemd/system/gpufabric-soft-roce@.service").read_text()
    assert "ExecStart=rdma link add rxe_%I type rxe netdev %I\n" in unit
    assert "BindsTo=sys-subsystem-net-devices-%i.device\n" in unit
    assert [argv[1:] for argv in host.ran if argv[0] in ("systemctl", "modprobe")] == [
        ["daemon-reload"],
        ["ib_umad"],
        ["rdma_rxe"],
        ["rdma_ucm"],
        ["enable", f"gpufabric-soft-roce@{NETDEV}.service"],
        ["restart", f"gpufabric-soft-roce@{NETDEV}.service"],
    ]


CUDA = "      --use_cuda=<cuda device id>\n      --use_cuda_bus_id=<cuda full BUS id>\n"


@pytest.mark.parametrize("provider", ["inbox", "container"])
def test_perftest_without_cuda_is_refused_before_a_change(
    host: Host, capsys: pytest.CaptureFixture[str], provider: str
) -> None:
    host.prints["ib_write_bw --help"] = "Usage:\n      --report_gbits\n"
    host.prints["ib_write_bw --version"] = "Version: 6.24\n"
    before = files(host)
    result = call(host, capsys, provider=provider, perftest_cuda=True)
    assert result["msg"].startswith(
        "rdma_stack: perftest_cuda: perftest 6.24 is built without CUDA (its help does not list --use_cuda_bus_id)"
    )
    assert files(host) == before
    host.prints["ib_write_bw --help"] = CUDA
    assert "msg" not in call(host, capsys, provider=provider, perftest_cuda=True)


def test_perftest_is_checked_once_its_packages_are_there(
    host: Host, capsys: pytest.CaptureFixture[str], database: package_fake.Database
) -> None:
    host.prints["ib_write_bw --help"] = "Usage:\n      --report_gbits\n"
    have(database, "ibverbs-providers", "rdma-core")
    first = call(host, capsys, provider="inbox", perftest_cuda=True)
    assert first["packages"]["install"] == ["perftest"]
    have(database, "ibverbs-providers", "rdma-core", "perftest")
    assert (
        "perftest of an unknown version is built without CUDA"
        in call(host, capsys, provider="inbox", perftest_cuda=True)["msg"]
    )
    # What is removed needs no CUDA.
    assert "msg" not in call(host, capsys, state="absent", perftest_cuda=True)


def test_perftest_that_does_not_start_is_not_called_one_without_cuda(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    # As the loader does where the driver of the GPU is missing; it prints why to the other stream.
    host.prints["ib_write_bw --help"] = ""
    message = call(host, capsys, perftest_cuda=True)["msg"]
    assert "perftest_cuda: 'ib_write_bw --help' does not list the options of perftest" in message
    assert "libcuda.so.1" in message and "without CUDA" not in message


def test_a_second_run_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    before = files(host)
    host.ran.clear()
    assert call(host, capsys)["changed"] is False
    assert files(host) == before
    assert [argv for argv in host.ran if argv[0] in ("systemctl", "modprobe")] == []


def test_check_mode_changes_nothing_and_does_not_wait_for_names(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(host)
    result = call(host, capsys, check=True, rails=[{**RAILS[0], "netdev": "rail0"}])
    assert (result["changed"], result["reasons"]) == (True, [])
    assert result["diff"]["after"]["devices"] == ["rxe_rail0"]
    assert files(host) == before


def test_a_port_without_its_name_waits(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys, rails=[{**RAILS[0], "netdev": "rail0"}])
    assert result["reasons"] == ["soft-RoCE on rail0 waits for 0000:18:00.0 to get its name"]
    assert result["diff"]["after"]["devices"] == []


def test_absent_takes_everything_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(host)
    call(host, capsys)
    assert call(host, capsys, state="absent")["changed"] is True
    assert files(host) == before
    assert call(host, capsys, state="absent")["changed"] is False


def test_soft_devices_go_with_their_provider(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    host.ran.clear()
    result = call(host, capsys, provider="inbox")
    assert (result["changed"], result["reasons"]) == (True, [])
    assert (result["diff"]["before"]["devices"], result["diff"]["after"]["devices"]) == ([f"rxe_{NETDEV}"], [])
    assert not (host.root / f"sys/class/infiniband/rxe_{NETDEV}").exists()
    assert ["systemctl", "disable", "--now", f"gpufabric-soft-roce@{NETDEV}.service"] in host.ran
    assert "rdma_rxe" not in (host.root / "etc/modules-load.d/gpufabric-rdma.conf").read_text()
    assert not (host.root / "etc/systemd/system/gpufabric-soft-roce@.service").exists()
    assert call(host, capsys, provider="inbox")["changed"] is False
    assert call(host, capsys)["diff"]["after"]["devices"] == [f"rxe_{NETDEV}"]


def test_soft_devices_of_others_keep_their_module(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """Removing rdma_rxe would remove them, too: the kernel does not count them as users of it."""
    call(host, capsys)
    other = host.root / "sys/class/infiniband/rxe_mine"
    other.mkdir()
    (other / "parent").write_text("eno1")
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert ["modprobe", "--remove", "rdma_rxe"] not in host.ran
    assert ["modprobe", "--remove", "rdma_ucm"] in host.ran


def test_a_soft_device_in_use_is_not_removed_without_consent(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    host.prints[sysfs_tree.QUEUE_PAIRS] = json.dumps([{"ifname": f"rxe_{NETDEV}", "pid": 4711, "comm": "python3"}])
    before = files(host)
    assert call(host, capsys, state="absent")["msg"] == (
        "rdma_stack: 0000:18:00.0 (enp24s0np0): removal of its soft-RoCE device would disturb its users: 1 RDMA queue "
        "pair of python3[4711]. Stop these users and retry, or set rdma_disrupt_users: true"
    )
    assert files(host) == before
    # Nothing is removed, so nothing is refused.
    assert call(host, capsys)["changed"] is False
    assert call(host, capsys, state="absent", disrupt_users=True)["changed"] is True


DEBIAN, OTHERS = ["ibverbs-providers", "perftest", "rdma-core"], ["libibverbs", "perftest", "rdma-core"]


@pytest.mark.proves("rdma_stack", "Debian 12", "Debian 13", "Ubuntu 22.04", "Ubuntu 24.04", by="unit")
@pytest.mark.proves("rdma_stack", "RHEL 9", "RHEL 10", "Rocky 9", "Rocky 10", "SLES 15", by="unit")
@pytest.mark.parametrize(
    ("system", "expected"),
    [
        *[(f"ID=debian\nVERSION_ID={version}", DEBIAN) for version in (12, 13)],
        *[(f"ID=ubuntu\nID_LIKE=debian\nVERSION_ID={version}", DEBIAN) for version in ("22.04", "24.04")],
        *[(f'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID={version}', OTHERS) for version in ("9.6", "10.0")],
        *[(f'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID={version}', OTHERS) for version in ("9.6", "10.1")],
        ("ID=fedora\nVERSION_ID=42", OTHERS),
        ('ID="sles"\nID_LIKE="suse"\nVERSION_ID=15.6', OTHERS),
    ],
)
def test_packages_of_distributions(
    host: Host, database: package_fake.Database, capsys: pytest.CaptureFixture[str], system: str, expected: list[str]
) -> None:
    database.installed = {}
    (host.root / "etc/os-release").write_text(f"{system}\n")
    assert call(host, capsys, provider="inbox")["packages"]["install"] == expected


def test_inbox_has_no_soft_devices(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    after = call(host, capsys, provider="inbox")["diff"]["after"]
    assert (after["devices"], after["modules"]) == ([], ["ib_umad", "ib_uverbs", "rdma_ucm"])
    assert not (host.root / "etc/systemd/system").exists()


def test_only_packages_that_came_with_us_go(
    host: Host, database: package_fake.Database, capsys: pytest.CaptureFixture[str]
) -> None:
    have(database, "rdma-core")
    first = call(host, capsys, provider="inbox")["packages"]
    assert (first["install"], first["remove"]) == (["ibverbs-providers", "perftest"], [])
    package_fake.carry_out(database, first)
    gone = call(host, capsys, state="absent")["packages"]
    assert (gone["install"], gone["remove"]) == ([], ["ibverbs-providers", "perftest"])
    assert json.loads((host.root / "var/lib/gpufabric/rdma_stack.json").read_text()) == {"packages": gone["remove"]}
    package_fake.carry_out(database, gone)
    assert call(host, capsys, state="absent")["packages"]["remove"] == []
    assert not (host.root / "var/lib/gpufabric").exists()


def test_a_unit_that_does_not_start_is_said(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.reacts = lambda argv: "Job failed" if "restart" in argv else obey(host, argv)
    assert call(host, capsys)["msg"] == (
        f"rdma_stack: 'systemctl restart gpufabric-soft-roce@{NETDEV}.service' failed with status 2: Job failed"
    )


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("modprobe: FATAL: Module ib_umad not found in directory /lib/modules/6.8.0-51-generic",
         "; install linux-modules-extra-6.8.0-51-generic on Ubuntu, or kernel-modules-extra-6.8.0-51-generic on RHEL"),
        ("modprobe: ERROR: could not insert 'ib_umad': Required key not available", ""),
    ],
)  # fmt: skip
def test_a_module_that_cannot_be_loaded(host: Host, capsys: pytest.CaptureFixture[str], said: str, hint: str) -> None:
    host.reacts = lambda argv: said if argv == ["modprobe", "ib_umad"] else obey(host, argv)
    assert call(host, capsys)["msg"] == (f"rdma_stack: 'modprobe ib_umad' failed with status 2: {said}{hint}")


def test_an_unknown_distribution_needs_names(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / "etc/os-release").write_text("ID=arch\nPRETTY_NAME=Arch\n")
    assert call(host, capsys)["msg"] == "rdma_stack: no packages are known for Arch. List them in option packages"
    assert call(host, capsys, install_packages=False)["changed"] is True
