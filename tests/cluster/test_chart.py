"""The chart on a real API server with the real Helm: installed, compared, changed, removed. No container runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.lab import charts
from tests.lab.helm import helm
from tests.scenario import Run
from tests.tools.fleet import Fleet

SPACE = "chart-of-the-operator"


def test_chart(cluster: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """About 60 s: four runs of the role."""
    monkeypatch.setenv("KUBECONFIG", "/none")
    play = {
        "name": "Run the role",
        "hosts": "rdma_hosts",
        "gather_facts": False,
        "vars": {
            "network_operator_kubeconfig": "{{ rdma_kubeconfig }}",
            "network_operator_namespace": SPACE,
            "network_operator_release": charts.version(),
            "network_operator_chart_ref": str(charts.CHART),
            "network_operator_helm_binary": str(helm()),
            "network_operator_nfd": False,
            "network_operator_timeout": 120,
        },
        "roles": ["gpufabric.rdma.network_operator"],
    }
    (cluster.folder / "playbooks" / "chart.yml").write_text(json.dumps([play]))

    def role(**variables: Any) -> Run:
        return cluster.playbook("chart", **variables).must()

    try:
        assert role().changed
        assert role().changed == []
        # Values of the plan are shown, what the user gave is not.
        more = {"network_operator_plan_values": {"operator": {"priorityClassName": "p"}}}
        check = cluster.check("chart", **more, network_operator_values={"login": "s3cret"}).must()
        assert "+        priorityClassName: p" in check.output and "-    " not in check.output
        assert "s3cret" not in check.output and "<hidden, changed>" in check.output
        assert role().changed == []
    finally:
        gone = role(network_operator_state="absent")
    assert gone.changed
    names = [one["metadata"]["name"] for one in cluster.api.get("/api/v1/namespaces")["items"]]
    assert SPACE not in names
