"""Routing tables of rails: what shares a subnet, what is behind a router, for each network manager."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.rail_ports import Rail, parse_rails
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import (
    netplan,
    network_manager,
    networkd,
    routing,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links.network_managers import NETWORKD, LinkFile

PCI = "0000:18:00.0"
ENTRY: dict[str, Any] = {
    "rail": "rail0",
    "pci": PCI,
    "netdev": "rail0",
    "address": "192.168.0.5/31",
    "mtu": 9000,
    "gateway": "192.168.0.4",
    "routes": ["192.168.0.0/24", "192.168.0.0/16"],
    "beyond": "192.168.0.0/24",
}
LINES = [
    "192.168.0.0/16 via 192.168.0.4 dev rail0 src 192.168.0.5 table 27600",
    "192.168.0.0/24 via 192.168.0.4 dev rail0 src 192.168.0.5 table 27600",
    "192.168.0.4/31 dev rail0 src 192.168.0.5 scope link table 27600",
    "from 192.168.0.5 lookup 27600 priority 27600",
    "to 192.168.0.0/24 lookup 27600 priority 27600",
]
# As a kernel (6.18) printed what these lines had set.
RULES = [
    {"priority": 0, "src": "all", "table": "255"},
    {"priority": 27600, "src": "192.168.0.5", "table": "27600"},
    {"priority": 27600, "src": "all", "dst": "192.168.0.0", "dstlen": 24, "table": "27600"},
    {"priority": 32766, "src": "all", "table": "254"},
]
ROUTES = [
    {"dst": "192.168.0.0/16", "gateway": "192.168.0.4", "dev": "rail0", "table": "27600", "prefsrc": "192.168.0.5"},
    {"dst": "192.168.0.0/24", "gateway": "192.168.0.4", "dev": "rail0", "table": "27600", "prefsrc": "192.168.0.5"},
    {"dst": "192.168.0.4/31", "dev": "rail0", "table": "27600", "scope": "253", "prefsrc": "192.168.0.5"},
    {"dst": "192.168.0.4/31", "dev": "rail0", "protocol": "2", "scope": "253", "prefsrc": "192.168.0.5"},
]


def rails(**changes: Any) -> tuple[Rail, ...]:
    return parse_rails([{**ENTRY, **changes}])


def test_a_rail_with_a_router_gets_a_table() -> None:
    table_of = routing.tables(rails(), "auto")
    assert table_of == {"rail0": 27600}
    assert routing.wanted(rails(), table_of, {PCI: "rail0"}) == LINES
    assert routing.tables(rails(gateway=None), "auto") == {}
    with pytest.raises(
        InputError, match="a router for rails rail0, whose routes need source routing. Set source_routing"
    ):
        routing.tables(rails(), "never")


def test_the_lines_are_read_as_they_are_written() -> None:
    assert routing.parse(json.dumps(RULES), json.dumps(ROUTES)) == LINES
    commands = routing.commands([], LINES)
    assert commands[0] == ["ip", "route", "replace", *LINES[0].split()]
    assert commands[-1] == ["ip", "rule", "add", *LINES[-1].split()]
    assert routing.commands(LINES, LINES) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"gateway": "192.168.9.1"},
            "rail rail0: the gateway 192.168.9.1 is not in 192.168.0.4/31, the network of its",
        ),
        ({"gateway": "router"}, "rail rail0: gateway, routes or beyond cannot be read"),
        ({"routes": ["192.168.0.5/24"]}, "rail rail0: gateway, routes or beyond cannot be read"),
    ],
)
def test_a_router_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        rails(**change)
    assert message in str(caught.value)


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> LinkFile:
    with pytest.MonkeyPatch.context() as patch:
        host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path_factory.mktemp("host"), patch)
        port = host.inventory().port(PCI)
    (rail,) = rails()
    rules, routes = routing.of_rail(rail, 27600)
    return LinkFile("rail0", port, 9000, ("192.168.0.5/31",), tuple(rules), tuple(routes))


def test_networkd_keeps_them(link: LinkFile) -> None:
    text = networkd.text(link)
    assert text.count("[Route]") == 3
    assert (
        "[Route]\nDestination=192.168.0.0/16\nGateway=192.168.0.4\nPreferredSource=192.168.0.5\nTable=27600\n" in text
    )
    assert text.endswith("[RoutingPolicyRule]\nTo=192.168.0.0/24\nTable=27600\nPriority=27600\n")


def test_networkmanager_keeps_them(link: LinkFile) -> None:
    text = network_manager.text(link, "machine")
    assert (
        "route1=192.168.0.4/31\nroute1_options=src=192.168.0.5,table=27600\n"
        "route2=192.168.0.0/24,192.168.0.4\nroute2_options=src=192.168.0.5,table=27600\n"
        "route3=192.168.0.0/16,192.168.0.4\nroute3_options=src=192.168.0.5,table=27600\n"
        "routing-rule1=priority 27600 from 192.168.0.5 table 27600\n"
        "routing-rule2=priority 27600 to 192.168.0.0/24 table 27600\n"
    ) in text


def test_netplan_keeps_them(link: LinkFile, tmp_path: Path) -> None:
    (text,) = netplan.files((link,), str(tmp_path), NETWORKD).values()
    (own,) = yaml.safe_load(text)["network"]["ethernets"].values()
    source = {"from": "192.168.0.5", "table": 27600}
    assert own["routes"] == [
        {"to": "192.168.0.4/31", "scope": "link", **source},
        {"to": "192.168.0.0/24", "via": "192.168.0.4", **source},
        {"to": "192.168.0.0/16", "via": "192.168.0.4", **source},
    ]
    assert own["routing-policy"] == [
        {"from": "192.168.0.5", "table": 27600, "priority": 27600},
        {"to": "192.168.0.0/24", "table": 27600, "priority": 27600},
    ]
