"""rail_links through main(): VLAN interfaces of rails, with each network manager."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from tests.unit.plugins.modules.test_rail_links import (
    FIRST,
    RAILS,
    add_address,
    call,
    connect,
    host,
    obey,
    rail,
    runs,
    snapshot,
    vlan,
    with_netplan,
)
from tests.unit.support.module_run import warned
from tests.unit.support.sysfs_tree import Host

__all__ = ["host"]
NAME, PORT, ADDRESS = "rail0.100", "enp24s0np0", "192.168.0.11/24"
TAGGED = [{**RAILS[0], "vlan": 100}]
RULES_OF_RAILS = {"arp_announce": "2", "arp_ignore": "1", "rp_filter": "2"}


def of_vlan(result: dict[str, Any], when: str = "after") -> dict[str, Any]:
    return dict(result["diff"][when]["vlans"])


def interface(host: Host, name: str = NAME) -> dict[str, Any]:
    return next(link for link in host.links() if link["ifname"] == name)


def test_the_vlan_has_the_address_and_the_port_carries_it(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys, rails=TAGGED)
    state = {"port": FIRST, "id": 100, "mtu": 9000, "up": True, "addresses": [ADDRESS], "sysctl": RULES_OF_RAILS}
    assert (of_vlan(result, "before"), of_vlan(result)) == ({}, {NAME: state})
    folder = host.root / "etc/systemd/network"
    port = (folder / "10-gpufabric-rail0.network").read_text()
    assert "VLAN=rail0.100\n" in port and "Address=" not in port
    assert (folder / "10-gpufabric-rail0.100.netdev").read_text().splitlines()[1:] == [
        "[NetDev]",
        "Name=rail0.100",
        "Kind=vlan",
        "",
        "[VLAN]",
        "Id=100",
    ]
    own = (folder / "10-gpufabric-rail0.100.network").read_text()
    assert "[Match]\nName=rail0.100\n\n[Link]\nMTUBytes=9000\n" in own and f"Address={ADDRESS}\n" in own
    sysctls = (host.root / "etc/sysctl.d/90-gpufabric-rails.conf").read_text()
    assert "net/ipv4/conf/rail0.100/arp_ignore = 1\n" in sysctls
    assert ["ip", "link", "add", "link", PORT, "name", NAME, "type", "vlan", "id", "100"] in host.ran
    link = host.inventory().port(FIRST).netdev
    assert link is not None and (link.mtu, link.addresses) == (9000, ())
    # The rest of the collection sees a rail with its address, and no use by others.
    port_facts = next(one for one in host.inventory().to_dict()["ports"] if one["pci"] == FIRST)
    assert (port_facts["addresses"], port_facts["uses"]) == ([ADDRESS], [])
    assert port_facts["configured"] == {"rail": "rail0", "addresses": [ADDRESS]}
    assert "192.168.0.0/24" not in host.inventory().networks


def test_a_second_run_changes_nothing_and_check_mode_predicts(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(host)
    checked = call(host, capsys, check=True, rails=TAGGED)
    assert snapshot(host) == before
    assert call(host, capsys, rails=TAGGED)["diff"] == checked["diff"]
    before = snapshot(host)
    assert call(host, capsys, rails=TAGGED)["changed"] is False
    assert snapshot(host) == before


@pytest.mark.parametrize("again", [{"rails": RAILS}, {"state": "absent", "rails": []}], ids=["no vlan", "absent"])
def test_it_is_removed_again(host: Host, capsys: pytest.CaptureFixture[str], again: dict[str, Any]) -> None:
    if "state" not in again:
        call(host, capsys)
    before = snapshot(host)
    call(host, capsys, rails=TAGGED)
    result = call(host, capsys, **again)
    assert (of_vlan(result), warned(result)) == ({}, [])
    for key in RULES_OF_RAILS:
        (host.root / "proc/sys/net/ipv4/conf" / NAME / key).unlink()
    after = snapshot(host)
    assert (after[0], json.loads(after[1])) == (before[0], json.loads(before[1]))
    assert call(host, capsys, **again)["changed"] is False


def test_another_number_replaces_it(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=TAGGED)
    result = call(host, capsys, rails=[{**RAILS[0], "vlan": 200}])
    assert list(of_vlan(result)) == ["rail0.200"]
    assert [link["ifname"] for link in host.links() if "rail0." in link["ifname"]] == ["rail0.200"]
    assert not (host.root / "etc/systemd/network/10-gpufabric-rail0.100.netdev").exists()
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert [link["ifname"] for link in host.links() if "rail0." in link["ifname"]] == []


def test_a_run_that_was_cut_off_is_completed(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=TAGGED)

    def cut(argv: list[str]) -> str | None:
        if argv[:3] == ["ip", "link", "add"]:
            obey(host, argv)
            raise KeyboardInterrupt
        return obey(host, argv)

    host.reacts = cut
    with pytest.raises(KeyboardInterrupt):
        call(host, capsys, rails=[{**RAILS[0], "vlan": 200}])
    host.reacts = lambda argv: obey(host, argv)
    assert list(of_vlan(call(host, capsys, rails=[{**RAILS[0], "vlan": 200}]))) == ["rail0.200"]
    call(host, capsys, state="absent", rails=[])
    assert [link["ifname"] for link in host.links() if "rail0." in link["ifname"]] == []


@pytest.mark.parametrize("number", [100, 70])
def test_those_of_other_tools_are_left_alone(host: Host, capsys: pytest.CaptureFixture[str], number: int) -> None:
    host.set_links([*host.links(), vlan(host, f"rail0.{number}", PORT, number)])
    before = snapshot(host)
    result = call(host, capsys, rails=TAGGED)
    if number == 100:
        assert result["msg"] == (
            "rail_links: rail rail0: rail0.100 exists and was not created by this collection. Remove it, or change "
            "vlan of the rail"
        )
        assert snapshot(host) == before
    else:
        call(host, capsys, state="absent", rails=[])
        assert interface(host, "rail0.70") == vlan(host, "rail0.70", PORT, 70)


def test_one_that_another_tool_made_in_its_place_stays(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=TAGGED)
    others = [link for link in host.links() if link["ifname"] != NAME]
    host.set_links([*others, vlan(host, NAME, "enp64s0np0", 100)])
    assert "was not created by this collection" in call(host, capsys, rails=TAGGED)["msg"]
    call(host, capsys, state="absent", rails=[])
    assert interface(host)["link"] == "enp64s0np0"


def test_addresses_of_other_tools_are_kept(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=TAGGED)
    add_address(host, NAME, "203.0.113.7", 24)
    result = call(host, capsys, rails=[{**TAGGED[0], "address": "192.168.0.12/24"}])
    assert of_vlan(result)[NAME]["addresses"] == ["192.168.0.12/24", "203.0.113.7/24"]


def test_users_are_not_disturbed_without_consent(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=TAGGED)
    connect(host, "192.168.0.11")
    message = call(host, capsys, state="absent", rails=[])["msg"]
    assert "0000:18:00.0 (enp24s0np0): a change of its link would disturb its users: 1 TCP connection" in message
    assert interface(host)
    assert call(host, capsys, state="absent", rails=[], disrupt_users=True)["changed"] is True


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**RAILS[0], "vlan": 4095}, "rail_links: rail rail0: 4095 is not the number of a VLAN; expected 1 to 4094"),
        (
            {**rail("storage-rail0", FIRST, ADDRESS), "vlan": 100},
            "rail_links: rail storage-rail0: storage-rail0.100, the name of its VLAN interface, is longer than 15 "
            "characters. Shorten the name of the rail",
        ),
    ],
)
def test_what_is_refused(host: Host, capsys: pytest.CaptureFixture[str], entry: dict[str, Any], message: str) -> None:
    before = snapshot(host)
    assert call(host, capsys, rails=[entry])["msg"] == message
    assert snapshot(host) == before


def test_infiniband_has_no_vlans(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = host.root.glob(f"sys/bus/pci/devices/{FIRST}/net/{PORT}/type")
    path.write_text("32\n")
    assert call(host, capsys, rails=[{**TAGGED[0], "mtu": 2044}])["msg"] == (
        "rail_links: rail rail0: 0000:18:00.0 is an InfiniBand port, which has no VLANs. Remove vlan of the rail"
    )
    assert call(host, capsys, rails=[{**RAILS[0], "mtu": 2044}])["changed"] is True
    own = (host.root / "etc/systemd/network/10-gpufabric-rail0.network").read_text()
    assert "Type=infiniband\n" in own and "MTUBytes=2044\n" in own
    assert call(host, capsys, rails=[{**RAILS[0], "mtu": 2044}])["changed"] is False


def test_source_routing_is_that_of_the_vlan(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys, check=True, rails=TAGGED, source_routing="always")
    assert result["diff"]["after"]["routing"] == [
        "192.168.0.0/24 dev rail0.100 src 192.168.0.11 scope link table 27600",
        "from 192.168.0.11 lookup 27600 priority 27600",
    ]
    files = {path.rpartition("/")[2]: text for path, text in result["diff"]["after"]["files"].items()}
    assert "[RoutingPolicyRule]" in files["10-gpufabric-rail0.100.network"]
    assert "[RoutingPolicyRule]" not in files["10-gpufabric-rail0.network"]


def test_networkmanager_creates_it_on_the_connection_of_the_port(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    runs(host, "NetworkManager")
    before = snapshot(host)
    checked = call(host, capsys, check=True, rails=TAGGED)
    assert call(host, capsys, rails=TAGGED)["diff"] == checked["diff"]
    folder = host.root / "etc/NetworkManager/system-connections"
    port = (folder / "gpufabric-rail0.nmconnection").read_text()
    (identity,) = (line for line in port.splitlines() if line.startswith("uuid="))
    own = (folder / "gpufabric-rail0.100.nmconnection").read_text()
    assert "type=vlan\n" in own and "interface-name=rail0.100\n" in own and identity not in own
    assert f"[vlan]\nid=100\nparent={identity.partition('=')[2]}\n\n[ethernet]\nmtu=9000\n" in own
    assert f"address1={ADDRESS}\n" in own and "method=disabled\n" in port
    assert [argv for argv in host.ran if "up" in argv and argv[0] == "nmcli"] == [
        ["nmcli", "--wait", "20", "connection", "up", "id", "gpufabric-rail0", "ifname", PORT],
        ["nmcli", "--wait", "20", "connection", "up", "id", "gpufabric-rail0.100"],
    ]
    assert call(host, capsys, rails=TAGGED)["changed"] is False
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert snapshot(host)[0].keys() - before[0].keys() == {
        str(host.root / f"proc/sys/net/ipv4/conf/{NAME}/{key}") for key in RULES_OF_RAILS
    }


def test_netplan_gets_a_definition(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    with_netplan(host)
    made = host.root / "run/systemd/network"

    def generate(argv: list[str]) -> str | None:
        if argv == ["netplan", "generate"]:
            made.mkdir(parents=True, exist_ok=True)
            (made / "10-netplan-rail0.100.netdev").write_text("[NetDev]\nName=rail0.100\nKind=vlan\n")
        return obey(host, argv)

    host.reacts = generate
    result = call(host, capsys, rails=TAGGED)
    assert (result["changed"], warned(result)) == (True, [])
    network = yaml.safe_load((host.root / "etc/netplan/90-gpufabric-rails.yaml").read_text())["network"]
    assert "addresses" not in network["ethernets"]["gpufabric-rail0"]
    own = network["vlans"][NAME]
    assert (own["id"], own["link"], own["mtu"], own["addresses"]) == (100, "gpufabric-rail0", 9000, [ADDRESS])
    assert "match" not in own
    assert call(host, capsys, rails=TAGGED)["changed"] is False


def test_netplan_cannot_do_it_with_networkmanager(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager")
    with_netplan(host)
    assert call(host, capsys, rails=TAGGED)["msg"] == (
        "rail_links: rails rail0 have a VLAN, whose connection netplan gives NetworkManager a name that is not one "
        "of this collection. Set manager: networkmanager"
    )


def test_a_vlan_with_an_address_of_a_user_is_not_removed(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=TAGGED)
    add_address(host, NAME, "172.16.5.5", 24)
    before = snapshot(host)
    assert call(host, capsys, rails=[{**RAILS[0], "vlan": 200}])["msg"] == (
        "rail_links: rail rail0: rail0.100, which is to be removed, has the address 172.16.5.5/24, which this"
        " collection did not set. Remove the address, or keep vlan of the rail"
    )
    assert snapshot(host) == before


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        ("macvlan", {"rails": [{**RAILS[0], "vlan": 200}]}),
        ("vlan", {"state": "absent", "rails": []}),
        ("bridge", {"state": "absent", "rails": []}),
    ],
)
def test_a_vlan_that_carries_interfaces_of_a_user_is_not_removed(
    host: Host, capsys: pytest.CaptureFixture[str], kind: str, again: dict[str, Any]
) -> None:
    call(host, capsys, rails=TAGGED)
    links = host.links()
    upper = {"ifname": "mine0", "linkinfo": {"info_kind": kind}, "mtu": 1500, "addr_info": []}
    if kind == "bridge":
        next(link for link in links if link["ifname"] == NAME)["master"] = "mine0"
    else:
        upper["link"] = NAME
    host.set_links([*links, upper])
    before = snapshot(host)
    expected = (
        "rail_links: 0000:18:00.0 (enp24s0np0): rail0.100, which is to be removed, carries mine0, which this collection"
        " did not create. Remove mine0, or keep vlan of the rail"
    )
    assert call(host, capsys, check=True, **again)["msg"] == expected
    assert call(host, capsys, **again)["msg"] == expected
    assert snapshot(host) == before
    # A plan that keeps the VLAN is not stopped by them.
    assert call(host, capsys, rails=TAGGED)["changed"] is False


def test_the_port_gets_back_the_address_that_it_had_before_the_vlan(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    add_address(host, PORT, "192.168.0.11", 24)
    call(host, capsys, rails=TAGGED)
    assert addresses_of(host, PORT) == []
    call(host, capsys, state="absent", rails=[])
    assert addresses_of(host, PORT) == [ADDRESS]


def addresses_of(host: Host, name: str) -> list[str]:
    return [
        f"{one['local']}/{one['prefixlen']}" for one in interface(host, name)["addr_info"] if one["family"] == "inet"
    ]
