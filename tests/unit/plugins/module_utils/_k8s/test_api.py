"""Requests: what is tried again, what the user is told, what is counted."""

from __future__ import annotations

import pytest
from cluster_fake import FakeCluster, down, ok, status

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.api import Api, ApiError, Response

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}


def slept(cluster: FakeCluster) -> tuple[Api, list[float]]:
    pauses: list[float] = []
    return Api(cluster, sleep=pauses.append), pauses


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        ([], []),
        ([status(503, "x", "later")], [0.5]),
        ([down(), status(500, "x", "etcd"), Response(429, {"retry-after": "3"}, "")], [0.5, 1.0, 3.0]),
        ([Response(429, {"retry-after": "600"}, "")], [10.0]),
    ],
)
def test_what_may_pass_is_tried_again(answers: list, pauses: list[float]) -> None:
    cluster = FakeCluster(NODE)
    cluster.answers = list(answers)
    api, found = slept(cluster)
    assert api.get("/api/v1/nodes/a")["metadata"]["name"] == "a"
    assert found == pauses
    assert api.requests == len(answers) + 1


def test_a_server_that_is_down() -> None:
    cluster = FakeCluster()
    cluster.answers = [down()] * 4
    with pytest.raises(ApiError) as caught:
        cluster.api().get("/version")
    assert str(caught.value) == (
        "the API server https://cluster.test:6443 does not answer (GET /version): Connection refused;"
        " check that it runs, that this machine reaches it, and the server in the kubeconfig"
    )
    assert len(cluster.calls) == 4


@pytest.mark.parametrize(
    ("code", "end"),
    [
        (401, "Unauthorized; the credentials are not valid here: check user, token or certificate of the kubeconfig"),
        (403, "Unauthorized; ask for this permission, or use an account that has it"),
        (422, "Unauthorized"),
    ],
)
def test_a_refusal_says_who_what_and_what_to_do(code: int, end: str) -> None:
    cluster = FakeCluster()
    cluster.answers = [status(code, "x", "Unauthorized")]
    with pytest.raises(ApiError) as caught:
        cluster.api().get("/api/v1/nodes")
    start = f"the API server https://cluster.test:6443 refused GET /api/v1/nodes with {code}: "
    assert str(caught.value) == start + end
    assert caught.value.status == code


def test_nothing_there_is_none_and_an_unserved_kind_has_no_items() -> None:
    cluster = FakeCluster()
    cluster.unserved.add("/apis/nv-ipam.nvidia.com/v1alpha1/ippools")
    assert cluster.api().get("/api/v1/nodes/a") is None
    assert list(cluster.api().items("/apis/nv-ipam.nvidia.com/v1alpha1/ippools")) == []


def test_pages_are_followed() -> None:
    cluster = FakeCluster()
    cluster.answers = [
        ok({"items": [{"n": 1}], "metadata": {"continue": "more"}}), ok({"items": [{"n": 2}], "metadata": {}})
    ]
    assert [item["n"] for item in cluster.api().items("/api/v1/nodes")] == [1, 2]
    assert cluster.calls[1][1] == "/api/v1/nodes?limit=500&continue=more"
