"""rail_links through main() on a machine whose links take what ip and networkd tell them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run, warned
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import io as links_io

FIRST, SECOND, STORE = "0000:18:00.0", "0000:40:00.0", "0000:29:00.0"
RULES = {"arp_announce": "0", "arp_ignore": "0", "rp_filter": "1"}
NETWORK = """\
# Written by gpufabric.rdma.rail_links, which removes it with state: absent.
[Match]
Path=pci-0000:18:00.0
Driver=mlx5_core

[Link]
MTUBytes=9000
RequiredForOnline=no

[Network]
Address=192.168.0.11/24
ConfigureWithoutCarrier=yes
IPv6AcceptRA=no
LLDP=yes
"""
SYSCTL = """\
# Written by gpufabric.rdma.rail_links, which removes it with state: absent.
net.ipv4.conf.rail0.arp_announce = 2
net.ipv4.conf.rail0.arp_ignore = 1
net.ipv4.conf.rail0.rp_filter = 2
"""


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.idle()
    made.reacts = lambda argv: obey(made, argv)
    for link in made.links():
        for key, value in RULES.items():
            path = tmp_path / "proc/sys/net/ipv4/conf" / link["ifname"] / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value)
    monkeypatch.setattr(links_io.time, "sleep", lambda seconds: None)
    return made


def obey(host: Host, argv: list[str]) -> str | None:
    """Do what the kernel does for MTU and addresses; it never has to bring a link up here."""
    if argv[0] == "nmcli":
        up_and_down(host, argv)
        return None
    links_io = host.links()
    if argv[:3] == ["ip", "link", "add"]:
        host.set_links([*links_io, vlan(host, argv[6], argv[4], int(argv[-1]))])
        return None
    if argv[:3] == ["ip", "link", "del"]:
        host.set_links([link for link in links_io if link["ifname"] != argv[-1]])
        return None
    link = next((link for link in links_io if link["ifname"] in argv), None)
    if link is None or "show" in argv:
        return None
    if "mtu" in argv:
        link["mtu"] = int(argv[-1])
        for path in host.root.glob(f"sys/bus/pci/devices/*/net/{link['ifname']}/mtu"):
            path.write_text(argv[-1])
    elif argv[2] == "replace":
        local, prefix = argv[3].split("/")
        link["addr_info"].append({"family": "inet", "local": local, "prefixlen": int(prefix), "scope": "global"})
    elif argv[-1] == "up":
        link["flags"] = [*link.get("flags", ()), "UP"]
    elif argv[2] == "del":
        link["addr_info"] = [one for one in link["addr_info"] if f"{one['local']}/{one['prefixlen']}" != argv[3]]
    host.set_links(links_io)
    return None


def vlan(host: Host, name: str, port: str, number: int) -> dict[str, Any]:
    """Return a new VLAN interface as ip shows it, and give it the values of the kernel for new interfaces."""
    for key, value in RULES.items():
        path = host.root / "proc/sys/net/ipv4/conf" / name / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value)
    info = {"info_kind": "vlan", "info_data": {"protocol": "802.1Q", "id": number}}
    return {"ifname": name, "link": port, "linkinfo": info, "mtu": 1500, "flags": ["BROADCAST"], "addr_info": []}


ACTIVE = "nmcli -t -f NAME connection show --active"


def up_and_down(host: Host, argv: list[str]) -> None:
    """Do what NetworkManager does with connections: one whose file is gone goes down."""
    names = host.prints.get(ACTIVE, "Wired\\: 1\n").splitlines()
    if "up" in argv:
        names = [*names, argv[6]]
    if argv[1:] == ["connection", "reload"]:
        left = {path.stem for path in host.root.glob("etc/NetworkManager/system-connections/*")}
        if (host.root / "etc/netplan/90-gpufabric-rails.yaml").exists():
            left |= {name for name in names if name.startswith("netplan-")}
        names = [name for name in names if "gpufabric" not in name or name in left]
    host.prints[ACTIVE] = "".join(f"{name}\n" for name in names)


def rail(name: str, pci: str, address: str | None, mtu: int = 9000) -> dict[str, Any]:
    return {"rail": name, "netdev": name, "pci": pci, "driver": "mlx5_core", "address": address, "mtu": mtu}


RAILS = [rail("rail0", FIRST, "192.168.0.11/24")]


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**host.options()}
    return run("rail_links", capsys, check, **{"rails": RAILS, **options, **params})


def snapshot(host: Host) -> tuple[dict[str, str], str]:
    paths = [path for top in ("etc", "var", "run", "proc") for path in (host.root / top).rglob("*") if path.is_file()]
    return {str(path): path.read_text() for path in paths}, host.prints[sysfs_tree.IP]


def test_rails_are_configured_now_and_for_boots(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys)
    assert (result["changed"], result["reboot_required"], result["reasons"]) == (True, False, [])
    assert result["diff"]["before"]["links"] == {FIRST: {"mtu": 4200, "up": True, "addresses": [], "sysctl": RULES}}
    assert (host.root / "etc/systemd/network/10-gpufabric-rail0.network").read_text() == NETWORK
    assert (host.root / "etc/sysctl.d/90-gpufabric-rails.conf").read_text() == SYSCTL
    link = host.inventory().port(FIRST).netdev
    assert link is not None and (link.mtu, link.addresses) == (9000, ("192.168.0.11/24",))
    # The port has not its final name yet; what counts is where it is.
    assert (host.root / "proc/sys/net/ipv4/conf/enp24s0np0/arp_ignore").read_text() == "1"
    assert ["networkctl", "reload"] in host.ran


def test_a_second_run_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    before = snapshot(host)
    host.ran.clear()
    assert call(host, capsys)["changed"] is False
    assert snapshot(host) == before
    assert ["networkctl", "reload"] not in host.ran


def test_a_repair_is_for_hosts_that_were_configured_before(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(host)
    assert call(host, capsys, only_configured=True)["changed"] is False
    assert snapshot(host) == before
    call(host, capsys)
    configured = snapshot(host)
    link = host.inventory().port(FIRST).netdev
    assert link is not None
    obey(host, ["ip", "link", "set", "dev", link.name, "mtu", "1500"])
    result = call(host, capsys, only_configured=True)
    assert (result["changed"], result["diff"]["before"]["links"][FIRST]["mtu"]) == (True, 1500)
    assert snapshot(host) == configured


def test_check_mode_says_the_same_and_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(host)
    checked = call(host, capsys, check=True)
    assert snapshot(host) == before
    done = call(host, capsys)
    assert checked["diff"] == done["diff"] and checked["changed"]


def test_absent_gives_the_state_before_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(host)
    call(host, capsys, rails=[rail("store", STORE, "10.1.9.11/24", 4000)])
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    after = snapshot(host)
    assert after[0] == before[0]
    assert json.loads(after[1]) == json.loads(before[1])
    assert call(host, capsys, state="absent", rails=[])["changed"] is False


def test_an_address_that_another_host_may_have_is_not_set(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    doubtful = [{**RAILS[0], "doubt": "gpu-[01-08]"}]
    before = snapshot(host)
    assert call(host, capsys, rails=doubtful)["msg"] == (
        "rail_links: rail rail0: 192.168.0.11/24 may be in use: the addresses of gpu-[01-08] are unknown. Run "
        "without --limit, or set rdma_host.number of this host, or of those whose ports are missing"
    )
    assert snapshot(host) == before
    # One that the port has, and the way back.
    call(host, capsys)
    assert call(host, capsys, rails=doubtful)["changed"] is False
    assert call(host, capsys, rails=doubtful, state="absent")["changed"] is True


def test_the_state_before_is_recorded_once(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    call(host, capsys, rails=[rail("rail0", FIRST, "192.168.0.12/24", 8000)])
    record = json.loads((host.root / "var/lib/gpufabric/rail_links.json").read_text())
    ours = {"arp_announce": "2", "arp_ignore": "1", "rp_filter": "2"}
    assert record == {
        FIRST: {
            "before": {"mtu": 4200, "up": True, "addresses": [], "sysctl": RULES},
            "owners": [],
            "rail": "rail0",
            "set": {"mtu": 8000, "up": True, "addresses": ["192.168.0.12/24"], "sysctl": ours},
        }
    }


def add_address(host: Host, netdev: str, local: str, prefix: int) -> None:
    links_io = host.links()
    link = next(link for link in links_io if link["ifname"] == netdev)
    link["addr_info"].append({"family": "inet", "local": local, "prefixlen": prefix, "scope": "global"})
    host.set_links(links_io)


def connect(host: Host, address: str) -> None:
    """Let the host have an established connection of an IPv4 address."""
    words = "".join(f"{int(part):02X}" for part in reversed(address.split(".")))
    (host.root / "proc/net/tcp").write_text(f"   0: {words}:0016 0901010A:C7F4 01 0:0 0:0\n")


OWNED = (
    "0000:40:00.0 (enp64s0np0) is now used by another owner: address 203.0.113.7/24, the default "
    "route. MTU, state and addresses of its link are not restored; the record is kept, and a run without "
    "this owner restores them"
)


@pytest.mark.parametrize("again", [{}, {"state": "absent", "rails": []}], ids=["one rail less", "absent"])
def test_a_port_that_has_another_owner_now_only_loses_the_rail_s_address(
    host: Host, capsys: pytest.CaptureFixture[str], again: dict[str, Any]
) -> None:
    call(host, capsys, rails=[*RAILS, rail("rail1", SECOND, "192.168.1.11/24")])
    add_address(host, "enp64s0np0", "203.0.113.7", 24)
    connect(host, "203.0.113.7")
    route = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\nenp64s0np0\t0\t010071CB\t0003\t0\t0\t0\t0\n"
    (host.root / "proc/net/route").write_text(route)
    host.ran.clear()
    result = call(host, capsys, **again)
    assert [argv for argv in host.ran if argv[0] == "ip" and "enp64s0np0" in argv] == [
        ["ip", "address", "del", "192.168.1.11/24", "dev", "enp64s0np0"]
    ]
    assert warned(result) == [OWNED]
    record = json.loads((host.root / "var/lib/gpufabric/rail_links.json").read_text())
    assert record[SECOND]["before"]["mtu"] == 4200
    # It is no rail any more, so the plan does not expect it among the rails.
    assert (record[SECOND]["rail"], record.get(FIRST, {}).get("rail")) == ("", None if again else "rail0")
    result = call(host, capsys, **again)
    assert (result["changed"], warned(result)) == (False, [OWNED])
    # The owner leaves: what was recorded is restored.
    (host.root / "proc/net/route").write_text(route.splitlines()[0])
    obey(host, ["ip", "address", "del", "203.0.113.7/24", "dev", "enp64s0np0"])
    assert call(host, capsys, **again)["changed"] is True
    link = host.inventory().port(SECOND).netdev
    assert link is not None and (link.mtu, link.addresses) == (4200, ())


def test_a_host_that_is_an_image_now_is_restored_as_far_as_its_owners_allow(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys, rails=[*RAILS, rail("rail1", SECOND, "192.168.1.11/24")])
    add_address(host, "enp64s0np0", "203.0.113.7", 24)
    (host.root / "run/ostree-booted").touch()
    assert (
        "the system of this host is an image"
        in call(host, capsys, rails=[rail("rail0", FIRST, "192.168.0.12/24")])["msg"]
    )
    result = call(host, capsys, state="absent", rails=[])
    assert (result["changed"], len(warned(result))) == (True, 1)
    assert host.inventory().port(FIRST).netdev.addresses == ()  # type: ignore[union-attr]


def test_owners_from_before_us_do_not_stop_the_way_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    vlan = {"ifname": "enp24s0np0.70", "link": "enp24s0np0", "linkinfo": {"info_kind": "vlan"}, "mtu": 1500}
    host.set_links([*host.links(), vlan])
    before = host.prints[sysfs_tree.IP]
    call(host, capsys)
    call(host, capsys)
    result = call(host, capsys, state="absent", rails=[])
    assert (warned(result), json.loads(host.prints[sysfs_tree.IP])) == ([], json.loads(before))
    assert not (host.root / "var/lib/gpufabric/rail_links.json").exists()


def test_what_the_network_announces_owns_no_port(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    links_io = host.links()
    link = next(one for one in links_io if one["ifname"] == "enp24s0np0")
    announced = {"family": "inet6", "local": "2001:db8::7", "prefixlen": 64, "scope": "global", "dynamic": True}
    link["addr_info"].append(announced)
    host.set_links(links_io)
    zero = "0" * 32
    learned = f"{zero} 00 {zero} 00 fe80{'0' * 27}1 00000400 00000001 00000000 00450003 enp24s0np0\n"
    (host.root / "proc/net/ipv6_route").write_text(learned.replace(f"{zero} 00", f"20010db8{'0' * 24} 20", 1))
    assert warned(call(host, capsys, state="absent", rails=[])) == []
    assert not (host.root / "var/lib/gpufabric/rail_links.json").exists()


@pytest.mark.parametrize("again", [{"rails": RAILS}, {"state": "absent", "rails": []}], ids=["one rail less", "absent"])
def test_kept_addresses_that_appeared_since_are_of_others(
    host: Host, capsys: pytest.CaptureFixture[str], again: dict[str, Any]
) -> None:
    rails = [*RAILS, rail("store", STORE, None)]
    call(host, capsys, rails=rails)
    add_address(host, "enp41s0np0", "203.0.113.7", 24)
    call(host, capsys, rails=rails)
    assert "address 203.0.113.7/24" in warned(call(host, capsys, **again))[0]
    link = host.inventory().port(STORE).netdev
    assert link is not None and link.addresses == ("10.1.1.11/24", "203.0.113.7/24")


def test_the_only_address_and_one_with_connections_stay_with_another_owner(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys)
    route = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\nenp24s0np0\t0\t010071CB\t0003\t0\t0\t0\t0\n"
    (host.root / "proc/net/route").write_text(route)
    assert call(host, capsys, state="absent", rails=[])["changed"] is True  # the files
    link = host.inventory().port(FIRST).netdev
    assert link is not None and (link.mtu, link.addresses) == (9000, ("192.168.0.11/24",))
    add_address(host, "enp24s0np0", "203.0.113.7", 24)
    connect(host, "192.168.0.11")
    assert call(host, capsys, state="absent", rails=[])["changed"] is False


def test_what_others_changed_since_is_not_undone(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    obey(host, ["ip", "link", "set", "dev", "enp24s0np0", "mtu", "1500"])
    (host.root / "proc/sys/net/ipv4/conf/enp24s0np0/arp_ignore").write_text("8")
    changed = (
        "Another tool changed it, so it is not restored, and its record is removed. Before the first change it was"
    )
    assert warned(call(host, capsys, state="absent", rails=[])) == [
        f"0000:18:00.0 (enp24s0np0): mtu: found 1500, expected 9000 as set by this collection. {changed} 4200",
        f"0000:18:00.0 (enp24s0np0): arp_ignore: found 8, expected 1 as set by this collection. {changed} 0",
    ]
    link = host.inventory().port(FIRST).netdev
    assert link is not None and (link.mtu, link.addresses) == (1500, ())
    found = {key: (host.root / f"proc/sys/net/ipv4/conf/enp24s0np0/{key}").read_text() for key in RULES}
    assert found == {**RULES, "arp_ignore": "8"}


@pytest.mark.parametrize("state", ["present", "absent"])
def test_ports_in_use_are_not_changed_without_consent(
    host: Host, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    if state == "absent":
        call(host, capsys)
    host.prints[sysfs_tree.QUEUE_PAIRS] = json.dumps([{"ifname": "mlx5_0", "pid": 4711, "comm": "python3"}])
    before = snapshot(host)
    message = (
        "rail_links: 0000:18:00.0 (enp24s0np0): a change of its link would disturb its users: 1 RDMA queue pair of "
        "python3[4711]. Stop these users and retry, or set rdma_disrupt_users: true"
    )
    assert call(host, capsys, state=state)["msg"] == message
    assert call(host, capsys, check=True, state=state)["msg"] == message
    assert snapshot(host) == before
    assert call(host, capsys, state=state, disrupt_users=True)["changed"] is True
    # Nothing to change, nothing to refuse.
    assert call(host, capsys, state=state)["changed"] is False


def test_what_cannot_be_read_counts_as_in_use(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    del host.prints[sysfs_tree.QUEUE_PAIRS]
    assert call(host, capsys)["msg"] == (
        "rail_links: 0000:18:00.0 (enp24s0np0): a change of its link would disturb its users: queue pairs that cannot "
        "be read (install the rdma tool of iproute2). Stop these users and retry, or set rdma_disrupt_users: true"
    )


def test_kept_addresses_keep_their_file(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    folder = host.root / "etc/systemd/network"
    folder.mkdir(parents=True)
    (folder / "50-mine.network").write_text("[Match]\nName=enp41s0np0\n[Network]\nAddress=10.1.1.11/24\n")
    result = call(host, capsys, rails=[rail("store", STORE, None)])
    assert list(result["diff"]["after"]["files"]) == [f"{host.root}/etc/sysctl.d/90-gpufabric-rails.conf"]
    refused = call(host, capsys, rails=[rail("store", STORE, None, 4000)])
    assert refused["msg"] == (
        "rail_links: rail store: 0000:29:00.0 (enp41s0np0) keeps its addresses, and therefore its file "
        f"{folder}/50-mine.network, but has MTU 9000. Set MTUBytes=4000 in that file"
    )


@pytest.mark.parametrize(
    ("rails", "message"),
    [
        (
            [rail("rail0", FIRST, "192.168.0.11/24", 9999), rail("rail1", SECOND, None, 20)],
            "rail rail0: 0000:18:00.0 (enp24s0np0) supports an MTU from 68 to 9978, 9999 requested. Change the MTU "
            "of the fabric; rail rail1: 0000:40:00.0 (enp64s0np0) supports an MTU from 68 to 9978, 20 requested. "
            "Change the MTU of the fabric",
        ),
        (
            [rail("rail0", "0000:19:00.0", None), rail("rail1", "0000:82:00.0", None)],
            "rail rail0: no network port at 0000:19:00.0 on gpu-11; its ports: 0000:18:00.0 (enp24s0np0), "
            "0000:29:00.0 (enp41s0np0), 0000:40:00.0 (enp64s0np0), 0000:4f:00.0 (enp79s0np0), 0000:5e:00.0 "
            "(enp94s0np0), 0000:82:00.0 (eno1), 0000:82:00.1 (eno2), 0000:9a:00.0 (enp154s0np0), 0000:aa:00.0 "
            "(enp170s0np0), 0000:c0:00.0 (enp192s0np0), 0000:ce:00.0 (enp206s0np0), 0000:dc:00.0 (enp220s0np0); rail "
            "rail1: 0000:82:00.0: eno1 carries the default route (of bond0). Such a port cannot be a rail",
        ),
        (
            [rail("rail0", FIRST, "192.168.0.256/24")],
            "rail rail0: '192.168.0.256/24' is not an address with prefix: '192.168.0.256/24' does not "
            "appear to be an IPv4 "
            "or IPv6 interface",
        ),
        (
            [rail("rail0", FIRST, "10.9.0.1/24"), rail("rail1", SECOND, "10.9.0.1/24")],
            "rails rail0 and rail1 have the same address: 10.9.0.1/24",
        ),
    ],
)
def test_all_problems_come_before_the_first_write(
    host: Host, capsys: pytest.CaptureFixture[str], rails: list[dict[str, Any]], message: str
) -> None:
    before = snapshot(host)
    assert call(host, capsys, rails=rails)["msg"] == f"rail_links: {message}"
    assert snapshot(host) == before


def test_a_file_that_comes_first_is_named(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = host.root / "etc/systemd/network/05-all.network"
    path.parent.mkdir(parents=True)
    path.write_text("[Match]\nName=en*\n[Network]\nDHCP=yes\n")
    assert call(host, capsys)["msg"] == (
        f"rail_links: rail rail0: {path} also matches 0000:18:00.0 (enp24s0np0) and takes precedence. Remove the "
        "file, or narrow its match"
    )


def runs(host: Host, *services: str) -> None:
    """Let these network services run on the host, and no others."""
    for unit in ("NetworkManager", "systemd-networkd"):
        folder = host.root / f"sys/fs/cgroup/system.slice/{unit}.service"
        if unit in services:
            folder.mkdir(parents=True, exist_ok=True)
        elif folder.exists():
            folder.rmdir()


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("services", "manager", "message"),
    [
        (
            (),
            "auto",
            "the network of gpu-11 is managed by no known manager. Supported are systemd-networkd, NetworkManager, "
            "and netplan with one of them. Enable one for the rails, or exclude the host",
        ),
        (
            ("NetworkManager", "systemd-networkd"),
            "auto",
            "Both NetworkManager and systemd-networkd are active on gpu-11. Set manager to networkd or "
            "networkmanager to choose which one configures the rails",
        ),
        (
            ("systemd-networkd",),
            "networkmanager",
            "manager is networkmanager, which is not active on gpu-11 (found: systemd-networkd). Set manager to "
            "one that is active",
        ),
        (
            ("systemd-networkd",),
            "netplan",
            "manager is netplan, but netplan is not installed on gpu-11 (found: systemd-networkd). Install it, or "
            "set another manager",
        ),
    ],
)
def test_it_must_be_clear_who_manages_the_network(
    host: Host, capsys: pytest.CaptureFixture[str], services: tuple[str, ...], manager: str, message: str
) -> None:
    runs(host, *services)
    before = snapshot(host)
    assert call(host, capsys, manager=manager)["msg"] == f"rail_links: {message}"
    assert snapshot(host) == before


@pytest.mark.proves("rail_links", "RHEL 9", "RHEL 10", "Rocky 9", "Rocky 10", by="unit")
def test_networkmanager_gets_connections_and_brings_them_up(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager")
    before = snapshot(host)
    folder = host.root / "etc/NetworkManager"
    checked = call(host, capsys, check=True)
    assert call(host, capsys)["diff"] == checked["diff"]
    path = folder / "system-connections/gpufabric-rail0.nmconnection"
    assert "[match]\npath=pci-0000:18:00.0;\ndriver=mlx5_core;\n\n[ethernet]\nmtu=9000\n" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert (folder / "conf.d/90-gpufabric-devices.conf").read_text().splitlines()[1:] == [
        "[device-gpufabric-rails]",
        "match-device=mac:b8:3f:d2:00:18:00;",
        "ignore-carrier=1",
    ]
    assert [argv for argv in host.ran if argv[0] in ("nmcli", "networkctl") and "--active" not in argv] == [
        ["nmcli", "general", "reload", "conf"],
        ["nmcli", "connection", "load", str(path)],
        ["nmcli", "--wait", "20", "connection", "up", "id", "gpufabric-rail0", "ifname", "enp24s0np0"],
    ]
    assert call(host, capsys)["changed"] is False
    host.ran.clear()
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert snapshot(host)[0] == before[0]
    assert ["nmcli", "connection", "reload"] in host.ran


def test_a_connection_that_did_not_come_up_is_tried_again(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager")
    host.reacts = lambda argv: "Error: device is strictly unmanaged" if "up" in argv else obey(host, argv)
    message = call(host, capsys)["msg"]
    assert message == (
        "rail_links: 'nmcli --wait 20 connection up id gpufabric-rail0 ifname enp24s0np0' failed with status 2: "
        "Error: device is strictly unmanaged"
    )
    assert call(host, capsys)["msg"] == message
    host.reacts = lambda argv: obey(host, argv)
    assert call(host, capsys)["diff"]["before"]["connections"] == []
    assert call(host, capsys)["changed"] is False


def test_networkmanager_leaves_rails_of_networkd_alone(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager", "systemd-networkd")
    call(host, capsys, manager="networkd")
    assert (host.root / "etc/NetworkManager/conf.d/90-gpufabric-devices.conf").read_text().splitlines()[1:] == [
        "[device-gpufabric-rails]",
        "match-device=mac:b8:3f:d2:00:18:00;",
        "managed=0",
    ]
    # It lets go before the other one takes the link. Only when it starts does it heed the file.
    lets_go = ["nmcli", "device", "set", "enp24s0np0", "managed", "no"]
    assert host.ran.index(lets_go) < host.ran.index(["networkctl", "reload"])
    host.ran.clear()
    assert call(host, capsys, manager="networkd")["changed"] is False
    assert lets_go not in host.ran
    call(host, capsys, state="absent", rails=[])
    assert ["nmcli", "device", "set", "enp24s0np0", "managed", "yes"] in host.ran


def test_rails_move_from_one_manager_to_another(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager", "systemd-networkd")
    before = snapshot(host)
    call(host, capsys, manager="networkd")
    host.ran.clear()
    result = call(host, capsys, manager="networkmanager")
    assert sorted(path.rpartition("/")[2] for path in result["diff"]["after"]["files"]) == [
        "90-gpufabric-devices.conf",
        "90-gpufabric-rails.conf",
        "gpufabric-rail0.nmconnection",
    ]
    moves = [argv for argv in host.ran if argv[0] in ("networkctl", "nmcli") and "--active" not in argv]
    assert (moves[0], moves[-1][3:5]) == (["networkctl", "reload"], ["connection", "up"])
    call(host, capsys, manager="networkd")
    call(host, capsys, state="absent", rails=[])
    assert snapshot(host)[0] == before[0]


def test_a_connection_of_somebody_else_is_named(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager")
    path = put(
        host.root / "etc/NetworkManager/system-connections/Storage",
        "[connection]\nid=Storage\ntype=ethernet\ninterface-name=enp24s0np0\n",
    )
    before = snapshot(host)
    assert call(host, capsys)["msg"] == (
        f"rail_links: rail rail0: {path} also matches 0000:18:00.0 (enp24s0np0) and takes precedence. Remove the "
        "file, or narrow its match"
    )
    assert snapshot(host) == before


def test_addresses_that_no_file_gives_are_not_made_fixed(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager")
    kept = [rail("store", STORE, None), rail("rail0", FIRST, None)]
    assert call(host, capsys, rails=kept)["msg"] == (
        "rail_links: rail store: 0000:29:00.0 (enp41s0np0) has 10.1.1.11/24, but no file configures this port. Add "
        "one with the address and MTU 9000, or let the plan assign the address"
    )
    assert call(host, capsys, rails=kept[1:])["changed"] is True
    text = (host.root / "etc/NetworkManager/system-connections/gpufabric-rail0.nmconnection").read_text()
    assert "[ipv4]\nmethod=disabled\n" in text


def test_ifupdown_is_named(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(host.root / "etc/network/interfaces.d/rails", "auto enp24s0np0\niface enp24s0np0 inet dhcp\n")
    assert call(host, capsys)["msg"] == (
        f"rail_links: rail rail0: {path} also matches 0000:18:00.0 (enp24s0np0) and takes precedence. Remove the "
        "file, or narrow its match"
    )


def with_netplan(host: Host, text: str = "network: {version: 2}\n") -> Path:
    host.prints["/usr/sbin/netplan"] = ""
    return put(host.root / "etc/netplan/50-mine.yaml", text)


@pytest.mark.proves("rail_links", "Ubuntu 22.04", "Ubuntu 24.04", by="unit")
def test_netplan_gets_a_file_of_its_own_and_only_rails_are_reconfigured(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    with_netplan(host)
    before = snapshot(host)
    assert call(host, capsys)["changed"] is True
    path = host.root / "etc/netplan/90-gpufabric-rails.yaml"
    assert yaml.safe_load(path.read_text())["network"]["ethernets"]["gpufabric-rail0"] == {
        "match": {"macaddress": "b8:3f:d2:00:18:00", "driver": "mlx5_core"},
        "renderer": "networkd",
        "mtu": 9000,
        "dhcp4": False,
        "dhcp6": False,
        "accept-ra": False,
        "link-local": ["ipv6"],
        "optional": True,
        "ignore-carrier": True,
        "addresses": ["192.168.0.11/24"],
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert [argv for argv in host.ran if argv[0] in ("netplan", "networkctl", "nmcli")] == [
        ["netplan", "generate"],
        ["networkctl", "reload"],
    ]
    assert call(host, capsys)["changed"] is False
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert snapshot(host)[0] == before[0]


def test_folders_among_the_files_of_managers_are_no_files(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    with_netplan(host)
    for folder in ("run/systemd/network/10-netplan-a.network.d", "etc/network/interfaces.d/old"):
        (host.root / folder).mkdir(parents=True)
    assert call(host, capsys)["changed"] is True


def test_a_change_of_somebody_else_that_waits_in_netplan_is_not_applied(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    with_netplan(host)
    waiting = host.root / "run/systemd/network/10-netplan-eno1.network"

    def generate(argv: list[str]) -> str | None:
        if argv == ["netplan", "generate"]:
            put(waiting, "[Match]\nName=eno1\n")
        return obey(host, argv)

    host.reacts = generate
    # Warnings of earlier runs in this process stand before it.
    assert call(host, capsys)["warnings"][-1]["event"]["msg"] == (
        f"netplan generate also changed {waiting}: /etc/netplan has changes that were not applied. systemd-networkd "
        "was not reloaded, and the rails were configured with ip. Run 'netplan apply' when these changes may take "
        "effect"
    )
    assert ["networkctl", "reload"] not in host.ran


def test_a_definition_of_somebody_else_is_named_with_its_file(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = with_netplan(host, "network:\n  version: 2\n  ethernets:\n    enp24s0np0:\n      dhcp4: true\n")
    put(host.root / "run/systemd/network/10-netplan-enp24s0np0.network", "[Match]\nName=enp24s0np0\n")
    assert call(host, capsys)["msg"] == (
        f"rail_links: rail rail0: 'enp24s0np0' in {path} (netplan) also matches 0000:18:00.0 (enp24s0np0) and takes "
        "precedence. Remove the file, or narrow its match"
    )
    kept = call(host, capsys, rails=[rail("rail0", FIRST, None)])
    assert kept["msg"] == (
        "rail_links: rail rail0: 0000:18:00.0 (enp24s0np0) keeps its addresses, and therefore its file 'enp24s0np0' "
        f"in {path} (netplan), but has MTU 4200. Set mtu: 9000 in that file"
    )


def test_netplan_over_networkmanager_brings_its_connection_up(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager")
    with_netplan(host)
    assert call(host, capsys)["changed"] is True
    assert [argv for argv in host.ran if argv[0] in ("netplan", "nmcli") and "--active" not in argv] == [
        ["netplan", "generate"],
        ["nmcli", "connection", "reload"],
        ["nmcli", "--wait", "20", "connection", "up", "id", "netplan-gpufabric-rail0", "ifname", "enp24s0np0"],
    ]
    pair = [*RAILS, rail("rail1", SECOND, "192.168.0.12/24")]
    assert call(host, capsys, rails=pair)["msg"] == (
        "rail_links: rails rail0, rail1 need source routing, and netplan cannot pass routing rules to NetworkManager. "
        "Set manager: networkmanager, or source_routing: never"
    )


def test_rails_of_one_subnet_get_routing_tables(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    rules: list[dict[str, Any]] = [{"priority": 0, "src": "all", "table": "254"}]
    routes: list[dict[str, Any]] = [{"dst": "default", "gateway": "10.0.0.1", "dev": "bond0"}]

    def route(argv: list[str]) -> str | None:
        if argv[:3] == ["ip", "rule", "add"]:
            rules.append({"priority": int(argv[-1]), "src": argv[4], "table": argv[6]})
        elif argv[:3] == ["ip", "route", "replace"]:
            routes.append({"dst": argv[3], "dev": argv[5], "prefsrc": argv[7], "table": argv[-1], "scope": "link"})
        elif argv[:3] == ["ip", "rule", "del"]:
            rules[:] = [one for one in rules if one["src"] != argv[4]]
        elif argv[:3] == ["ip", "route", "del"]:
            routes[:] = [one for one in routes if one.get("prefsrc") != argv[7]]
        host.prints["ip -N -j rule show"] = json.dumps(rules)
        host.prints["ip -N -j -4 route show table all"] = json.dumps(routes)
        return obey(host, argv)

    host.reacts = route
    pair = [*RAILS, rail("rail1", SECOND, "192.168.0.12/24")]
    result = call(host, capsys, rails=pair)
    assert result["diff"]["before"]["routing"] == []
    assert result["diff"]["after"]["routing"] == [
        "192.168.0.0/24 dev enp24s0np0 src 192.168.0.11 scope link table 27600",
        "192.168.0.0/24 dev enp64s0np0 src 192.168.0.12 scope link table 27601",
        "from 192.168.0.11 lookup 27600 priority 27600",
        "from 192.168.0.12 lookup 27601 priority 27601",
    ]
    text = (host.root / "etc/systemd/network/10-gpufabric-rail1.network").read_text()
    assert text.endswith(
        "[Route]\nDestination=192.168.0.0/24\nScope=link\nPreferredSource=192.168.0.12\nTable=27601\n\n"
        "[RoutingPolicyRule]\nFrom=192.168.0.12\nTable=27601\nPriority=27601\n"
    )
    assert call(host, capsys, rails=pair)["changed"] is False
    assert call(host, capsys, state="absent", rails=[])["diff"]["after"]["routing"] == []
    assert (len(rules), len(routes)) == (1, 1)


DUAL = [{**RAILS[0], "ipv6": {"address": "fd00::b/64"}}]


def with_address(host: Host, address: str, **flags: Any) -> None:
    """Give the first port an IPv6 address that this collection did not set."""
    links = host.links()
    link = next(link for link in links if link["ifname"] == "enp24s0np0")
    local, prefix = address.split("/")
    link["addr_info"].append(
        {"family": "inet6", "local": local, "prefixlen": int(prefix), "scope": "global", "dynamic": True, **flags}
    )
    host.set_links(links)


def test_two_addresses_of_a_rail(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    with_address(host, "2001:db8::7/64")
    checked = call(host, capsys, check=True, rails=DUAL)
    result = call(host, capsys, rails=DUAL)
    assert (result["changed"], result["diff"]) == (True, checked["diff"])
    assert result["diff"]["after"]["links"][FIRST]["addresses"] == ["192.168.0.11/24", "fd00::b/64"]
    assert ["ip", "address", "replace", "fd00::b/64", "dev", "enp24s0np0"] in host.ran
    network = host.root / "etc/systemd/network/10-gpufabric-rail0.network"
    assert "Address=192.168.0.11/24\nAddress=fd00::b/64\n" in network.read_text()
    again = call(host, capsys, rails=DUAL)
    assert (again["changed"], again.get("warnings")) == (False, None)

    # The one address of IPv6 goes with the plan, that of somebody else never.
    assert call(host, capsys)["diff"]["after"]["links"][FIRST]["addresses"] == ["192.168.0.11/24"]
    link = host.inventory().port(FIRST).netdev
    assert link is not None and link.addresses == ("2001:db8::7/64", "192.168.0.11/24")


@pytest.mark.parametrize("rails", [DUAL, [rail("rail0", FIRST, "fd00::b/64")]])
def test_absent_removes_addresses_of_ipv6(
    host: Host, capsys: pytest.CaptureFixture[str], rails: list[dict[str, Any]]
) -> None:
    with_address(host, "2001:db8::7/64")
    before = host.links()
    call(host, capsys, rails=rails)
    assert "fd00::b/64" in host.inventory().port(FIRST).netdev.addresses  # type: ignore[union-attr]
    call(host, capsys, state="absent", rails=[])
    assert host.links() == before
    assert call(host, capsys, state="absent", rails=[])["changed"] is False


def test_an_address_that_another_machine_has_is_an_error(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(argv: list[str]) -> str | None:
        printed = obey(host, argv)
        links = host.links()
        for one in (one for link in links for one in link["addr_info"] if one["local"] == "fd00::b"):
            one["dadfailed"] = True
        host.set_links(links)
        return printed

    host.reacts = kernel
    result = call(host, capsys, rails=DUAL)
    assert result["failed"] and "another machine on this link has the address fd00::b/64" in result["msg"]
    # It counts as missing from then on: no run is silent about it, and each lets the kernel look again.
    host.ran.clear()
    assert call(host, capsys, rails=DUAL)["failed"]
    assert ["ip", "address", "del", "fd00::b/64", "dev", "enp24s0np0"] in host.ran
    host.reacts = lambda argv: obey(host, argv)
    assert call(host, capsys, rails=DUAL)["changed"]
    assert call(host, capsys, rails=DUAL)["changed"] is False


def test_the_port_of_the_default_route_is_never_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = sysfs_tree.materialise("odd-host", tmp_path, monkeypatch)
    result = call(host, capsys, rails=[rail("rail0", "0000:61:00.0", None), rail("rail1", "0000:41:00.0", None)])
    assert result["msg"] == (
        "rail_links: rail rail0: 0000:61:00.0: eno1 carries the default route. Such a port cannot be a rail; rail "
        "rail1: 0000:41:00.0 has no network device (driver: vfio-pci). Bind its network driver"
    )


def test_the_port_below_a_vlan_with_the_ssh_connection_is_never_touched(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    netdev, address = "enp24s0np0", {"local": "172.16.9.1", "prefixlen": 24, "scope": "global"}
    host.set_links([*host.links(), {"ifname": "mgmt", "link": netdev, "mtu": 1500, "addr_info": [address]}])
    (host.root / "proc/self/environ").write_text("SSH_CONNECTION=172.16.9.8 50000 172.16.9.1 22\0")
    before = snapshot(host)
    assert call(host, capsys)["msg"] == (
        f"rail_links: rail rail0: {FIRST}: {netdev} carries the ssh connection of this run (of mgmt). Such a port "
        "cannot be a rail"
    )
    assert snapshot(host) == before


def test_what_the_kernel_does_not_take_fails(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.reacts = lambda argv: None if "mtu" in argv else obey(host, argv)
    result = call(host, capsys, timeout=0)
    assert result["msg"] == (
        "rail_links: 0000:18:00.0 (enp24s0np0): mtu is 4200, expected 9000; 0000:18:00.0 (enp24s0np0): "
        "addresses is [], "
        "expected ['192.168.0.11/24']; 0000:18:00.0 (enp24s0np0): sysctl is {'arp_announce': '0', 'arp_ignore': '0', "
        "'rp_filter': '1'}, expected {'arp_announce': '2', 'arp_ignore': '1', 'rp_filter': '2'}"
    )


def test_a_manager_that_takes_an_address_away_first_is_no_failure(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys)

    def faster(argv: list[str]) -> str | None:
        obey(host, argv)
        return "Error: ipv4: Address not found." if argv[:3] == ["ip", "address", "del"] else None

    host.reacts = faster
    assert call(host, capsys, state="absent")["changed"]
    link = host.inventory().port(FIRST).netdev
    assert link is not None and (link.mtu, link.addresses) == (4200, ())


def test_what_is_refused_twice_is_said_in_the_kernel_s_words(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.reacts = lambda argv: "Error: mtu greater than device maximum." if "mtu" in argv else obey(host, argv)
    result = call(host, capsys)
    assert result["msg"] == (
        "rail_links: 'ip link set dev enp24s0np0 mtu 9000' failed with status 2: "
        "Error: mtu greater than device maximum."
    )
    assert host.ran.count(["ip", "link", "set", "dev", "enp24s0np0", "mtu", "9000"]) == 2


def addresses(host: Host) -> list[str]:
    link = host.inventory().port(FIRST).netdev
    return sorted(link.addresses) if link else []


FOREIGN = (
    "rail rail0: 0000:18:00.0 (enp24s0np0) has the address 203.0.113.7/24, which this collection did not set and which "
    "is not in the plan. It is kept. Remove it, or exclude this port from the rails"
)


@pytest.mark.parametrize("address", ["192.168.0.11/24", "192.168.0.12/24"], ids=["same", "another"])
def test_an_address_that_another_tool_added_to_a_rail_stays(
    host: Host, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    call(host, capsys)
    add_address(host, "enp24s0np0", "203.0.113.7", 24)
    for _run in range(2):
        result = call(host, capsys, rails=[rail("rail0", FIRST, address)])
        assert warned(result) == [FOREIGN]
        assert addresses(host) == [address, "203.0.113.7/24"]
    assert result["changed"] is False
    result = call(host, capsys, state="absent", rails=[])
    assert "is now used by another owner: address 203.0.113.7/24" in warned(result)[0]
    assert addresses(host) == ["203.0.113.7/24"]


def test_addresses_from_before_and_of_a_run_that_was_cut_off_are_no_foreign_ones(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second run is cut off before it sets anything: the addresses of both runs are ours, and the MTU is too."""
    before = json.loads(host.prints[sysfs_tree.IP])
    obeys = host.reacts
    first, second = rail("rail0", FIRST, "192.168.0.11/24", 9000), rail("rail0", FIRST, "192.168.7.1/24", 8000)
    call(host, capsys, rails=[first])
    host.reacts = lambda argv: None
    assert call(host, capsys, rails=[second], timeout=0)["failed"]
    host.reacts = obeys
    record = json.loads((host.root / "var/lib/gpufabric/rail_links.json").read_text())
    assert record[FIRST]["set"]["addresses"] == ["192.168.0.11/24", "192.168.7.1/24"]
    after_cut = host.root / "var/lib/gpufabric/rail_links.json"
    kept, links_then = after_cut.read_text(), host.links()
    assert warned(call(host, capsys, rails=[second])) == []
    assert addresses(host) == ["192.168.7.1/24"]
    # The other way: back to what was before the first run.
    after_cut.write_text(kept)
    host.set_links(links_then)
    for path in host.root.glob("sys/bus/pci/devices/*/net/enp24s0np0/mtu"):
        path.write_text("9000")
    assert warned(call(host, capsys, state="absent", rails=[])) == []
    assert json.loads(host.prints[sysfs_tree.IP]) == before
