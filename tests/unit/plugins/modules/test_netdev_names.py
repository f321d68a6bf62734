"""netdev_names through main() on a machine whose links can be renamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run, warned
from tests.unit.support.name_kernel import rename_netdev, rename_rdma
from tests.unit.support.sysfs_tree import Host

FIRST, SECOND = "0000:18:00.0", "0000:40:00.0"
LINK = """\
# Written by gpufabric.rdma.netdev_names, which removes it with state: absent.
[Match]
Path=pci-0000:18:00.0
Driver=mlx5_core

[Link]
Name=rail0
AlternativeNamesPolicy=database onboard slot path
MACAddressPolicy=persistent
"""


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.idle()
    made.reacts = lambda argv: rename_netdev(made, argv) or rename_rdma(made, argv)
    return made


def rails(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    entry = {"driver": "mlx5_core", "address": None, "mtu": 9000}
    return [{"rail": name, "netdev": name, "pci": pci, **entry} for name, pci in pairs]


RAILS = rails(("rail0", FIRST), ("rail1", SECOND))


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**host.options()}
    return run("netdev_names", capsys, check, **{"rails": RAILS, "apply": "now", **options, **params})


def everything(root: Path) -> dict[str, str]:
    return {
        str(path): path.read_text()
        for top in ("etc", "var", "run")
        for path in (root / top).rglob("*")
        if path.is_file()
    }


@pytest.mark.proves("rail_names", "Ubuntu 24.04", by="fixture")
def test_ports_are_renamed_now_and_the_file_keeps_it(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys)
    assert (result["changed"], result["reboot_required"], result["reasons"]) == (True, False, [])
    assert result["diff"]["before"] == {"files": {}, "names": {FIRST: "enp24s0np0", SECOND: "enp64s0np0"}}
    assert result["diff"]["after"]["names"] == {FIRST: "rail0", SECOND: "rail1"}
    assert (host.root / "etc/systemd/network/10-gpufabric-rail0.link").read_text() == LINK
    assert [argv for argv in host.ran if argv[:2] == ["ip", "link"]] == [
        ["ip", "link", "set", "dev", "enp24s0np0", "down"],
        ["ip", "link", "set", "dev", "enp64s0np0", "down"],
        ["ip", "link", "set", "dev", "enp24s0np0", "name", "rail0"],
        ["ip", "link", "set", "dev", "enp64s0np0", "name", "rail1"],
        ["ip", "link", "set", "dev", "rail0", "up"],
        ["ip", "link", "set", "dev", "rail1", "up"],
    ]
    record = host.root / "var/lib/gpufabric/netdev_names.json"
    assert json.loads(record.read_text()) == {
        FIRST: {"before": "enp24s0np0", "set": ["rail0"]},
        SECOND: {"before": "enp64s0np0", "set": ["rail1"]},
    }
    assert record.stat().st_mode & 0o777 == 0o600


def test_a_second_run_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    before = everything(host.root)
    host.ran.clear()
    assert call(host, capsys)["changed"] is False
    assert everything(host.root) == before
    assert [argv for argv in host.ran if argv[0] in ("udevadm", "networkctl") or argv[:2] == ["ip", "link"]] == []


def test_check_mode_says_the_same_and_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything(host.root)
    checked = call(host, capsys, check=True)
    assert everything(host.root) == before
    done = call(host, capsys)
    assert {key: checked[key] for key in ("changed", "diff")} == {key: done[key] for key in ("changed", "diff")}


def test_absent_gives_the_first_names_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything(host.root)
    call(host, capsys)
    result = call(host, capsys, state="absent", rails=[])
    assert result["diff"]["after"] == {"files": {}, "names": {FIRST: "enp24s0np0", SECOND: "enp64s0np0"}}
    assert everything(host.root) == before
    assert call(host, capsys, state="absent", rails=[])["changed"] is False


def test_a_port_that_is_no_rail_any_more_gets_its_name_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    result = call(host, capsys, rails=RAILS[:1])
    assert result["diff"]["after"]["names"] == {FIRST: "rail0", SECOND: "enp64s0np0"}
    assert not (host.root / "etc/systemd/network/10-gpufabric-rail1.link").exists()


def test_names_can_change_places(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    result = call(host, capsys, rails=rails(("rail0", SECOND), ("rail1", FIRST)))
    assert result["diff"]["after"]["names"] == {SECOND: "rail0", FIRST: "rail1"}
    assert json.loads((host.root / "var/lib/gpufabric/netdev_names.json").read_text()) == {
        FIRST: {"before": "enp24s0np0", "set": ["rail1"]},
        SECOND: {"before": "enp64s0np0", "set": ["rail0"]},
    }


def test_other_settings_of_a_later_file_are_kept(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = host.root / "etc/systemd/network/50-rings.link"
    path.parent.mkdir(parents=True)
    path.write_text("[Match]\nDriver=mlx5_core\n[Link]\nNamePolicy=path\nRxBufferSize=8192\n")
    call(host, capsys, rails=RAILS[:1])
    text = (path.parent / "10-gpufabric-rail0.link").read_text()
    assert text.partition("[Link]\n")[2] == "Name=rail0\nRxBufferSize=8192\n"


def test_boot_leaves_a_reason(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys, apply="boot", rails=RAILS[:1])
    reason = "0000:18:00.0 gets its name rail0 (now enp24s0np0) at the next boot: apply is boot"
    assert (result["changed"], result["reboot_required"], result["reasons"]) == (True, True, [reason])
    assert (host.root / "run/gpufabric/reboot.d/netdev_names").read_text() == reason + "\n"
    assert call(host, capsys, apply="boot", rails=RAILS[:1])["changed"] is False
    assert host.inventory().reboot == (reason,)


def test_a_port_with_an_address_waits_for_a_boot(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys, rails=rails(("store", "0000:29:00.0")))
    assert result["reasons"] == [
        "0000:29:00.0 gets its name store (now enp41s0np0) at the next boot: it has the address 10.1.1.11/24"
    ]


def test_waiting_spreads_to_the_name_that_is_not_free(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [*rails(("a", "0000:29:00.0")), *rails(("b", FIRST))]
    wanted[0]["netdev"], wanted[1]["netdev"] = "free0", "enp41s0np0"
    assert call(host, capsys, rails=wanted)["reasons"][1] == (
        "0000:18:00.0 gets its name enp41s0np0 (now enp24s0np0) at the next boot: enp41s0np0 is still in use"
    )


def write(path: str, text: str) -> dict[str, str]:
    return {path: text}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            write("etc/systemd/network/05-mine.link", "[Match]\nPath=pci-0000:18:*\n[Link]\nName=fast0\n"),
            "0000:18:00.0 (enp24s0np0) is to be named rail0, but {root}/etc/systemd/network/05-mine.link names it "
            "fast0. Remove that file, or its rule for this port",
        ),
        (
            write("run/systemd/network/10-netplan-x.link", "[Match]\nMACAddress=B8:3F:D2:00:18:00\n[Link]\nName=x\n"),
            "0000:18:00.0 (enp24s0np0) is to be named rail0, but {root}/run/systemd/network/10-netplan-x.link "
            "names it x. Remove that file, or its rule for this port",
        ),
        (
            write(
                "etc/udev/rules.d/70-net.rules",
                'SUBSYSTEM=="net", ACTION=="add", ATTR{address}=="b8:3f:d2:00:18:00", NAME="ib0"\n',
            ),
            "0000:18:00.0 (enp24s0np0) is to be named rail0, but {root}/etc/udev/rules.d/70-net.rules names it "
            "ib0. Remove that file, or its rule for this port",
        ),
        (
            write("etc/systemd/network/01-all.link", "[Match]\nOriginalName=*\n[Link]\nNamePolicy=path\n"),
            "0000:18:00.0 (enp24s0np0) is to be named rail0, but {root}/etc/systemd/network/01-all.link names it "
            "by a policy. Remove that file, or its rule for this port",
        ),
    ],
)
def test_who_would_name_the_port_too_is_found_first(
    host: Host, capsys: pytest.CaptureFixture[str], files: dict[str, str], message: str
) -> None:
    for path, text in files.items():
        (host.root / path).parent.mkdir(parents=True, exist_ok=True)
        (host.root / path).write_text(text)
    before = everything(host.root)
    result = call(host, capsys, rails=RAILS[:1])
    assert result["failed"] and result["msg"] == "netdev_names: " + message.format(root=host.root)
    assert everything(host.root) == before


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("etc/systemd/network/05-other.link", "[Match]\nMACAddress=00:00:00:00:00:01\n[Link]\nName=fast0\n"),
        ("etc/systemd/network/05-same.link", "[Match]\nPath=pci-0000:18:00.0\n[Link]\nName=rail0\n"),
        ("etc/systemd/network/05-representors.link", "[Match]\nDriver=mlx5e_rep\n[Link]\nName=rep\n"),
        ("etc/systemd/network/20-late.link", "[Match]\nPath=pci-0000:18:00.0\n[Link]\nName=late\n"),
        ("etc/udev/rules.d/70-net.rules", '# NAME="x"\nSUBSYSTEM=="net", KERNELS=="0000:99:00.0", NAME="x"\n'),
        ("etc/udev/rules.d/71-match.rules", 'SUBSYSTEM=="net", NAME=="eth0", TAG+="x"\n'),
        # The SR-IOV operator's, for representors.
        ("etc/udev/rules.d/20-switchdev.rules", 'SUBSYSTEM=="net", ATTR{phys_port_name}=="pf0vf*", NAME="a_$env{N}"\n'),
    ],
)
def test_files_that_do_not_reach_the_port_are_fine(
    host: Host, capsys: pytest.CaptureFixture[str], path: str, text: str
) -> None:
    (host.root / path).parent.mkdir(parents=True, exist_ok=True)
    (host.root / path).write_text(text)
    assert call(host, capsys, rails=RAILS[:1])["changed"] is True


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (rails(("bond0", FIRST)), "0000:18:00.0 is to be named bond0, but bond0 has this name. Rename or remove it"),
        (
            rails(("a", "0000:82:00.0")),
            "rail a: 0000:82:00.0: eno1 carries the default route (of bond0). Such a port cannot be a rail",
        ),
        (rails(("a", FIRST), ("b", FIRST)), "rails a and b have the same pci: 0000:18:00.0"),
        (rails(("a", "18")), "'18' is not a PCI address; expected the form 0000:18:00.0"),
        (
            rails(("a/b", FIRST)),
            "rail a/b: 'a/b' cannot be the name of a network device; expected a letter, then at most 14 "
            "letters, digits, "
            "'_' or '-'",
        ),
    ],
)
def test_refusals(host: Host, capsys: pytest.CaptureFixture[str], wanted: list[dict[str, Any]], message: str) -> None:
    assert call(host, capsys, rails=wanted)["msg"] == f"netdev_names: {message}"


def test_a_member_of_a_bridge_is_refused(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (link,) = host.root.glob(f"sys/devices/**/{FIRST}/net/*")
    (link / "master").symlink_to("/devices/virtual/net/br7")
    assert call(host, capsys)["msg"] == (
        f"netdev_names: rail rail0: {FIRST} ({link.name}) is a member of br7. A rail must not be a member of another "
        "device: remove it from there, or choose another port"
    )


def test_what_the_kernel_refuses_is_said_and_the_first_names_are_kept(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    host.reacts = lambda argv: "RTNETLINK answers: Device or resource busy" if "name" in argv else None
    result = call(host, capsys, rails=RAILS[:1])
    assert result["msg"] == (
        "netdev_names: 'ip link set dev enp24s0np0 name rail0' failed with status 2: "
        "RTNETLINK answers: Device or resource busy"
    )
    assert json.loads((host.root / "var/lib/gpufabric/netdev_names.json").read_text())[FIRST]["before"] == "enp24s0np0"


def test_an_alternative_name_gives_way(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    links = host.links()
    next(link for link in links if link["ifname"] == "enp24s0np0")["altnames"] = ["rail0"]
    host.set_links(links)
    call(host, capsys, rails=RAILS[:1])
    assert ["ip", "link", "property", "del", "dev", "enp24s0np0", "altname", "rail0"] in host.ran


UBUNTU = "6.8.0-51-generic"


def image(host: Host, name: str, listed: str, program: str) -> str:
    """An initramfs, and the program that lists it."""
    path = host.root / "boot" / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    host.prints[f"{program} {path}"] = listed
    # Found by its name, called by it.
    host.prints[f"/usr/bin/{program}"] = ""
    return str(path)


def renewals(host: Host) -> list[list[str]]:
    return [argv for argv in host.ran if argv[0] in ("update-initramfs", "dracut")]


MLX = "usr/lib/modules/x/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.zst\n"


@pytest.mark.proves("rail_names", "Debian 12", "Ubuntu 22.04", "RHEL 9", "RHEL 10", "Rocky 9", by="unit")
@pytest.mark.proves("rail_names", "Rocky 10", "SLES 15", by="unit")
@pytest.mark.parametrize(
    ("program", "name", "renewal"),
    [
        ("lsinitramfs", f"initrd.img-{UBUNTU}", ["update-initramfs", "-u", "-k", UBUNTU]),
        ("lsinitrd", f"initramfs-{UBUNTU}.img", ["dracut", "--force", "--kver", UBUNTU]),
        ("lsinitrd", f"initrd-{UBUNTU}", ["dracut", "--force", "--kver", UBUNTU]),
    ],
)
def test_an_initramfs_with_the_driver_is_made_anew(
    host: Host, capsys: pytest.CaptureFixture[str], program: str, name: str, renewal: list[str]
) -> None:
    path = image(host, name, MLX, program)
    assert call(host, capsys, check=True)["initramfs"] == [] and renewals(host) == []
    assert call(host, capsys)["initramfs"] == [path]
    assert renewals(host) == [renewal]
    assert call(host, capsys)["initramfs"] == []
    assert call(host, capsys, state="absent", rails=[])["initramfs"] == [path]
    assert len(renewals(host)) == 2 and not (host.root / "var/lib/gpufabric").exists()


def test_an_initramfs_without_the_driver_is_left_alone(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    image(host, f"initrd.img-{UBUNTU}", MLX.replace("mlx5_core", "mlx5_core_other"), "lsinitramfs")
    assert call(host, capsys)["initramfs"] == [] and renewals(host) == []


def test_an_initramfs_that_could_not_be_made_is_made_by_the_next_run(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    path = image(host, f"initrd.img-{UBUNTU}", MLX, "lsinitramfs")
    host.reacts = lambda argv: "no space left" if argv[0] == "update-initramfs" else rename_netdev(host, argv)
    assert call(host, capsys)["msg"] == (
        f"netdev_names: 'update-initramfs -u -k {UBUNTU}' failed with status 2: no space left"
    )
    host.reacts = lambda argv: rename_netdev(host, argv)
    result = call(host, capsys)
    assert (result["changed"], result["initramfs"]) == (False, [path])


def test_a_firmware_update_that_changes_the_suffix_changes_nothing(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys)
    before = everything(host.root)
    # After the update and a boot udev would say enp24s0f0np0; the .link file came first.
    links = host.links()
    for link in links:
        link["altnames"] = [name.replace("np0", "f0np0") for name in link.get("altnames", [])]
    host.set_links(links)
    assert call(host, capsys)["changed"] is False
    assert everything(host.root) == before


def test_a_port_that_lost_its_name_after_a_firmware_update_gets_it_again(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys)
    rename_netdev(host, ["ip", "link", "set", "dev", "rail0", "name", "enp24s0f0np0"])
    result = call(host, capsys)
    assert result["diff"]["before"]["names"][FIRST] == "enp24s0f0np0"
    assert result["diff"]["after"]["names"][FIRST] == "rail0"
    assert json.loads((host.root / "var/lib/gpufabric/netdev_names.json").read_text())[FIRST]["before"] == "enp24s0np0"


def test_a_port_with_queue_pairs_gets_its_name_at_the_next_boot(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.prints[sysfs_tree.QUEUE_PAIRS] = json.dumps([{"ifname": "mlx5_0", "pid": 4711, "comm": "python3"}])
    result = call(host, capsys, rails=RAILS[:1])
    assert result["reasons"] == [
        f"{FIRST} gets its name rail0 (now enp24s0np0) at the next boot: it is in use: 1 RDMA queue pair of "
        "python3[4711]"
    ]


def test_a_port_that_has_another_owner_now_keeps_its_names(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rdma="rail")
    entry = {"before": {"addresses": []}, "set": {"addresses": []}, "owners": ["address 10.1.1.11/24"]}
    (host.root / "var/lib/gpufabric/rail_links.json").write_text(json.dumps({SECOND: entry}))
    links = host.links()
    address = [{"local": "203.0.113.7", "prefixlen": 24, "scope": "global"}]
    host.set_links([{**one, "addr_info": address} if one["ifname"] == "rail1" else one for one in links])
    for again in ({"rails": RAILS[:1], "rdma": "rail"}, {"state": "absent", "rails": []}):
        if "state" in again:  # what others name stops no teardown
            (host.root / "etc/udev/rules.d/70-x.rules").write_text('PROGRAM="rdma_rename %k NAME_FALLBACK"\n')
        result = call(host, capsys, **again)
        assert (result["reboot_required"], result["reasons"]) == (False, [])
        assert warned(result) == [
            "0000:40:00.0 (rail1) is now used by another owner: address 203.0.113.7/24. Its names are "
            "not restored; the record is kept, and a run without this owner restores them"
        ]
        assert (host.root / "etc/systemd/network/10-gpufabric-rail1.link").exists()
        assert "NAME_FIXED rail1" in (host.root / "etc/udev/rules.d/60-rdma-persistent-naming.rules").read_text()
        assert (
            json.loads((host.root / "var/lib/gpufabric/netdev_names.json").read_text())[SECOND]["before"]
            == "enp64s0np0"
        )
        assert host.inventory().port(SECOND).rdma == ("rail1",)
        assert call(host, capsys, **again)["changed"] is False
    host.set_links(links)
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert not (host.root / "var/lib/gpufabric/netdev_names.json").exists()
    assert host.inventory().port(SECOND).title == "0000:40:00.0 (enp64s0np0)"


def test_a_name_that_another_tool_gave_since_stays(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rdma="rail")
    rename_netdev(host, ["ip", "link", "set", "dev", "rail1", "name", "storage0"])
    rename_rdma(host, ["rdma", "dev", "set", "rail1", "name", "storage0"])
    checked = call(host, capsys, check=True, state="absent", rails=[])
    result = call(host, capsys, state="absent", rails=[])
    changed = (
        "Another tool changed it, so it is not restored, and its record is removed. Before the first change it was"
    )
    assert (
        warned(result)
        == warned(checked)
        == [
            f"0000:40:00.0: name: found storage0, expected rail1 as set by this collection. {changed} enp64s0np0",
            f"0000:40:00.0: RDMA device: found storage0, expected rail1 as set by this collection. {changed} mlx5_2",
        ]
    )
    assert (host.inventory().port(SECOND).title, host.inventory().port(SECOND).rdma) == (
        "0000:40:00.0 (storage0)",
        ("storage0",),
    )
    assert host.inventory().port(FIRST).title == "0000:18:00.0 (enp24s0np0)"
    assert not list((host.root / "etc").rglob("*gpufabric*")) and not list(
        (host.root / "var/lib/gpufabric").glob("*_names.json")
    )
    again = call(host, capsys, state="absent", rails=[])
    assert (again["changed"], warned(again)) == (False, [])


@pytest.mark.parametrize("apply", ["now", "boot"])
def test_a_name_of_a_run_that_was_cut_off_or_waits_is_restored(
    host: Host, capsys: pytest.CaptureFixture[str], apply: str
) -> None:
    """The second run gives another name: the earlier one, and a step on the way to it, are names of this collection."""
    before = everything(host.root)
    call(host, capsys, rdma="rail")
    if apply == "now":
        rename, host.reacts = host.reacts, lambda argv: "power" if "name" in argv else None
    call(host, capsys, rails=rails(("store0", FIRST), ("rail1", SECOND)), rdma="rail", apply=apply)
    if apply == "now":
        host.reacts = rename
        rename_netdev(host, ["ip", "link", "set", "dev", "rail0", "name", "gpufabric0"])
    result = call(host, capsys, state="absent", rails=[])
    assert warned(result) == []
    assert host.inventory().port(FIRST).title == "0000:18:00.0 (enp24s0np0)"
    after = everything(host.root)
    assert {path: text for path, text in after.items() if "reboot.d" not in path} == before
