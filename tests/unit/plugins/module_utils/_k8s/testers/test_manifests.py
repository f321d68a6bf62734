"""The testers' objects: on the hosts' network, and with a network and a resource for every rail."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers import manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers.resources import Needs

RAILS = [
    {"name": "rail0", "netdev": "eth4", "network": "default/rail0", "resource": "rdma_rail0"},
    {"name": "rail1", "netdev": "eth5", "network": "default/rail1", "resource": "rdma_rail1"},
]
PODS = manifests.Testers("ns", "testers", "img@sha256:1", "#!/bin/sh\n", RAILS, False, 3600, 900)
# No CPU limit: throttling would be measured.
LIMITS = {"memory": str(1 << 30), "ephemeral-storage": "1Gi"}
REQUESTS = {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "0"}
LOCKED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]}}
HOSTS = dataclasses.replace(PODS, host_network=True)


def pod_of(testers: manifests.Testers) -> dict[str, Any]:
    return manifests.job(testers, ["a", "b", "c"])["spec"]["template"]


def test_the_job_is_indexed_and_never_tries_again() -> None:
    spec = manifests.job(PODS, ["a", "b", "c"])["spec"]
    assert {key: spec[key] for key in spec if key != "template"} == {
        "completionMode": "Indexed",
        "completions": 3,
        "parallelism": 3,
        "backoffLimitPerIndex": 0,
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
    assert container["resources"] == {
        "limits": {"rdma/rdma_rail0": "1", "rdma/rdma_rail1": "1", **LIMITS},
        "requests": REQUESTS,
    }
    assert container["securityContext"] == LOCKED
    assert pod["spec"]["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["spec"]["volumes"][1] == {"name": "mailbox", "emptyDir": {"sizeLimit": "512Mi"}}
    assert container["env"] == [{"name": "TMPDIR", "value": "/mailbox"}]
    assert "hostNetwork" not in pod["spec"]
    assert manifests.config_map([PODS], {})["data"]["rails"] == "rail rail0 net1 -\nrail rail1 net2 -\n"


def test_host_network() -> None:
    pod = pod_of(HOSTS)
    container = pod["spec"]["containers"][0]
    assert "annotations" not in pod["metadata"]
    assert container["resources"] == {"limits": LIMITS, "requests": REQUESTS}
    assert container["securityContext"] == {"privileged": True}
    assert pod["spec"]["hostNetwork"] is True
    assert manifests.config_map([HOSTS], {})["data"]["rails"] == "rail rail0 eth4 -\nrail rail1 eth5 -\n"


def test_huge_pages_and_gpus_are_asked_for_beside_the_rails() -> None:
    rails = {"rdma/rdma_rail0": "1", "rdma/rdma_rail1": "1"}
    pages = dataclasses.replace(PODS, needs=Needs({"hugepages-2Mi": 16 << 20}))
    (container,) = pod_of(pages)["spec"]["containers"]
    # The API server takes huge pages only with memory or CPU; shared memory needs no volume, but IPC_LOCK.
    assert container["resources"] == {
        "limits": {**rails, "hugepages-2Mi": "16777216", **LIMITS},
        "requests": REQUESTS,
    }
    assert container["securityContext"] == LOCKED
    assert pod_of(pages)["spec"]["volumes"] == pod_of(PODS)["spec"]["volumes"]
    gpus = dataclasses.replace(PODS, needs=Needs({"nvidia.com/gpu": 8}))
    (container,) = pod_of(gpus)["spec"]["containers"]
    assert container["resources"] == {"limits": {**rails, "nvidia.com/gpu": "8", **LIMITS}, "requests": REQUESTS}
    assert [one["name"] for one in container["env"]] == ["TMPDIR"]


def test_on_the_hosts_network_they_are_asked_for_as_well() -> None:
    needs = Needs({"hugepages-2Mi": 2 << 20, "nvidia.com/gpu": 4})
    (container,) = pod_of(dataclasses.replace(HOSTS, needs=needs))["spec"]["containers"]
    assert container["resources"] == {
        "limits": {"hugepages-2Mi": "2097152", "nvidia.com/gpu": "4", **LIMITS},
        "requests": REQUESTS,
    }


def test_all_gpus_can_be_shown_without_asking_for_them() -> None:
    shown = dataclasses.replace(PODS, runtime_class="nvidia", needs=Needs(show_gpus=True))
    pod = pod_of(shown)["spec"]
    (container,) = pod["containers"]
    assert (pod["runtimeClassName"], container["env"][1:]) == (
        "nvidia",
        [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
    )
    assert container["resources"] == pod_of(PODS)["spec"]["containers"][0]["resources"]


def test_command_config_map_and_options() -> None:
    some = dataclasses.replace(
        PODS, pull_secrets=["s"], tolerations=[{"operator": "Exists"}], runtime_class="rdma", pull_policy="Always"
    )
    pod = pod_of(some)["spec"]
    container = pod["containers"][0]
    assert container["command"] == ["sh", "/gpufabric/tester.sh", "serve", "/gpufabric/rails", "/mailbox", "900"]
    assert (pod["imagePullSecrets"], pod["tolerations"]) == ([{"name": "s"}], [{"operator": "Exists"}])
    assert (pod["runtimeClassName"], container["imagePullPolicy"]) == ("rdma", "Always")
    data = manifests.config_map([some], {"h1": "a"})["data"]
    assert (data["tester.sh"], json.loads(data["endpoints.json"])) == ("#!/bin/sh\n", {"h1": "a"})


def test_namespace_lets_such_pods_in() -> None:
    labels = manifests.namespace_object(PODS)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert labels["app.kubernetes.io/managed-by"] == "gpufabric"


def test_an_account_where_the_platform_admits_such_pods_by_a_role() -> None:
    assert manifests.account(PODS, {}) == []
    assert "serviceAccountName" not in pod_of(PODS)["spec"]
    admitted = dataclasses.replace(PODS, role="system:openshift:scc:privileged")
    account, binding = manifests.account(admitted, {"metadata": {"uid": "u1"}})
    # They are removed with the ConfigMap, also when a later run knows nothing of the platform.
    owner = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "testers", "uid": "u1"}]
    assert account["metadata"]["ownerReferences"] == binding["metadata"]["ownerReferences"] == owner
    assert binding["roleRef"]["name"] == "system:openshift:scc:privileged"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "testers", "namespace": "ns"}]
    pod = pod_of(admitted)["spec"]
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("testers", False)


def test_whole_cpus_make_the_pod_guaranteed() -> None:
    """Requests and limits of CPU and memory are the same: then a static CPU manager gives the pod cores of its own."""
    resources = pod_of(dataclasses.replace(PODS, cpus=9))["spec"]["containers"][0]["resources"]
    for name in ("cpu", "memory"):
        assert resources["requests"][name] == resources["limits"][name]
    assert resources["limits"]["cpu"] == "9"
    assert resources["limits"]["memory"] == LIMITS["memory"]
