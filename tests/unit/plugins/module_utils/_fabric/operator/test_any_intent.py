"""Objects of any intent: each matches the schema of its line, and no rule of the linter calls one an error.

Intents are drawn from all profiles, lines and options that reach objects. A refused one has a message.
Cost: about 4 s.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.options import FABRIC
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.lint import registry as rules
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.lint.objects import Objects
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.lint.rule import ERROR
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

from .test_conformance import RELEASES, check

TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
RESOURCES = [{"container": "kube-multus", "requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}}]
TEMPLATE = {"name": "bf3", "nic_type": "a2dc", "settings": {"numVfs": 0, "linkType": "Ethernet"}}
UPGRADE = {"auto": True, "max_parallel": 2, "drain_timeout": 60, "wait_selector": "app=job", "wait_timeout": 30}
# Options that reach objects -> values that are drawn. What a section lacks is what it has by default.
TOP: dict[str, list[Any]] = {
    "gateway": ["last", "none"],
    "routing": ["between_rails"],
    "host_prefix": [26, 31],
    "reserved": [["192.168.0.9"]],
    "capacity": [{"hosts": 8}, {"hosts": 16, "pods_per_host": 4}],
    "ipv6": [{"supernet": "fd00:10::/48"}],
    "mtu": [1500, 4092, 9000],
    "vlan": [100],
    "pkey": ["0x8001"],
    "network_namespace": ["team-a"],
    "shared_devices_max": [1, 1000],
    "node_labels": [{"fabric": "a"}],
    "node_selector": [{"pool": "gpu"}],
}
SECTIONS: dict[str, dict[str, list[Any]]] = {
    "pools": {
        "ipam": ["nv-ipam", "whereabouts", "dhcp", "static", "none"],
        "routes": [["10.0.0.0/8"]],
        "per_node_exclusions": [["0"]],
    },
    "networks": {
        "name": ["gpu-{rail}"],
        "pool": ["pool-{rail}"],
        "resource": ["gpu_{rail}"],
        "source_routing": [True],
        "vrf": ["v-{rail}"],
        "mtu": ["inherit"],
        "sysctls": [{"net.ipv4.conf.IFNAME.arp_ignore": 1}],
    },
    "sriov": {
        "vfs": [1, 8],
        "assigned_by": ["operator", "device_plugin"],
        "externally_managed": [True],
        "eswitch_mode": ["switchdev"],
        "device_type": ["vfio-pci"],
        "rdma": [False],
        "rdma_mode": ["shared", "exclusive"],
        "max_unavailable": [2],
        "vlan": [7],
        "link_state": ["auto", "enable"],
        "trust": [True, False],
        "spoof_check": [True, False],
        "pkey": ["0x8002"],
    },
    "operator": {
        "image_repository": ["registry.example.com:5000/mirror"],
        "component_version": ["v1"],
        "nfd": [False],
        "multus": [False],
        "cni_plugins": [False],
        "image_pull_secrets": [["login"]],
        "tolerations": [[TOLERATION]],
        "components": [[{"name": "multus", "version": "v2", "resources": RESOURCES}]],
        "deployment_node_selector": [{"role": "infra"}],
        "nic_feature_discovery": [True],
        "telemetry": [{"enabled": True}, {"enabled": True, "config_map": "telemetry"}],
        "nic_configuration": [{"enabled": True, "templates": [TEMPLATE]}],
        "driver": [
            {"enabled": True, "version": "doca3.5.0-26.07-0.7.7.0-1", "upgrade": UPGRADE},
            {"enabled": True, "version": "doca3.5.0-26.07-0.7.7.0-1", "env": {"A": "b"}, "cert_config": "ca"},
        ],
        "platform": ["openshift"],
        "policy_overrides": [{"nvIpam": {"imagePullSecrets": ["other"]}}],
    },
}
# Keys of the intent that no object has: hosts and measurements alone, or other tests of conformance draw them.
OF_HOSTS = {
    "absent_hosts",
    "rails",
    "select",
    "rail_count",
    "rename",
    "rail_prefix",
    "addresses",
    "link_speed",
    "supernet",
    "profile",
}
ELSEWHERE = {*OF_HOSTS, "classes", "thresholds", "tests", "baseline", *SECTIONS}


@st.composite
def intents(draw: st.DrawFn) -> dict[str, Any]:
    """An intent with few options of each section: with many, most are refused."""

    def chosen(options: dict[str, list[Any]], most: int) -> dict[str, Any]:
        names = draw(st.lists(st.sampled_from(sorted(options)), max_size=most, unique=True))
        return {name: draw(st.sampled_from(options[name])) for name in names}

    profile = draw(st.sampled_from(sorted(registry.PROFILES)))
    fabric = {"supernet": "192.168.0.0/16", "rail_count": 2, "profile": profile, **chosen(TOP, 2)}
    for name, options in SECTIONS.items():
        if name != "sriov" or profile.startswith("sriov"):
            fabric[name] = chosen(options, 3 if name == "operator" else 2)
    return {**fabric, "operator": {**fabric["operator"], "release": draw(st.sampled_from(sorted(RELEASES)))}}


DONE: Counter[str] = Counter()


@settings(max_examples=200)
@given(intents())
def test_objects_match_the_schema_of_their_line(fabric: dict[str, Any]) -> None:
    hosts = fleet(2, link_layer=registry.get(fabric["profile"]).link_layer)
    try:
        made = plan(json.loads(json.dumps(fabric)), hosts)["objects"]
    except InputError as error:
        assert str(error)
        DONE["refused"] += 1
        return
    DONE[fabric["profile"]] += 1
    items = [*made["policy"], *made["networks"]]
    for item in items:
        check(RELEASES[fabric["operator"]["release"]], item)
    assert [finding.line for finding in rules.lint(Objects(items)) if finding.severity == ERROR] == []


def test_many_intents_have_a_plan_and_every_profile_is_among_them() -> None:
    """Of the intents of the test before; it draws the same ones in each run of the gates."""
    if DONE:
        assert DONE["refused"] < sum(DONE.values()) * 2 / 3
        assert {*DONE} - {"refused"} == {*registry.PROFILES}


def test_options_that_are_not_drawn_are_known() -> None:
    assert {*FABRIC} - {*TOP} <= {*ELSEWHERE}, "draw the new option, or state that no object has it"
    for name, options in SECTIONS.items():
        assert {*options} <= {*FABRIC[name]["options"]}
