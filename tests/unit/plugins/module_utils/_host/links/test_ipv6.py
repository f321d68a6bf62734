"""IPv6 addresses of rails: files, commands, what is left alone, and duplicates, also on the kernel (5 s)."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.devices import Port
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.network import parse_interfaces
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.rail_ports import Rail, parse_rails
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import (
    ipv6,
    link_restore,
    netplan,
    network_manager,
    networkd,
    routing,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import plan as links_plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links.network_managers import NETWORKD, LinkFile

PCI = "0000:18:00.0"
SECOND: dict[str, Any] = {
    "address": "fd00::0001:0:2/96",
    "gateway": "fd00::1:0:1",
    "routes": ["fd00::/64", "fd00::/48"],
    "beyond": "fd00::/64",
}
ENTRY: dict[str, Any] = {
    "rail": "rail0",
    "pci": PCI,
    "netdev": "rail0",
    "address": "192.168.0.5/24",
    "mtu": 9000,
    "ipv6": SECOND,
}
LINES = [
    "192.168.0.0/24 dev rail0 src 192.168.0.5 scope link table 27600",
    "fd00::/48 via fd00::1:0:1 dev rail0 src fd00::1:0:2 table 27600",
    "fd00::/64 via fd00::1:0:1 dev rail0 src fd00::1:0:2 table 27600",
    "fd00::1:0:0/96 dev rail0 src fd00::1:0:2 table 27600",
    "from 192.168.0.5 lookup 27600 priority 27600",
    "from fd00::1:0:2 lookup 27600 priority 27600",
    "to fd00::/64 lookup 27600 priority 27600",
]


def rails(**changes: Any) -> tuple[Rail, ...]:
    return parse_rails([{**ENTRY, **changes}])


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Port:
    with pytest.MonkeyPatch.context() as patch:
        host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path_factory.mktemp("host"), patch)
        return host.inventory().port(PCI)


@pytest.fixture(scope="module")
def link(port: Port) -> LinkFile:
    (rail,) = rails()
    rules, routes = routing.of_rail(rail, 27600)
    return LinkFile("rail0", port, 9000, rail.addresses, tuple(rules), tuple(routes))


def test_a_rail_with_two_addresses_has_one_table() -> None:
    assert rails()[0].addresses == ("192.168.0.5/24", "fd00::1:0:2/96")
    assert routing.wanted(rails(), routing.tables(rails(), "auto"), {PCI: "rail0"}) == LINES


def test_commands_name_the_version() -> None:
    commands = [" ".join(argv) for argv in routing.commands([LINES[1]], [LINES[0], LINES[6]])]
    assert commands == [
        f"ip -6 route del {LINES[1]}",
        f"ip route replace {LINES[0]}",
        f"ip -6 rule add {LINES[6]}",
    ]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({**SECOND, "address": "fd00::/129"}, "rail rail0: 'fd00::/129' is not an address with prefix"),
        ({**SECOND, "gateway": "192.168.0.1"}, "rail rail0: the gateway 192.168.0.1 is not in fd00::1:0:0/96, the"),
        (
            {**SECOND, "routes": ["10.0.0.0/8"]},
            "rail rail0: 10.0.0.0/8 cannot be reached from fd00::1:0:2/96. Use networks of its version",
        ),
    ],
)
def test_what_is_refused(second: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        rails(ipv6=second)
    assert str(caught.value).startswith(message)


def test_two_rails_cannot_have_one_address() -> None:
    other = {**ENTRY, "rail": "rail1", "pci": "0000:2a:00.0", "netdev": "rail1", "address": "192.168.1.5/24"}
    with pytest.raises(InputError, match="rails rail0 and rail1 have the same address: fd00::1:0:2/96"):
        parse_rails([ENTRY, other])


def test_networkd(link: LinkFile) -> None:
    text = networkd.text(link)
    assert "Address=192.168.0.5/24\nAddress=fd00::1:0:2/96\n" in text
    assert "[Route]\nDestination=fd00::1:0:0/96\nPreferredSource=fd00::1:0:2\nTable=27600\n" in text
    assert "[RoutingPolicyRule]\nTo=fd00::/64\nTable=27600\nPriority=27600\n" in text


def test_networkmanager(link: LinkFile) -> None:
    assert network_manager.text(link, "machine").endswith(
        "[ipv4]\nmethod=manual\naddress1=192.168.0.5/24\nnever-default=true\n"
        "route1=192.168.0.0/24\nroute1_options=src=192.168.0.5,table=27600\n"
        "routing-rule1=priority 27600 from 192.168.0.5 table 27600\n"
        "\n[ipv6]\nmethod=manual\naddress1=fd00::1:0:2/96\nnever-default=true\n"
        "route1=fd00::1:0:0/96\nroute1_options=src=fd00::1:0:2,table=27600\n"
        "route2=fd00::/64,fd00::1:0:1\nroute2_options=src=fd00::1:0:2,table=27600\n"
        "route3=fd00::/48,fd00::1:0:1\nroute3_options=src=fd00::1:0:2,table=27600\n"
        "routing-rule1=priority 27600 from fd00::1:0:2 table 27600\n"
        "routing-rule2=priority 27600 to fd00::/64 table 27600\n"
    )


def test_networkmanager_with_ipv6_alone(port: Port) -> None:
    text = network_manager.text(LinkFile("rail0", port, 9000, ("fd00::2/64",)), "machine")
    assert text.endswith(
        "[ipv4]\nmethod=disabled\nnever-default=true\n\n"
        "[ipv6]\nmethod=manual\naddress1=fd00::2/64\nnever-default=true\n"
    )


def test_netplan(link: LinkFile, tmp_path: Path) -> None:
    (text,) = netplan.files((link,), str(tmp_path), NETWORKD).values()
    (own,) = yaml.safe_load(text)["network"]["ethernets"].values()
    assert own["addresses"] == ["192.168.0.5/24", "fd00::1:0:2/96"]
    assert {"to": "fd00::/48", "via": "fd00::1:0:1", "from": "fd00::1:0:2", "table": 27600} in own["routes"]


def changed(port: Port, **values: Any) -> Port:
    assert port.netdev is not None
    return dataclasses.replace(port, netdev=dataclasses.replace(port.netdev, **values))


def test_only_planned_addresses_of_ipv6_are_seen(port: Port) -> None:
    mine = changed(port, addresses=("10.0.0.1/24", "fd00::2/64", "2001:db8::7/64"))
    assert links_plan.current_state(mine, {})["addresses"] == ["10.0.0.1/24"]
    assert links_plan.current_state(mine, {}, ["fd00::2/64"])["addresses"] == ["10.0.0.1/24", "fd00::2/64"]
    # A duplicate is not used by the kernel: where it is wanted it is as if it were not set, else it is to be removed.
    mine = changed(mine, duplicates=("fd00::2/64",))
    state = links_plan.current_state(mine, {}, ["fd00::2/64"], wanted=["fd00::2/64"])
    assert state["addresses"] == ["10.0.0.1/24"]
    assert links_plan.current_state(mine, {}, ["fd00::2/64"])["addresses"] == ["10.0.0.1/24", "fd00::2/64"]


def checked(port: Port) -> ipv6.Checked:
    assert port.netdev is not None
    return ipv6.Checked(port.title, port.netdev, bool(port.netdev.carrier), ["fd00::2/64"])


def test_an_address_that_another_machine_has(port: Port) -> None:
    (text,) = ipv6.taken(checked(changed(port, duplicates=("fd00::2/64", "2001:db8::7/64"))))
    assert text.endswith(
        "another machine on this link has the address fd00::2/64, as the kernel found. Remove it there, or"
        " set rdma_host.number of one of the hosts"
    )


@pytest.mark.parametrize(("carrier", "count"), [(True, 1), (False, 0), (None, 0)])
def test_the_check_for_duplicates_is_awaited_with_a_carrier(port: Port, carrier: bool | None, count: int) -> None:
    waiting = changed(port, tentative=("fd00::2/64",), carrier=carrier)
    assert len(ipv6.unchecked(checked(waiting))) == count
    assert ipv6.unchecked(checked(changed(waiting, duplicates=("fd00::2/64",)))) == []


def test_routes_without_a_carrier() -> None:
    """They are not awaited, and those that are set stay."""
    assert routing.settable(LINES, [], ["rail1"]) == LINES
    left = [LINES[0], *LINES[4:]]
    assert routing.settable(LINES, [], ["rail0"]) == left
    assert routing.settable(LINES, LINES, ["rail0"]) == LINES


ON_KERNEL = """
import json, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from tests.tools import importable
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.network import parse_interfaces
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.rail_ports import parse_rails
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import io, plan, routing

def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout

def addresses():
    return parse_interfaces(ip("-d", "-j", "addr", "show"))["rail0"]

def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, ip("addr", "show", "rail0") + "".join(io.read_routing(True, True))
        time.sleep(0.1)

for line in ("link add rail0 type veth peer name peer0", "link set rail0 up", "link set peer0 up"):
    ip(*line.split())
(rail,) = parse_rails([json.loads(sys.argv[2])])
lines = routing.wanted([rail], routing.tables([rail], "auto"), {rail.pci: "rail0"})
now = {"mtu": 1500, "up": True, "addresses": [], "sysctl": {}}
# peer0 has one of the addresses: what another machine has.
ip("address", "add", "fd00::1:0:9/96", "dev", "peer0", "nodad")
for argv in plan.link_commands("rail0", now, {**now, "addresses": [*rail.addresses, "fd00::1:0:9/96"]}):
    ip(*argv[1:])
at_once = addresses()

def settled():
    for argv in routing.commands(io.read_routing(True, True), lines):
        subprocess.run(argv, capture_output=True)
    return io.read_routing(True, True) == lines

until(settled)
until(lambda: addresses().duplicates)
found = addresses()
for argv in routing.commands(lines, []):
    ip(*argv[1:])
removed = io.read_routing(True, True)
# Somebody removes the address: the kernel leaves its routes, without their source.
until(settled)
ip("address", "del", "fd00::1:0:2/96", "dev", "rail0")
left = io.read_routing(False, True)
for argv in routing.commands(left, []):
    ip(*argv[1:])
at_last = io.read_routing(True, True)
print(json.dumps([sorted(at_once.tentative), found.addresses, found.duplicates, removed, left, at_last]))
"""


def can_unshare() -> bool:
    try:
        return subprocess.run(["unshare", "-n", "ip", "-6", "rule"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_unshare(), reason="needs root, unshare and ip")
def test_on_the_kernel() -> None:
    """Addresses, rules and routes of a rail are set, read back as written, and removed, also without the address."""
    argv = ["unshare", "-n", sys.executable, "-c", ON_KERNEL, str(Path(__file__).parents[6]), json.dumps(ENTRY)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tentative, addresses, duplicates, removed, left, at_last = json.loads(done.stdout)
    assert tentative == ["fd00::1:0:2/96", "fd00::1:0:9/96"]
    assert {"192.168.0.5/24", "fd00::1:0:2/96"} <= set(addresses)
    assert (duplicates, removed, at_last) == (["fd00::1:0:9/96"], [], [])
    assert "fd00::/64 via fd00::1:0:1 dev rail0 table 27600" in left


def test_routes_of_a_rail_are_no_owner() -> None:
    """The kernel lists IPv6 routes of all tables, so those that were set are in the record."""
    (rail,) = rails()
    state = {"mtu": 9000, "up": True, "addresses": [*rail.addresses], "sysctl": {}}
    entry = link_restore.entry(rail, (), None, now={**state, "addresses": []}, after=state)
    assert entry["set"]["routes"] == ["fd00::/64", "fd00::/48"]
    alone = link_restore.entry(rails(ipv6=None)[0], (), None, now=state, after=state)
    assert "routes" not in alone["set"]
    later = {PCI: {**entry, "set": {**entry["set"], "routes": ["fd00:1::/64"]}}}
    running = link_restore.unsettled({PCI: entry}, later, later, now={PCI: state}, after={PCI: state})
    assert running[PCI]["set"]["routes"] == ["fd00:1::/64", "fd00::/48", "fd00::/64"]


def test_flags_of_addresses() -> None:
    """As iproute2 6.1 prints them."""
    shown = [
        {"family": "inet6", "local": "fd00::2", "prefixlen": 64, "scope": "global", "tentative": True},
        {
            "family": "inet6",
            "local": "fd00::3",
            "prefixlen": 64,
            "scope": "global",
            "dadfailed": True,
            "tentative": True,
        },
        {"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link", "tentative": True},
    ]
    link = parse_interfaces(json.dumps([{"ifname": "rail0", "addr_info": shown}]))["rail0"]
    assert (link.tentative, link.duplicates) == (("fd00::2/64", "fd00::3/64"), ("fd00::3/64",))
