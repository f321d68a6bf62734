"""rail_links through main(): what is left of IPv6 addresses, and VLAN interfaces with both versions (4 s)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from tests.unit.plugins.modules.test_rail_links import (
    DUAL,
    FIRST,
    RAILS,
    add_address,
    call,
    host,
    obey,
    rail,
    runs,
    snapshot,
    with_address,
    with_netplan,
)
from tests.unit.plugins.modules.test_rail_vlans import NAME, PORT, TAGGED, interface, of_vlan
from tests.unit.support.module_run import warned
from tests.unit.support.sysfs_tree import Host

__all__ = ["host"]
OWN, IPV4 = "fd00::b/64", "192.168.0.11/24"
GONE: list[dict[str, Any]] = [{"rails": RAILS}, {"state": "absent", "rails": []}]
TAGGED_DUAL = [{**DUAL[0], "vlan": 100}]
ROUTED = [{**rail("rail0", FIRST, OWN), "gateway": "fd00::1", "routes": ["fd00::/48"]}]


def flag(host: Host, **flags: Any) -> None:
    """Let the kernel show an address of the plan with flags."""
    links = host.links()
    for one in (one for link in links for one in link["addr_info"] if one["local"] == "fd00::b"):
        one.update(flags)
    host.set_links(links)


def found_duplicate(host: Host) -> None:
    """Let the kernel find that another machine has the address, whenever it is set."""

    def kernel(argv: list[str]) -> str | None:
        printed = obey(host, argv)
        flag(host, dadfailed=True, tentative=True)
        return printed

    host.reacts = kernel


def addresses(host: Host, name: str) -> list[str]:
    return [f"{one['local']}/{one['prefixlen']}" for one in interface(host, name)["addr_info"]]


@pytest.mark.parametrize("again", GONE, ids=["no ipv6", "absent"])
def test_an_address_that_another_machine_has_is_removed(
    host: Host, capsys: pytest.CaptureFixture[str], again: dict[str, Any]
) -> None:
    before = addresses(host, PORT)
    found_duplicate(host)
    assert call(host, capsys, rails=DUAL)["failed"]
    assert OWN in addresses(host, PORT)
    checked = call(host, capsys, check=True, **again)
    result = call(host, capsys, **again)
    assert (result["changed"], result["diff"]) == (True, checked["diff"])
    assert addresses(host, PORT) == before + ([IPV4] if "state" not in again else [])
    assert call(host, capsys, **again)["changed"] is False


def test_a_duplicate_of_another_tool_stays(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    with_address(host, "2001:db8::7/64", dadfailed=True, tentative=True)
    call(host, capsys, rails=DUAL)
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert "2001:db8::7/64" in addresses(host, PORT)


class Routes:
    """The rules and routes of IPv6 of a kernel; routes are left without a source when their address is removed."""

    def __init__(self, host: Host) -> None:
        self.host, self.rules, self.routes = host, [{"priority": 0, "src": "all", "table": "255"}], []  # type: ignore[var-annotated]
        host.reacts = self
        self.show()

    def __call__(self, argv: list[str]) -> str | None:
        words = dict(zip(argv[4:], argv[5:]))
        if argv[:4] == ["ip", "-6", "rule", "add"]:
            self.rules.append({"priority": int(words["priority"]), "src": words["from"], "table": words["lookup"]})
        elif argv[:4] == ["ip", "-6", "rule", "del"]:
            self.rules = [one for one in self.rules if one["src"] != words["from"]]
        elif argv[:4] == ["ip", "-6", "route", "replace"]:
            way = {"gateway": words["via"]} if "via" in words else {}
            self.routes.append(
                {"dst": argv[4], **way, "dev": words["dev"], "prefsrc": words["src"], "table": words["table"]}
            )
        elif argv[:4] == ["ip", "-6", "route", "del"]:
            assert words.get("src") != "table", "iproute2 reads this as an address"
            self.routes = [one for one in self.routes if one["dst"] != argv[4]]
        self.show()
        return obey(self.host, argv)

    def forget_address(self) -> None:
        """Do what happens when somebody removes the address."""
        links = self.host.links()
        for link in links:
            link["addr_info"] = [one for one in link["addr_info"] if one["local"] != "fd00::b"]
        self.host.set_links(links)
        for one in self.routes:
            one.pop("prefsrc", None)
        self.show()

    def show(self) -> None:
        self.host.prints["ip -N -j -6 rule show"] = json.dumps(self.rules)
        self.host.prints["ip -N -j -6 route show table all"] = json.dumps(self.routes)


@pytest.mark.parametrize(("again", "rules"), [(GONE[0], True), (GONE[1], True), (GONE[1], False)])
def test_rules_and_routes_of_an_address_that_vanished_are_removed(
    host: Host, capsys: pytest.CaptureFixture[str], again: dict[str, Any], rules: bool
) -> None:
    kernel = Routes(host)
    assert call(host, capsys, rails=ROUTED)["changed"] is True
    assert (len(kernel.rules), len(kernel.routes)) == (2, 2)
    kernel.forget_address()
    if not rules:
        del kernel.rules[1:]
        kernel.show()
    assert call(host, capsys, **again)["diff"]["after"]["routing"] == []
    assert (len(kernel.rules), kernel.routes) == (1, [])
    assert call(host, capsys, **again)["changed"] is False


def test_an_address_that_vanished_is_set_again_with_its_routes(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = Routes(host)
    call(host, capsys, rails=ROUTED)
    before = [dict(one) for one in kernel.routes]
    kernel.forget_address()
    assert call(host, capsys, rails=ROUTED)["changed"] is True
    assert kernel.routes == before
    assert call(host, capsys, rails=ROUTED)["changed"] is False


def test_a_vlan_has_both_addresses(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(host)
    checked = call(host, capsys, check=True, rails=TAGGED_DUAL)
    result = call(host, capsys, rails=TAGGED_DUAL)
    assert (result["changed"], result["diff"]) == (True, checked["diff"])
    assert of_vlan(result)[NAME]["addresses"] == [IPV4, OWN]
    assert (addresses(host, PORT), addresses(host, NAME)) == ([], [IPV4, OWN])
    folder = host.root / "etc/systemd/network"
    assert f"Address={IPV4}\nAddress={OWN}\n" in (folder / "10-gpufabric-rail0.100.network").read_text()
    assert "Address=" not in (folder / "10-gpufabric-rail0.network").read_text()
    assert call(host, capsys, rails=TAGGED_DUAL)["changed"] is False
    # One version less, and the address of a user is kept.
    add_address(host, NAME, "2001:db8::7", 64)
    assert of_vlan(call(host, capsys, rails=TAGGED))[NAME]["addresses"] == [IPV4, "2001:db8::7/64"]
    obey(host, ["ip", "address", "del", "2001:db8::7/64", "dev", NAME])
    assert warned(call(host, capsys, state="absent", rails=[])) == []
    assert json.loads(snapshot(host)[1]) == json.loads(before[1])


def test_addresses_move_between_port_and_vlan(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    for rails, own in ((DUAL, PORT), (TAGGED_DUAL, NAME), (DUAL, PORT)):
        assert call(host, capsys, rails=rails)["changed"] is True
        assert addresses(host, own) == [IPV4, OWN]
        assert call(host, capsys, rails=rails)["changed"] is False
    assert [link["ifname"] for link in host.links() if "rail0." in link["ifname"]] == []


def test_a_vlan_with_ipv6_alone(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    alone = [{**rail("rail0", FIRST, OWN), "vlan": 100}]
    assert of_vlan(call(host, capsys, rails=alone))[NAME]["addresses"] == [OWN]
    facts = next(one for one in host.inventory().to_dict()["ports"] if one["pci"] == FIRST)
    assert (facts["addresses"], facts["uses"]) == ([OWN], [])


def test_routes_of_ipv6_are_those_of_the_vlan(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = Routes(host)
    tagged = [{**ROUTED[0], "vlan": 100}]
    assert call(host, capsys, rails=tagged)["changed"] is True
    assert {one["dev"] for one in kernel.routes} == {NAME}
    assert call(host, capsys, rails=tagged)["changed"] is False
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert (len(kernel.rules), kernel.routes) == (1, [])


def test_a_duplicate_on_a_vlan_is_an_error(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    found_duplicate(host)
    for _run in range(2):
        assert call(host, capsys, rails=TAGGED_DUAL)["msg"] == (
            f"rail_links: {FIRST} ({PORT}): {NAME}: another machine on this link has the address {OWN}, as the kernel"
            " found. Remove it there, or set rdma_host.number of one of the hosts"
        )
    assert ["ip", "address", "del", OWN, "dev", NAME] in host.ran
    assert call(host, capsys, rails=TAGGED)["changed"] is True
    assert addresses(host, NAME) == [IPV4]


def test_the_check_for_duplicates_on_a_vlan_is_awaited(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[bool] = []

    def kernel(argv: list[str]) -> str | None:
        printed = obey(host, argv)
        if "replace" in argv and OWN in argv:
            flag(host, tentative=True)
        elif argv[:4] == ["ip", "-d", "-j", "addr"] and OWN in addresses(host, PORT) + addresses(host, NAME):
            seen.append(True)
            flag(host, tentative=len(seen) < 4)
        return printed

    call(host, capsys, rails=[{**RAILS[0], "vlan": 100}])
    host.reacts = kernel
    assert call(host, capsys, rails=TAGGED_DUAL)["changed"] is True
    assert len(seen) >= 4


def test_networkmanager_has_both_addresses_on_the_vlan(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    runs(host, "NetworkManager")
    call(host, capsys, rails=TAGGED_DUAL)
    folder = host.root / "etc/NetworkManager/system-connections"
    own = (folder / "gpufabric-rail0.100.nmconnection").read_text()
    assert f"[ipv4]\nmethod=manual\naddress1={IPV4}\n" in own and f"[ipv6]\nmethod=manual\naddress1={OWN}\n" in own
    port = (folder / "gpufabric-rail0.nmconnection").read_text()
    assert "[ipv4]\nmethod=disabled\n" in port and "[ipv6]\nmethod=link-local\n" in port
    assert call(host, capsys, rails=TAGGED_DUAL)["changed"] is False


def test_netplan_has_both_addresses_on_the_vlan(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    with_netplan(host)
    call(host, capsys, rails=TAGGED_DUAL)
    network = yaml.safe_load((host.root / "etc/netplan/90-gpufabric-rails.yaml").read_text())["network"]
    assert network["vlans"][NAME]["addresses"] == [IPV4, OWN]
    assert "addresses" not in network["ethernets"]["gpufabric-rail0"]
    assert call(host, capsys, rails=TAGGED_DUAL)["changed"] is False
