"""What network managers get for a rail, and whose files claim its port.

The connection was read back by nmcli 1.42 (--offline), the netplan definitions by netplan 0.106 (generate), and what
that made of them for systemd-networkd and NetworkManager was looked at by eye.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.devices import Port
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.rail_ports import Rail
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import (
    netplan,
    network_manager,
    network_managers,
    networkd,
    reload,
    routing,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links.network_managers import Claim, LinkFile
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.naming import systemd_files

CONNECTION = """\
# Written by gpufabric.rdma.rail_links, which removes it with state: absent.
[connection]
id=gpufabric-rail0
uuid=fff7ed55-f1c9-52e8-9516-fd290fa4dc60
type=ethernet
autoconnect-priority=100

[match]
path=pci-0000:18:00.0;
driver=mlx5_core;

[ethernet]
mtu=9000

[ipv4]
method=manual
address1=192.168.0.11/24
never-default=true
route1=192.168.0.0/24
route1_options=src=192.168.0.11,table=27600
routing-rule1=priority 27600 from 192.168.0.11 table 27600

[ipv6]
method=link-local
never-default=true
"""
PLAIN = "[connection]\nid=x\ntype=ethernet\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Port:
    with pytest.MonkeyPatch.context() as patch:
        host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path_factory.mktemp("host"), patch)
        return host.inventory().port("0000:18:00.0")


@pytest.fixture(scope="module")
def link(port: Port) -> LinkFile:
    rail = Rail("rail0", port.pci, None, "rail0", "192.168.0.11/24", 9000)
    rules, routes = routing.of_rail(rail, 27600)
    return LinkFile("rail0", port, 9000, ("192.168.0.11/24",), tuple(rules), tuple(routes))


def test_a_connection_holds_for_one_port(link: LinkFile) -> None:
    assert network_manager.text(link, "machine") == CONNECTION


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ((), "[ipv4]\nmethod=disabled\nnever-default=true\n\n[ipv6]"),
        (("10.0.0.1/8", "10.1.0.1/16"), "method=manual\naddress1=10.0.0.1/8\naddress2=10.1.0.1/16\nnever"),
    ],
)
def test_connections_with_any_number_of_addresses(link: LinkFile, addresses: tuple[str, ...], expected: str) -> None:
    changed = dataclasses.replace(link, addresses=addresses, rules=(), routes=())
    assert expected in network_manager.text(changed, "machine")


@pytest.fixture(scope="module")
def ipoib(link: LinkFile) -> LinkFile:
    """A rail of InfiniBand: ethtool, and so udev and the managers, tell mlx5_core[ib_ipoib] of it, or ib_ipoib."""
    return dataclasses.replace(link, mtu=2044, port=dataclasses.replace(link.port, infiniband=True))


@pytest.mark.parametrize(("mtu", "mode"), [(2044, "datagram"), (4092, "datagram"), (65520, "connected")])
def test_a_connection_of_infiniband_always_has_its_transport_mode(ipoib: LinkFile, mtu: int, mode: str) -> None:
    """NetworkManager refuses one without (verify() in nm-setting-infiniband.c)."""
    text = network_manager.text(dataclasses.replace(ipoib, mtu=mtu), "machine")
    assert f"[infiniband]\nmtu={mtu}\ntransport-mode={mode}\n\n[ipv4]" in text


def test_no_file_asks_for_the_driver_of_an_infiniband_link(ipoib: LinkFile) -> None:
    """It is not the driver of the PCI function."""
    match = "[Match]\nPath=pci-0000:18:00.0\nType=infiniband\n\n"
    assert match in networkd.text(ipoib)
    assert match in systemd_files.format_link("title", ipoib.port, "rail0", others={})
    assert "[match]\npath=pci-0000:18:00.0;\n\n" in network_manager.text(ipoib, "machine")
    (text,) = netplan.files((ipoib,), "/etc", network_managers.NETWORKD).values()
    (definition,) = yaml.safe_load(text)["network"]["ethernets"].values()
    assert list(definition["match"]) == ["macaddress"]


@pytest.mark.parametrize(
    ("match", "holds"),
    [
        ("Driver=mlx5_core", False),
        ("Driver=mlx5_core[[]ib_ipoib]", True),
        ("Driver=mlx5_core*", True),
        ("Driver=mlx5e_rep", False),
        ("Driver=!mlx5_core", True),
        ("Type=infiniband", True),
        ("Type=ether", False),
    ],
)
def test_who_else_holds_for_an_infiniband_link(ipoib: LinkFile, match: str, holds: bool) -> None:
    assert systemd_files.matches(systemd_files.parse(f"[Match]\n{match}\n"), ipoib.port) is holds


def test_a_setting_of_several_lines_is_read_and_written_as_one(ipoib: LinkFile) -> None:
    """A last backslash joins the next line that is not a comment (systemd.syntax(7))."""
    text = "[Link]\nNamePolicy=path\nAlternativeNamesPolicy=database \\\n  # comment \\\n  onboard\nMTUBytes=9000\\"
    written = systemd_files.format_link("title", ipoib.port, "rail0", others={"/99-a.link": text})
    assert written.endswith("[Link]\nName=rail0\nAlternativeNamesPolicy=database  onboard\nMTUBytes=9000\n")


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        (PLAIN, False),
        (PLAIN + "autoconnect-priority=100\n", True),
        (PLAIN + "autoconnect-priority=--100\n", False),
        (PLAIN + "interface-name=enp24s0np0\n", True),
        (PLAIN + "interface-name=enp24s0np0\nautoconnect=false\n", False),
        (PLAIN + "interface-name=enp41s0np0\n", False),
        (PLAIN + "[ethernet]\nmac-address=B8:3F:D2:00:18:00\n", True),
        (PLAIN + "[match]\ninterface-name=en*;eth*;\n", True),
        (PLAIN + "[match]\npath=pci-0000:18:00.0;\n", True),
        (PLAIN + "[match]\npath=pci-0000:29:00.0;\n", False),
        (PLAIN + "[match]\ndriver=igb;\n", False),
        (PLAIN + "interface-name=enp24s0np0\n[.nmmeta]\nnm-generated=true\n", False),
        ("[connection]\ntype=wifi\ninterface-name=enp24s0np0\n", False),
        ("not a keyfile", False),
        ("", False),
    ],
)
def test_claims_of_connections(port: Port, text: str, claims: bool) -> None:
    assert network_manager.claim({"/f": text}, port) == (Claim("/f", True, "mtu=") if claims else None)


def test_a_connection_of_netplan_has_no_priority_over_one_for_all(port: Port) -> None:
    assert network_manager.claim({"/f": PLAIN}, port, 0) == Claim("/f", True, "mtu=")


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("DEVICE=enp24s0np0\nONBOOT=yes\n", True),
        ('DEVICE="enp24s0np0"\n', True),
        ("DEVICE=enp24s0np0\nONBOOT=no\n", False),
        ("HWADDR=b8:3f:d2:00:18:00\n", True),
        ("DEVICE=enp41s0np0\n", False),
    ],
)
def test_claims_of_ifcfg_files(port: Port, text: str, claims: bool) -> None:
    found = network_manager.claim({"/etc/sysconfig/network-scripts/ifcfg-x": text}, port)
    assert (found is not None) == claims


WORDS = st.lists(st.sampled_from(["[Match]", "Path=", "=", '"', "KERNELS==", "NAME=", ",", "!", "*", "\n", "-", "5"]))


@given(text=st.text() | st.text(alphabet="[]=;\n%abc.&|").map(lambda text: PLAIN + text) | WORDS.map("".join))
def test_no_foreign_file_breaks_the_search_for_claims(port: Port, text: str) -> None:
    for path in ("/f", "/ifcfg-x"):
        network_manager.claim({path: text}, port)
    network_managers.ifupdown_claim({"/f": text}, port)
    networkd.claim({"/f.network": text}, port, "10-gpufabric-rail0.network")
    systemd_files.foreign_names({"/f.link": text}, {"/f.rules": text}, port, own="10-gpufabric-rail0.link")
    netplan.named(Claim("/run/systemd/network/10-netplan-a.network", True, ""), {"/f": text})


@pytest.mark.parametrize(
    ("backend", "match", "carrier"),
    [
        ("networkd", {"macaddress": "b8:3f:d2:00:18:00", "driver": "mlx5_core"}, {"ignore-carrier": True}),
        ("networkmanager", {"macaddress": "b8:3f:d2:00:18:00"}, {}),
    ],
)
def test_a_definition_is_yaml_that_the_backend_takes(
    link: LinkFile, backend: str, match: dict[str, str], carrier: dict[str, bool]
) -> None:
    text = netplan.files((link,), "/etc", backend)["/etc/netplan/90-gpufabric-rails.yaml"]
    assert yaml.safe_load(text)["network"]["ethernets"] == {
        "gpufabric-rail0": {
            "match": match,
            "renderer": "networkd" if backend == "networkd" else "NetworkManager",
            "mtu": 9000,
            "dhcp4": False,
            "dhcp6": False,
            "accept-ra": False,
            "link-local": ["ipv6"],
            "optional": True,
            **carrier,
            "addresses": ["192.168.0.11/24"],
            "routes": [{"to": "192.168.0.0/24", "scope": "link", "from": "192.168.0.11", "table": 27600}],
            "routing-policy": [{"from": "192.168.0.11", "table": 27600, "priority": 27600}],
        }
    }


@pytest.mark.parametrize(
    ("files", "backend"),
    [
        ({}, "networkd"),
        ({"/a": "network:\n  version: 2\n  renderer: NetworkManager\n"}, "networkmanager"),
        ({"/a": "network:\n  renderer: NetworkManager\n", "/b": "network:\n  renderer: networkd\n"}, "networkd"),
        ({"/a": "network:\n  ethernets:\n    x:\n      renderer: NetworkManager\n  renderer: networkd\n"}, "networkd"),
    ],
)
def test_netplan_with_both_services_follows_its_renderer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], backend: str
) -> None:
    inventory = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch).inventory()
    both = dataclasses.replace(inventory, managers=("NetworkManager", "systemd-networkd"))
    assert network_managers.choose(both, "netplan", files).backend == backend


def test_what_netplan_makes_of_ours_is_not_somebody_elses(port: Port) -> None:
    text = f"[Match]\nPermanentMACAddress={port.netdev.mac if port.netdev else ''}\n[Link]\nMTUBytes=9000\n"
    ours, theirs = "/run/systemd/network/10-netplan-gpufabric-rail0", "/run/systemd/network/10-netplan-eth"
    for suffix in (".link", ".network"):
        assert systemd_files.first_match({ours + suffix: text}, port, suffix) is None
        assert systemd_files.first_match({theirs + suffix: text}, port, suffix) == theirs + suffix


def rail(name: str, address: str | None) -> Rail:
    return Rail(name, f"0000:0{name[-1]}:00.0", None, name, address, 9000)


@pytest.mark.parametrize(
    ("addresses", "asked", "expected"),
    [
        (["10.0.0.1/24", "10.0.1.1/24"], "auto", {}),
        (["10.0.0.1/24", "10.0.0.2/24", "10.0.1.1/24"], "auto", {"rail0": 27600, "rail1": 27601}),
        (["10.0.0.1/24", "10.0.1.1/24"], "always", {"rail0": 27600, "rail1": 27601}),
        (["10.0.0.1/24", "10.0.0.2/24"], "never", {}),
        ([None, None], "always", {}),
        (["fd00::1/64", "fd00::2/64"], "auto", {"rail0": 27600, "rail1": 27601}),
        (["fd00::1/64", "fd00:1::2/64"], "auto", {}),
        (["fd00::1/64", "10.0.0.1/24"], "always", {"rail0": 27600, "rail1": 27601}),
    ],
)
def test_who_gets_a_routing_table(addresses: list[str | None], asked: str, expected: dict[str, int]) -> None:
    rails = [rail(f"rail{number}", address) for number, address in enumerate(addresses)]
    assert routing.tables(rails, asked) == expected


def test_routing_of_others_is_left_alone() -> None:
    rules = '[{"priority":0,"src":"all","table":"255"},{"priority":9,"src":"10.0.0.1","table":"27600"},{"table":"x"}]'
    routes = '[{"dst":"default","dev":"a"},{"dst":"10.0.0.0/24","dev":"b","table":"27600","prefsrc":"10.0.0.1"}]'
    assert routing.parse(rules, routes) == [
        "10.0.0.0/24 dev b src 10.0.0.1 scope link table 27600",
        "from 10.0.0.1 lookup 27600 priority 27600",
    ]


def test_commands_take_away_first() -> None:
    old, new = "from 10.0.0.1 lookup 27600 priority 27600", "10.0.0.0/24 dev b src 10.0.0.1 scope link table 27601"
    assert routing.commands([old], [new]) == [
        ["ip", "rule", "del", "from", "10.0.0.1", "lookup", "27600", "priority", "27600"],
        ["ip", "route", "replace", *new.split()],
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["27600", "10.0.0.0/24", "src", "dst", "table", "x"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["src", "dst", "dev", "table", "prefsrc"]), inner),
)


@given(rules=st.text() | JSON, routes=st.text() | JSON)
def test_other_output_of_ip_is_a_parse_error(rules: object, routes: object) -> None:
    texts = [text if isinstance(text, str) else json.dumps(text) for text in (rules, routes)]
    with contextlib.suppress(FabricError):
        routing.parse(*texts)


def test_permissions() -> None:
    assert oct(reload.mode("/etc/netplan/90-gpufabric-rails.yaml")) == "0o600"
    assert oct(reload.mode("/etc/NetworkManager/system-connections/gpufabric-a.nmconnection")) == "0o600"
    assert oct(reload.mode("/etc/sysctl.d/90-gpufabric-rails.conf")) == "0o644"
