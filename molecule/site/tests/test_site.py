"""The whole, from bare hosts to a verdict and back: each test goes on where the one before ended.

One host has all that a host can have, and consent to the reboot that it takes; the other is prepared as it runs. The
lab's third one is a node of the cluster that nobody named.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests import scenario
from tests.lab import settings
from tests.scenario import (
    ACCESS,
    FABRIC,
    REPO,
    REPORT,
    SHOW_STATS,
    TRACEBACK,
    Run,
    custom_stats,
    extra,
    host,
    inventory_with,
    lab,
    playbook,
    report,
)
from tests.scenario.preparation import PCI, REBOOT, WISHES, in_service, is_as_wished, vfs
from tests.scenario.state import cluster_state, host_state, jobs_left, leftovers

FULL, OTHER = HOSTS = scenario.HOSTS[:2]
HOST_ROLES = ("preflight", "host_kernel", "rail_names", "rail_links", "rdma_stack", "sriov")
# Of a host with everything, and of one that runs with what it has.
MODULES_PER_HOST = {FULL: 14, OTHER: 10}
REQUESTS_PER_NODE = 40
API_SERVER = "https://127.0.0.1:26443"


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return inventory_with(tmp_path_factory.mktemp("inventory"), {FULL: {**WISHES, "host_reboot_allowed": True}}, HOSTS)


@pytest.fixture(scope="module")
def before() -> Iterator[dict[str, Any]]:
    """Hosts and cluster as the lab's snapshot leaves them."""
    yield {"cluster": cluster_state(), **{name: host_state(name) for name in HOSTS}}


@pytest.fixture(scope="module")
def predicted(before: dict[str, Any], inventory: str) -> set[str]:
    """Changes that check mode announced on untouched hosts."""
    run = playbook("site", "--check", "--diff", inventory=inventory).must()
    assert not TRACEBACK.search(run.output)
    assert "measured" in run.output, "check mode says that nothing was measured"
    return host_changes(run.changed)


@pytest.fixture(scope="module")
def converged(predicted: set[str], inventory: str) -> Any:
    return playbook("site", inventory=inventory, timeout=2400, **SHOW_STATS).must()


def host_changes(changed: list[str]) -> set[str]:
    return {line for line in changed if any(f"{role} : " in line for role in HOST_ROLES)}


def test_check_mode_changes_nothing(before: dict[str, Any], predicted: set[str]) -> None:
    assert {name: host_state(name) for name in HOSTS} == {name: before[name] for name in HOSTS}
    assert cluster_state() == before["cluster"]


def test_check_mode_predicted_what_changed(predicted: set[str], converged: Any) -> None:
    assert predicted
    assert predicted == host_changes(converged.changed)


@pytest.mark.proves("host_kernel", "Debian 13", by="lab")
@pytest.mark.proves("host_reboot", "Debian 13", by="lab")
def test_one_reboot_brought_everything(converged: Any) -> None:
    assert [row["host"] for row in converged.tasks if REBOOT in row["task"] and not row.get("skipped")] == [FULL]
    is_as_wished(FULL, 4)
    assert in_service()


def test_every_rail_passed_on_hosts_and_in_pods(converged: Any) -> None:
    result = report()
    assert result["verdict"] == "pass"
    measured = {(r["where"], r["rail"], r["client"], r["server"]) for r in result["results"]}
    assert measured == {
        (where, rail, a, b)
        for where in ("host", "pod")
        for rail in ("rail0", "rail1")
        for a in HOSTS
        for b in HOSTS
        if a != b
    }
    assert {r["verdict"] for r in result["results"]} == {"pass"}
    assert all(r["value"] > 0 and r["unit"] == "Gb/s" for r in result["results"])


def test_report_files(converged: Any) -> None:
    schema = json.loads((REPO / "docs" / "report.schema.json").read_text())
    jsonschema.validate(report(), schema)
    for name in ("report.html", "junit.xml", "metrics.prom", "plan.json"):
        assert (REPORT / name).stat().st_size > 0, name
    # Nothing is loaded from elsewhere; the API server's address is text.
    page = (REPORT / "report.html").read_text().replace(API_SERVER, "")
    assert "http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page


def test_the_summary_is_handed_to_the_next_step_of_a_workflow(converged: Any) -> None:
    found = custom_stats(converged.output)["rdma_fabric_report"]
    tests = len(report()["results"])
    assert Path(found.pop("path")).resolve() == REPORT.resolve()
    assert found.pop("run") == report()["run"]["id"]
    assert found.pop("cluster").startswith(f"lab ({API_SERVER}, Kubernetes v1.")
    assert found.pop("release") == FABRIC["operator"]["release"]
    assert found == {
        "verdict": "pass",
        "hosts": len(HOSTS),
        "tests": tests,
        "pass": tests,
        "fail": 0,
        "no_data": 0,
        "diagnoses": [],
        "gates": [],
        "subset": [],
    }


@pytest.mark.proves("rail_names", "Debian 13", by="lab")
@pytest.mark.proves("rail_links", "Debian 13", by="lab")
@pytest.mark.proves("rdma_stack", "Debian 13", by="lab")
@pytest.mark.parametrize("name", HOSTS)
def test_hosts_are_as_planned(name: str, converged: Any) -> None:
    machine = host(name)
    plan = json.loads((REPORT / "plan.json").read_text())
    for rail in plan["hosts"][name]["rails"]:
        link = json.loads(machine.check_output(f"ip -json addr show dev {rail['netdev']}"))[0]
        assert (link["mtu"], link["operstate"]) == (rail["mtu"], "UP")
        assert rail["address"] in [f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"]]
        path = machine.check_output(f"readlink -f /sys/class/net/{rail['netdev']}/device")
        assert path.endswith(rail["pci"])
    assert machine.check_output("rdma link show").count("state ACTIVE") == 2


def test_nothing_is_left_of_the_measurement(converged: Any) -> None:
    assert jobs_left() == []
    assert [line for name in HOSTS for line in leftovers(name)] == []


def test_measuring_in_pods_asks_little_of_the_api_server(converged: Any) -> None:
    requests = report()["context"]["requests"]
    assert 0 < requests["validation"] / len(HOSTS) <= REQUESTS_PER_NODE, requests


@pytest.mark.proves("sriov", "Debian 13", by="lab")
def test_vfs_are_resized_but_never_under_a_user(converged: Any, inventory: str) -> None:
    def resize(count: int) -> Run:
        return playbook("prepare", "--limit", FULL, "--tags", "sriov", *extra(sriov_vfs=count), inventory=inventory)

    four = vfs(FULL)
    resize(7).must()
    seven = vfs(FULL)
    assert {rail: macs[:4] for rail, macs in seven.items()} == four
    assert len({mac for macs in seven.values() for mac in macs}) == 14
    too_many = resize(8)
    assert too_many.rc != 0 and "(rail0) supports 7 VFs, 8 requested" in too_many.output
    netdev = host(FULL).check_output(f"ls /sys/bus/pci/devices/{PCI['rail1']}/virtfn3/net")
    host(FULL).check_output(f"ip address add 192.0.2.1/24 dev {netdev}")
    used = resize(2)
    assert used.rc != 0 and "VF 3" in used.output and "192.0.2.1" in used.output
    assert vfs(FULL) == seven
    host(FULL).check_output(f"ip address delete 192.0.2.1/24 dev {netdev}")
    resize(2).must()
    assert vfs(FULL) == {rail: macs[:2] for rail, macs in four.items()}


# The second run of `site` is made of its playbooks, each alone: the power cut costs no run of its own.
def test_everything_is_there_again_after_a_power_cut_and_a_second_run_is_cheap(converged: Any, tmp_path: Path) -> None:
    lab("fault", "cut", FULL)
    is_as_wished(FULL, 2)
    two = inventory_with(tmp_path, {FULL: {**WISHES, "sriov_vfs": 2, "host_reboot_allowed": True}}, HOSTS)
    again = playbook("prepare", "--diff", inventory=two).must()
    assert again.changed == []
    modules = {name: [row["task"] for row in again.tasks if row["on"] == name and row["module"]] for name in HOSTS}
    assert {name for name, limit in MODULES_PER_HOST.items() if len(modules[name]) > limit} == set(), modules
    print(
        f"first run {converged.seconds:.0f} s; module executions to prepare: "
        f"{', '.join(f'{name} {len(modules[name])}' for name in modules)}"
    )


def test_each_playbook_runs_alone_and_by_full_name(converged: Any, inventory: str) -> None:
    for name, *args in (
        ("gpufabric.rdma.discover",),
        ("gpufabric.rdma.plan", "--check", "--diff"),
        ("networks", "--diff"),
    ):
        assert playbook(name, *args, inventory=inventory).must().changed == []


def test_limit_never_passes_without_a_measurement(converged: Any, inventory: str) -> None:
    run = playbook("validate", "--limit", FULL, inventory=inventory)
    assert run.rc != 0
    assert "two" in run.output and not TRACEBACK.search(run.output)


def test_no_secret_in_any_output_or_file(converged: Any, inventory: str, tmp_path: Path) -> None:
    config = json.loads((ACCESS / "kubeconfig").read_text())
    key = config["users"][0]["user"]["client-key-data"]
    planted = f"planted-{secrets.token_hex(8)}"
    run = playbook("deploy", "-vvv", "--diff", inventory=inventory, K8S_AUTH_API_KEY=planted).must()
    assert run.changed == []
    files = [path for folder in (REPORT, Path("/tmp")) for path in below(folder) if owned(path)]
    for secret in (key, planted):
        assert secret not in run.output
        assert [str(path) for path in files if secret.encode() in content(path)] == []


def below(folder: Path) -> Iterator[Path]:
    """Every file below a folder. `os.walk` passes over what others remove meanwhile; `Path.glob` does not."""
    for parent, _, names in os.walk(folder):
        yield from (Path(parent) / name for name in names)


def owned(path: Path) -> bool:
    """Whether a run may have written it; `lab up` wrote its cache and the access of a checkout, perhaps below /tmp."""
    if ACCESS.name in path.parts or settings.CACHE in path.parents:
        return False
    return REPORT in path.parents or "ansible" in str(path) or "gpufabric" in str(path)


def content(path: Path) -> bytes:
    """What a file holds; nothing when it is no file, or gone meanwhile."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""


def test_teardown_brings_everything_back(before: dict[str, Any], converged: Any, inventory: str) -> None:
    playbook("teardown", inventory=inventory).must()
    after = {name: host_state(name) for name in HOSTS}
    assert after == {name: before[name] for name in HOSTS}
    assert "quiet" in host(FULL).check_output("cat /proc/cmdline").split()
    assert cluster_state() == before["cluster"]


def test_second_teardown_changes_nothing(converged: Any, inventory: str) -> None:
    assert playbook("teardown", inventory=inventory).must().changed == []
