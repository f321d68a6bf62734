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
        ok({"kind": "NodeList", "items": [{"n": 1}], "metadata": {"continue": "more"}}),
        ok({"kind": "NodeList", "items": [{"n": 2}], "metadata": {}}),
    ]
    assert [item["n"] for item in cluster.api().items("/api/v1/nodes")] == [1, 2]
    assert cluster.calls[1][1] == "/api/v1/nodes?limit=500&continue=more"


NODES = "/api/v1/nodes"
LOGIN = "<html>\n<title>Sign in</title> " + "x" * 400
OTHER = "expected the Kubernetes API. Check the server, path and proxy of the kubeconfig"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Response(200, {}, LOGIN), 'answered GET /api/v1/nodes with "<html> <title>Sign in</title> x'),
        (Response(200, {}, ""), "answered GET /api/v1/nodes with nothing instead of a JSON object"),
        (Response(200, {}, "[]"), 'with "[]" instead of a JSON object'),
        (Response(200, {}, "[" * 100000), 'with "[[['),
        (ok({}), "with an object of kind (none) instead of a list"),
        (ok({"kind": "PodList", "items": []}), "with an object of kind PodList instead of a list"),
        (ok({"kind": "NodeList", "items": {}}), "with an object of kind NodeList instead of a list"),
        (ok({"kind": "Status", "status": "Success"}), "with an object of kind Status instead of a list"),
        (Response(302, {"location": "/login"}, ""), "refused GET /api/v1/nodes with 302"),
        (Response(404, {}, "404 page not found"), "with 404: 404 page not found; check the server and path"),
        (status(404, "NotFound", "the server could not find the requested resource"), "with 404: the server could"),
    ],
)
def test_what_is_no_list_of_a_built_in_kind_is_never_an_empty_one(answer: Response, message: str) -> None:
    for read in (lambda api: list(api.items(NODES)), lambda api: api.metadata(NODES)):
        cluster = FakeCluster(NODE)
        cluster.answers = [answer]
        with pytest.raises(ApiError) as caught:
            read(cluster.api())
        if "PodList" not in message:
            assert message in str(caught.value)
        assert len(str(caught.value)) < 500
        assert caught.value.status == (answer.status if answer.status >= 300 else 0)
        assert answer.status >= 300 or OTHER in str(caught.value)


def test_a_404_of_a_proxy_does_not_make_an_object_absent() -> None:
    cluster = FakeCluster()
    page = Response(404, {}, "<h1>Not found</h1>")
    cluster.answers = [page, page]
    # Without the definitions of the operator its group is not served, and the API server answers like this.
    assert cluster.api().get("/apis/nv-ipam.nvidia.com/v1alpha1/namespaces/a/ippools/b") is None
    with pytest.raises(ApiError, match="with 404: <h1>Not found</h1>; check the server and path in the kubeconfig"):
        cluster.api().get("/api/v1/namespaces/a")


@pytest.mark.parametrize(
    "line",
    ['{"type": "MODIFIED", "obj', "{}", '{"type": "MODIFIED"}', '{"type": "MODIFIED", "object": {}}', "<html>",
     '{"type": "NEW", "object": {"metadata": {}}}', '{"type": "ERROR", "object": 1}'],
)
def test_a_watch_that_is_cut_or_unknown_can_be_tried_again(line: str) -> None:
    cluster = FakeCluster()
    cluster.changes = [line]
    with pytest.raises(ApiError, match="answered WATCH /api/v1/nodes with .* instead of an event") as caught:
        list(cluster.api().watch(NODES, "1", 5))
    assert caught.value.status == 0
