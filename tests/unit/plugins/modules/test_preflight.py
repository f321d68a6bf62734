"""preflight through main(): all problems of a host in one message."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import sysfs_tree
from module_run import run

from ansible_collections.gpufabric.rdma.plugins.module_utils._core.hostchecks import Consent, find
from ansible_collections.gpufabric.rdma.plugins.module_utils._host import hostchecks


def rail(name: str, pci: str, **more: Any) -> dict[str, Any]:
    return {"rail": name, "netdev": name, "pci": pci, "driver": "mlx5_core", "address": None, "mtu": 9000, **more}


def call(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **params: Any
) -> dict[str, Any]:
    host = sysfs_tree.materialise(name, tmp_path, monkeypatch)
    before = sorted(tmp_path.rglob("*"))
    places = {"lib_root": str(tmp_path / "usr/lib"), "var_root": str(tmp_path / "var")}
    result = run("preflight", capsys, **host.options(), **places, **params)
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
        "the network of lab-3 is managed by no known manager; supported are systemd-networkd, NetworkManager and "
        "netplan with one of them: enable one for the rails, or leave the host out",
    ]


BOTH = {"sys/fs/cgroup/system.slice/NetworkManager.service/": ""}


@pytest.mark.parametrize(
    ("files", "asked", "problem"),
    [
        (BOTH, {}, "say who shall have the rails: rail_links_manager: networkd or networkmanager"),
        (BOTH, {"links_manager": "networkd"}, None),
        ({}, {"links_manager": "networkmanager"}, "rail_links_manager is networkmanager, but that does not run"),
        ({}, {"links_manager": "netplan"}, "has no program netplan"),
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

    def call_it(files: dict[str, str | None], name: str = GPU, **params: Any) -> dict[str, Any]:
        host = sysfs_tree.materialise(name, tmp_path, monkeypatch)
        for path, text in files.items():
            place = tmp_path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                place.unlink()
            elif path.endswith("/"):
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.write_bytes(text.encode("latin-1"))
        places = {"lib_root": str(tmp_path / "usr/lib"), "var_root": str(tmp_path / "var")}
        params = {"rails": [RAIL], "busy_hosts": True, **params}
        return run("preflight", capsys, **host.options(), **places, **params)

    return call_it


SECURE = {"sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": "\x06\0\0\0\x01"}


def test_secure_boot_stops_modules_that_nobody_signs(judge: Any) -> None:
    result = judge(SECURE, unsigned_modules=True)
    assert result["problems"] == [
        "Secure Boot is on, and the kernel would refuse the modules that this run builds, since nobody signs them;"
        " enroll a key and sign them, take precompiled ones, or switch Secure Boot off"
    ]


def test_signed_modules_are_fine_under_secure_boot(judge: Any) -> None:
    assert judge(SECURE)["problems"] == []


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
        f"kernel {running} runs and 9.9.9-generic boots next; what is built or checked now is for {running}, so reboot"
        " first where it matters",
        "the system asks for a reboot (linux-base, libc6)",
    ]
    assert result["problems"] == [
        f"the modules of the running kernel {running} are gone, so no driver can be loaded; reboot into an installed"
        " kernel"
    ]


@pytest.mark.parametrize(
    ("free", "netdev", "problems", "findings"),
    [(10, "rail0", 1, 0), (10, "enp24s0np0", 0, 1), (200, "rail0", 0, 0)],
)
def test_a_full_boot_stops_only_where_an_initramfs_is_made(
    judge: Any, monkeypatch: pytest.MonkeyPatch, free: int, netdev: str, problems: int, findings: int
) -> None:
    monkeypatch.setattr(hostchecks, "_free", lambda folder: free << 20)
    files = {"boot/initrd.img-1": "x" * (8 << 20), "boot/initramfs-0-rescue-abc.img": "x" * (90 << 20)}
    result = judge(files, rails=[rail(netdev, "0000:18:00.0")])
    kinds = (result["problems"], result["findings"])
    texts = [[text for text in kind if text.startswith("the file system of /boot")] for kind in kinds]
    assert [len(found) for found in texts] == [problems, findings]
    assert set(texts[0] + texts[1]) <= {
        "the file system of /boot has 10 MiB free, a new initramfs needs about 26 MiB; remove kernels that are not used"
        " any more"
    }


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        (
            {"etc/apt/sources.list": ""},
            "{root}/var/lib/apt/lists has no package lists: run apt-get update, and check the sources",
        ),
        (
            {"etc/yum.repos.d/a.repo": "# all off\n[base]\nname=b\nenabled = 0\n[extra]\nenabled=0\n"},
            "no repository is enabled in {root}/etc/yum.repos.d",
        ),
        ({"etc/apt/x": "", "var/lib/apt/lists/deb.example_Packages.lz4": ""}, None),
        ({"etc/yum.repos.d/a.repo": "[base]\nname=b\n\n[extra]\nenabled=0\n"}, None),
        ({"etc/zypp/repos.d/a.repo": "[base]\nenabled=1\n"}, None),
        ({}, None),
    ],
)
def test_missing_packages_need_a_source(
    judge: Any, tmp_path: Path, files: dict[str, str | None], advice: str | None
) -> None:
    result = judge(files, "odd-host", rails=[])
    found = [text for text in result["problems"] if text.startswith("packages are missing")]
    expected = f"packages are missing, and there is nothing to install them from; {advice}" if advice else None
    assert found == ([expected.format(root=tmp_path)] if expected else [])


@pytest.mark.parametrize("sets_firmware", [False, True])
def test_vfs_that_the_card_cannot_have(judge: Any, sets_firmware: bool) -> None:
    result = judge({}, vfs=4096, sets_firmware=sets_firmware)
    told = "this run sets that" if sets_firmware else "set SRIOV_EN and NUM_OF_VFS with role nic_firmware"
    (text,) = [text for text in result["problems"] + result["findings"] if "VFs, 4096 are asked for" in text]
    assert text.startswith("rail rail0: 0000:18:00.0 (enp24s0np0) can have ")
    assert text.endswith(
        f"it is a setting of the card's firmware ({told}), and SR-IOV must be on in the system's firmware"
    )
    assert (text in result["problems"]) is not sets_firmware


OFF = "Without it VFs serve containers, and cannot be given to virtual machines"


@pytest.mark.parametrize(
    ("groups", "virtual", "tables", "expected"),
    [
        (40, False, True, []),
        (0, True, False, []),
        (0, False, False, [f"the IOMMU (VT-d, AMD-Vi) is off in the firmware; turn it on there. {OFF}"]),
        (
            0,
            False,
            True,
            [f"the firmware has an IOMMU, but it is off in the kernel; role host_kernel turns it on. {OFF}"],
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
    own = hostchecks.read(host.roots, "/none", "/none", inventory)
    own = dataclasses.replace(own, iommu_tables=tables)
    asked = {vfs: [f.text for f in find(inventory, [], own, Consent(True, True, vfs=vfs))] for vfs in (0, 8)}
    assert asked == {0: [], 8: expected}


def test_who_would_name_the_ports_too_is_said_before_anything_changes(judge: Any, tmp_path: Path) -> None:
    path = "etc/systemd/network/05-mine.link"
    result = judge({path: "[Match]\nPath=pci-0000:18:*\n[Link]\nName=fast0\n"})
    assert result["problems"] == [
        f"0000:18:00.0 (enp24s0np0) is to be named rail0, but {tmp_path}/{path} names it fast0; remove that file or its"
        " rule for this port"
    ]


def test_what_the_host_is_is_reported(judge: Any) -> None:
    host = judge({})["host"]
    assert sorted(host) == ["iommu_groups", "kernel", "managers", "next_kernel", "os", "secure_boot", "virtual"]
    assert host["virtual"] is False
