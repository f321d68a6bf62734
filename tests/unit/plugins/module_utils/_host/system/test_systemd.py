"""The text of units and of .link and .network files: what each module writes, and what systemd makes of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.gpu_direct import acs, peer_memory
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.naming import systemd_files
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos import boot_unit as qos_unit
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos.setting import Device, Step
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack import plan as rdma_stack
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.sriov import boot_unit as sriov_unit
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import systemd

STEPS = [Step(("mlnx_qos", "-i", "rail-0", "--trust", "dscp")), Step(path="/sys/x", value="RoCE v2")]
# File name -> what the module writes, and what it has written since its first release.
UNITS = {
    "gpufabric-qos-rail-0.service": (
        qos_unit.text(Device("rail-0", "mlx5_0"), STEPS),
        r"""# Written by gpufabric.rdma.rail_qos, which removes it with state: absent.
[Unit]
Description=QoS of rail-0
BindsTo=sys-subsystem-net-devices-rail\x2d0.device
After=sys-subsystem-net-devices-rail\x2d0.device systemd-modules-load.service sys-kernel-config.mount

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=120
SuccessExitStatus=78 80
ExecStartPre=/bin/sh -c 'until test -e /sys/class/infiniband/mlx5_0; do sleep 1; done'
ExecStart=mlnx_qos -i rail-0 --trust dscp
ExecStart=/bin/sh -c 'echo "RoCE v2" > /sys/x'

[Install]
WantedBy=sys-subsystem-net-devices-rail\x2d0.device
""",
    ),
    "gpufabric-sriov@.service": (
        sriov_unit.format_unit("/etc/gpufabric"),
        """# Written by gpufabric.rdma.sriov_vfs, which removes it with state: absent.
[Unit]
Description=SR-IOV VFs of %i
ConditionPathExists=/etc/gpufabric/gpufabric-sriov-%i.sh
Before=kubelet.service

[Service]
Type=oneshot
ExecStart=/bin/sh /etc/gpufabric/gpufabric-sriov-%i.sh
""",
    ),
    acs.UNIT: (
        acs.unit_text(["0000:17:00.0", "0000:17:01.0"]),
        """# Written by gpufabric.rdma.pcie_acs, which removes it with state: absent.
[Unit]
Description=ACS off on the PCIe switch ports between NICs and GPUs
ConditionVirtualization=no
After=systemd-modules-load.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=setpci -s 0000:17:00.0 ECAP_ACS+0x6.w=0000
ExecStart=setpci -s 0000:17:01.0 ECAP_ACS+0x6.w=0000

[Install]
WantedBy=multi-user.target
""",
    ),
    peer_memory.UNIT: (
        peer_memory.UNIT_TEXT,
        """# Written by gpufabric.rdma.peer_memory, which removes it with state: absent.
[Unit]
Description=GPU memory for RDMA by nvidia-peermem
After=systemd-modules-load.service rdma-hw.target openibd.service
PartOf=rdma-hw.target openibd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=modprobe nvidia_peermem
ExecStop=-modprobe --remove nvidia_peermem

[Install]
WantedBy=multi-user.target openibd.service rdma-hw.target
""",
    ),
    f"{rdma_stack.UNIT}.service": (
        rdma_stack.UNIT_TEXT,
        """# Written by gpufabric.rdma.rdma_stack, which removes it with state: absent.
[Unit]
Description=Soft-RoCE device on %I
BindsTo=sys-subsystem-net-devices-%i.device
After=sys-subsystem-net-devices-%i.device systemd-modules-load.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStartPre=-modprobe rdma_rxe
ExecStart=rdma link add rxe_%I type rxe netdev %I
ExecStop=-rdma link delete rxe_%I

[Install]
WantedBy=sys-subsystem-net-devices-%i.device
""",
    ),
}


@pytest.mark.parametrize("name", UNITS)
def test_each_unit_is_as_it_was_written_before(name: str) -> None:
    """Another text would restart units of hosts that have them, without need."""
    written, expected = UNITS[name]
    assert written == expected


def verify(tmp_path: Path, units: dict[str, str]) -> list[str]:
    """What systemd reports about units, less that the machine of the test lacks their programs."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    for name, text in units.items():
        (tmp_path / name).write_text(text)
    # A template is verified by an instance.
    paths = [str(tmp_path / name.replace("@.", "@rail0.")) for name in units]
    done = subprocess.run(
        [program, "verify", "--man=no", "--recursive-errors=no", *paths], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    if lines and all("bus" in line or "manager" in line.lower() for line in lines):
        pytest.skip(f"systemd-analyze does not work here: {lines[0]}")
    return lines


def test_systemd_accepts_every_unit(tmp_path: Path) -> None:
    assert verify(tmp_path, {name: written for name, (written, _expected) in UNITS.items()}) == []


def test_the_check_of_systemd_can_fail(tmp_path: Path) -> None:
    text = systemd.file_text("title", {"Service": [("Type", "oneshot"), ("Exec", "/bin/true")]})
    assert any("Exec" in line for line in verify(tmp_path, {"gpufabric-wrong.service": text}))


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["mlnx_qos", "--trust=dscp", "-i", "rail-0"], "mlnx_qos --trust=dscp -i rail-0"),
        (["echo", "two words", ""], "echo 'two words' ''"),
        (["echo", "it's"], 'echo "it\'s"'),
        (["echo", '''both ' and "'''], r'''echo "both ' and \""'''),
        (["echo", "100%", "%i"], "echo 100%% %%i"),
        (["echo", "$HOME", "a $b"], "echo $$HOME 'a $$b'"),
        (["echo", r"C:\x", r"a \n"], r"echo C:\\x 'a \\n'"),
        (["echo", ";", "a;b"], "echo ';' a;b"),
    ],
)
def test_words_of_commands_arrive_unchanged(argv: list[str], line: str) -> None:
    """Quoting, specifiers and variables of systemd.service(5) and systemd.unit(5)."""
    assert systemd.exec_line(argv) == line


def test_systemd_accepts_words_with_special_characters(tmp_path: Path) -> None:
    argv = ["/bin/echo", "it's", '"', "%z", "$HOME", "\\q", "a b", ";", "é", ""]
    text = systemd.file_text("title", {"Service": [("Type", "oneshot"), ("ExecStart", systemd.exec_line(argv))]})
    assert verify(tmp_path, {"gpufabric-odd.service": text}) == []


@pytest.mark.parametrize("value", ["a\nExecStart=/bin/false", "a\r", "a\0", "a\\", "a\\\\\\"])
def test_a_value_that_would_change_other_lines_is_refused(value: str) -> None:
    with pytest.raises(InputError) as caught:
        systemd.file_text("title", {"Unit": [("Description", value)]})
    assert str(caught.value) == (
        f"cannot write Description= in section [Unit] of a systemd file: the value is {value!r}, expected one line "
        "that does not end with a backslash. Correct the value that this text comes from"
    )


@given(st.lists(st.tuples(st.sampled_from(["Name", "Path"]), st.text().map(str.strip))))
def test_what_is_written_is_read_again(settings: list[tuple[str, str]]) -> None:
    try:
        text = systemd.file_text("title", {"Link": settings})
    except InputError:
        return
    # Line breaks of Unicode are none for systemd.
    if text.count("\n") == len(text.splitlines()):
        assert systemd_files.parse(text) == tuple(systemd_files.Setting("Link", *one) for one in settings)


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("rail0", "rail0"),
        ("rail-0", r"rail\x2d0"),
        ("eth0.100", "eth0.100"),
        ("a+b@c", r"a\x2bb\x40c"),
        ("é", r"\xc3\xa9"),
    ],
)
def test_names_of_devices_in_names_of_units(name: str, escaped: str) -> None:
    assert systemd.escape(name) == escaped
    assert systemd.unescape(escaped) == name
    if program := shutil.which("systemd-escape"):
        assert subprocess.run([program, name], capture_output=True, text=True, check=True).stdout.strip() == escaped


def test_paths_and_devices_with_special_characters_stay_what_they_are() -> None:
    assert sriov_unit.format_unit("/a b/100%").splitlines()[3:9:5] == [
        "ConditionPathExists=/a b/100%%/gpufabric-sriov-%i.sh",
        "ExecStart=/bin/sh '/a b/100%%/gpufabric-sriov-%i.sh'",
    ]
    odd = qos_unit.text(Device("a+b", "mlx 0"), [Step(path="/sys/a'b", value="1")])
    assert "\nBindsTo=sys-subsystem-net-devices-a\\x2bb.device\n" in odd
    assert "ExecStartPre=/bin/sh -c \"until test -e '/sys/class/infiniband/mlx 0'; do sleep 1; done\"\n" in odd
