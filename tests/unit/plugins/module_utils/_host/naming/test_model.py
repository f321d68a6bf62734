"""Rules for VFs and representors, asked of a real udev; names and addresses by tables."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.pci import PciAddress
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.rail_ports import Rail
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.naming import model as naming_model
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.naming.model import REPRESENTOR, VF, Function, Wish

PF = "0000:18:00.0"


def rail(name: str, pci: str = PF) -> Rail:
    return Rail(name, pci, "mlx5_core", name, None, 9000)


def functions(pf: str, count: int) -> list[Function]:
    return [Function(pf, kind, index) for index in range(count) for kind in (VF, REPRESENTOR)]


@pytest.mark.parametrize(
    ("pf", "index", "offset", "stride", "vf"),
    [
        # mlx5: right behind the PFs.
        ("0000:18:00.0", 0, 2, 1, "0000:18:00.2"),
        ("0000:18:00.0", 6, 2, 1, "0000:18:01.0"),
        ("0000:18:00.1", 7, 9, 1, "0000:18:02.1"),
        # igb of the lab: `lspci` shows 01:10.0, 01:10.2 and so on.
        ("0000:01:00.0", 1, 128, 2, "0000:01:10.2"),
        # Over the end of a bus.
        ("0000:18:1f.7", 0, 1, 1, "0000:19:00.0"),
    ],
)
def test_where_a_vf_is(pf: str, index: int, offset: int, stride: int, vf: str) -> None:
    assert str(PciAddress.parse(pf).vf(index, offset, stride)) == vf


@given(
    rails=st.lists(st.from_regex(r"[a-z][a-z0-9rv]{0,12}", fullmatch=True), min_size=1, max_size=4, unique=True),
    count=st.integers(0, 40),
)
def test_names_fit_and_are_each_given_once_or_are_refused(rails: list[str], count: int) -> None:
    given_rails = tuple(rail(name, f"0000:{number:02x}:00.0") for number, name in enumerate(rails))
    slots = [one for given_rail in given_rails for one in functions(given_rail.pci, count)]
    try:
        names = Wish(given_rails, (VF, REPRESENTOR), now=True).names(slots)
    except InputError as error:
        assert re.search(r"at most 15|would both be named", str(error))
        longest = max(map(len, rails)) + 1 + len(str(max(count - 1, 0)))
        assert longest > naming_model.MAX_NAME or any(
            re.fullmatch(f"{one}[rv][0-9]+", two) for one in rails for two in rails
        )
        return
    assert len(names) == len(rails) * (1 + 2 * count) == len(set(names.values()))
    assert max(map(len, names.values())) <= naming_model.MAX_NAME


@pytest.mark.parametrize(
    ("vfs", "representors", "named"),
    [
        (False, False, {"rail0"}),
        (True, False, {"rail0", "rail0v0"}),
        (False, True, {"rail0", "rail0r0"}),
        (True, True, {"rail0", "rail0v0", "rail0r0"}),
    ],
)
def test_only_what_is_asked_for_gets_a_name(vfs: bool, representors: bool, named: set[str]) -> None:
    wish = Wish((rail("rail0"),), naming_model.kinds(vfs, representors), now=True)
    slots = [*functions(PF, 1), *functions("0000:99:00.0", 3)]
    assert set(wish.names(slots).values()) == named
    assert (naming_model.format_rules(slots, wish.names(slots)) is None) == (named == {"rail0"})


# What a real udev does with our rules, in namespaces of its own: links stand for VFs, as far as rules can see. One of
# them is named by udev alone, one stands for a representor, and one is nobody's.
ASK = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mount -t sysfs none /sys
ip link add va type veth peer name vb
ip link add vc type veth peer name vd
mkdir -p /run/udev/rules.d
cp {folder}/*.rules /run/udev/rules.d
ip link set dev vc alias pf0vf12
mount -t tmpfs none /sys/bus/pci/devices
mkdir -p /sys/bus/pci/devices/{pf}/virtfn3/net/va
for link in va vc vd; do
    echo "asked about $link"
    udevadm test --action=add "/sys/class/net/$link" 2>&1
done
"""


def can_ask() -> bool:
    try:
        asked = "mount --make-rprivate / && mount -t sysfs none /sys && udevadm --version"
        return subprocess.run(["unshare", "-mn", "sh", "-c", asked], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_ask(), reason="needs root, unshare and udevadm")
def test_a_real_udev_names_by_these_rules(tmp_path: Path) -> None:
    wish = Wish((rail("rail0"),), (VF, REPRESENTOR), now=True)
    slots = functions(PF, 16)
    text = naming_model.format_rules(slots, wish.names(slots)) or ""
    # A virtual link stands on no PCI function and no switch: these conditions are asked of what it has instead.
    text = text.replace("device/physfn", "address").replace(f'KERNELS=="{PF}"', 'KERNELS=="vc"')
    text = text.replace("phys_port_name", "ifalias").replace("phys_switch_id", "address")
    (tmp_path / naming_model.FILE).write_text(text)
    (tmp_path / "99-later.rules").write_text('SUBSYSTEM=="net", ACTION=="add", NAME="later0"\n')
    script = ASK.format(folder=tmp_path, pf=PF)
    done = subprocess.run(["unshare", "-mn", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    answers = dict(re.findall(r"^asked about (\w+)\n(.*?)(?=^asked about|\Z)", done.stdout, re.MULTILINE | re.DOTALL))
    named = {link: set(re.findall(r"\b(?:rail0\w*|later0)\b", answer)) for link, answer in answers.items()}
    assert named == {"va": {"rail0v3"}, "vc": {"rail0r12"}, "vd": {"later0"}}
