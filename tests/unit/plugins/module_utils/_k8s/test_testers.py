"""The testers' objects: on the hosts' network, and with a network and a resource for every rail."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s import testers as t

RAILS = [
    {"name": "rail0", "netdev": "eth4", "network": "default/rail0", "resource": "rdma_rail0"},
    {"name": "rail1", "netdev": "eth5", "network": "default/rail1", "resource": "rdma_rail1"},
]
PODS = t.Testers("ns", "testers", "img@sha256:1", "#!/bin/sh\n", RAILS, False, 3600, 900)
HOSTS = dataclasses.replace(PODS, host_network=True)


def pod_of(testers: t.Testers) -> dict[str, Any]:
    return t.job(testers, ["a", "b", "c"])["spec"]["template"]


def test_the_job_is_indexed_and_never_tries_again() -> None:
    spec = t.job(PODS, ["a", "b", "c"])["spec"]
    assert {key: spec[key] for key in spec if key != "template"} == {
        "completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 0,
        "ttlSecondsAfterFinished": 600,
    }
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["activeDeadlineSeconds"]) == ("Never", 3600)
    assert pod["automountServiceAccountToken"] is False
    assert "activeDeadlineSeconds" not in spec


def test_one_pod_on_each_of_the_nodes() -> None:
    affinity = pod_of(PODS)["spec"]["affinity"]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert affinity["nodeAffinity"][required]["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a", "b", "c"]}]}
    ]
    rule = affinity["podAntiAffinity"][required][0]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"]["matchLabels"].items() <= pod_of(PODS)["metadata"]["labels"].items()


def test_secondary_networks() -> None:
    pod = pod_of(PODS)
    container = pod["spec"]["containers"][0]
    assert pod["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "default/rail0, default/rail1"}
    assert container["resources"] == {"limits": {"rdma/rdma_rail0": "1", "rdma/rdma_rail1": "1"}}
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert "hostNetwork" not in pod["spec"]
    assert t.config_map(PODS, {})["data"]["rails"] == "rail rail0 net1 -\nrail rail1 net2 -\n"


def test_host_network() -> None:
    pod = pod_of(HOSTS)
    container = pod["spec"]["containers"][0]
    assert "annotations" not in pod["metadata"]
    assert container["resources"] == {}
    assert container["securityContext"] == {"privileged": True}
    assert pod["spec"]["hostNetwork"] is True
    assert t.config_map(HOSTS, {})["data"]["rails"] == "rail rail0 eth4 -\nrail rail1 eth5 -\n"


def test_command_config_map_and_options() -> None:
    some = dataclasses.replace(
        PODS, pull_secrets=["s"], tolerations=[{"operator": "Exists"}], runtime_class="rdma", pull_policy="Always"
    )
    pod = pod_of(some)["spec"]
    container = pod["containers"][0]
    assert container["command"] == ["sh", "/gpufabric/tester.sh", "serve", "/gpufabric/rails", "/mailbox", "900"]
    assert (pod["imagePullSecrets"], pod["tolerations"]) == ([{"name": "s"}], [{"operator": "Exists"}])
    assert (pod["runtimeClassName"], container["imagePullPolicy"]) == ("rdma", "Always")
    data = t.config_map(some, {"h1": "a"})["data"]
    assert (data["tester.sh"], json.loads(data["endpoints.json"])) == ("#!/bin/sh\n", {"h1": "a"})


def test_namespace_lets_such_pods_in() -> None:
    labels = t.namespace_object(PODS)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert labels["app.kubernetes.io/managed-by"] == "gpufabric"
