"""preflight through main(): all problems of a host in one message."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import package_fake, sysfs_tree
from tests.unit.support.module_run import run

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.preflight import io as preflight_io
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.preflight.checks import Consent, find
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack import packages_io


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
        rail("rail0", "0000:01:00.0", address="192.168.0.9/24", doubt="gpu-[01-08]"),
        rail("rail1", "0000:41:00.0"),
        rail("rail2", "0000:61:00.0"),
        rail("rail3", "0000:81:00.0"),
    ]
    result = call("odd-host", tmp_path, monkeypatch, capsys, rails=rails, installs_packages=False)
    assert result["problems"] == [
        "rhel 8.6 is too old; expected 9 or newer",
        "kernel 4.18.0-372.el8.x86_64 is too old; expected 5.14 or newer",
        "perftest (ib_write_bw) is not installed. Install it, or set installs_packages: true",
        "rail rail1: 0000:41:00.0 has no network device (driver: vfio-pci). Bind its network driver",
        "rail rail2: 0000:61:00.0: eno1 carries the default route. Such a port cannot be a rail",
        "rail rail3: no network port at 0000:81:00.0 on odd-1; its ports: 0000:01:00.0 (ens1np0), "
        "0000:21:00.0 (ibp33s0), "
        "0000:41:00.0, 0000:61:00.0 (eno1)",
        "rail rail0: 192.168.0.9/24 may be in use: the addresses of gpu-[01-08] are unknown. Run without "
        "--limit, or set rdma_host.number of this host, or of those whose ports are missing",
        "0000:01:00.0 (ens1np0): a change of rail rail0 would disturb its users: queue pairs that cannot be read "
        "(install the rdma tool of iproute2). Stop these users and retry, or set rdma_disrupt_users: true",
    ]
    assert result["findings"] == [
        "rail rail0: 0000:01:00.0 (ens1np0) has no carrier. Check the cable and the switch port",
        "rail rail0: 0000:01:00.0 (ens1np0) has a PCIe link width of x8, expected x16. Check the slot",
    ]
    assert result["msg"] == "preflight: 8 problem(s): " + "; ".join(result["problems"])


def test_a_host_that_may_be_in_use_is_not_called_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its ports are to be changed with consent, so nothing else mentions that queue pairs cannot be read."""
    rails = [rail("rail0", "0000:01:00.0", address="192.168.0.9/24")]
    result = call("odd-host", tmp_path, monkeypatch, capsys, rails=rails, disrupt_users=True)
    unread = "it cannot be read how many RDMA queue pairs are open, so jobs may use the rails. Install the rdma tool of"
    assert f"{unread} iproute2" in result["findings"]


SUPPORTED = "Supported are almalinux, centos, debian, fedora, ol, rhel, rocky, sles, ubuntu"
OLD_VERSIONS = {"debian 11": "12", "ubuntu 20.04": "22.4", "rocky 8.10": "9", "sles 15.3": "15.4", "fedora 39": "40"}


@pytest.mark.proves("preflight", "Debian 12", "Debian 13", "Ubuntu 22.04", "RHEL 9", "RHEL 10", by="unit")
@pytest.mark.proves("preflight", "Rocky 9", "Rocky 10", "SLES 15", by="unit")
@pytest.mark.parametrize(
    ("system", "problem"),
    [
        *[
            (system, None)
            for system in ("debian 12", "debian 13", "ubuntu 22.04", "ubuntu 24.04", "rhel 9.4", "rhel 10.0",
                           "rocky 9.6", "rocky 10.1", "almalinux 10.1", "ol 9.5", "centos 10", "fedora 42", "sles 15.6",
                           "sles 16.0")
        ],
        *[(system, f"{system} is too old; expected {oldest} or newer") for system, oldest in OLD_VERSIONS.items()],
        ("arch 1", f"operating system 'arch of its own' is not supported. {SUPPORTED}"),
        ("opensuse-leap 15.6", f"operating system 'opensuse-leap of its own' is not supported. {SUPPORTED}"),
        ("debian ", "debian of its own does not report a version; expected 12 or newer"),
    ],
)  # fmt: skip
def test_systems(judge: Any, system: str, problem: str | None) -> None:
    name, version = system.split(" ")
    text = f'ID={name}\nVERSION_ID="{version}"\nPRETTY_NAME="{name} of its own"\nID_LIKE=debian\n'
    assert judge({"etc/os-release": text})["problems"] == ([problem] if problem else [])


def test_what_a_pcie_link_lacks_is_said(judge: Any) -> None:
    folder = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0"
    result = judge({f"{folder}/current_link_speed": "16.0 GT/s PCIe", f"{folder}/current_link_width": "8"})
    head = "rail rail0: 0000:18:00.0 (enp24s0np0) has a PCIe link"
    assert result["findings"] == [
        f"{head} width of x8, expected x16. Check the slot",
        f"{head} speed of 16 GT/s, expected 32. Check the slot",
    ]
    assert result["problems"] == []


def test_missing_perftest_is_fine_when_the_run_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = call("odd-host", tmp_path, monkeypatch, capsys, rails=[], installs_packages=True)
    assert not [problem for problem in result["problems"] if "perftest" in problem]


BUSY = (
    "preflight: 1 problem(s): 0000:18:00.0 (enp24s0np0): a change of rail rail0 would disturb its users: 1 RDMA queue "
    "pair of python3[4711]. Stop these users and retry, or set rdma_disrupt_users: true"
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
    result = call("gpu-server-8-rails", tmp_path, monkeypatch, capsys, rails=[wanted], disrupt_users=allowed)
    assert (result.get("failed", False), result.get("msg")) == (message is not None, message)
    assert result["changed"] is False if not message else True


def test_a_rail_that_serves_something_else_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    routes = tmp_path / "proc/net/route"
    routes.write_text(routes.read_text() + "\nenp41s0np0\t0000080A\t0101010A\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0\n")
    storage = rail("rail1", "0000:29:00.0", address="192.168.1.1/24")
    free = rail("rail0", "0000:4f:00.0", address="192.168.0.1/24")
    found = run("preflight", capsys, **host.options(), rails=[free, storage], disrupt_users=True)["findings"]
    text = (
        "rail rail1: 0000:29:00.0 (enp41s0np0) is also used for other purposes: {}. Check that this port is the "
        "intended one"
    )
    assert found == [text.format("address 10.1.1.11/24, route to 10.8.0.0/16")]
    # With addresses that are kept the port's own are the rail's.
    kept = [{**free, "address": None}, {**storage, "address": None}]
    found = run("preflight", capsys, **host.options(), rails=kept, disrupt_users=True)["findings"]
    assert found == [text.format("route to 10.8.0.0/16")]


def test_a_host_without_a_known_network_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = sysfs_tree.materialise("lab-igb-host", tmp_path, monkeypatch)
    (tmp_path / "sys/fs/cgroup/system.slice/systemd-networkd.service").rmdir()
    assert run("preflight", capsys, **host.options(), rails=[])["problems"] == [
        "the network of lab-3 is managed by no known manager. Supported are systemd-networkd, NetworkManager, and "
        "netplan with one of them. Enable one for the rails, or exclude the host",
    ]


BOTH = {"sys/fs/cgroup/system.slice/NetworkManager.service/": ""}


@pytest.mark.parametrize(
    ("files", "asked", "problem"),
    [
        (BOTH, {}, "Set manager to networkd or networkmanager"),
        (BOTH, {"links_manager": "networkd"}, None),
        ({}, {"links_manager": "networkmanager"}, "manager is networkmanager, which is not active"),
        ({}, {"links_manager": "netplan"}, "netplan is not installed"),
        ({}, {}, None),
    ],
)
def test_who_shall_have_the_rails_is_clear_before_the_first_change(
    judge: Any, files: dict[str, str | None], asked: dict[str, str], problem: str | None
) -> None:
    found = judge(files, **asked).get("problems", [])
    assert [problem in text for text in found] == ([True] if problem else []), found


GPU = "gpu-server-8-rails"
RAIL = rail("rail0", "0000:18:00.0")


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Judge a GPU server after files of it were changed: path -> text, None removes, a folder ends in a slash."""

    def call_it(files: dict[str, str | None], program: str = "/usr/bin/true", **params: Any) -> dict[str, Any]:
        host = sysfs_tree.materialise(GPU, tmp_path, monkeypatch)
        host.prints[program] = ""
        for path, text in files.items():
            place = tmp_path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                place.unlink()
            elif path.endswith("/"):
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.write_bytes(text.encode("latin-1"))
        params = {"rails": [RAIL], "disrupt_users": True, **params}
        return run("preflight", capsys, **host.options(), **params)

    return call_it


EFI = "sys/firmware/efi/efivars"
SECURE = {f"{EFI}/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": "\x06\0\0\0\x01"}
UNKNOWN = {f"{EFI}/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": None}
UNSIGNED = (
    ", and the kernel modules built by this run would not be signed with a trusted key. Enroll the DKMS key "
    "(mokutil --import), use precompiled modules, or disable Secure Boot"
)
TRUSTED = f"{EFI}/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"
#: Stands for a certificate in DER; in the firmware's list others stand before and after it.
CERTIFICATE, LIST = "0\x82\x03\xa1mine", "\x06\0\0\0\xa1\x59 other 0\x82\x03\xa1mine another"


def test_secure_boot_stops_modules_that_nobody_signs(judge: Any) -> None:
    assert judge(SECURE, unsigned_modules=True)["problems"] == [f"Secure Boot is enabled{UNSIGNED}"]


def test_secure_boot_that_cannot_be_told_is_a_warning(judge: Any) -> None:
    result = judge(UNKNOWN, unsigned_modules=True)
    assert result["problems"] == []
    assert result["findings"] == [f"Secure Boot may be enabled (its state is unreadable){UNSIGNED}"]


@pytest.mark.parametrize(
    ("files", "trusted"),
    [
        ({"var/lib/dkms/mok.pub": CERTIFICATE, TRUSTED: LIST}, True),
        ({"var/lib/shim-signed/mok/MOK.der": CERTIFICATE, TRUSTED: LIST}, True),
        ({"var/lib/dkms/mok.pub": CERTIFICATE, TRUSTED.replace("RT-", "RT1-"): LIST}, True),
        ({"var/lib/dkms/mok.pub": CERTIFICATE, TRUSTED: "\x06\0\0\0\xa1\x59 other"}, False),
        ({"var/lib/dkms/mok.pub": CERTIFICATE, TRUSTED.replace("RT-", "XRT-"): LIST}, False),
        ({"var/lib/dkms/mok.pub": "", TRUSTED: LIST}, False),
        ({TRUSTED: LIST}, False),
    ],
)
def test_a_key_of_dkms_that_the_firmware_trusts_is_enough(judge: Any, files: dict[str, str], trusted: bool) -> None:
    assert (judge({**SECURE, **files}, unsigned_modules=True)["problems"] == []) is trusted


def test_a_certificate_of_ones_own_is_found(judge: Any, tmp_path: Path) -> None:
    settings = f'# mok_certificate=/none\nmok_signing_key="/k"\nmok_certificate="{tmp_path}/etc/own.der"\n'
    files = {"etc/dkms/framework.conf": settings, "etc/own.der": CERTIFICATE, TRUSTED: LIST}
    assert judge({**SECURE, **files}, unsigned_modules=True)["problems"] == []


def test_signed_modules_are_fine_under_secure_boot(judge: Any) -> None:
    assert judge(SECURE)["problems"] == []


GRUB = {
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=LABEL=x ro quiet\n",
    "boot/grub/grub.cfg": "linux /vmlinuz root=LABEL=x ro quiet\n",
}
NO_LOADER = {"proc/cmdline": "root=LABEL=x ro quiet\n"}
MKCONFIG = "/usr/sbin/grub-mkconfig"


@pytest.mark.parametrize(
    ("files", "program", "asked", "problem"),
    [
        (NO_LOADER, MKCONFIG, True, "the boot loader of this host is not supported: expected GRUB with one grub.cfg"),
        (NO_LOADER, MKCONFIG, False, None),
        (
            GRUB,
            "/usr/bin/true",
            True,
            "grub-mkconfig is not installed, so the GRUB menu cannot be generated. Install it",
        ),
        (GRUB, MKCONFIG, True, None),
    ],
)
def test_kernel_arguments_need_a_boot_loader_that_is_known(
    judge: Any, tmp_path: Path, files: dict[str, str | None], program: str, asked: bool, problem: str | None
) -> None:
    found = judge(files, program, kernel_arguments=asked)["problems"]
    assert len(found) == (1 if problem else 0)
    assert not problem or found[0].startswith(f"kernel arguments are requested, but {problem}")


@pytest.mark.proves("preflight", "Ubuntu 24.04", by="fixture")
def test_a_kernel_that_waits_for_a_boot_is_reported(judge: Any) -> None:
    result = judge(
        {
            "boot/vmlinuz-9.9.9-generic": "",
            "lib/modules/9.9.9-generic/": "",
            "run/reboot-required": "",
            "run/reboot-required.pkgs": "linux-base\nlibc6\nlibc6\n",
        }
    )
    running = result["host"]["kernel"]
    assert result["findings"][-2:] == [
        f"kernel {running} is running, but 9.9.9-generic boots next. This run builds and checks for {running}; reboot "
        "first if that is not intended",
        "a reboot is pending (linux-base, libc6)",
    ]
    assert result["problems"] == [
        f"the modules of the running kernel {running} are no longer installed, so no driver can be loaded. Reboot "
        "into an installed kernel"
    ]


@pytest.mark.parametrize(
    ("free", "netdev", "problems", "findings"),
    [(10, "rail0", 1, 0), (10, "enp24s0np0", 0, 1), (200, "rail0", 0, 0)],
)
def test_a_full_boot_stops_only_where_an_initramfs_is_made(
    judge: Any, monkeypatch: pytest.MonkeyPatch, free: int, netdev: str, problems: int, findings: int
) -> None:
    monkeypatch.setattr(preflight_io, "_free", lambda folder: free << 20)
    files = {"boot/initrd.img-1": "x" * (8 << 20), "boot/initramfs-0-rescue-abc.img": "x" * (90 << 20)}
    result = judge(files, rails=[rail(netdev, "0000:18:00.0")])
    kinds = (result["problems"], result["findings"])
    texts = [[text for text in kind if text.startswith("the file system of /boot")] for kind in kinds]
    assert [len(found) for found in texts] == [problems, findings]
    assert set(texts[0] + texts[1]) <= {
        "the file system of /boot has 10 MiB free, but a new initramfs needs about 26 MiB. Remove unused kernels"
    }


def test_suse_asks_for_a_boot_by_a_file_of_its_own(judge: Any) -> None:
    assert judge({"run/reboot-needed": ""})["findings"] == ["a reboot is pending (no package named)"]


LISTS = {"etc/apt/x": "", "var/lib/apt/lists/deb.example_Packages.lz4": ""}
OFF = {"etc/yum.repos.d/a.repo": "# all off\n[base]\nname=b\nenabled = 0\n[extra]\nenabled=0\n"}
ON = {"etc/yum.repos.d/a.repo": "[base]\nname=b\n\n[extra]\nenabled=0\n"}
#: As apt-get of Debian 12 prints them; the smallest of each server is fetched.
URIS = """\
'http://one.example/pool/big.deb' big.deb 900 SHA256:1
'http://one.example/pool/small%2b1.deb' small+1.deb 10 SHA256:2
'https://two.example/pool/other.deb' other.deb 500 MD5Sum:3
"""
LOCATE = "W: careful\nE: Unable to locate package perftest\n"


@pytest.fixture
def lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Judge a host of a package manager that has all packages but perftest; returns what is said of packages."""

    def call_it(
        files: dict[str, str], manager: str, refuses: Any = None, offered: Any = (), **params: Any
    ) -> tuple[list[str], list[list[str]]]:
        host = sysfs_tree.materialise(GPU, tmp_path, monkeypatch)
        database = package_fake.install(host, monkeypatch, manager)
        database.installed, database.uris = dict.fromkeys(("rdma-core", "ibverbs-providers"), "1"), URIS
        database.offered = list(offered)
        host.reacts = refuses or (lambda argv: None)
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        result = run("preflight", capsys, **host.options(), rails=[], **params)
        asked = ("apt-get", "dnf", packages_io.APT_HELPER)
        found = [text for text in result.get("problems", []) if text.startswith("packages are missing")]
        return found, [argv for argv in host.ran if argv[0] in asked]

    return call_it


@pytest.mark.parametrize(
    ("files", "manager", "why"),
    [
        ({"etc/apt/sources.list": ""}, "apt",
         "{root}/var/lib/apt/lists has no package lists. Run apt-get update, and check the package sources"),
        (OFF, "dnf", "no repository is enabled in {root}/etc/yum.repos.d"),
    ],
)  # fmt: skip
def test_a_host_without_package_sources(
    lacking: Any, tmp_path: Path, files: dict[str, str], manager: str, why: str
) -> None:
    (found,), asked = lacking(files, manager)
    text = "packages are missing (perftest) and cannot be installed: "
    assert (found, asked) == (text + why.format(root=tmp_path), [])


def test_apt_fetches_one_package_of_each_server(lacking: Any) -> None:
    found, (listed, *fetched) = lacking(LISTS, "apt")
    assert (found, listed) == ([], ["apt-get", "-qq", "--yes", "--print-uris", "install", "perftest"])
    assert [argv[-3:-1] for argv in fetched] == [
        ["download-file", "http://one.example/pool/small%2b1.deb"],
        ["download-file", "https://two.example/pool/other.deb"],
    ]
    assert [path for path in (Path(argv[-1]).parent for argv in fetched) if path.exists()] == []


@pytest.mark.parametrize(
    ("files", "manager", "program", "said", "why"),
    [
        (LISTS, "apt", "apt-get", LOCATE, "E: Unable to locate package perftest"),
        (LISTS, "apt", packages_io.APT_HELPER, "W: unsandboxed\nE: Failed to fetch http://one.example: 404\n",
         "E: Failed to fetch http://one.example: 404; E: Failed to fetch http://one.example: 404"),
        (ON, "dnf", "dnf", "Error: Failed to download metadata for repo 'base'\n",
         "Error: Failed to download metadata for repo 'base'"),
        ({"etc/zypp/repos.d/a.repo": "[base]\nenabled=1\n"}, "dnf", "dnf", "nobody answers", "nobody answers"),
    ],
)  # fmt: skip
def test_a_source_that_does_not_answer(
    lacking: Any, files: dict[str, str], manager: str, program: str, said: str, why: str
) -> None:
    (found,), _asked = lacking(files, manager, lambda argv: said if argv[0] == program else None)
    assert found == f"packages are missing (perftest) and cannot be installed: {why}"


def test_dnf_is_asked_for_the_names(lacking: Any) -> None:
    found, asked = lacking(ON, "dnf", offered=["perftest", "perftest"], packages=["perftest"])
    assert (found, asked) == (
        [], [["dnf", "--quiet", "--refresh", "repoquery", "--queryformat=%{name}\n", "perftest"]]
    )  # fmt: skip


def test_names_that_no_repository_has(lacking: Any) -> None:
    (found,), _asked = lacking(ON, "dnf", offered=["rdma-core", "x"], packages=["perftest", "x", "y"])
    assert found == (
        "packages are missing (perftest, x, y) and cannot be installed: no enabled repository has perftest, y"
    )


@pytest.mark.parametrize(
    "params",
    [{"packages": ["rdma-core"]}, {"installs_packages": False}, {"roles": {"rdma_stack_provider": "doca_ofed"}}],
)
def test_nobody_is_asked_where_nothing_is_missing(lacking: Any, params: dict[str, Any]) -> None:
    assert lacking(LISTS, "apt", **params) == ([], [])


VFS_ONLY = "Without it, VFs work in containers, but cannot be passed through to virtual machines"


@pytest.mark.parametrize(
    ("groups", "virtual", "tables", "expected"),
    [
        (40, False, True, []),
        (0, True, False, []),
        (0, False, False, [f"the IOMMU (VT-d, AMD-Vi) is disabled in the firmware (enable it there). {VFS_ONLY}"]),
        (
            0,
            False,
            True,
            [f"the IOMMU is available, but disabled in the kernel (role host_kernel enables it). {VFS_ONLY}"],
        ),
    ],
)
def test_an_iommu_that_is_off(
    groups: int,
    virtual: bool,
    tables: bool,
    expected: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = sysfs_tree.materialise(GPU, tmp_path, monkeypatch)
    inventory = dataclasses.replace(host.inventory(), iommu_groups=groups, virtual=virtual)
    own = preflight_io.read(host.roots, "/none", "/none", inventory=inventory, wanted=None, boots=(), peers=())
    own = dataclasses.replace(own, iommu_tables=tables)
    asked = {vfs: [f.text for f in find(inventory, [], own, consent=Consent(True, True, vfs=vfs))] for vfs in (0, 8)}
    assert asked == {0: [], 8: expected}


def test_who_would_name_the_ports_too_is_said_before_anything_changes(judge: Any, tmp_path: Path) -> None:
    path = "etc/systemd/network/05-mine.link"
    result = judge({path: "[Match]\nPath=pci-0000:18:*\n[Link]\nName=fast0\n"})
    assert result["problems"] == [
        f"0000:18:00.0 (enp24s0np0) is to be named rail0, but {tmp_path}/{path} names it fast0. Remove that file, or "
        "its rule for this port"
    ]


def test_what_the_host_is_is_reported(judge: Any) -> None:
    host = judge({})["host"]
    assert sorted(host) == ["iommu_groups", "kernel", "managers", "next_kernel", "os", "secure_boot", "virtual"]
    assert host["virtual"] is False


def test_a_system_that_is_an_image_is_one_clear_problem(judge: Any) -> None:
    """Written by hand, with the keys of RHEL CoreOS 4.19, whose ID is that of RHEL."""
    text = 'ID="rhel"\nVERSION_ID="9.6"\nVARIANT_ID=coreos\nPRETTY_NAME="Red Hat Enterprise Linux CoreOS 9.6"\n'
    told = judge({"etc/os-release": text})["msg"]
    assert told.startswith("preflight: the system of this host is an image (Red Hat Enterprise Linux CoreOS 9.6), and")
