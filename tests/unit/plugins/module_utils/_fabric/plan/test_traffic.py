"""Which traffic class tests use, where it comes from, and what the plan says of it. About 1 s."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet, host_facts

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import step as judge_step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.tester_input import perftest_args
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import link_findings, traffic
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.runs import about

LOSSLESS = {"trust": "dscp", "pfc": [3], "dscp": 26, "roce": "v2"}
LOSSY = " and traffic class 106 has priority 3: the switch can drop its packets. Enable PFC for this priority there"
NO_QOS = "tests use no traffic class (the fabric has no QoS: class 0)"
FROM_ROLE = "tests use traffic class 106 (DSCP 26, priority 3, PFC on this priority), from rail_links_qos"


def planned(*qos: Any, tests: dict[str, Any] | None = None, layer: str = "ethernet", **more: Any) -> dict[str, Any]:
    """Return the plan of as many hosts as there are QoS settings, one each."""
    hosts = fleet(len(qos), link_layer=layer)
    for host, own in zip(hosts.values(), qos):
        host["qos"] = own
    fabric: dict[str, Any] = {"supernet": "192.168.0.0/16", "tests": tests or {}, **more}
    return plan(fabric, hosts)


def warned(made: dict[str, Any]) -> list[str]:
    return [text for text in made["warnings"] if "traffic class" in text or "lossless" in text or "ECN" in text]


@pytest.mark.parametrize(
    ("qos", "tests", "byte", "text"),
    [
        (({}, None), {}, None, NO_QOS),
        ((LOSSLESS, LOSSLESS), {}, 106, FROM_ROLE),
        (({"trust": "dscp"},) * 2, {}, None, NO_QOS),
        (
            ({"dscp": "26", "pfc": ["4", "3"]},) * 2,
            {},
            106,
            "tests use traffic class 106 (DSCP 26, priority 3 if the port trusts DSCP, PFC on this priority), from"
            " rail_links_qos",
        ),
        (
            ({"traffic_class": 104, "trust": "pcp"},) * 2,
            {},
            104,
            "tests use traffic class 104 (DSCP 26, priority 3 if the port trusts DSCP), from rail_links_qos",
        ),
        (
            (LOSSLESS, LOSSLESS),
            {"traffic_class": 0},
            0,
            "tests use traffic class 0 (DSCP 0, priority 0, PFC not on this priority), set in tests.traffic_class",
        ),
        (
            ({}, {}),
            {"traffic_class": 136},
            136,
            "tests use traffic class 136 (DSCP 34, priority 4 if the port trusts DSCP), set in tests.traffic_class",
        ),
    ],
)
def test_class_and_its_source(qos: tuple[Any, ...], tests: dict[str, Any], byte: int | None, text: str) -> None:
    made = planned(*qos, tests=tests)
    assert [traffic.byte_of(made["tests"], rail["name"]) for rail in made["rails"]] == [byte, byte]
    assert traffic.told(made["tests"]) == [text]
    assert text in made["table"] and about({"tests": made["tests"]})[2] == [text]
    assert warned(made) == []


def test_both_ends_of_a_test_get_it() -> None:
    made = planned(LOSSLESS, LOSSLESS)
    assert perftest_args(made["tests"], rail="rail1").endswith(" --tclass=106")
    assert perftest_args({**made["tests"], "rdma_cm": True}, rail="rail1").endswith(" -R -T 106")
    assert "tclass" not in perftest_args(planned({}, {})["tests"], rail="rail1")


def test_hosts_that_mark_packets_differently_have_a_plan_but_no_measurement_unless_a_class_is_set() -> None:
    """Every playbook plans, also those that prepare and remove."""
    different = (LOSSLESS, {**LOSSLESS, "dscp": 24}, LOSSLESS)
    made = planned(*different)
    problem = (
        "rail_links_qos: hosts mark RDMA packets with different traffic classes (98 on gpu-0002; 106 on"
        " gpu-[0001,0003]), but both ends of a test need one, so nothing can be measured. Set one dscp or traffic_class"
        " for all of these hosts, or set rdma_fabric.tests.traffic_class"
    )
    assert warned(made) == [problem]
    assert traffic.told(made["tests"]) == ["tests use no traffic class (rail_links_qos of hosts differs)"]
    assert traffic.bytes_of(made["tests"]) is None
    for refuses in (traffic.require_one, lambda made: judge_step.step(made, "host", Evidence({}, {}))):
        with pytest.raises(InputError) as caught:
            refuses(made)
        assert str(caught.value) == problem
    set_ = planned(*different, tests={"traffic_class": 106})
    traffic.require_one(set_)
    assert traffic.bytes_of(set_["tests"]) == 106 and warned(set_) == []
    ib = planned(*different, layer="infiniband", profile="ipoib")
    traffic.require_one(ib)
    assert warned(ib) == []


def test_only_hosts_of_the_run_count() -> None:
    hosts = fleet(2)
    for host, own in zip(hosts.values(), (LOSSLESS, {**LOSSLESS, "dscp": 24})):
        host["qos"] = own
    assert traffic.bytes_of(plan({"supernet": "192.168.0.0/16"}, hosts, limit=["gpu-0001"])["tests"]) == 106


@pytest.mark.parametrize(
    ("qos", "texts"),
    [
        (
            ({"pfc": [3], "trust": "dscp"},) * 2,
            [
                "rail_links_qos enables PFC on priority 3, but sets no traffic class of RDMA packets, so tests use"
                " class 0, which has no flow control. Set the DSCP, such as 26 for priority 3"
            ],
        ),
        (
            ({**LOSSLESS, "pfc": [4]},) * 2,
            [
                "rail_links_qos gives RDMA packets DSCP 26, which is priority 3, and enables PFC on priority 4: their"
                " class is not lossless. Set a DSCP of that priority, or PFC on priority 3"
            ],
        ),
        (
            (LOSSLESS, {}, LOSSLESS),
            [
                "gpu-0002: rail_links_qos sets no dscp, while other hosts have traffic class 106. Tests use it on all"
                " hosts, applications only where it is configured. Set dscp on all hosts"
            ],
        ),
        (
            ({**LOSSLESS, "ecn": [4]},) * 2,
            [
                "rail_links_qos gives RDMA packets priority 3, and enables congestion control (ECN) on priority 4. Set"
                " ecn to the priority of the DSCP"
            ],
        ),
        (({**LOSSLESS, "ecn": [3]},) * 2, []),
    ],
)
def test_what_the_plan_warns_of(qos: tuple[Any, ...], texts: list[str]) -> None:
    assert warned(planned(*qos)) == texts
    assert warned(planned(*qos, tests={"traffic_class": 0})) == []


@pytest.mark.parametrize(
    ("qos", "pfc", "text"),
    [
        (LOSSLESS, [3], ""),
        (LOSSLESS, [3, 4], ""),
        (LOSSLESS, None, ""),
        ({}, [3], ""),
        (
            LOSSLESS,
            [],
            "gpu-0002 rail0: leaf1 port swp7 has flow control for no priority (DCBX by LLDP), the host for priority 3,"
            + LOSSY,
        ),
        (
            {**LOSSLESS, "pfc": [3, 5]},
            [4],
            "gpu-0002 rail0: leaf1 port swp7 has flow control for priority 4 (DCBX by LLDP), the host for priority"
            " 3, 5," + LOSSY,
        ),
    ],
)
def test_flow_control_of_the_switch_port(qos: dict[str, Any], pfc: list[int] | None, text: str) -> None:
    hosts = fleet(2)
    for host in hosts.values():
        host["qos"] = qos
    switch = {"system": "leaf1", "chassis": "m1", "port": "swp7", "pfc": pfc}
    hosts["gpu-0002"]["facts"]["ports"][1]["switch"] = switch
    made = plan({"supernet": "192.168.0.0/16"}, hosts)
    found = [one for one in link_findings.find(made) if one["kind"] == "pfc"]
    assert [one["text"] for one in found] == ([text] if text else [])
    assert [warning for warning in made["warnings"] if "flow control" in warning] == ([text] if text else [])


def test_invalid_settings_are_one_error() -> None:
    with pytest.raises(FabricError) as caught:
        planned({"dscp": 64, "pfc": [8]}, {"trust": "both"})
    assert str(caught.value) == (
        "3 problems: rail_links_qos of gpu-0001.dscp: expected 0 to 63, found 64; rail_links_qos of gpu-0001.pfc:"
        " expected whole numbers from 0 to 7, found 8 (number) in it; rail_links_qos of gpu-0002.trust: expected one"
        ' of dscp, pcp, found "both" (text)'
    )


def test_infiniband_has_a_class_only_where_it_is_set() -> None:
    made = planned(LOSSLESS, LOSSLESS, layer="infiniband", profile="ipoib")
    assert traffic.told(made["tests"]) == ["tests use no traffic class (InfiniBand: DSCP does not apply)"]
    assert traffic.bytes_of(made["tests"]) is None
    set_ = planned({}, {}, layer="infiniband", profile="ipoib", tests={"traffic_class": 4})
    assert traffic.bytes_of(set_["tests"]) == 4
    assert traffic.told(set_["tests"]) == ["tests use traffic class 4, set in tests.traffic_class"]


def template(name: str, nic: str, **qos: Any) -> dict[str, Any]:
    own = {"trust": "dscp", "pfc": "0,0,0,1,0,0,0,0", "tos": 106, **qos}
    roce = {"enabled": True, "qos": {key: value for key, value in own.items() if value is not None}}
    return {"name": name, "nic_type": nic, "settings": {"numVfs": 0, "linkType": "Ethernet", "roceOptimized": roce}}


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        ({}, {}, FROM_ROLE.replace("rail_links_qos", "operator.nic_configuration")),
        # Which NICs the rails have is not known here.
        ({}, {"tos": 98}, NO_QOS),
        ({"tos": None}, {"tos": None}, "tests use no traffic class (operator.nic_configuration sets no DSCP: class 0)"),
    ],
)
def test_templates_of_the_nic_configuration_operator_count_where_hosts_have_none(
    one: dict[str, Any], other: dict[str, Any], text: str
) -> None:
    templates = [template("one", "1021", **one), template("two", "1023", **other)]
    made = planned({}, {}, operator={"nic_configuration": {"enabled": True, "templates": templates}})
    assert traffic.told(made["tests"]) == [text]
    templates[0]["settings"]["roceOptimized"]["enabled"] = False
    templates[1]["settings"]["roceOptimized"]["enabled"] = False
    made = planned({}, {}, operator={"nic_configuration": {"enabled": True, "templates": templates}})
    assert traffic.told(made["tests"]) == [NO_QOS]


def test_rails_of_different_classes_of_hosts_have_their_own() -> None:
    hosts: dict[str, dict[str, Any]] = fleet(2)
    hosts.update({f"st-{at}": {"facts": host_facts(100 + at), "rdma_host": {}, "qos": LOSSLESS} for at in (1, 2)})
    own = {"name": "storage", "hosts": ["st-1", "st-2"], "profile": "sriov", "supernet": "10.20.0.0/16"}
    storage = {**own, "rails": [{"name": "store0", "pci": ["0000:18:00.0"]}]}
    made = plan({"supernet": "192.168.0.0/16", "classes": [storage]}, hosts)
    assert traffic.bytes_of(made["tests"]) == {"rail0": None, "rail1": None, "store0": 106}
    assert [text.partition(" use ")[0] for text in traffic.told(made["tests"])] == [
        "tests of rail[0-1]",
        "tests of store0",
    ]
