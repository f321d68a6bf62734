"""The section networks of the intent: names and plugins."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.intent import Intent
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.networks import Networks, vrf_problem


def read(section: Any) -> Networks:
    return Intent.from_params({"supernet": "10.0.0.0/8", "networks": section}, ["plain"]).networks


def test_the_defaults() -> None:
    assert read({}) == read(None) == Networks("{rail}", "{rail}", "{rail}", False, None, {})
    assert not read({}).chains


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"name": "gpu"}, 'name: expected lowercase letters, digits and "-" with "{rail}" among them, such as "gpu-{r'),
        ({"name": "-{rail}"}, "name: expected lowercase"),
        ({"name": "a" * 49 + "{rail}"}, "name: expected lowercase"),
        ({"pool": "{rail}_pool"}, "pool: expected lowercase"),
        ({"resource": "gpu-{rail}"}, 'resource: expected letters, digits and "_" with "{rail}" among them'),
        ({"vrf": "red"}, 'vrf: expected a name with "{rail}" in it, such as "vrf-{rail}", found "red"'),
        ({"vrf": "{rail}", "source_routing": True}, "vrf: a VRF has its own routing table, which source_routing would"),
        ({"sysctls": {"net.ipv4.ip_forward": 1}}, "sysctls: expected names such as net.ipv4.conf.IFNAME.arp_ignore"),
        ({"sysctls": {"net.ipv4.conf.IFNAME.rp_filter": "loose"}}, 'rp_filter: expected a whole number, found "loose"'),
        ({"sysctls": {"net.ipv4.conf.IFNAME.rp_filter": True}}, 'rp_filter: expected a whole number, found "True"'),
        ({"sysctls": {1: 1}}, 'sysctls: expected names such as net.ipv4.conf.IFNAME.arp_ignore, found "1"'),
        ({"vfr": "x"}, 'vfr: unknown key; did you mean "vrf"?'),
    ],
)
def test_what_is_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(section)
    assert str(caught.value).startswith("rdma_fabric.networks.")
    assert message in str(caught.value)


def test_a_vrf_with_a_long_name_is_refused() -> None:
    networks = read({"vrf": "vrf-{rail}"})
    assert vrf_problem(networks, "rail0") == "" == vrf_problem(read({}), "rail0")
    assert vrf_problem(networks, "storage-rail0") == (
        "rdma_fabric.networks.vrf: vrf-storage-rail0 has 17 characters, at most 15 are possible"
    )
