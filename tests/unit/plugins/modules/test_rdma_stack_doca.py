"""rdma_stack through main() with doca_ofed: sources, versions, drivers, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import package_fake, sysfs_tree
from tests.unit.support.module_run import run
from tests.unit.support.package_fake import Database
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack import packages_io

KEYS = Path(__file__).resolve().parents[3] / "fixtures" / "openpgp"
KEY, FINGERPRINT = (KEYS / "ed25519.asc").read_text(), "04B5269410BCCA8EEB615B2E510A5488D02777A1"
KERNEL, NEXT = "6.8.0-51-generic", "6.8.0-60-generic"
URL = "https://mirror.example.com/doca/3.2.1/ubuntu24.04/x86_64/"
DOCA = {
    "release": "3.2.1",
    "version": "3.2.1-044000",
    "repository": "https://mirror.example.com/doca/{release}/{distribution}/{arch}",
    "key": KEY,
    "fingerprint": FINGERPRINT,
}
STORAGE = {"enp41s0np0": "10.1.1.11/24", "enp170s0np0": "10.1.2.11/24"}
INBOX = {"ibverbs-providers": "50.0-2", "perftest": "24.01", "rdma-core": "50.0-2", "openssl": "3.0"}
# What the meta package brings: new packages, and versions of its own of those that are there.
BRINGS = {"mlnx-ofed-kernel-dkms": "25.10", "perftest": "25.10-0.1", "rdma-core": "2510mlnx", "mlnx-tools": "25.10"}
INSTALLED = "filename: /lib/modules/x/updates/dkms/mlx5_core.ko\nversion: 25.10-1.2.8\n"
IN_TREE = "filename: /lib/modules/x/kernel/mlx5_core.ko\nintree: Y\n"
OLD, NEW = "mlx5_core (in-tree)", "mlx5_core 25.10-1.2.8 (out-of-tree)"
KEPT = "the kernel kept them when they were loaded again"
PREFIX = "rdma_stack: DOCA-OFED 3.2.1 cannot be installed on gpu-11: "


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """An Ubuntu server with an inbox stack that nobody uses, and the headers of its kernel."""
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.idle()
    made.set_links([{**link, "addr_info": []} if link["ifname"] in STORAGE else link for link in made.links()])
    made.reacts = lambda argv: obey(made, argv)
    for name in ("ib_uverbs", "mlx5_core"):
        (tmp_path / "sys/module" / name).mkdir(parents=True)
    (tmp_path / "sys/module/mlx5_core/taint").write_text("\n")
    give_headers(made, KERNEL)
    return made


@pytest.fixture(autouse=True)
def database(host: Host, monkeypatch: pytest.MonkeyPatch) -> Database:
    made = package_fake.install(host, monkeypatch)
    made.installed = dict(INBOX)
    made.offered = ["3.2.1-044000", "3.2.0-125000"]
    made.modinfo = {"mlx5_core": IN_TREE}
    return made


def obey(host: Host, argv: list[str]) -> str | None:
    """Do what modprobe does."""
    modules = host.root / "sys/module"
    if argv[:2] == ["modprobe", "--remove"]:
        if (modules / argv[2]).is_dir() and not any((modules / argv[2]).iterdir()):
            (modules / argv[2]).rmdir()
    elif argv[0] == "modprobe":
        (modules / argv[1]).mkdir(exist_ok=True)
    return None


def give_headers(host: Host, release: str) -> None:
    folder = host.root / f"lib/modules/{release}/build"
    folder.mkdir(parents=True)
    (folder / "Makefile").touch()


def boots_next(host: Host, release: str) -> None:
    (host.root / "boot").mkdir()
    (host.root / f"boot/vmlinuz-{release}").touch()
    (host.root / f"lib/modules/{release}").mkdir(parents=True, exist_ok=True)


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**host.options(), "provider": "doca_ofed"}
    return run("rdma_stack", capsys, check, **{**options, "doca": DOCA, **params})


def whole(host: Host, database: Database, capsys: pytest.CaptureFixture[str], **params: Any) -> dict[str, Any]:
    """The role: the module, the package tasks, the module again."""
    first = call(host, capsys, **params)
    package_fake.carry_out(database, first["packages"], BRINGS if "doca-ofed=" in str(first["packages"]) else {})
    if "mlnx-ofed-kernel-dkms" in database.installed:
        database.modinfo["mlx5_core"] = INSTALLED
    else:
        database.modinfo["mlx5_core"] = IN_TREE
    if first["packages"]["install"] or first["packages"]["remove"]:
        return call(host, capsys, **params)
    return first


def drivers_run(host: Host, outside: bool) -> None:
    """As after a restart of the stack, or a boot."""
    folder = host.root / "sys/module/mlx5_core"
    (folder / "taint").write_text("OE\n" if outside else "\n")
    (folder / "version").write_text("25.10-1.2.8\n")


def tree(host: Host) -> dict[str, str]:
    paths = [path for top in ("etc", "var") for path in (host.root / top).rglob("*") if path.is_file()]
    return {str(path): path.read_text() for path in paths}


def restarted(host: Host) -> list[list[str]]:
    return [argv for argv in host.ran if argv[:2] == ["systemctl", "restart"]]


def openibd(host: Host) -> None:
    """The vendor's service: its restart loads the drivers that are installed."""
    (host.root / "etc/init.d").mkdir(exist_ok=True)
    (host.root / "etc/init.d/openibd").touch()

    def react(argv: list[str]) -> str | None:
        if argv == ["systemctl", "restart", "openibd.service"]:
            drivers_run(host, outside=True)
        return obey(host, argv)

    host.reacts = react


def test_the_source_is_signed_and_the_version_pinned(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys)
    assert (result["changed"], result["reasons"]) == (True, [])
    assert result["packages"] == {
        "install": ["doca-ofed=3.2.1-044000"], "remove": [], "manager": "apt", "pinned": True, "new_source": False
    }  # fmt: skip
    etc = host.root / "etc"
    assert (etc / "apt/keyrings/gpufabric-doca.asc").read_text() == KEY
    assert (etc / "apt/sources.list.d/gpufabric-doca.sources").read_text() == (
        "# Written by gpufabric.rdma.rdma_stack, which removes it with state: absent or another provider.\n"
        f"Types: deb\nURIs: {URL}\nSuites: ./\nSigned-By: {etc}/apt/keyrings/gpufabric-doca.asc\n"
    )
    # Nothing else before the packages are there.
    assert not (etc / "modules-load.d/gpufabric-rdma.conf").exists()
    assert [argv for argv in host.ran if argv[0] == "modprobe"] == []


def test_suite_and_components(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, doca={**DOCA, "suite": "stable", "components": ["main", "extra"]})
    text = (host.root / "etc/apt/sources.list.d/gpufabric-doca.sources").read_text()
    assert "\nSuites: stable\nComponents: main extra\n" in text


@pytest.mark.proves("rdma_stack", "Ubuntu 24.04", by="fixture")
def test_packages_then_drivers(host: Host, database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    openibd(host)
    result = whole(host, database, capsys)
    assert (result["changed"], result["reasons"], result["packages"]["install"]) == (True, [], [])
    assert (result["diff"]["before"]["drivers"], result["diff"]["after"]["drivers"]) == ([OLD], [NEW])
    assert database.held == {"doca-ofed"}
    assert restarted(host) == [["systemctl", "restart", "openibd.service"]]
    record = json.loads((host.root / "var/lib/gpufabric/rdma_stack.json").read_text())
    assert record["came"] == {"doca-ofed": "3.2.1-044000", "mlnx-ofed-kernel-dkms": "25.10", "mlnx-tools": "25.10"}
    assert record["replaced"] == {"perftest": "24.01", "rdma-core": "50.0-2"}
    assert "snapshot" not in record


def test_a_second_run_changes_nothing(host: Host, database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    openibd(host)
    whole(host, database, capsys)
    before = tree(host)
    host.ran.clear()
    result = call(host, capsys)
    assert (result["changed"], result["reasons"], result["packages"]["new_source"]) == (False, [], False)
    assert tree(host) == before
    asked = [argv[0] for argv in host.ran if argv[0] not in ("ip", "rdma", "/usr/bin/ib_write_bw")]
    assert asked == ["dpkg-query", "modinfo"]


def test_check_mode_predicts_and_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(host)
    result = call(host, capsys, check=True)
    assert (result["changed"], result["packages"]["new_source"]) == (True, True)
    assert result["diff"]["after"]["holds"] == ["doca-ofed"]
    assert result["diff"]["after"]["modules"] == ["ib_umad", "ib_uverbs", "rdma_ucm"]
    assert tree(host) == before
    assert not (host.root / "run/gpufabric/probe").exists()


def test_absent_gives_everything_back(host: Host, database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    openibd(host)
    before = {**tree(host)}
    whole(host, database, capsys)
    result = whole(host, database, capsys, state="absent")
    assert database.installed == INBOX
    assert database.held == set()
    assert result["reasons"] == [
        f"{NEW} runs, {OLD} is installed; the stack was not restarted: the kernel kept them when they were loaded again"
    ]
    drivers_run(host, outside=False)
    last = call(host, capsys, state="absent")
    assert (last["changed"], last["reasons"], tree(host)) == (False, [], before)


def test_another_provider_needs_consent_and_gives_back(
    host: Host, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    openibd(host)
    whole(host, database, capsys)
    assert call(host, capsys, provider="inbox")["msg"] == (
        "rdma_stack: DOCA-OFED was installed on gpu-11 by this role, but provider inbox is requested. Set replace: "
        "true to replace it"
    )
    first = call(host, capsys, provider="inbox", replace=True)["packages"]
    assert first["remove"] == ["doca-ofed", "mlnx-ofed-kernel-dkms", "mlnx-tools"]
    assert first["install"] == ["perftest=24.01", "rdma-core=50.0-2"]
    package_fake.carry_out(database, first)
    database.modinfo["mlx5_core"] = IN_TREE
    drivers_run(host, outside=False)
    result = call(host, capsys, provider="inbox", replace=True)
    assert (database.installed, result["reasons"]) == (INBOX, [])
    record = json.loads((host.root / "var/lib/gpufabric/rdma_stack.json").read_text())
    assert set(record) == {"packages", "modules"}
    assert not (host.root / "etc/apt/sources.list.d/gpufabric-doca.sources").exists()
    # And there again.
    assert whole(host, database, capsys)["packages"]["install"] == []
    assert database.installed["doca-ofed"] == "3.2.1-044000"


def test_a_wanted_package_of_the_vendor_is_installed_again(
    host: Host, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    database.installed = {"openssl": "3.0"}
    whole(host, database, capsys)
    result = call(host, capsys, provider="inbox", replace=True)["packages"]
    assert {"perftest", "rdma-core"} <= set(result["remove"])
    assert result["install"] == ["ibverbs-providers", "perftest", "rdma-core"]
    package_fake.carry_out(database, result)
    last = call(host, capsys, provider="inbox", replace=True)["packages"]
    assert (last["install"], last["remove"]) == ([], [])


def test_another_version(host: Host, database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    openibd(host)
    whole(host, database, capsys)
    older = {**DOCA, "version": "3.2.0-125000"}
    first = call(host, capsys, doca=older)
    assert first["packages"]["install"] == ["doca-ofed=3.2.0-125000"]
    assert database.held == set()
    package_fake.carry_out(database, first["packages"])
    call(host, capsys, doca=older)
    assert database.held == {"doca-ofed"}
    record = json.loads((host.root / "var/lib/gpufabric/rdma_stack.json").read_text())
    assert record["came"]["doca-ofed"] == "3.2.0-125000"
    assert record["replaced"] == {"perftest": "24.01", "rdma-core": "50.0-2"}


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("queue pairs", "2 queue pairs of python3[4711]"),
        ("storage", "module nvme_rdma"),
        ("never", "restart is never"),
        ("soft", "soft-RoCE device rxe_mine"),
        ("vfs", "4 VFs of 0000:18:00.0 (enp24s0np0)"),
        ("peer", "module nvidia_peermem in use"),
        ("storage network", "0000:29:00.0 (enp41s0np0) is in use: address 10.1.1.11/24"),
    ],
)
def test_a_stack_in_use_waits_for_a_boot(
    host: Host, database: Database, capsys: pytest.CaptureFixture[str], setting: str, why: str
) -> None:
    openibd(host)
    params: dict[str, Any] = {}
    modules = host.root / "proc/modules"
    if setting == "queue pairs":
        host.prints["rdma -j resource show qp"] = json.dumps([{"pid": 4711, "comm": "python3"}] * 2)
    elif setting == "storage":
        modules.write_text(modules.read_text() + "nvme_rdma 16384 0 - Live 0x0\n")
    elif setting == "peer":
        modules.write_text(modules.read_text().replace("nvidia_peermem 16384 0", "nvidia_peermem 16384 3"))
    elif setting == "storage network":
        address = [{"local": "10.1.1.11", "prefixlen": 24, "scope": "global"}]
        host.set_links(
            [{**link, "addr_info": address} if link["ifname"] == "enp41s0np0" else link for link in host.links()]
        )
    elif setting == "soft":
        (host.root / "sys/class/infiniband/rxe_mine").mkdir()
        (host.root / "sys/class/infiniband/rxe_mine/parent").write_text("eno1")
    elif setting == "vfs":
        (host.root / "sys/bus/pci/devices/0000:18:00.0/sriov_numvfs").write_text("4")
    else:
        params["restart"] = "never"
    result = whole(host, database, capsys, **params)
    assert result["reasons"] == [f"{OLD} runs, {NEW} is installed; the stack was not restarted: {why}"]
    assert (result["reboot_required"], restarted(host)) == (True, [])
    assert (host.root / "run/gpufabric/reboot.d/rdma_stack").read_text() == f"{result['reasons'][0]}\n"
    again = call(host, capsys, **params)
    assert (again["changed"], again["reasons"]) == (False, result["reasons"])


def test_without_openibd_modules_are_loaded_again(
    host: Host, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    result = whole(host, database, capsys)
    assert result["changed"] is True
    order = ["nvidia_peermem", "rdma_ucm", "mlx5_ib", "ib_uverbs", "mlx5_core"]
    asked = [argv for argv in host.ran if argv[0] == "modprobe"]
    assert asked == [
        *(["modprobe", "--remove", name] for name in order),
        *(["modprobe", name] for name in reversed(order)),
        *(["modprobe", name] for name in ("ib_umad", "rdma_ucm")),
    ]
    assert result["reasons"] == [f"{OLD} runs, {NEW} is installed; the stack was not restarted: {KEPT}"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"release": "", "key": None},
         "rdma_stack: provider doca_ofed requires doca.release, doca.key. A release is never chosen automatically"),
        ({"fingerprint": "0" * 40},
         f"rdma_stack: The package key has the fingerprint {FINGERPRINT}, expected {'0' * 40} alone. Nothing was "
         "changed. Ask the vendor which one is right, then correct doca.key or "
         "doca.fingerprint."),
        # A block that names the right key, and a second one that the package manager would trust as well.
        ({"key": DOCA["key"] + DOCA["key"]},
         "rdma_stack: The package key is not exactly one ASCII-armored OpenPGP public key. Remove all text outside of "
         "the key block, or export the key with 'gpg --armor --export FINGERPRINT'."),
        ({"key": "404"},
         "rdma_stack: The package key is not exactly one ASCII-armored OpenPGP public key. Remove all text outside of "
         "the key block, or export the key with 'gpg --armor --export FINGERPRINT'."),
        ({"release": "4.9.0"},
         "rdma_stack: DOCA-OFED 4.9.0 cannot be installed on gpu-11: release line 4.9 is unknown; known lines: 3.1, "
         "3.2, 3.3, 3.4. Set doca.supported to the kernels that it supports on each distribution"),
        ({"supported": {"debian13": ["6.12."]}},
         f"{PREFIX}it does not support ubuntu24.04; supported are debian13"),
        ({"supported": {"ubuntu24.04": ["6.11.", "6.14."]}},
         f"{PREFIX}kernel {KERNEL}, which runs, is not supported on ubuntu24.04; supported are 6.11.*, 6.14.*"),
        ({"version": "3.2.9"},
         f"rdma_stack: the package source {URL} has no doca-ofed 3.2.9. Available: 3.2.1-044000, 3.2.0-125000. "
         "Nothing was changed"),
        ({"build": "precompiled", "repository": "https://linux.mellanox.com/public/repo/doca/{release}"},
         "rdma_stack: the vendor's repository of DOCA-OFED 3.2.1 has no precompiled kernel modules; set "
         "doca.build: dkms, or doca.repository to one that has them"),
        ({"repository": "/srv/mirror"},
         "rdma_stack: doca.repository is '/srv/mirror'; expected an address that begins with https://"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("check", [False, True])
def test_what_cannot_be_is_refused_before_anything_changes(
    host: Host, capsys: pytest.CaptureFixture[str], change: dict[str, Any], message: str, check: bool
) -> None:
    before = tree(host)
    assert call(host, capsys, check, doca={**DOCA, **change})["msg"] == message
    assert tree(host) == before
    assert [argv for argv in host.ran if argv[0] in ("modprobe", "systemctl", "apt-mark")] == []


def test_headers_of_the_running_kernel(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / f"lib/modules/{KERNEL}/build/Makefile").unlink()
    assert call(host, capsys)["msg"] == (
        f"{PREFIX}kernel {KERNEL}, which runs, has no headers for DKMS: install linux-headers-{KERNEL}"
    )
    assert call(host, capsys, doca={**DOCA, "build": "precompiled"})["changed"] is True


@pytest.mark.parametrize(
    ("release", "problem"),
    [
        (NEXT, f"kernel {NEXT}, which boots next, has no headers for DKMS: install linux-headers-{NEXT}"),
        ("6.17.0-8-generic",
         "kernel 6.17.0-8-generic, which boots next, is not supported on ubuntu24.04; supported are 6.8.*; kernel "
         "6.17.0-8-generic, which boots next, has no headers for DKMS: install linux-headers-6.17.0-8-generic"),
    ],
)  # fmt: skip
def test_the_kernel_that_boots_next(host: Host, capsys: pytest.CaptureFixture[str], release: str, problem: str) -> None:
    boots_next(host, release)
    assert call(host, capsys)["msg"] == PREFIX + problem


def test_a_source_that_cannot_be_used(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    said = "The repository is not signed"
    host.reacts = lambda argv: said if argv[0] == "apt-get" else obey(host, argv)
    message = call(host, capsys)["msg"]
    assert message.startswith(f"rdma_stack: the package source {URL} cannot be used; nothing was changed. 'apt-get ")
    assert message.endswith(f"failed with status 2: {said}")
    assert not (host.root / "etc/apt/sources.list.d").exists()


def test_a_vendor_stack_of_others_needs_consent(
    host: Host, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    database.installed["mlnx-ofed-kernel-dkms"] = "5.8"
    assert call(host, capsys)["msg"] == (
        "rdma_stack: gpu-11 has mlnx-ofed-kernel-dkms, which this role did not install. Set replace: true to let "
        "provider doca_ofed replace them"
    )
    assert call(host, capsys, replace=True)["packages"]["install"] == ["doca-ofed=3.2.1-044000"]


def test_secure_boot_is_said(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (variable,) = (host.root / "sys/firmware/efi/efivars").glob("SecureBoot-*")
    variable.write_bytes(b"\x06\x00\x00\x00\x01")
    assert call(host, capsys)["findings"] == [
        "Secure Boot is enabled: modules built by DKMS are loaded only if their key is enrolled (mokutil --import)"
    ]
    assert call(host, capsys, doca={**DOCA, "build": "precompiled"})["findings"] == []


def test_versions_alone_come_back_too(host: Host, database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    """The vendor's new packages are gone already, by hand."""
    whole(host, database, capsys)
    for name in ("doca-ofed", "mlnx-ofed-kernel-dkms", "mlnx-tools"):
        database.installed.pop(name)
    result = call(host, capsys, state="absent")["packages"]
    assert (result["remove"], result["install"]) == ([], ["perftest=24.01", "rdma-core=50.0-2"])
    assert "snapshot" not in json.loads((host.root / "var/lib/gpufabric/rdma_stack.json").read_text())


def test_holds_can_be_off(host: Host, database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    whole(host, database, capsys, doca={**DOCA, "hold": False})
    assert database.held == set()


def test_an_interrupted_installation_keeps_the_first_look(
    host: Host, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys)
    database.installed["mlnx-tools"] = "25.10"
    whole(host, database, capsys)
    record = json.loads((host.root / "var/lib/gpufabric/rdma_stack.json").read_text())
    assert set(record["came"]) == {"doca-ofed", "mlnx-ofed-kernel-dkms", "mlnx-tools"}


def test_keys_and_several_kernels_are_no_replaced_packages(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.prints.pop("/usr/bin/dpkg-query")
    package_fake.install(host, monkeypatch, "dnf")
    lines = ["kernel 5.14.0-611", "gpg-pubkey 5a6340b3-6229229e", "kernel 5.14.0-570", "openssl 3.2-1"]
    monkeypatch.setattr(Database, "_rpm", lambda self, words: "\n".join(lines))
    assert packages_io.everything() == {"kernel": "5.14.0-611", "openssl": "3.2-1"}


@pytest.mark.proves("rdma_stack", "Rocky 9", by="unit")
def test_rpm(host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in package_fake.PROGRAMS["apt"]:
        host.prints.pop(f"/usr/bin/{name}")
    rpm = package_fake.install(host, monkeypatch, "dnf")
    rpm.installed, rpm.offered = {"rdma-core": "51.0-1.el9"}, ["3.2.1-044000.el9"]
    (host.root / "etc/os-release").write_text('ID="rocky"\nVERSION_ID="9.6"\nID_LIKE="rhel centos fedora"\n')
    kernel = "5.14.0-570.12.1.el9_6.x86_64"
    (host.root / "proc/sys/kernel/osrelease").write_text(kernel)
    wanted = {**DOCA, "version": "3.2.1-044000.el9"}
    assert call(host, capsys, doca=wanted)["msg"] == (
        f"{PREFIX}kernel {kernel}, which runs, has no headers for DKMS: install kernel-devel-{kernel}"
    )
    give_headers(host, kernel)
    assert call(host, capsys, doca=wanted)["msg"] == (
        "rdma_stack: packages cannot be held: dnf has no versionlock; install python3-dnf-plugin-versionlock, or set "
        "doca.hold: false"
    )
    locks = host.root / "etc/dnf/plugins/versionlock.list"
    locks.parent.mkdir(parents=True)
    locks.touch()
    result = call(host, capsys, doca=wanted)["packages"]
    assert (result["install"], result["manager"]) == (["doca-ofed-3.2.1-044000.el9"], "dnf")
    key = host.root / "etc/pki/rpm-gpg/RPM-GPG-KEY-gpufabric-doca"
    assert key.read_text() == KEY
    assert (host.root / "etc/yum.repos.d/gpufabric-doca.repo").read_text() == (
        "# Written by gpufabric.rdma.rdma_stack, which removes it with state: absent or another provider.\n"
        "[gpufabric-doca]\nname=DOCA-OFED 3.2.1\nbaseurl=https://mirror.example.com/doca/3.2.1/rhel9/x86_64/\n"
        f"enabled=1\ngpgcheck=1\ngpgkey=file://{key}\n"
    )
    package_fake.carry_out(rpm, result)
    assert call(host, capsys, doca=wanted)["packages"]["install"] == []
    assert locks.read_text() == "doca-ofed-0:3.2.1-044000.el9.*\n"
    assert call(host, capsys, doca=wanted)["changed"] is False
    back = call(host, capsys, state="absent")["packages"]
    assert (back["remove"], locks.read_text()) == (["doca-ofed"], "")


def test_the_container_loads_the_modules_itself(
    host: Host, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys, provider="inbox")
    assert (host.root / "etc/modules-load.d/gpufabric-rdma.conf").exists()
    done = [argv for argv in host.ran if argv[0] == "modprobe"]
    assert call(host, capsys, provider="container")["changed"] is True
    # What runs stays: the container unloads it.
    assert [argv for argv in host.ran if argv[0] == "modprobe"] == done
    assert not (host.root / "etc/modules-load.d/gpufabric-rdma.conf").exists()
    assert call(host, capsys, provider="container")["changed"] is False


@pytest.mark.parametrize("replace", [True, False])
def test_the_container_is_refused_beside_drivers_of_the_host(
    host: Host, database: Database, capsys: pytest.CaptureFixture[str], replace: bool
) -> None:
    database.installed["mlnx-ofed-kernel-dkms"] = "5.8"
    done = len(host.ran)
    message = call(host, capsys, provider="container", replace=replace)["msg"]
    assert "has mlnx-ofed-kernel-dkms: drivers that are installed on a host, and the driver container of the" in message
    assert not [argv for argv in host.ran[done:] if argv[0] == "modprobe"]


def test_doca_needs_packages(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(host, capsys, install_packages=False)["msg"] == (
        "rdma_stack: provider doca_ofed requires install_packages: true, found false. Set it to true, or choose "
        "another provider"
    )
