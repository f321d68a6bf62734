"""netdev_names with vfs and representors, on a machine whose VFs come, go and can be renamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import name_kernel, sysfs_tree
from tests.unit.support.module_run import run, warned
from tests.unit.support.name_kernel import add_representor, add_vf
from tests.unit.support.sysfs_tree import Host

FIRST, SECOND = "0000:18:00.0", "0000:40:00.0"
VFS = 16
RULES = "etc/udev/rules.d/70-gpufabric-names.rules"
RDMA_RULES = "etc/udev/rules.d/60-rdma-persistent-naming.rules"
PD = "rdma -j resource show pd"
PF0 = "/sys/bus/pci/devices/0000:18:00.0"
HEAD = """\
# Written by gpufabric.rdma.netdev_names, which removes it with state: absent.
ACTION!="add", GOTO="gpufabric_names_end"
SUBSYSTEM!="net", GOTO="gpufabric_names_end"
"""
END = 'GOTO="gpufabric_names_end"'
VF_RULES = "".join(f'TEST=="{PF0}/virtfn{n}/net/%k", NAME:="rail0v{n}", {END}\n' for n in range(VFS))
STANDS = f'KERNELS=="{FIRST}", ATTR{{phys_switch_id}}=="?*", ATTR{{phys_port_name}}'
REPRESENTOR_RULES = "".join(f'{STANDS}=="pf*vf{n}", NAME:="rail0r{n}", {END}\n' for n in range(VFS))
VF_PART = f"""\
TEST!="device/physfn", GOTO="gpufabric_names_no_vf"
{VF_RULES}LABEL="gpufabric_names_no_vf"
"""
REPRESENTOR_PART = f"""\
ATTR{{phys_port_name}}=="pf*vf*", GOTO="gpufabric_names_representor"
{END}
LABEL="gpufabric_names_representor"
{REPRESENTOR_RULES}"""
FOOT = 'LABEL="gpufabric_names_end"\n'


def rails(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    entry = {"driver": "mlx5_core", "address": None, "mtu": 9000}
    return [{"rail": name, "netdev": name, "pci": pci, **entry} for name, pci in pairs]


RAIL0 = rails(("rail0", FIRST))


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.reacts = lambda argv: name_kernel.rename_netdev(made, argv) or name_kernel.rename_rdma(made, argv)
    (path,) = [shown for shown in made.prints if shown.endswith("resource show qp")]
    made.prints[path] = "[]"
    made.prints["/usr/sbin/rdma"] = ""
    name_kernel.tell_addresses(made, FIRST)
    return made


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**host.options()}
    return run("netdev_names", capsys, check, **{"rails": RAIL0, "apply": "now", "vfs": True, **options, **params})


def everything(host: Host) -> dict[str, str]:
    tops = [path for top in ("etc", "var", "run") for path in (host.root / top).rglob("*")]
    tree = {str(path): path.read_text() for path in tops if path.is_file()}
    return {**tree, "links": ",".join(link["ifname"] for link in host.links())}


def netdevs(host: Host, pf: str = FIRST) -> list[str]:
    """The network devices of a PF's VFs, in the order of the VFs."""
    home = host.root / "sys/bus/pci/devices" / pf
    return [path.name for index in range(VFS) for path in (home / f"virtfn{index}" / "net").glob("*")]


def rdma_devices(host: Host, pf: str = FIRST) -> list[str]:
    home = host.root / "sys/bus/pci/devices" / pf
    return [path.name for index in range(VFS) for path in (home / f"virtfn{index}" / "infiniband").glob("*")]


@pytest.mark.proves("rail_names", "Ubuntu 24.04", by="fixture")
def test_rules_are_there_before_the_vfs(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys)
    assert (host.root / RULES).read_text() == HEAD + VF_PART + FOOT
    assert result["diff"]["after"]["files"][str(host.root / RULES)] == HEAD + VF_PART + FOOT
    assert result["diff"]["after"]["names"] == {FIRST: "rail0"}
    assert ["udevadm", "control", "--reload"] in host.ran


def test_nothing_is_named_that_is_not_asked_for(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    add_vf(host, FIRST, 0, "enp24s0v0", "mlx5_20")
    add_representor(host, FIRST, "pf0vf0", "enp24s0npf0vf0")
    result = call(host, capsys, vfs=False, rdma="rail")
    assert result["diff"]["after"]["names"] == {FIRST: "rail0"}
    assert not (host.root / RULES).exists()
    assert "virtfn" not in (host.root / RDMA_RULES).read_text()
    assert (netdevs(host), rdma_devices(host)) == (["enp24s0v0"], ["mlx5_20"])


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"vfs": False, "representors": True}, HEAD + REPRESENTOR_PART + FOOT),
        ({"representors": True}, HEAD + VF_PART + REPRESENTOR_PART + FOOT),
    ],
)
def test_each_kind_has_its_rules(
    host: Host, capsys: pytest.CaptureFixture[str], params: dict[str, Any], text: str
) -> None:
    call(host, capsys, **params)
    assert (host.root / RULES).read_text() == text


def test_what_is_there_is_renamed_now(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    for index in range(2):
        add_vf(host, FIRST, index, f"eth{index}")
    # VF 2 is bound to vfio-pci or in a pod.
    add_vf(host, FIRST, 2)
    add_vf(host, SECOND, 0, "eth9")
    add_representor(host, FIRST, "pf0vf1", "eth4")
    for other in ("pf0sf1", "c1pf0vf0", "pf0hpf"):
        add_representor(host, FIRST, other, f"kept-{other}")
    checked = call(host, capsys, check=True, representors=True)
    assert netdevs(host) == ["eth0", "eth1"]
    result = call(host, capsys, representors=True)
    assert {key: checked[key] for key in ("changed", "diff")} == {key: result[key] for key in ("changed", "diff")}
    first = {f"{FIRST} VF 0": "eth0", f"{FIRST} VF 1": "eth1", f"{FIRST} representor 1": "eth4", FIRST: "enp24s0np0"}
    assert result["diff"]["before"]["names"] == first
    assert result["diff"]["after"]["names"] == {
        f"{FIRST} VF 0": "rail0v0",
        f"{FIRST} VF 1": "rail0v1",
        f"{FIRST} representor 1": "rail0r1",
        FIRST: "rail0",
    }
    assert (netdevs(host), netdevs(host, SECOND)) == (["rail0v0", "rail0v1"], ["eth9"])
    record = json.loads((host.root / "var/lib/gpufabric/netdev_names.json").read_text())
    assert {key: entry["before"] for key, entry in record.items()} == first
    names = {path.name for path in (host.root / "sys/bus/pci/devices" / FIRST / "net").iterdir()}
    assert names == {"rail0", "rail0r1", "kept-pf0sf1", "kept-c1pf0vf0", "kept-pf0hpf"}


def test_a_second_run_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    add_vf(host, FIRST, 0, "eth0", "mlx5_20")
    add_representor(host, FIRST, "pf0vf0", "eth4")
    params = {"representors": True, "rdma": "rail"}
    call(host, capsys, **params)
    before = everything(host)
    host.ran.clear()
    assert call(host, capsys, **params)["changed"] is False
    assert everything(host) == before
    assert not [argv for argv in host.ran if argv[0] == "udevadm" or "set" in argv]


def test_a_vf_that_came_with_its_name_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    before = everything(host)
    # udev named it by our rule.
    add_vf(host, FIRST, 0, "rail0v0")
    assert call(host, capsys)["changed"] is False
    assert {**everything(host), "links": before["links"]} == before


@pytest.mark.parametrize("params", [{"state": "absent", "rails": []}, {"vfs": False}])
def test_first_names_come_back(host: Host, capsys: pytest.CaptureFixture[str], params: dict[str, Any]) -> None:
    add_vf(host, FIRST, 0, "eth0", "mlx5_20")
    add_representor(host, FIRST, "pf0vf0", "eth4")
    before = everything(host)
    call(host, capsys, vfs=False, rdma="rail")
    without = everything(host)
    call(host, capsys, representors=True, rdma="rail")
    # This one came with its name: it has no other one, and keeps it until it is made anew.
    add_vf(host, FIRST, 1, "rail0v1")
    assert call(host, capsys, **{"rdma": "rail", **params})["changed"] is True
    assert (netdevs(host), rdma_devices(host)) == (["eth0", "rail0v1"], ["mlx5_20"])
    wanted = before if "state" in params else without
    assert everything(host) == {**wanted, "links": wanted["links"] + ",rail0v1"}
    assert call(host, capsys, **{"rdma": "rail", **params})["changed"] is False


def test_a_rail_that_is_none_any_more_leaves_its_vfs(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    add_vf(host, FIRST, 0, "eth0")
    both = rails(("rail0", FIRST), ("rail1", SECOND))
    call(host, capsys, rails=both)
    result = call(host, capsys, rails=both[1:])
    assert result["diff"]["after"]["names"] == {SECOND: "rail1", FIRST: "enp24s0np0", f"{FIRST} VF 0": "eth0"}
    assert FIRST not in (host.root / RULES).read_text()


def busy_address(host: Host) -> None:
    links = host.links()
    address = {"scope": "global", "local": "10.0.0.9", "prefixlen": 24}
    next(link for link in links if link["ifname"] == "eth0")["addr_info"] = [address]
    host.set_links(links)


def busy_upper(host: Host) -> None:
    (host.root / "sys/bus/pci/devices" / FIRST / "virtfn0/net/eth0/upper_macvlan0").mkdir()


def busy_rdma(host: Host) -> None:
    host.prints[PD] = json.dumps([{"ifname": "mlx5_20", "pid": 4711, "comm": "python3"}])


def busy_unknown(host: Host) -> None:
    host.prints[PD] = "[{"


@pytest.mark.parametrize(
    ("busy", "apply", "second", "why"),
    [
        (busy_address, "now", "rail0v1", "it has the address 10.0.0.9/24"),
        (busy_upper, "now", "rail0v1", "macvlan0 is configured on it"),
        (busy_rdma, "now", "rail0v1", "python3[4711] holds its RDMA device"),
        (
            busy_unknown,
            "now",
            "eth1",
            "an unknown process (install the rdma tool of iproute2 to see it) holds its RDMA device",
        ),
        (lambda host: None, "boot", "eth1", "apply is boot"),
    ],
)
def test_a_vf_in_use_waits_for_a_boot(
    host: Host, capsys: pytest.CaptureFixture[str], busy: Any, apply: str, second: str, why: str
) -> None:
    add_vf(host, FIRST, 0, "eth0", "mlx5_20")
    add_vf(host, FIRST, 1, "eth1", "mlx5_21")
    busy(host)
    result = call(host, capsys, apply=apply)
    reason = f"{FIRST} VF 0 gets its name rail0v0 (now eth0) at the next boot: {why}"
    assert reason in result["reasons"]
    assert netdevs(host) == ["eth0", second]
    assert reason in host.inventory().reboot
    assert call(host, capsys, apply=apply)["changed"] is False


def give_address(host: Host, name: str, text: str = "203.0.113.7") -> None:
    address = [{"local": text, "prefixlen": 24, "scope": "global"}] if text else []
    host.set_links([{**one, "addr_info": address} if one["ifname"] == name else one for one in host.links()])


def put_on_bridge(host: Host, name: str, bridge: str = "br7") -> None:
    links = [{**one, "master": bridge} if one["ifname"] == name else one for one in host.links()]
    host.set_links([*links, {"ifname": bridge, "linkinfo": {"info_kind": "bridge"}}])


@pytest.mark.parametrize("params", [{"state": "absent", "rails": []}, {"vfs": False, "representors": False}])
def test_a_vf_and_a_representor_with_another_owner_keep_their_names(
    host: Host, capsys: pytest.CaptureFixture[str], params: dict[str, Any]
) -> None:
    """VF 1 came with its name, so that only its rule is ours; VF 2 and representor 2 have no owner."""
    for index in (0, 2):
        add_representor(host, FIRST, f"pf0vf{index}", f"eth4{index}")
    add_vf(host, FIRST, 0, "eth0", "mlx5_20")
    call(host, capsys, representors=True, rdma="rail")
    add_vf(host, FIRST, 1, "rail0v1", "rail0v1")
    add_vf(host, FIRST, 2, "rail0v2", "rail0v2")
    for name in ("rail0v0", "rail0v1"):
        give_address(host, name)
    put_on_bridge(host, "rail0r0")
    result = call(host, capsys, **{"representors": True, "rdma": "rail", **params})
    assert (result["reasons"], netdevs(host)) == ([], ["rail0v0", "rail0v1", "rail0v2"])
    tail = "Its name and the udev rule for it are kept; a run without this owner restores them"
    assert warned(result) == [
        f"{FIRST} VF 0 (rail0v0) is now used by another owner: address 203.0.113.7/24 (and 1 more). {tail}",
        f"{FIRST} representor 0 (rail0r0) is now used by another owner: bridge br7. {tail}",
    ]
    rules, rdma_rules = (host.root / RULES).read_text(), (host.root / RDMA_RULES).read_text()
    assert [name for name in ("v0", "v1", "v2", "r0", "r2") if f'"rail0{name}"' in rules] == ["v0", "v1", "r0"]
    assert [name for name in ("v0", "v1", "v2") if f'NAME_FIXED rail0{name}"' in rdma_rules] == ["v0", "v1"]
    assert rdma_devices(host)[:2] == ["rail0v0", "rail0v1"]
    assert (
        json.loads((host.root / "var/lib/gpufabric/netdev_names.json").read_text())[f"{FIRST} VF 0"]["before"] == "eth0"
    )
    assert call(host, capsys, **{"representors": True, "rdma": "rail", **params})["changed"] is False
    for name in ("rail0v0", "rail0v1"):
        give_address(host, name, "")
    host.set_links([{**one, "master": None} for one in host.links()])
    result = call(host, capsys, **{"representors": True, "rdma": "rail", **params})
    assert (warned(result), netdevs(host)) == ([], ["eth0", "rail0v1", "rail0v2"])
    assert not (host.root / RULES).exists()


@pytest.mark.parametrize("again", [{"state": "absent", "rails": []}, {"rails": rails(("rail1", SECOND))}])
def test_vfs_of_a_port_with_another_owner_keep_their_names(
    host: Host, capsys: pytest.CaptureFixture[str], again: dict[str, Any]
) -> None:
    """Their port was a rail and carries something else now. VF 3 is to come, and is named as before."""
    add_vf(host, FIRST, 0, "eth0", "mlx5_20")
    add_vf(host, FIRST, 1)
    add_representor(host, FIRST, "pf0vf0", "eth4")
    params = {"representors": True, "rdma": "rail"}
    call(host, capsys, **params)
    entry = {"before": {"addresses": []}, "set": {"addresses": []}, "owners": []}
    (host.root / "var/lib/gpufabric/rail_links.json").write_text(json.dumps({FIRST: entry}))
    give_address(host, "rail0")
    result = call(host, capsys, **{**params, **again})
    assert (result["reasons"], netdevs(host), rdma_devices(host)) == ([], ["rail0v0"], ["rail0v0"])
    assert warned(result) == [
        f"{FIRST} (rail0) is now used by another owner: address 203.0.113.7/24. Its names are not "
        "restored; the record is kept, and a run without this owner restores them"
    ]
    rules = (host.root / RULES).read_text()
    assert all(name in rules for name in ("rail0v0", "rail0v3", "rail0r0"))
    assert "NAME_FIXED rail0v3" in (host.root / RDMA_RULES).read_text()
    record = json.loads((host.root / "var/lib/gpufabric/netdev_names.json").read_text())
    assert [record[f"{FIRST} {one}"]["before"] for one in ("VF 0", "representor 0")] == ["eth0", "eth4"]
    assert call(host, capsys, **{**params, **again})["changed"] is False
    give_address(host, "rail0", "")
    result = call(host, capsys, **{**params, **again})
    assert (warned(result), netdevs(host), rdma_devices(host)) == ([], ["eth0"], ["mlx5_20"])


def test_only_links_that_are_up_go_down_and_up(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    add_vf(host, FIRST, 0, "eth0")
    call(host, capsys)
    assert [argv[4:] for argv in host.ran if argv[:3] == ["ip", "link", "set"]] == [
        ["enp24s0np0", "down"],
        ["enp24s0np0", "name", "rail0"],
        ["eth0", "name", "rail0v0"],
        ["rail0", "up"],
    ]


def test_names_of_vfs_can_change_places(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    add_vf(host, FIRST, 0, "rail0v1")
    add_vf(host, FIRST, 1, "rail0v0")
    call(host, capsys)
    assert netdevs(host) == ["rail0v0", "rail0v1"]


def test_only_links_of_ports_are_in_an_initramfs(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = host.root / "boot/initrd.img-6.8.0-51-generic"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    host.prints[f"lsinitramfs {path}"] = "usr/lib/modules/x/kernel/drivers/net/mlx5_core.ko\n"
    host.prints["/usr/bin/lsinitramfs"] = ""
    assert call(host, capsys, vfs=False)["initramfs"] == [str(path)]
    result = call(host, capsys, vfs=True)
    assert (result["changed"], result["initramfs"]) == (True, [])


def test_rdma_devices_of_vfs_have_the_name_of_the_vf(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    rules = host.root / "usr/lib/udev/rules.d/60-rdma-persistent-naming.rules"
    rules.parent.mkdir(parents=True)
    rules.write_text('ACTION=="add", SUBSYSTEM=="infiniband", PROGRAM="rdma_rename %k NAME_FALLBACK"\n')
    add_vf(host, FIRST, 0, "eth0", "mlx5_20")
    add_vf(host, FIRST, 1, "", "mlx5_21")
    add_vf(host, SECOND, 0, "eth9", "mlx5_22")
    result = call(host, capsys, rdma="rail", representors=True)
    assert result["diff"]["before"]["rdma"]["names"] == {
        FIRST: "mlx5_0",
        f"{FIRST} VF 0": "mlx5_20",
        f"{FIRST} VF 1": "mlx5_21",
    }
    assert result["diff"]["after"]["rdma"]["names"] == {
        FIRST: "rail0",
        f"{FIRST} VF 0": "rail0v0",
        f"{FIRST} VF 1": "rail0v1",
    }
    assert (rdma_devices(host), rdma_devices(host, SECOND)) == (["rail0v0", "rail0v1"], ["mlx5_22"])
    add, fixed = 'ACTION=="add", SUBSYSTEM=="infiniband"', 'PROGRAM="rdma_rename %k NAME_FIXED'
    end = 'GOTO="gpufabric_rdma_end"'
    lines = (host.root / RDMA_RULES).read_text().splitlines()
    assert lines[1:3] + lines[-3:] == [
        f'{add}, KERNELS=="{FIRST}", {fixed} rail0", {end}',
        f'{add}, TEST=="{PF0}/virtfn0/infiniband/%k", {fixed} rail0v0", {end}',
        f'{add}, TEST=="{PF0}/virtfn{VFS - 1}/infiniband/%k", {fixed} rail0v{VFS - 1}", {end}',
        f'{add}, PROGRAM="rdma_rename %k NAME_FALLBACK"',
        'LABEL="gpufabric_rdma_end"',
    ]
    assert call(host, capsys, rdma="rail", representors=True)["changed"] is False


@pytest.mark.parametrize(
    ("path", "text", "params", "message"),
    [
        (
            "etc/systemd/network/05-vf.link",
            "[Match]\nPath=pci-0000:18:00.5\n[Link]\nName=mine\n",
            {},
            "VF 3 is to be named rail0v3, but {path} names it mine",
        ),
        (
            # Ours comes before any .link file; that somebody gives another name is a conflict all the same.
            "etc/systemd/network/90-vf.link",
            "[Match]\nPath=pci-0000:18:00.[23]\n[Link]\nName=mine\n",
            {},
            "VF 0 is to be named rail0v0, but {path} names it mine",
        ),
        (
            "etc/udev/rules.d/70-vf.rules",
            'SUBSYSTEM=="net", ACTION=="add", KERNELS=="0000:18:01.*", NAME="vf%n"\n',
            {},
            "VF 6 is to be named rail0v6, but {path} names it vf%n",
        ),
        (
            # As the SR-IOV operator writes it.
            "etc/udev/rules.d/20-switchdev.rules",
            'SUBSYSTEM=="net", ACTION=="add|move", ATTRS{phys_switch_id}=="b83fd20300001800", '
            'ATTR{phys_port_name}=="pf0vf*", IMPORT{program}="/etc/udev/switchdev-vf-link-name.sh", '
            'NAME="enp24s0np0_$env{NUMBER}"\n',
            {"representors": True},
            "representor 0 is to be named rail0r0, but {path} names it enp24s0np0_$env{{NUMBER}}",
        ),
        (
            "run/systemd/network/05-rep.link",
            "[Match]\nPath=pci-0000:18:00.0\nDriver=mlx5e_rep\n[Link]\nName=rep\n",
            {"representors": True},
            "representor 0 is to be named rail0r0, but {path} names it rep",
        ),
    ],
)
def test_who_would_name_a_vf_too_is_found_before_there_are_vfs(
    host: Host, capsys: pytest.CaptureFixture[str], path: str, text: str, params: dict[str, Any], message: str
) -> None:
    file = host.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    before = everything(host)
    result = call(host, capsys, **params)
    shown = message.format(path=file)
    assert result["msg"] == f"netdev_names: {FIRST} {shown}. Remove that file, or its rule for this port"
    assert everything(host) == before
    # Who does not ask for these names is not kept from those of ports.
    assert call(host, capsys, vfs=False)["changed"] is True


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("etc/systemd/network/05-all.link", "[Match]\nOriginalName=*\nDriver=mlx5e_rep\n[Link]\nNamePolicy=path\n"),
        ("etc/systemd/network/05-same.link", "[Match]\nPath=pci-0000:18:00.5\n[Link]\nName=rail0v3\n"),
        ("etc/systemd/network/05-mac.link", "[Match]\nMACAddress=00:00:00:00:00:01\n[Link]\nName=fast0\n"),
        ("etc/udev/rules.d/70-net.rules", 'SUBSYSTEM=="net", ATTR{address}=="02:00:00:00:00:99", NAME="x"\n'),
        ("etc/udev/rules.d/70-net.rules", 'SUBSYSTEM=="net", ATTR{phys_port_name}=="pf0sf*", NAME="x"\n'),
    ],
)
def test_files_that_name_no_vf_are_fine(host: Host, capsys: pytest.CaptureFixture[str], path: str, text: str) -> None:
    (host.root / path).parent.mkdir(parents=True, exist_ok=True)
    (host.root / path).write_text(text)
    assert call(host, capsys, representors=True)["changed"] is True


def test_a_vf_that_is_there_is_judged_by_what_it_is(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    add_vf(host, FIRST, 0, "eth0", driver="igbvf")
    path = host.root / "etc/systemd/network/05-driver.link"
    path.parent.mkdir(parents=True)
    path.write_text("[Match]\nDriver=igbvf\n[Link]\nName=guest\n")
    assert call(host, capsys)["msg"] == (
        f"netdev_names: {FIRST} VF 0 is to be named rail0v0, but {path} names it guest. Remove that file, or its rule "
        "for this port"
    )


def test_a_name_that_another_device_has_is_refused_though_the_vf_is_to_come(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    host.set_links([*host.links(), {"ifname": "dummy0", "altnames": ["rail0v7"], "mtu": 1500}])
    assert call(host, capsys)["msg"] == (
        f"netdev_names: {FIRST} VF 7 is to be named rail0v7, but dummy0 has this name. Rename or remove it"
    )


def test_an_rdma_name_that_another_vf_has_is_refused(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    add_vf(host, SECOND, 0, "eth9", "rail0v1")
    assert call(host, capsys, rdma="rail")["msg"] == (
        f"netdev_names: the RDMA device of {FIRST} VF 1 is to be named rail0v1, but another one has this name. Rename "
        "or remove it"
    )
    assert not (host.root / RULES).exists()


def test_another_rule_that_names_rdma_devices_is_refused(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = host.root / "etc/udev/rules.d/70-mine.rules"
    path.parent.mkdir(parents=True)
    path.write_text('# rdma_rename\nSUBSYSTEM=="infiniband", PROGRAM="rdma_rename %k NAME_FIXED a"\n')
    assert call(host, capsys, rdma="rail")["msg"] == (
        f"netdev_names: {path} is not managed by this collection and names RDMA devices. Remove it, or set rdma: keep"
    )
    path.write_text("# rdma_rename\n")
    assert call(host, capsys, rdma="rail")["changed"] is True


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            rails(("storage-rail0", FIRST)),
            f"{FIRST} VF 15 would be named storage-rail0v15, which has 16 characters, expected at most 15. Give the "
            "rail a shorter name, or set vfs and representors to false",
        ),
        (
            rails(("rail0", FIRST), ("rail0v1", SECOND)),
            f"{SECOND} and {FIRST} VF 1 would both be named rail0v1. Rename one of the rails",
        ),
    ],
)
def test_names_that_cannot_be(
    host: Host, capsys: pytest.CaptureFixture[str], wanted: list[dict[str, Any]], message: str
) -> None:
    before = everything(host)
    assert call(host, capsys, rails=wanted)["msg"] == f"netdev_names: {message}"
    assert everything(host) == before
    assert call(host, capsys, rails=wanted, vfs=False)["changed"] is True


def test_a_port_that_says_nothing_of_addresses_is_served_too(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=rails(("rail1", SECOND)))
    assert 'virtfn15/net/%k", NAME:="rail1v15"' in (host.root / RULES).read_text()


def test_preflight_says_the_same(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / "etc/systemd/network").mkdir(parents=True)
    path = host.root / "etc/systemd/network/05-vf.link"
    path.write_text("[Match]\nPath=pci-0000:18:00.2\n[Link]\nName=mine\n")
    options = {**host.options()}
    problem = f"{FIRST} VF 0 is to be named rail0v0, but {path} names it mine"
    assert problem not in str(run("preflight", capsys, rails=RAIL0, **options)["problems"])
    assert problem in str(run("preflight", capsys, rails=RAIL0, names_vfs=True, **options)["problems"])
    long = rails(("storage-rail0", FIRST))
    found = run("preflight", capsys, rails=long, names_representors=True, **options)["problems"]
    assert [text for text in found if "16 characters" in text] == [
        f"{FIRST} representor 15 would be named storage-rail0r15, which has 16 characters, expected at most 15. Give "
        "the rail a shorter name, or set vfs and representors to false"
    ]
