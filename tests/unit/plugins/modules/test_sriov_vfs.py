"""sriov_vfs through main() on the lab's machine, with a kernel that makes VFs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run, warned
from tests.unit.support.sysfs_tree import Host
from tests.unit.support.vf_kernel import VfKernel

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.sriov import plan as sriov_plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.sriov import vf

FIRST, SECOND = "0000:01:00.0", "0000:02:00.0"
MACS = ["9a:7e:1a:03:01:00", "9a:7e:1a:03:01:01"]
RULE = (
    "# Written by gpufabric.rdma.sriov_vfs, which removes it with state: absent.\n"
    'ACTION!="remove", SUBSYSTEM=="net", KERNELS=="0000:01:00.0", TAG+="systemd", '
    'ENV{SYSTEMD_WANTS}+="gpufabric-sriov@0000:01:00.0.service"\n'
)


@pytest.fixture()
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VfKernel:
    return VfKernel(sysfs_tree.materialise("lab-igb-host", tmp_path, monkeypatch), monkeypatch)


def rails(*names: str) -> list[dict[str, Any]]:
    ports = {"rail0": FIRST, "rail1": SECOND}
    return [{"rail": name, "netdev": name, "pci": ports[name], "driver": "igb", "mtu": 9000} for name in names]


def call(kernel: VfKernel, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    host = kernel.host
    options = {**host.options()}
    return run("sriov_vfs", capsys, check, **{"rails": rails("rail0"), **options, **params})


def everything(host: Host) -> dict[str, str]:
    tops = [path for top in ("etc", "var", "run") for path in (host.root / top).rglob("*")]
    tree = {str(path): path.read_text() for path in tops if path.is_file()}
    kept = [path for name in ("sriov_numvfs", "flags") for path in (host.root / "sys").glob(f"devices/**/{name}")]
    return {**tree, **{str(path): path.read_text().strip() for path in kept}}


@pytest.mark.proves("sriov", "Debian 13", by="fixture")
def test_vfs_are_made_set_and_bound_in_this_order(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(kernel, capsys, vfs=2, trust=True)
    assert (result["changed"], result["reboot_required"], result["reasons"]) == (True, False, [])
    assert result["diff"]["before"] == {"files": {}, "pfs": {FIRST: {"up": False, "count": 0, "vfs": []}}}
    assert result["diff"]["after"]["pfs"] == {
        FIRST: {"up": True, "count": 2, "vfs": [{"mac": mac, "trust": True, "mtu": 9000} for mac in MACS]}
    }
    assert kernel.wrote == [
        ("sriov_drivers_autoprobe", "0"),
        ("sriov_numvfs", "2"),
        ("sriov_drivers_autoprobe", "1"),
        ("drivers_probe", "0000:01:10.0"),
        ("drivers_probe", "0000:01:10.1"),
    ]
    assert [vf["address"] for vf in kernel.vfs[FIRST]] == MACS
    # Before the VFs: drivers such as igb's answer them only when their own link is up.
    assert next(argv for argv in kernel.host.ran if argv[:2] == ["ip", "link"])[-1] == "up"
    assert [(kernel.vf(FIRST, i) / "net" / f"v0110{i}" / "mtu").read_text() for i in (0, 1)] == ["9000\n"] * 2


def test_a_boot_is_served_by_a_rule_a_unit_and_a_script(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    call(kernel, capsys, vfs=2)
    etc = kernel.host.root / "etc"
    assert (etc / "udev/rules.d/90-gpufabric-sriov-0000:01:00.0.rules").read_text() == RULE
    unit = (etc / "systemd/system/gpufabric-sriov@.service").read_text()
    assert f"ExecStart=/bin/sh {etc}/gpufabric/gpufabric-sriov-%i.sh\n" in unit
    # Device plugins must not count VFs that are still being made.
    assert "Before=kubelet.service\n" in unit
    assert ["systemctl", "daemon-reload"] in kernel.host.ran and ["udevadm", "control", "--reload"] in kernel.host.ran
    assert (etc / "gpufabric/gpufabric-sriov-0000:01:00.0.sh").is_file()


def test_a_second_run_changes_nothing(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    call(kernel, capsys, vfs=2, spoof_check=False, max_tx_rate=100, link_state="auto")
    before = everything(kernel.host)
    kernel.host.ran.clear()
    kernel.wrote.clear()
    result = call(kernel, capsys, vfs=2, spoof_check=False, max_tx_rate=100, link_state="auto")
    assert result["changed"] is False
    assert everything(kernel.host) == before and kernel.wrote == []
    assert {argv[0].rpartition("/")[2] for argv in kernel.host.ran} <= {"ip", "rdma", "ib_write_bw"}
    assert not any("set" in argv for argv in kernel.host.ran)


@pytest.mark.parametrize("number", [0, 3])
def test_check_mode_says_the_same_and_changes_nothing(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    call(kernel, capsys, vfs=2)
    before = everything(kernel.host)
    checked = call(kernel, capsys, check=True, vfs=number)
    assert everything(kernel.host) == before
    done = call(kernel, capsys, vfs=number)
    assert {key: checked[key] for key in ("changed", "diff")} == {key: done[key] for key in ("changed", "diff")}
    assert done["changed"] is True


def test_a_number_changes_by_way_of_none(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (4, 7, 2, 0):
        assert call(kernel, capsys, vfs=number)["changed"] is True
        assert kernel.device(FIRST).joinpath("sriov_numvfs").read_text() == f"{number}\n"
    assert [value for name, value in kernel.wrote if name == "sriov_numvfs"] == ["4", "0", "7", "0", "2", "0"]
    assert not (kernel.host.root / "etc/gpufabric").exists()


def test_a_setting_changes_in_place(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    call(kernel, capsys, vfs=2)
    kernel.wrote.clear()
    kernel.host.ran.clear()
    assert call(kernel, capsys, vfs=2, max_tx_rate=500)["changed"] is True
    assert kernel.wrote == []
    assert [argv[5:] for argv in kernel.host.ran if argv[:3] == ["ip", "link", "set"]] == [
        ["vf", "0", "max_tx_rate", "500"],
        ["vf", "1", "max_tx_rate", "500"],
    ]


def test_absent_gives_number_and_addresses_back(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.tell(str(kernel.device(FIRST) / "sriov_numvfs"), "3")
    kernel.vfs[FIRST][1]["address"] = "02:00:00:00:00:09"
    kernel.show()
    before = everything(kernel.host)
    call(kernel, capsys, vfs=2)
    call(kernel, capsys, vfs=4)
    result = call(kernel, capsys, state="absent", rails=[])
    assert result["diff"]["after"]["files"] == {}
    assert [vf["address"] for vf in kernel.vfs[FIRST]] == [
        "00:00:00:00:00:00",
        "02:00:00:00:00:09",
        "00:00:00:00:00:00",
    ]
    assert everything(kernel.host) == before
    assert call(kernel, capsys, state="absent", rails=[])["changed"] is False


def test_a_link_that_others_took_down_stays_down(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.react(["ip", "link", "set", "dev", "enp1s0", "up"])
    call(kernel, capsys, vfs=2)
    kernel.react(["ip", "link", "set", "dev", "enp1s0", "down"])
    kernel.host.ran.clear()
    assert call(kernel, capsys, state="absent")["changed"] is True
    assert not any(argv[-1] == "up" for argv in kernel.host.ran)


def test_rails_without_a_number_are_left_alone(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    both = rails("rail0", "rail1")
    assert call(kernel, capsys, rails=both)["changed"] is False
    assert call(kernel, capsys, rails=both, vfs_by_rail={"rail1": 1})["diff"]["after"]["pfs"].keys() == {SECOND}
    assert call(kernel, capsys, rails=both, vfs=2, vfs_by_rail={"rail1": 0})["changed"] is True
    assert {pf: len(vfs) for pf, vfs in kernel.vfs.items()} == {SECOND: 0, FIRST: 2}
    rules = kernel.host.root / "etc/udev/rules.d"
    assert sorted(os.listdir(rules)) == ["90-gpufabric-sriov-0000:01:00.0.rules"]
    # A run about one rail keeps what makes the others' VFs.
    call(kernel, capsys, rails=both, vfs_by_rail={"rail1": 1})
    assert len(os.listdir(rules)) == 2


def test_identities_can_be_left_to_the_driver(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    call(kernel, capsys, vfs=1, identity="driver")
    assert kernel.vfs[FIRST][0]["address"] == "00:00:00:00:00:00"


def test_infiniband_gets_guids_and_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = VfKernel(sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch), monkeypatch)
    kernel.host.idle()
    (kernel.device("0000:18:00.0") / "net/enp24s0np0/type").write_text("32\n")
    rail = {"rail": "rail0", "netdev": "rail0", "pci": "0000:18:00.0", "mtu": 4092}
    assert call(kernel, capsys, rails=[rail], vfs=2)["changed"] is True
    guid = "ba:3f:d2:01:03:00:18:00"
    shown = kernel.vfs["0000:18:00.0"][1]
    assert (shown["node guid"], shown["port guid"], shown["link_state"]) == (guid, guid, "auto")
    assert call(kernel, capsys, rails=[rail], vfs=2)["changed"] is False


def with_address(kernel: VfKernel) -> None:
    links = kernel.host.links()
    links.append({"ifname": "v01101", "addr_info": [{"local": "10.9.0.1", "prefixlen": 24, "scope": "global"}]})
    kernel.host.set_links(links)


def with_vfio(kernel: VfKernel) -> None:
    vf = kernel.vf(FIRST, 1)
    os.unlink(vf / "driver")
    os.symlink("/drivers/vfio-pci", vf / "driver")
    os.symlink("/kernel/iommu_groups/77", vf / "iommu_group")
    for pid, target in (("300", "/dev/vfio/77"), ("301", "/dev/vfio/78")):
        fd = kernel.host.root / "proc" / pid / "fd"
        fd.mkdir(parents=True)
        os.symlink(target, fd / "9")
        (fd.parent / "comm").write_text("qemu-system-x86\n")


def with_namespace(kernel: VfKernel) -> None:
    (kernel.vf(FIRST, 1) / "net/v01101").rename(kernel.host.root / "pod")


def with_rdma_of_nobody_knows_whom(kernel: VfKernel) -> None:
    (kernel.vf(FIRST, 1) / "infiniband/mlx5_9").mkdir(parents=True)
    del kernel.host.prints[sysfs_tree.QUEUE_PAIRS]


def with_rdma_that_cannot_be_read(kernel: VfKernel) -> None:
    with_rdma(kernel)
    kernel.host.prints["rdma -j resource show pd"] = "[{"


def with_rdma(kernel: VfKernel) -> None:
    (kernel.vf(FIRST, 1) / "infiniband/mlx5_9").mkdir(parents=True)
    kernel.host.prints["/usr/bin/rdma"] = ""
    kernel.host.prints["rdma -j resource show pd"] = json.dumps([{"ifname": "mlx5_9", "pid": 7, "comm": "server"}])


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (with_address, "(0000:01:10.1, v01101) is in use: it has the address 10.9.0.1/24"),
        (
            with_rdma_of_nobody_knows_whom,
            "(0000:01:10.1, v01101) is in use: an unknown process (install the rdma tool of iproute2 to see it) holds "
            "it",
        ),
        (
            with_rdma_that_cannot_be_read,
            "(0000:01:10.1, v01101) is in use: an unknown process (install the rdma tool of iproute2 to see it) holds "
            "it",
        ),
        (with_vfio, "(0000:01:10.1, v01101) is in use: it is bound to vfio-pci; qemu-system-x86[300] holds it"),
        (
            with_namespace,
            "(0000:01:10.1) is in use: igbvf has bound it, but its device is in another network namespace, such as "
            "that of a pod",
        ),
        (with_rdma, "(0000:01:10.1, v01101) is in use: server[7] holds it"),
    ],
)
def test_vfs_in_use_are_not_taken_away(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str], use: Any, message: str
) -> None:
    call(kernel, capsys, vfs=2)
    use(kernel)
    before = everything(kernel.host)
    head = (
        "sriov_vfs: 0000:01:00.0 (rail0): changing the number of VFs from 2 to 4 requires removing all of them, but "
        "VF 1 "
    )
    result = call(kernel, capsys, rails=rails("rail0", "rail1"), vfs=4)
    assert result["failed"] and result["msg"] == f"{head}{message}. Stop these workloads and retry"
    assert everything(kernel.host) == before
    # What does not take them away is fine.
    assert call(kernel, capsys, vfs=2, trust=True)["changed"] is True


def test_new_addresses_take_vfs_away_too(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.tell(str(kernel.device(FIRST) / "sriov_numvfs"), "2")
    with_address(kernel)
    assert call(kernel, capsys, vfs=2)["msg"].startswith(
        "sriov_vfs: 0000:01:00.0 (rail0): assigning new addresses to its 2 VFs requires removing all of them, but VF 1 "
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"vfs": 8}, "0000:01:00.0 (rail0) supports 7 VFs, 8 requested. Lower vfs"),
        ({"vfs": -1}, "0000:01:00.0 (rail0) supports 7 VFs, -1 requested. Lower vfs"),
        ({"vfs_by_rail": {"rail7": 1}}, "no rail is named rail7. The rails are: rail0"),
        ({"vfs_by_rail": {"rail0": "many"}}, "vfs_by_rail has rail0: many; expected a number of VFs for each rail"),
        (
            {"vfs": 1, "operator_managed": ["01:00.0"]},
            "the SR-IOV operator manages 0000:01:00.0 (rail0, by operator_managed), and only one tool can create the "
            "VFs of a port. Leave vfs unset for these rails, remove the SriovNetworkNodePolicy with its leftovers, "
            "or set it to externallyManaged",
        ),
        (
            {"vfs": 1, "operator_managed": ["rail0"]},
            "'rail0' is not a PCI address; expected the form 0000:18:00.0",
        ),
        (
            {"vfs": 1, "rails": [{"rail": "a", "netdev": "a", "pci": "0000:00:04.0", "mtu": 1500}]},
            "rail a: 0000:00:04.0: enp0s4 carries the default route. Such a port cannot be a rail",
        ),
    ],
)
def test_refusals(kernel: VfKernel, capsys: pytest.CaptureFixture[str], params: dict[str, Any], message: str) -> None:
    before = everything(kernel.host)
    assert call(kernel, capsys, **params)["msg"] == f"sriov_vfs: {message}"
    assert everything(kernel.host) == before and kernel.wrote == []


def test_check_mode_believes_what_the_firmware_is_set_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = VfKernel(sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch), monkeypatch)
    kernel.host.idle()
    wish = {"rails": [{"rail": "rail0", "netdev": "rail0", "pci": "0000:18:00.0", "mtu": 9000}], "vfs": 17}
    predicted = call(kernel, capsys, check=True, firmware_vfs=17, **wish)
    assert predicted["changed"] and predicted["diff"]["after"]["pfs"]["0000:18:00.0"]["count"] == 17
    more = call(kernel, capsys, check=True, firmware_vfs=17, **{**wish, "vfs": 18})
    assert "supports 17 VFs, 18 requested" in more["msg"]
    # The reboot has been by then, so the port has them or never will.
    assert "supports 16 VFs, 17 requested" in call(kernel, capsys, firmware_vfs=17, **wish)["msg"]


#: Made by hand after api/v1 (Interface) and pkg/host/store of sriov-network-operator.
APPLIED = {"pciAddress": FIRST, "numVfs": 4, "mtu": 9000, "name": "enp1s0", "linkType": "eth", "eSwitchMode": "legacy"}


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (json.dumps(APPLIED), True),
        (json.dumps({**APPLIED, "externallyManaged": True}), False),
        (json.dumps({**APPLIED, "externallyCreated": True}), False),
        (json.dumps({**APPLIED, "numVfs": 0}), False),
        ("{", False),
        ("[1]", False),
    ],
)
def test_what_the_operators_agent_keeps_on_the_host_counts(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str], text: str, taken: bool
) -> None:
    path = kernel.host.root / "etc/sriov-operator/pci" / FIRST
    path.parent.mkdir(parents=True)
    path.write_text(text)
    result = call(kernel, capsys, rails=rails("rail0", "rail1"), vfs=1)
    assert ("msg" in result, len(kernel.vfs)) == ((True, 0) if taken else (False, 2))
    assert not taken or f"the SR-IOV operator manages {FIRST} (rail0, by {path}), and only one" in result["msg"]


@given(st.text() | st.builds(json.dumps, st.recursive(st.none() | st.integers(), lambda s: st.lists(s))))
def test_no_file_of_the_operator_raises(text: str) -> None:
    assert sriov_plan.made_by_operator(text) is False


def test_a_limit_of_the_firmware_names_who_can_raise_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = VfKernel(sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch), monkeypatch)
    kernel.host.idle()
    rail = {"rail": "rail0", "netdev": "rail0", "pci": "0000:18:00.0", "mtu": 9000}
    assert call(kernel, capsys, rails=[rail], vfs=17)["msg"] == (
        "sriov_vfs: 0000:18:00.0 (rail0) supports 16 VFs, 17 requested. Lower vfs or raise NUM_OF_VFS with role "
        "nic_firmware and reboot"
    )


def test_a_number_that_the_kernel_refuses(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.refuses["4"] = "Cannot allocate memory"
    assert call(kernel, capsys, vfs=4)["msg"] == (
        f"sriov_vfs: the kernel refused '4' for {kernel.host.root}/sys/bus/pci/devices/0000:01:00.0/sriov_numvfs: "
        "Cannot allocate memory"
    )
    assert kernel.wrote[-1] == ("sriov_drivers_autoprobe", "1")
    kernel.refuses.clear()
    call(kernel, capsys, vfs=4)
    call(kernel, capsys, state="absent")
    assert len(kernel.vfs[FIRST]) == 0


def test_a_setting_that_the_driver_refuses(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.refuses["trust on"] = "RTNETLINK answers: Operation not supported"
    assert call(kernel, capsys, vfs=1, trust=True)["msg"] == (
        "sriov_vfs: 'ip link set dev enp1s0 vf 0 trust on' failed with status 2: "
        "RTNETLINK answers: Operation not supported"
    )
    assert kernel.wrote[-1] == ("sriov_drivers_autoprobe", "1")


@given(st.integers(0, 255), st.integers(0, 255))
def test_numbers_go_by_way_of_none(now: int, wish: int) -> None:
    numbers = (now, *sriov_plan.counts(now, wish))
    assert all(0 in pair for pair in zip(numbers, numbers[1:]))
    assert numbers[-1] == wish or (now == wish == 0)


#: Called in the folder of the PF: drivers must not bind while VFs are set.
IP = """#!/bin/sh
echo "$@" >>"$LOG"
case "$*" in *" vf "*) [ "$(cat sriov_drivers_autoprobe)" = 0 ] || echo "a driver could bind" >>"$LOG";; esac
case "$*" in *"trust on") echo refused >&2; exit 2;; esac
"""


@pytest.mark.proves("sriov", "Debian 12", "Ubuntu 22.04", "Ubuntu 24.04", by="unit")
@pytest.mark.proves("sriov", "RHEL 9", "RHEL 10", "Rocky 9", "Rocky 10", "SLES 15", by="unit")
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_script_does_at_boot_what_the_module_does_now(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str], tmp_path: Path, shell: str
) -> None:
    """Run on the tree before and after the VFs are there, by what /bin/sh is: dash (Debian, Ubuntu), or bash."""
    program = shutil.which(shell)
    if not program:
        pytest.skip(f"no {shell} here")
    call(kernel, capsys, vfs=2, trust=False, max_tx_rate=100)
    wanted = [" ".join(argv[1:]) for argv in kernel.host.ran if argv[:3] == ["ip", "link", "set"]]
    assert wanted[0] == "link set dev enp1s0 up"
    programs, log = tmp_path / "bin", tmp_path / "log"
    programs.mkdir()
    (programs / "sh").symlink_to(program)
    for name, text in (("ip", IP), ("udevadm", "#!/bin/sh\nexit 1\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    script = kernel.host.root / "etc/gpufabric/gpufabric-sriov-0000:01:00.0.sh"
    steps = script.read_text()
    assert steps.index('[ "$now" -eq 0 ] || echo 0 >sriov_numvfs\n') < steps.index("\necho 2 >sriov_numvfs\n")

    def boot(now: str) -> int:
        log.write_text("")
        (kernel.device(FIRST) / "sriov_numvfs").write_text(f"{now}\n")
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "LOG": str(log)}
        return subprocess.run([str(programs / "sh"), str(script)], env=environment, check=False).returncode

    assert boot("2") == 0 and log.read_text() == ""
    assert boot("0") == 0 and log.read_text().splitlines() == wanted
    assert (kernel.device(FIRST) / "sriov_numvfs").read_text() == "2\n"
    assert (kernel.device(FIRST) / "sriov_drivers_autoprobe").read_text() == "1\n"
    assert (kernel.host.root / "sys/bus/pci/drivers_probe").read_text() == "0000:01:10.1\n"
    # A setting that is refused fails the unit, but the VFs get their drivers.
    script.write_text(script.read_text().replace("trust off", "trust on"))
    (kernel.host.root / "sys/bus/pci/drivers_probe").write_text("")
    assert boot("0") == 1
    assert (kernel.host.root / "sys/bus/pci/drivers_probe").read_text() == "0000:01:10.1\n"


@given(st.sampled_from(["mac", "guid", "trust", "spoof_check", "max_tx_rate", "link_state", "mtu"]))
def test_a_setting_that_is_there_needs_no_command(key: str) -> None:
    assert vf.vf_commands("rail0", 0, {key: "x"}, after={key: "x"}) == []


def test_a_port_in_use_keeps_its_number_of_vfs(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    links = kernel.host.links()
    address = [{"local": "10.1.1.11", "prefixlen": 24, "scope": "global"}]
    kernel.host.set_links([{**one, "addr_info": address} if one["ifname"] == "enp1s0" else one for one in links])
    (kernel.host.root / "proc/net/tcp").write_text("   0: 0B01010A:0016 0901010A:C7F4 01 0:0 0:0\n")
    assert call(kernel, capsys, rails=rails("rail0"), vfs=2)["msg"] == (
        "sriov_vfs: 0000:01:00.0 (enp1s0): a new number of VFs would disturb its users: 1 TCP connection, e.g. "
        "10.1.1.11 port 22 with 10.1.1.9 port 51188. Stop these users and retry, or set rdma_disrupt_users: true"
    )
    assert call(kernel, capsys, rails=rails("rail0"), vfs=2, disrupt_users=True)["changed"] is True
    assert call(kernel, capsys, rails=rails("rail0"), vfs=2)["changed"] is False


@pytest.mark.parametrize(
    ("use", "setting", "what", "users"),
    [
        (with_address, {"mtu": 4000}, "mtu", "it has the address 10.9.0.1/24"),
        (with_rdma, {"link_state": "disable"}, "link_state", "server[7] holds it"),
    ],
)
def test_the_link_of_a_vf_in_use_is_not_changed_without_consent(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str], use: Any, setting: dict[str, Any], what: str, users: str
) -> None:
    call(kernel, capsys, vfs=2)
    use(kernel)
    before = everything(kernel.host)
    assert call(kernel, capsys, vfs=2, **setting)["msg"] == (
        f"sriov_vfs: 0000:01:00.0 (rail0): a change of {what} of VF 1 (0000:01:10.1, v01101) would disturb its users: "
        f"{users}. Stop these users and retry, or set rdma_disrupt_users: true"
    )
    assert everything(kernel.host) == before
    assert call(kernel, capsys, vfs=2, trust=True)["changed"] is True
    assert call(kernel, capsys, vfs=2, trust=True, disrupt_users=True, **setting)["changed"] is True


def test_a_port_that_has_another_owner_now_keeps_its_vfs(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    call(kernel, capsys, rails=rails("rail0"), vfs=2)
    links = kernel.host.links()
    address = [{"local": "203.0.113.7", "prefixlen": 24, "scope": "global"}]
    kernel.host.set_links([{**one, "addr_info": address} if one["ifname"] == "enp1s0" else one for one in links])
    result = call(kernel, capsys, state="absent")
    assert warned(result) == [
        "0000:01:00.0 (enp1s0) is now used by another owner: address 203.0.113.7/24. Its VFs are not "
        "restored; the record is kept, and a run without this owner restores them"
    ]
    assert len(kernel.vfs[FIRST]) == 2
    kept = ["gpufabric-sriov-0000:01:00.0.sh", "gpufabric-sriov@.service", "90-gpufabric-sriov-0000:01:00.0.rules"]
    left = [path.name for path in (kernel.host.root / "etc").rglob("*gpufabric-sriov*")]
    assert sorted(left) == sorted(kept)
    kernel.host.set_links(links)
    assert call(kernel, capsys, state="absent")["changed"] is True
    assert len(kernel.vfs[FIRST]) == 0
    assert not (kernel.host.root / "var/lib/gpufabric/sriov_vfs.json").exists()


def test_what_rail_links_restores_is_no_other_owner(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    record = kernel.host.root / "var/lib/gpufabric/rail_links.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({FIRST: {"set": {"addresses": []}, "owners": ["address 203.0.113.7/24"]}}))
    call(kernel, capsys, rails=rails("rail0"), vfs=2)
    record.unlink()
    links = kernel.host.links()
    address = [{"local": "203.0.113.7", "prefixlen": 24, "scope": "global"}]
    kernel.host.set_links([{**one, "addr_info": address} if one["ifname"] == "enp1s0" else one for one in links])
    assert warned(call(kernel, capsys, state="absent")) == []
    assert len(kernel.vfs[FIRST]) == 0


def resize(kernel: VfKernel, number: int) -> None:
    """What another tool does."""
    for value in ("0", str(number)):
        kernel.tell(str(kernel.device(FIRST) / "sriov_numvfs"), value)
    kernel.wrote.clear()


def by_operator(kernel: VfKernel) -> None:
    """The operator's agent says that it makes the VFs; it has not changed their number."""
    path = kernel.host.root / "etc/sriov-operator/pci" / FIRST
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**APPLIED, "numVfs": 2}))


def another_address(kernel: VfKernel) -> None:
    kernel.vfs[FIRST][1]["address"] = "02:00:00:00:00:09"
    kernel.show()


CHANGED = "Another tool changed it, so it is not restored, and its record is removed. Before the first change it was 0"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            lambda kernel: resize(kernel, 5),
            "0000:01:00.0 (enp1s0): VFs: found 5 (00:00:00:00:00:00, 00:00:00:00:00:00, ...), expected 2 "
            f"(9a:7e:1a:03:01:00, 9a:7e:1a:03:01:01) as set by this collection. {CHANGED}",
        ),
        (
            another_address,
            "0000:01:00.0 (enp1s0): VFs: found 2 (9a:7e:1a:03:01:00, 02:00:00:00:00:09), expected 2 "
            f"(9a:7e:1a:03:01:00, 9a:7e:1a:03:01:01) as set by this collection. {CHANGED}",
        ),
        (
            by_operator,
            "0000:01:00.0 (enp1s0): the SR-IOV operator manages its VFs ({etc}/sriov-operator/pci/0000:01:00.0), so "
            "they are not restored, and their record is removed. Before the first change there were 0",
        ),
    ],
)
def test_vfs_that_another_tool_made_since_are_not_removed(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str], other: Any, message: str
) -> None:
    call(kernel, capsys, vfs=2)
    other(kernel)
    kernel.wrote.clear()
    vfs = json.dumps(kernel.vfs)
    checked = call(kernel, capsys, check=True, state="absent")
    result = call(kernel, capsys, state="absent")
    assert warned(result) == warned(checked) == [message.format(etc=kernel.host.root / "etc")]
    assert kernel.wrote == [] and json.dumps(kernel.vfs) == vfs
    # The boot must not make ours in their place.
    assert not list((kernel.host.root / "etc").rglob("*gpufabric-sriov*"))
    assert not (kernel.host.root / "var/lib/gpufabric/sriov_vfs.json").exists()
    again = call(kernel, capsys, state="absent")
    assert (again["changed"], warned(again)) == (False, [])


def test_an_address_that_a_pod_gave_its_vf_is_no_other_author(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    call(kernel, capsys, vfs=2)
    another_address(kernel)
    with_namespace(kernel)
    assert "VF 1 (0000:01:10.1) is in use" in call(kernel, capsys, state="absent")["msg"]


def test_a_setting_that_another_tool_changed_since_stays(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.tell(str(kernel.device(FIRST) / "sriov_numvfs"), "2")
    for one in kernel.vfs[FIRST]:
        one["rate"] = {"max_tx": 0}
    kernel.show()
    call(kernel, capsys, vfs=2, identity="driver", trust=True, max_tx_rate=100)
    kernel.react(["ip", "link", "set", "dev", "enp1s0", "vf", "1", "max_tx_rate", "500"])
    assert call(kernel, capsys, state="absent")["changed"] is True
    assert [one["trust"] for one in kernel.vfs[FIRST]] == [False, False]
    assert [one["rate"]["max_tx"] for one in kernel.vfs[FIRST]] == [0, 500]


@pytest.mark.parametrize("cut", ["0", "4", "trust on"])
def test_what_a_run_that_was_cut_off_left_is_restored(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str], cut: str
) -> None:
    """Power goes off at one write, with the record as it is then; the next run restores all the same."""
    kernel.tell(str(kernel.device(FIRST) / "sriov_numvfs"), "3")
    before = everything(kernel.host)
    call(kernel, capsys, vfs=2)
    kernel.refuses[cut] = "power"
    assert call(kernel, capsys, vfs=4, trust=True)["failed"]
    kernel.refuses.clear()
    assert warned(call(kernel, capsys, state="absent")) == []
    assert everything(kernel.host) == before


LEFT = (
    "etc/sriov-operator/sriov_config.json",
    "etc/sriov-operator/pci/0000:05:00.0",
    "etc/udev/disable-nm-sriov.sh",
    "etc/udev/rules.d/10-nm-disable-0000:01:00.0.rules",
    "etc/modprobe.d/sriov_network_operator_modules_config.conf",
    "tmp/sno-initial-node-state.json",
)
OTHERS = ("etc/udev/rules.d/10-nm-disable-mine.rules", "etc/modprobe.d/mine.conf", "tmp/mine.json")


def leave(kernel: VfKernel) -> set[str]:
    """Put there what the daemon of the SR-IOV operator leaves, and files of others beside it."""
    for name in (*LEFT, *OTHERS):
        path = kernel.host.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        called = "/etc/udev/disable-nm-sriov.sh" if name in LEFT else "mine"
        path.write_text(f'IMPORT{{program}}="{called}"' if name.endswith(".rules") else "{}")
    return {name for name in (*LEFT, *OTHERS) if (kernel.host.root / name).exists()}


def test_what_the_operator_left_goes_with_consent_only(kernel: VfKernel, capsys: pytest.CaptureFixture[str]) -> None:
    left = leave(kernel)
    assert call(kernel, capsys, state="absent")["changed"] is False
    checked = call(kernel, capsys, check=True, state="absent", remove_operator_files=True)
    assert {name for name in left if (kernel.host.root / name).exists()} == left
    done = call(kernel, capsys, state="absent", remove_operator_files=True)
    assert done["diff"] == checked["diff"]
    assert sorted(done["diff"]["before"]["files"]) == sorted(str(kernel.host.root / name) for name in LEFT)
    assert {name for name in left if (kernel.host.root / name).exists()} == set(OTHERS)
    assert not (kernel.host.root / "etc/sriov-operator").exists()
    assert call(kernel, capsys, state="absent", remove_operator_files=True)["changed"] is False


def test_files_of_a_daemon_that_runs_or_manages_a_port_stay(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    left = leave(kernel)
    process = kernel.host.root / "proc/4711"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"/usr/bin/sriov-network-config-daemon\0start\0")
    refused = call(kernel, capsys, state="absent", remove_operator_files=True)
    assert refused["msg"] == (
        "sriov_vfs: remove_operator_files is set, but the daemon of the SR-IOV operator runs on this host (process"
        " 4711, sriov-network-config-daemon) and uses its files. Remove the operator first, or leave"
        " remove_operator_files unset"
    )
    (process / "cmdline").write_bytes(b"/bin/sh\0")
    (kernel.host.root / "etc/sriov-operator/pci/0000:05:00.0").write_text('{"numVfs": 4}')
    assert call(kernel, capsys, state="absent", remove_operator_files=True)["changed"] is False
    assert {name for name in left if (kernel.host.root / name).exists()} == left


def test_a_link_among_what_the_operator_left_is_not_followed(
    kernel: VfKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    (kernel.host.root / "tmp").mkdir(exist_ok=True)
    secret = kernel.host.root / "secret"
    secret.write_text("secret")
    (kernel.host.root / "tmp/sno-initial-node-state.json").symlink_to(secret)
    result = call(kernel, capsys, state="absent", remove_operator_files=True)
    assert result["changed"] is False
    assert secret.read_text() == "secret"
