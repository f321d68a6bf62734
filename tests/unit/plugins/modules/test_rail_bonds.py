"""rail_links and the other modules on hosts through main(), with a rail that is a bond. About two seconds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.plugins.modules.test_rail_links import RAILS, RULES, call, obey, put, runs, snapshot, with_netplan
from tests.unit.plugins.modules.test_rail_links import host as host_without
from tests.unit.support import bonded
from tests.unit.support.module_run import run, warned
from tests.unit.support.sysfs_tree import Host

__all__ = ["host_without"]
FIRST, OWN, ADDRESS = bonded.MEMBERS[0], "10.3.0.11/24", "192.168.1.11/24"
BOND = {
    "rail": "rail1",
    "netdev": "bond1",
    "pci": FIRST,
    "members": bonded.MEMBERS,
    "driver": "mlx5_core",
    "address": ADDRESS,
    "mtu": 9000,
}
BASE = "etc/systemd/network/30-bond1.network"
DROP_IN = "etc/systemd/network/30-bond1.network.d/90-gpufabric-rail1.conf"
USERS = "[Match]\nName=bond1\n\n[Network]\nAddress=10.3.0.11/24\nVLAN=storage\n"
ADDED = """\
# Written by gpufabric.rdma.rail_links, which removes it with state: absent.
[Link]
MTUBytes=9000

[Network]
Address=192.168.1.11/24
"""


@pytest.fixture()
def host(host_without: Host) -> Host:
    made = host_without
    bonded.add_bond(made, OWN)
    made.reacts = lambda argv: follow(made, argv)
    for name in ("bond1", *bonded.NETDEVS):
        for key, value in RULES.items():
            path = made.root / "proc/sys/net/ipv4/conf" / name / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value)
    (made.root / BASE).parent.mkdir(parents=True, exist_ok=True)
    (made.root / BASE).write_text(USERS)
    return made


def follow(host: Host, argv: list[str]) -> str | None:
    """As obey; the kernel gives members the MTU of their bond."""
    if argv[:5] == ["ip", "link", "set", "dev", "bond1"] and "mtu" in argv:
        (host.root / "sys/class/net/bond1/mtu").write_text(argv[-1])
        for name in bonded.NETDEVS:
            obey(host, ["ip", "link", "set", "dev", name, "mtu", argv[-1]])
    return obey(host, argv)


def state(host: Host) -> tuple[int, list[str]]:
    link = next(link for link in host.links() if link["ifname"] == "bond1")
    return link["mtu"], sorted(f"{one['local']}/{one['prefixlen']}" for one in link["addr_info"])


def test_the_bond_gets_mtu_and_address_beside_its_own(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys, rails=[BOND])
    assert result["diff"]["before"]["links"] == {FIRST: {"mtu": 1500, "up": True, "addresses": [OWN], "sysctl": RULES}}
    assert state(host) == (9000, [OWN, ADDRESS])
    assert (host.root / DROP_IN).read_text() == ADDED
    assert (host.root / BASE).read_text() == USERS
    assert "net.ipv4.conf.bond1.arp_ignore = 1\n" in (host.root / "etc/sysctl.d/90-gpufabric-rails.conf").read_text()
    assert not list(host.root.glob("etc/systemd/network/10-gpufabric-*"))
    assert ["networkctl", "reload"] in host.ran
    # Nothing was done to a member itself.
    assert not [argv for argv in host.ran if argv[0] == "ip" and {*argv} & {*bonded.NETDEVS}]
    facts = host.inventory().to_dict()
    (bond,) = facts["bonds"]
    assert bond["port"]["configured"] == {"rail": "rail1", "addresses": sorted([OWN, ADDRESS])}
    assert "192.168.1.0/24" not in facts["networks"]


def test_a_second_run_changes_nothing_and_check_mode_predicts(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    rails = [*RAILS, BOND]
    before = snapshot(host)
    checked = call(host, capsys, check=True, rails=rails)
    assert snapshot(host) == before
    assert call(host, capsys, rails=rails)["diff"] == checked["diff"]
    before = snapshot(host)
    assert call(host, capsys, rails=rails)["changed"] is False
    assert snapshot(host) == before
    # A port beside it is configured as without bonds.
    assert (host.root / "etc/systemd/network/10-gpufabric-rail0.network").exists()


@pytest.mark.parametrize("again", [{"rails": RAILS}, {"state": "absent", "rails": []}], ids=["one rail less", "absent"])
def test_only_what_was_added_is_removed(host: Host, capsys: pytest.CaptureFixture[str], again: dict[str, Any]) -> None:
    before = snapshot(host)
    call(host, capsys, rails=[BOND])
    call(host, capsys, **again)
    assert state(host) == (1500, [OWN])
    assert not (host.root / DROP_IN).exists() and (host.root / BASE).read_text() == USERS
    if "state" in again:
        after = snapshot(host)
        ours = str(host.root / "var/lib/gpufabric")
        left = {path: text for path, text in after[0].items() if before[0].get(path) != text}
        assert [path for path in left if not path.startswith(ours) and "/run/" not in path] == []
        assert json.loads(after[1]) == json.loads(before[1])


def test_another_address_of_the_plan_leaves_those_of_the_user(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=[BOND])
    call(host, capsys, rails=[{**BOND, "address": "192.168.1.12/24"}])
    assert state(host) == (9000, [OWN, "192.168.1.12/24"])


def test_a_bond_that_is_gone_is_not_restored_on_its_ports(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=[BOND])
    links = [link for link in host.links() if link["ifname"] != "bond1"]
    for link in links:
        link.pop("master", None)
    host.set_links(links)
    for pci in bonded.MEMBERS:
        next((host.root / "sys/bus/pci/devices" / pci / "net").iterdir()).joinpath("master").unlink()
    for path in (host.root / "sys/class/net/bond1/bonding").iterdir():
        path.unlink()
    (host.root / "sys/class/net/bond1/bonding").rmdir()
    before = host.links()
    result = call(host, capsys, state="absent", rails=[])
    assert host.links() == before
    assert warned(result) == [
        f"the bond bond1 over {FIRST} does not exist any more, so its MTU and addresses are not restored"
    ]
    assert not (host.root / DROP_IN).exists()
    assert not (host.root / "var/lib/gpufabric/rail_links.json").exists()


def test_an_address_that_the_user_removed_meanwhile_does_not_come_back(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys, rails=[BOND])
    obey(host, ["ip", "address", "del", OWN, "dev", "bond1"])
    call(host, capsys, rails=[BOND])
    call(host, capsys, state="absent", rails=[])
    assert state(host) == (1500, [])


def has_members(host: Host, *netdevs: str) -> None:
    """The user changes the members of the bond."""
    (host.root / "sys/class/net/bond1/bonding/slaves").write_text(" ".join(netdevs))
    links = host.links()
    for link in links:
        if link["ifname"] in bonded.NETDEVS:
            link.pop("master", None)
            link.update({"master": "bond1"} if link["ifname"] in netdevs else {})
    host.set_links(links)
    for pci, netdev in zip(bonded.MEMBERS, bonded.NETDEVS):
        master = host.root / "sys/bus/pci/devices" / pci / "net" / netdev / "master"
        master.unlink(missing_ok=True)
        if netdev in netdevs:
            master.symlink_to("/masters/bond1")


def test_a_bond_with_other_members_is_not_restored_until_it_has_those_it_had(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys, rails=[BOND])
    has_members(host, bonded.NETDEVS[1])
    before, record = snapshot(host), (host.root / "var/lib/gpufabric/rail_links.json").read_text()
    again = {**BOND, "pci": bonded.MEMBERS[1], "members": bonded.MEMBERS[1:]}
    result = call(host, capsys, rails=[again])
    assert result["msg"] == (
        f"rail_links: rail rail1: the bond bond1 was configured with {FIRST} as first member, and is to have "
        f"{bonded.MEMBERS[1]}. Give bond1 the members that it had, or remove it, then run playbook teardown for this "
        "host and change the bond"
    )
    assert snapshot(host) == before
    for _run in range(2):
        result = call(host, capsys, state="absent", rails=[])
        assert warned(result) == [
            f"the bond bond1 has the members {bonded.MEMBERS[1]}, and had {FIRST} as first member when it was "
            "configured. Its MTU and addresses are not restored, and its record is kept. Give bond1 the members that "
            "it had, or remove it, then run playbook teardown for this host"
        ]
        assert state(host) == (9000, [OWN, ADDRESS])
        assert (host.root / DROP_IN).exists()
        assert (host.root / "var/lib/gpufabric/rail_links.json").read_text() == record
    assert result["changed"] is False
    has_members(host, *bonded.NETDEVS)
    call(host, capsys, state="absent", rails=[])
    assert state(host) == (1500, [OWN]) and not (host.root / DROP_IN).exists()
    assert not (host.root / "var/lib/gpufabric/rail_links.json").exists()


def test_a_file_that_matches_a_member_by_its_address_is_not_that_of_the_bond(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    (host.root / BASE).with_name("20-member.network").write_text(
        "[Match]\nPermanentMACAddress=b8:3f:d2:00:3a:00\n\n[Network]\nBond=bond1\n"
    )
    call(host, capsys, rails=[BOND])
    assert (host.root / DROP_IN).read_text() == ADDED


def test_netplan_with_networkd_is_extended_by_a_drop_in(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    with_netplan(host)
    (host.root / BASE).unlink()
    made = host.root / "run/systemd/network/10-netplan-bond1.network"
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(USERS)
    call(host, capsys, rails=[BOND])
    added = host.root / "etc/systemd/network/10-netplan-bond1.network.d/90-gpufabric-rail1.conf"
    assert added.read_text() == ADDED
    assert state(host) == (9000, [OWN, ADDRESS])
    # The definitions of netplan are as they were.
    assert ["netplan", "generate"] not in host.ran
    assert call(host, capsys, rails=[BOND])["changed"] is False


def test_networkmanager_must_have_configured_it(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager")
    path = host.root / "etc/NetworkManager/system-connections/bond1.nmconnection"
    put(path, "[connection]\nid=bond1\ntype=bond\ninterface-name=bond1\n")
    result = call(host, capsys, rails=[BOND])
    assert result["msg"] == (
        f"rail_links: rail rail1: the bond bond1 is configured by {path}, and this collection adds settings to "
        ".network files only. Set MTU 9000 and address 192.168.1.11/24 for bond1 in your own configuration"
    )
    follow(host, ["ip", "link", "set", "dev", "bond1", "mtu", "9000"])
    obey(host, ["ip", "address", "replace", ADDRESS, "broadcast", "+", "dev", "bond1"])
    call(host, capsys, rails=[BOND])
    assert path.read_text().startswith("[connection]") and state(host) == (9000, [OWN, ADDRESS])
    assert not [argv for argv in host.ran if argv[:3] == ["nmcli", "connection", "up"]]
    assert call(host, capsys, rails=[BOND])["changed"] is False
    # What was the user's stays.
    call(host, capsys, state="absent", rails=[])
    assert state(host) == (9000, [OWN, ADDRESS])


MANY = "[Match]\nName=bond*\n"


@pytest.mark.parametrize(
    ("base", "rail", "message"),
    [
        (
            MANY,
            {},
            "30-bond1.network configures bond1 and can match other devices. Add a .network file with [Match] "
            "Name=bond1 that comes before it",
        ),
        (
            "[Match]\nName=eth9\n",
            {},
            "the bond bond1 has no .network file of systemd-networkd, and this collection adds settings to .network "
            "files only. Set MTU 9000 and address 192.168.1.11/24 for bond1 in your own configuration",
        ),
        (USERS, {"mtu": 9990}, "(bond1) supports an MTU from 68 to 9978, 9990 requested"),
        (USERS, {"doubt": "gpu-0007"}, "192.168.1.11/24 may be in use"),
        (
            USERS,
            {"members": [FIRST, "0000:5a:00.1"]},
            "the bond bond1 has the members 0000:3a:00.0, 0000:3a:00.1, expected 0000:3a:00.0, 0000:5a:00.1 as planned",
        ),
        (USERS, {"netdev": "bond7"}, "there is no bond bond7. Create it with the network manager of the host"),
    ],
)
def test_refusals_come_before_the_first_change(
    host: Host, capsys: pytest.CaptureFixture[str], base: str, rail: dict[str, Any], message: str
) -> None:
    (host.root / BASE).write_text(base)
    before = snapshot(host)
    result = call(host, capsys, rails=[{**BOND, **rail}])
    assert result["failed"] and message in result["msg"]
    assert snapshot(host) == before


def test_a_bond_with_the_default_route_or_without_rdma_is_refused(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    path = host.root / "proc/net/route"
    text = path.read_text()
    path.write_text(text.replace("bond0\t00000000", "bond1\t00000000"))
    assert "bond1 carries the default route" in call(host, capsys, rails=[BOND])["msg"]
    path.write_text(text)
    (host.root / "sys/class/net/bond1/bonding/mode").write_text("balance-alb 6")
    assert "the bond bond1 has mode balance-alb 6; RDMA requires" in call(host, capsys, rails=[BOND])["msg"]


def test_a_port_and_a_bond_are_not_confused(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=[BOND])
    before = snapshot(host)
    port = {**RAILS[0], "rail": "rail1", "netdev": "rail1", "pci": FIRST}
    result = call(host, capsys, rails=[port])
    assert result["msg"] == (
        "rail_links: rail rail1: 0000:3a:00.0 was configured as the bond bond1, and is to be a port. Run playbook "
        "teardown for this host first"
    )
    assert snapshot(host) == before


def test_a_bond_and_its_members_keep_their_names(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = run("netdev_names", capsys, False, **host.options(), rails=[BOND])
    assert (result["changed"], list(host.root.glob("etc/systemd/network/*.link"))) == (False, [])


@pytest.mark.parametrize(
    ("module", "params", "message"),
    [
        ("sriov_vfs", {"vfs": 2}, "VFs of a bond require a NIC in switchdev mode"),
        ("rail_qos", {"settings": {"trust": "dscp"}}, "QoS settings are those of ports"),
        ("rdma_stack", {"provider": "soft_roce"}, "They have the RDMA device of their NIC, and need no soft-RoCE"),
    ],
)
def test_roles_that_are_about_ports_refuse(
    host: Host, capsys: pytest.CaptureFixture[str], module: str, params: dict[str, Any], message: str
) -> None:
    before = snapshot(host)
    result = run(module, capsys, False, **host.options(), rails=[BOND], **params)
    assert result["failed"]
    assert f"{module}: rails that are bonds: rail1 (bond1). {message}" in result["msg"]
    assert snapshot(host) == before


def test_preflight_tells_what_rail_links_would(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = run("preflight", capsys, False, **host.options(), rails=[BOND], installs_packages=True)
    own = [text for text in result["problems"] if "rail1" in text or "bond1" in text]
    assert own == []
    told = [text for text in result["findings"] if "rail1" in text]
    assert told == [
        "rail rail1: 0000:3a:00.0 (bond1) is also used for other purposes: address 10.3.0.11/24. Check that this "
        "port is the intended one"
    ]
    (host.root / "sys/class/net/bond1/bonding/mode").write_text("broadcast 3")
    result = run("preflight", capsys, False, **host.options(), rails=[BOND], installs_packages=True)
    assert [text for text in result["problems"] if "rail1" in text] == [
        "rail rail1: the bond bond1 has mode broadcast 3; RDMA requires active-backup, balance-xor or 802.3ad. Correct "
        "the bond, or choose another rail"
    ]
