"""The intent: what is accepted, and one clear message for everything that is not."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.intent import Intent
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles.registry import names

NET = {"supernet": "192.168.0.0/16"}


def read(params: Any) -> Intent:
    return Intent.from_params(params, names())


BAD: list[tuple[Any, str]] = [
    ("rails", 'rdma_fabric: expected a dict, found "rails" (text)'),
    ({}, "rdma_fabric.supernet: missing. Set the network from which rails get their addresses, or set addresses: keep"),
    ({**NET, "supernett": 1}, 'rdma_fabric.supernett: unknown key; did you mean "supernet"?'),
    ({**NET, "operator": {"relase": "26.7.1"}}, 'rdma_fabric.operator.relase: unknown key; did you mean "release"?'),
    (
        {**NET, "capacity": {"zzz": 1}},
        "rdma_fabric.capacity.zzz: unknown key; known here: hosts, pods_per_host",
    ),
    (
        {**NET, "rails": [{"name": "rail0", "pcie": []}]},
        'rdma_fabric.rails[0].pcie: unknown key; did you mean "pci"?',
    ),
    ({**NET, "mtu": "9k"}, 'rdma_fabric.mtu: expected a whole number, found "9k" (text)'),
    ({**NET, "mtu": True}, "rdma_fabric.mtu: expected a whole number, found true (true or false)"),
    ({**NET, "mtu": 500}, "rdma_fabric.mtu: expected 1280 to 16384, found 500"),
    ({**NET, "rename": "maybe"}, 'rdma_fabric.rename: expected true or false, found "maybe" (text)'),
    ({**NET, "mtu": "4.5"}, 'rdma_fabric.mtu: expected a whole number, found "4.5" (text)'),
    ({**NET, "link_speed": "nan"}, 'rdma_fabric.link_speed: expected a number, found "nan" (text)'),
    ({**NET, "mtu": "420"}, "rdma_fabric.mtu: expected 1280 to 16384, found 420"),
    ({**NET, "tests": []}, "rdma_fabric.tests: expected a dict, found a list"),
    ({**NET, "rails": {"rail0": {}}}, "rdma_fabric.rails: expected a list, found a dict"),
    (
        {**NET, "rails": ["rail0"]},
        '2 problems: rdma_fabric.rails[0]: expected a dict, found "rail0" (text); rdma_fabric.rails[0].name: '
        'missing; every '
        "rail needs a name",
    ),
    (
        {**NET, "select": {"vendors": ["15b3", 8086]}},
        "rdma_fabric.select.vendors: expected a list of texts, found 8086 (number) in it",
    ),
    (
        {**NET, "node_labels": {"a": True}},
        "rdma_fabric.node_labels.a: expected text (quote it), found true (true or false)",
    ),
    ({**NET, "thresholds": {"tolerance": 2}}, "rdma_fabric.thresholds.tolerance: expected 0.01 to 1, found 2"),
    ({**NET, "thresholds": {"floor": "x"}}, 'rdma_fabric.thresholds.floor: expected a number, found "x" (text)'),
    (
        {**NET, "thresholds": {"overrides": [{"rails": ["rail1"], "florr": 1}]}},
        "2 problems: rdma_fabric.thresholds.overrides[0]: sets no value; set at least one of tolerance, "
        'bidirectional, floor and latency_us; rdma_fabric.thresholds.overrides[0].florr: unknown key; '
        'did you mean "floor"?',
    ),
    (
        {**NET, "thresholds": {"rails": {"rail1": {"floor": 1}}}},
        'rdma_fabric.thresholds.rails: unknown key; known here: bidirectional, floor, gpu_paths, latency_us, outliers, '
        "overrides, tolerance, unsteady",
    ),
    (
        {**NET, "thresholds": {"gpu_paths": {"SYSS": 0.5}}},
        'rdma_fabric.thresholds.gpu_paths.SYSS: unknown key; did you mean "SYS"?',
    ),
    (
        {**NET, "thresholds": {"outliers": {"severity": "error"}}},
        'rdma_fabric.thresholds.outliers.severity: expected one of warning, failure, found "error" (text)',
    ),
    ({**NET, "profile": "toy"}, f'rdma_fabric.profile: expected one of {", ".join(names())}, found "toy" (text)'),
    (
        {**NET, "tests": {"kinds": ["write_bw", "ping"]}},
        "rdma_fabric.tests.kinds: expected some of write_bw, read_bw, send_bw, write_lat, read_lat, "
        'send_lat, found "ping" (text)',
    ),
    ({**NET, "tests": {"mtu": 9000}}, "rdma_fabric.tests.mtu: expected 256 to 4096, found 9000"),
    ({**NET, "tests": {"mtu": 1500}}, "rdma_fabric.tests.mtu: expected one of 256, 512, 1024, 2048, 4096, found 1500"),
    (
        {**NET, "tests": {"port_base": 29990}},
        "rdma_fabric.tests.port_base: ports up to 30118 needed for 16 rails, but they must stay below 30000",
    ),
    (
        {**NET, "rail_count": 8, "tests": {"mode": "incast", "fan": 32, "port_base": 28000}},
        "rdma_fabric.tests.port_base: ports up to 30048 needed for 8 rails, but they must stay below 30000",
    ),
    (
        {**NET, "tests": {"memory": "cuda:dmabuf", "kinds": ["write_lat"]}},
        "rdma_fabric.tests.kinds: write_lat cannot use memory cuda:dmabuf. Use read_lat or send_lat, or "
        "set memory: host",
    ),
    (
        {**NET, "tests": {"cross_rail": True}},
        "rdma_fabric.tests.cross_rail: rails cannot reach each other (rdma_fabric.routing: none). Set cross_rail: "
        "false, or set routing: between_rails if the fabric routes between all rails",
    ),
    (
        {**NET, "tests": {"mode": "loopback"}},
        "rdma_fabric.tests.mode: loopback measures from rail to rail, and rails cannot reach each other"
        " (rdma_fabric.routing: none). Set another mode, or set routing: between_rails if the fabric connects all"
        " rails",
    ),
    (
        {**NET, "routing": "rails"},
        'rdma_fabric.routing: expected one of none, between_rails, found "rails" (text)',
    ),
    (
        {"supernet": "192.168.1.0/16"},
        'rdma_fabric.supernet: expected an IPv4 network such as 192.168.0.0/16, found "192.168.1.0/16" '
        "(192.168.1.0/16 has host bits set)",
    ),
    (
        {**NET, "rails": [{"name": "Rail_0"}]},
        'rdma_fabric.rails[0].name: expected a name such as rail0 (lowercase letters, digits and "-" inside, first a '
        'letter, at most 15 characters), found "Rail_0"',
    ),
    (
        {**NET, "rails": [{"name": "Rail_0", "pci": ["x"]}], "operator": {"release": "v26.7.1"}},
        '3 problems: rdma_fabric.rails[0].name: expected a name such as rail0 (lowercase letters, digits and "-" '
        'inside, first a letter, at most 15 characters), found "Rail_0"; rdma_fabric.rails[0].pci: expected PCI '
        'addresses such as 0000:18:00.0, found "x"; rdma_fabric.operator.release: expected a release such as 26.7.1 '
        '(three numbers, without "v"), found "v26.7.1"',
    ),
    (
        {**NET, "rails": [{"name": "rail0"}, {"name": "rail0"}]},
        'rdma_fabric.rails: the name "rail0" is given to more than one rail',
    ),
    (
        {**NET, "rails": [{"name": "rail0", "pci": ["18:00.0"]}]},
        'rdma_fabric.rails[0].pci: expected PCI addresses such as 0000:18:00.0, found "18:00.0"',
    ),
    (
        {**NET, "rails": [{"name": "rail0"}], "rail_count": 2},
        "rdma_fabric.rail_count: 2, but rails lists 1",
    ),
    (
        {**NET, "operator": {"release": "25.7.0"}},
        "rdma_fabric.operator.release: 25.7.0 is not of a supported release line. Supported: 25.10, 26.1, 26.4, 26.7",
    ),
    (
        {"mtu": "x", "rename": 2},
        '3 problems: rdma_fabric.rename: expected true or false, found 2 (number); rdma_fabric.mtu: expected a whole '
        'number, found "x" (text); rdma_fabric.supernet: missing. Set the network from which rails get their '
        "addresses, or set addresses: keep",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("params", "message"), BAD, ids=range(len(BAD)))
def test_bad_input(params: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(params)
    assert str(caught.value) == message


def test_numbers_and_booleans_may_be_text_as_in_options_of_roles() -> None:
    """Templates, `-e` and surveys give text."""
    tests = {"sizes": ["64", 4096.0], "rdma_cm": "on"}
    texts = {**NET, "mtu": " 4200", "link_speed": "0.5", "rename": "no", "rail_count": 2.0, "tests": tests}
    intent = read(texts)
    assert (intent.mtu, intent.link_speed, intent.rename, intent.rail_count) == (4200, 0.5, False, 2)
    assert (intent.tests["sizes"], intent.tests["rdma_cm"]) == ([64, 4096], True)


def test_defaults() -> None:
    intent = read(NET)
    assert intent.supernet == ipaddress.IPv4Network("192.168.0.0/16")
    assert (intent.profile, intent.rails, intent.rail_count, intent.rename) == ("macvlan", (), None, True)
    assert (intent.rail_prefix, intent.mtu, intent.shared_devices_max) == (24, None, 63)
    assert intent.select.vendors == ("15b3",)
    assert intent.operator.component_version == "network-operator-v26.7.1"
    assert intent.operator.image_repository == "nvcr.io/nvidia/mellanox"
    assert intent.thresholds.of("rail0", ()).tolerance == 0.95
    assert intent.tests["kinds"] == ["write_bw"]
    assert intent.absent_hosts == "stop"


def test_null_means_default() -> None:
    intent = read({**NET, "rail_count": None, "rails": None, "operator": {"component_version": None}})
    assert intent.rail_count is None
    assert intent.operator.component_version == "network-operator-v26.7.1"


def test_a_supernet_is_not_needed_to_keep_addresses() -> None:
    assert read({"addresses": "keep"}).supernet is None


def test_rails_that_are_routed_may_be_crossed() -> None:
    assert read({**NET, "routing": "between_rails", "tests": {"mode": "loopback"}}).tests["mode"] == "loopback"
    intent = read({**NET, "routing": "between_rails", "tests": {"cross_rail": True}})
    assert (intent.routing, intent.tests["cross_rail"]) == ("between_rails", True)
    assert read(NET).routing == "none"


@pytest.mark.parametrize("value", ["nvcr.io", "r.example:5000/mellanox", "localhost/a/b-c", "r-1.example/a_b"])
def test_repositories(value: str) -> None:
    assert read({**NET, "operator": {"image_repository": value}}).operator.image_repository == value


@pytest.mark.parametrize("value", [
    "https://r.example/mellanox", "r.example/mellanox:26.7", "r.example/mellanox@sha256:12", "r.example/Mellanox",
    "r.example/mella nox", "r.example/mellanox/", "r.example/", "r.example./a", "r.example/a..b", "-r/a", "r:x/a", "",
])  # fmt: skip
def test_what_is_not_a_repository(value: str) -> None:
    with pytest.raises(InputError) as caught:
        read({**NET, "operator": {"image_repository": value}})
    assert str(caught.value).startswith("rdma_fabric.operator.image_repository: expected a repository such as")
    assert str(caught.value).endswith(f'found "{value}"')
