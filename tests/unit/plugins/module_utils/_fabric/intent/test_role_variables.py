"""Variables of the playbooks: a wrong value has a message in the project's words, a misspelled name the right one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.unit.support.real_play import ROOT

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import role_variables
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry

ROLES = ["rdma_validate", "rail_links", "sriov"]
KNOWN = ["rdma_validate_where", "rail_links_manager", "sriov_vfs", "sriov_vfs_by_rail"]


def said(name: str, near: str) -> dict[str, str]:
    return {name: f'{name} is not a variable of this collection; did you mean "{near}"?'}


@pytest.mark.parametrize(("name", "near"), [
    ("rdma_fabrik", "rdma_fabric"),
    ("rdma_kubconfig", "rdma_kubeconfig"),
    ("rdma_reprot_dir", "rdma_report_dir"),
    ("rdma_gate", "rdma_gates"),
    ("rdma_pcie_asc", "rdma_pcie_acs"),
    ("rdma_hots", "rdma_host"),
    ("rdma_gruop", "rdma_group"),
])  # fmt: skip
def test_a_misspelled_variable_of_the_playbooks_is_refused(name: str, near: str) -> None:
    assert role_variables.misspelled([name, "rdma_host"], ROLES, KNOWN) == (said(name, near), {})


@pytest.mark.parametrize(("name", "near"), [
    ("sriov_vf_count", "sriov_vfs"),
    ("sriov_vfs_by_rack", "sriov_vfs_by_rail"),
    ("rdma_validate_wher", "rdma_validate_where"),
    ("rdma_validte_where", "rdma_validate_where"),
    ("rdma_gate_x", "rdma_gates"),
])  # fmt: skip
def test_a_name_that_is_nearly_another_one_is_warned_of(name: str, near: str) -> None:
    assert role_variables.misspelled([name], ROLES, KNOWN) == ({}, said(name, near))


@pytest.mark.parametrize("name", ["rdma_plan", "rdma_fabric_report", "rdma_cards_on_order", "my_rdma_fabric", *KNOWN])
def test_other_variables_are_left_alone(name: str) -> None:
    assert role_variables.misspelled([name], ROLES, KNOWN) == ({}, {})


def test_the_variables_are_those_of_the_reference() -> None:
    text = (ROOT / "docs/inventory.md").read_text()
    table = text.split("\n## Variables of a run")[1].split("\n| input |")[0]
    rows = re.findall(r"^\| `(rdma_[a-z_]+)` \| ", table, re.MULTILINE)
    assert set(rows) | {"rdma_fabric", "rdma_host"} == set(role_variables.PLAYBOOKS)


@pytest.mark.parametrize(("fabric", "message"), [
    ("supernet", 'rdma_fabric: expected a dict, found "supernet" (text)'),
    (["supernet"], "rdma_fabric: expected a dict, found a list"),
    (None, "rdma_fabric: expected a dict, found nothing (null)"),
    ({"supernet": "10.0.0.0/8"}, ""),
    ({"mtu": "x", "supernett": 1}, (
        '3 problems: rdma_fabric.mtu: expected a whole number, found "x" (text); rdma_fabric.supernett: unknown key; '
        'did you mean "supernet"?; rdma_fabric.supernet: missing. Set the network from which rails get their '
        "addresses, or set addresses: keep")),
])  # fmt: skip
def test_the_fabric(fabric: Any, message: str) -> None:
    assert role_variables.fabric_problem(fabric, registry.names()) == message


def test_gates_and_hosts() -> None:
    assert role_variables.gates_problem("pass") == 'rdma_gates: expected a list, found "pass" (text)'
    assert role_variables.gates_problem([{"name": "any", "query": "verdict == 'pass'"}]) == ""
    assert role_variables.host_problem("gpu-1", [1]) == "rdma_host of gpu-1: expected a dict, found a list"
    wrong = 'rdma_host of gpu-1.nmber: unknown key; did you mean "number"?'
    assert role_variables.host_problem("gpu-1", {"nmber": 1}) == wrong
    assert role_variables.host_problem("gpu-1", {"number": "1"}) == ""


@pytest.mark.parametrize(("path", "shown"), [
    ("", '"" (text)'), ("/", '"/" (text)'), (None, "nothing (null)"), (["a"], "a list"),
])  # fmt: skip
def test_a_folder_for_the_report_is_one(path: Any, shown: str) -> None:
    """An empty one led to `rm -rf /evidence`."""
    assert role_variables.folder_problem("rdma_report_dir", "/srv/report") == ""
    assert role_variables.folder_problem("rdma_report_dir", "report") == ""
    assert role_variables.folder_problem("rdma_validate_report_dir", "report") != ""
    assert role_variables.folder_problem("rdma_report_dir", path) == (
        f"rdma_report_dir: expected a folder such as /srv/rdma-report, found {shown}. Omit it to use the default"
    )


HEX = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
FINE = {
    "rdma_validate_image": [
        "",
        "perftest",
        "perftest:26.4",
        "tools/perftest",
        "localhost:5000/perftest",
        "registry.example.com/a/b__c:x",
        f"registry.example.com:5000/perftest@sha256:{HEX}",
        f"r.example/p:1@sha256:{HEX}",
        "[fd00::1]:5000/perftest",
    ],
    "rdma_validate_image_pull_secret": ["", "login", "a.b-c"],
    "rdma_validate_namespace": ["", "tests"],
}
WRONG = {
    "rdma_validate_image": [
        "https://registry.example.com/perftest",
        "r.example/Perftest",
        "r.example/perf test",
        " perftest",
        "perftest:",
        "perftest:a:b",
        "r.example/perftest/",
        "/perftest",
        "perftest@sha256:12",
        f"perftest@{HEX}",
        "perftest@latest",
        "r.example:port/perftest",
        "perftest:-x",
        "a//b",
        "perftest\n",
        "p:" + "x" * 129,
    ],
    "rdma_validate_image_pull_secret": ["Login", "a,b", "a b", "-a", "tests/login"],
    "rdma_validate_namespace": ["Tests", "a.b", "a/b", "x" * 64],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in FINE.items() for value in values])
def test_texts_of_the_form(name: str, value: str) -> None:
    assert role_variables.text_problem(name, value) == ""


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_texts_of_another_form(name: str, value: str) -> None:
    found = role_variables.text_problem(name, value)
    assert found.startswith(f"{name}: expected ") and found.endswith(f', found "{value}"')


@pytest.mark.parametrize(("namespace", "use"), [
    ("op", "the namespace of the network operator"), ("nets", "the namespace of the secondary networks"),
    ("default", "a system namespace of Kubernetes"), ("kube-system", "a system namespace of Kubernetes"),
])  # fmt: skip
def test_a_namespace_of_the_testers_with_another_use(namespace: str, use: str) -> None:
    fabric = {"supernet": "10.0.0.0/8", "operator": {"namespace": "op"}, "network_namespace": "nets"}
    found = role_variables.namespace_problem(namespace, fabric, registry.names())
    assert found.startswith(f"rdma_validate_namespace is {namespace}, which is {use}. The testers need a namespace")
    assert role_variables.namespace_problem("gpufabric-validate", fabric, registry.names()) == ""
    assert role_variables.namespace_problem(namespace, {"supernet": "x"}, registry.names()) == ""


SPECS = {
    "qos": {"type": "dict", "options": {"rings": {"type": "dict", "options": {"rx": {"type": "int"}}}}},
    "pages": {"type": "list", "elements": "dict", "options": {"size": {"type": "str"}}},
    "other": {"type": "int"},
}


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        ({}, []),
        ({"qos": None, "pages": None, "other": "many"}, []),
        # Text may be a dict in JSON: ansible-core reads it, or reports that it cannot.
        ({"qos": "{}", "pages": [{"size": 1}, "size=1G"]}, []),
        ({"qos": {"rings": {"rx": "no number"}, "unknown": 1}}, []),
        ({"qos": 5}, ["qos: expected a dict, found 5 (number)"]),
        ({"qos": [1]}, ["qos: expected a dict, found a list"]),
        ({"qos": {"rings": 512}}, ["qos.rings: expected a dict, found 512 (number)"]),
        ({"pages": 5}, ["pages[0]: expected a dict, found 5 (number)"]),
        (
            {"pages": [{}, 5, None]},
            ["pages[1]: expected a dict, found 5 (number); pages[2]: expected a dict, found nothing (null)"],
        ),
    ],
)
def test_what_is_in_the_place_of_a_dict(given: dict[str, Any], messages: list[str]) -> None:
    assert list(role_variables.not_dicts(SPECS, given).values()) == messages
