"""The whole, from bare hosts to a verdict and back: each test goes on where the one before ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.scenario import (
    HOSTS,
    REPO,
    REPORT,
    SHOW_STATS,
    TRACEBACK,
    custom_stats,
    extra,
    host,
    playbook,
    report,
)
from tests.scenario.state import cluster_state, host_state, jobs_left, leftovers

HOST_ROLES = ("preflight", "host_kernel", "rail_names", "rail_links", "rdma_stack")
MODULES_PER_HOST = 10
REQUESTS_PER_NODE = 40


@pytest.fixture(scope="module")
def before() -> Iterator[dict[str, Any]]:
    """Hosts and cluster as the lab's snapshot leaves them."""
    yield {"cluster": cluster_state(), **{name: host_state(name) for name in HOSTS}}


@pytest.fixture(scope="module")
def predicted(before: dict[str, Any]) -> set[str]:
    """Changes that check mode announced on untouched hosts."""
    run = playbook("site", "--check", "--diff").must()
    assert not TRACEBACK.search(run.output)
    assert "measured" in run.output, "check mode says that nothing was measured"
    return host_changes(run.changed)


@pytest.fixture(scope="module")
def converged(predicted: set[str]) -> Any:
    return playbook("site", **SHOW_STATS).must()


def host_changes(changed: list[str]) -> set[str]:
    return {line for line in changed if any(f"{role} : " in line for role in HOST_ROLES)}


def test_check_mode_changes_nothing(before: dict[str, Any], predicted: set[str]) -> None:
    assert {name: host_state(name) for name in HOSTS} == {name: before[name] for name in HOSTS}
    assert cluster_state() == before["cluster"]


def test_check_mode_predicted_what_changed(predicted: set[str], converged: Any) -> None:
    assert predicted
    assert predicted == host_changes(converged.changed)


def test_every_rail_passed_on_hosts_and_in_pods(converged: Any) -> None:
    result = report()
    assert result["verdict"] == "pass"
    measured = {(r["where"], r["rail"], r["client"], r["server"]) for r in result["results"]}
    assert measured == {
        (where, rail, a, b) for where in ("host", "pod") for rail in ("rail0", "rail1")
        for a in HOSTS for b in HOSTS if a != b
    }
    assert {r["verdict"] for r in result["results"]} == {"pass"}
    assert all(r["value"] > 0 and r["unit"] == "Gb/s" for r in result["results"])


def test_report_files(converged: Any) -> None:
    schema = json.loads((REPO / "docs" / "report.schema.json").read_text())
    jsonschema.validate(report(), schema)
    for name in ("report.html", "junit.xml", "metrics.prom", "plan.json"):
        assert (REPORT / name).stat().st_size > 0, name
    page = (REPORT / "report.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org/", "") and "https://" not in page


def test_the_summary_is_handed_to_the_next_step_of_a_workflow(converged: Any) -> None:
    found = custom_stats(converged.output)["rdma_fabric_report"]
    tests = len(report()["results"])
    assert Path(found.pop("path")).resolve() == REPORT.resolve()
    assert found == {"verdict": "pass", "hosts": len(HOSTS), "tests": tests, "pass": tests, "fail": 0, "no_data": 0,
                     "blames": [], "gates": []}


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


def test_second_run_changes_nothing_and_stays_cheap(converged: Any) -> None:
    # Pods are enough to see that nothing changes; hosts were measured the same way before.
    again = playbook("site", *extra(rdma_validate_where=["pod"])).must()
    assert again.changed == []
    prepare = [
        row["task"] for row in again.tasks
        if row["on"] == "lab-1" and row["module"] and "rdma_validate" not in row["task"]
    ]
    assert len(prepare) <= MODULES_PER_HOST, prepare
    requests = report()["context"]["requests"]
    assert 0 < requests["validation"] / len(HOSTS) <= REQUESTS_PER_NODE
    print(f"first run {converged.seconds:.0f} s, second {again.seconds:.0f} s; "
          f"{len(prepare)} module executions a host to prepare; requests {requests}")


def test_each_playbook_runs_alone_and_by_full_name(converged: Any) -> None:
    run = playbook("gpufabric.rdma.discover").must()
    assert run.changed == []
    run = playbook("gpufabric.rdma.plan", "--check", "--diff").must()
    assert run.changed == []
    assert playbook("networks", "--diff").must().changed == []
    assert playbook("prepare", "--limit", "lab-2", "--diff").must().changed == []


def test_limit_never_passes_without_a_measurement(converged: Any) -> None:
    run = playbook("validate", "--limit", "lab-1")
    assert run.rc != 0
    assert "two" in run.output and not TRACEBACK.search(run.output)


def test_no_secret_in_any_output_or_file(converged: Any, tmp_path: Path) -> None:
    config = json.loads((REPO / ".lab" / "kubeconfig").read_text())
    key = config["users"][0]["user"]["client-key-data"]
    planted = "planted-secret-5c1f0e"
    run = playbook("deploy", "-vvv", "--diff", K8S_AUTH_API_KEY=planted)
    files = [path for folder in (REPORT, Path("/tmp")) for path in folder.glob("**/*") if owned(path)]
    for secret in (key, planted):
        assert secret not in run.output
        assert [str(path) for path in files if secret.encode() in content(path)] == []


def owned(path: Path) -> bool:
    return REPORT in path.parents or "ansible" in str(path) or "gpufabric" in str(path)


def content(path: Path) -> bytes:
    """What a file holds; nothing when it is no file, or gone meanwhile."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""


def test_teardown_brings_everything_back(before: dict[str, Any], converged: Any) -> None:
    playbook("teardown").must()
    after = {name: host_state(name) for name in HOSTS}
    assert after == {name: before[name] for name in HOSTS}
    assert cluster_state() == before["cluster"]


def test_second_teardown_changes_nothing(converged: Any) -> None:
    assert playbook("teardown").must().changed == []
