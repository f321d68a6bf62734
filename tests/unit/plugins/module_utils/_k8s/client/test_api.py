"""Requests: what is tried again, what the user is told, what is counted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster, down, ok, status

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client import api
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.api import Api, ApiError, Response

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
        "the API server https://cluster.test:6443 does not answer (GET /version): Connection refused."
        " Check that it is running and reachable from this machine, and check the server in the kubeconfig"
    )
    assert len(cluster.calls) == 4


@pytest.mark.parametrize(
    ("code", "end"),
    [
        (
            401,
            "Unauthorized. The credentials are not valid for this cluster. Check the user, token or "
            "certificate in the kubeconfig",
        ),
        (403, "Unauthorized. Grant this permission, or use an account that has it"),
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


NODES = "/api/v1/nodes"
LOGIN = "<html>\n<title>Sign in</title> " + "x" * 400
OTHER = "expected the Kubernetes API. Check the server, path and proxy of the kubeconfig"


def test_pages_are_followed() -> None:
    cluster = FakeCluster()
    cluster.answers = [
        ok({"kind": "NodeList", "items": [{"metadata": {"name": "a"}}], "metadata": {"continue": "more"}}),
        ok({"kind": "NodeList", "items": [{"metadata": {"name": "b"}}], "metadata": {}}),
    ]
    assert [item["metadata"]["name"] for item in cluster.api().items("/api/v1/nodes")] == ["a", "b"]
    assert cluster.calls[1][1] == "/api/v1/nodes?limit=500&continue=more"


@pytest.mark.parametrize("tokens", [["more"] * 3, [f"more-{number}" for number in range(api.MOST_PAGES)]])
def test_pages_that_do_not_end_are_refused(tokens: list[str]) -> None:
    cluster = FakeCluster()
    cluster.answers = [ok({"kind": "NodeList", "items": [], "metadata": {"continue": token}}) for token in tokens]
    told = "answered GET /api/v1/nodes with a list that does not end after [0-9]+ pages; expected the Kubernetes API"
    with pytest.raises(ApiError, match=told):
        list(cluster.api().items(NODES))
    assert len(cluster.calls) == (2 if tokens[0] == tokens[1] else api.MOST_PAGES)


NAMED = {"metadata": {"name": "a"}}
BAD: list[tuple[Any, str]] = [
    (1, "an item that is not an object with a name"),
    ({}, "an item that is not an object with a name"),
    ({"metadata": {"name": 1}}, "an item that is not an object with a name"),
    ({**NAMED, "status": "x"}, 'the object "a", whose status is not a dict'),
    ({**NAMED, "spec": [1]}, 'the object "a", whose spec is not a dict'),
    ({**NAMED, "status": {"nodeInfo": 1}}, 'the object "a", whose status.nodeInfo is not a dict'),
    ({**NAMED, "status": {"conditions": [1]}}, 'the object "a", whose status.conditions is not a list of dicts'),
    ({**NAMED, "status": {"addresses": {}}}, 'the object "a", whose status.addresses is not a list of dicts'),
    ({**NAMED, "spec": {"volumes": ["x"]}}, 'the object "a", whose spec.volumes is not a list of dicts'),
    ({"metadata": {"name": "a", "labels": "x"}}, 'the object "a", whose metadata.labels is not a dict'),
    (
        {"metadata": {"name": "a", "ownerReferences": [1]}},
        'the object "a", whose metadata.ownerReferences is not a list of dicts',
    ),
    (
        {"metadata": {"name": "a", "finalizers": [1]}},
        'the object "a", whose metadata.finalizers is not a list of texts',
    ),
]


@pytest.mark.parametrize(("item", "message"), BAD)
def test_what_is_no_object_is_refused(item: Any, message: str) -> None:
    listed = ok({"kind": "NodeList", "items": [NODE, item]})
    reads: list[tuple[Any, Any, str]] = [
        (listed, lambda found: list(found.items(NODES)), f"GET {NODES} with a list with {message}"),
        (listed, lambda found: found.metadata(NODES), f"GET {NODES} with a list with {message}"),
    ]
    if isinstance(item, dict):
        reads += [
            (ok(item), lambda found: found.get(f"{NODES}/a"), f"GET {NODES}/a with {message}"),
            (ok(item), lambda found: found.merge(f"{NODES}/a", {}), f"PATCH {NODES}/a with {message}"),
            (
                ok(item),
                lambda found: found.apply(f"{NODES}/a", {}, False, dry_run=True),
                f"PATCH {NODES}/a with {message}",
            ),
        ]
    for answer, read, told in reads:
        cluster = FakeCluster(NODE)
        cluster.answers = [answer]
        with pytest.raises(ApiError) as caught:
            read(cluster.api())
        assert told in str(caught.value) and OTHER in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Response(200, {}, LOGIN), 'answered GET /api/v1/nodes with "<html> <title>Sign in</title> x'),
        (Response(200, {}, "\x1b[2Jx\ny"), 'with "?[2Jx y" instead of a JSON object'),
        (Response(403, {}, "\x1b[2Jx\ny"), "with 403: ?[2Jx y. Grant"),
        (status(400, "BadRequest", "\x1b[2Jx\ny"), "with 400: ?[2Jx y"),
        (Response(200, {}, ""), "answered GET /api/v1/nodes with nothing instead of a JSON object"),
        (Response(200, {}, "[]"), 'with "[]" instead of a JSON object'),
        (Response(200, {}, "[" * 100000), 'with "[[['),
        (ok({}), "with an object of kind (none) instead of a list"),
        (ok({"kind": "PodList", "items": []}), "with an object of kind PodList instead of a list"),
        (ok({"kind": "NodeList", "items": {}}), "with an object of kind NodeList instead of a list"),
        (ok({"kind": "Status", "status": "Success"}), "with an object of kind Status instead of a list"),
        (Response(302, {"location": "/login"}, ""), "refused GET /api/v1/nodes with 302"),
        (Response(404, {}, "404 page not found"), "with 404: 404 page not found. Check the server and path"),
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
    with pytest.raises(ApiError, match="with 404: <h1>Not found</h1>. Check the server and path in the kubeconfig"):
        cluster.api().get("/api/v1/namespaces/a")


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "MODIFIED", "obj',
        "{}",
        '{"type": "MODIFIED"}',
        '{"type": "MODIFIED", "object": {}}',
        "<html>",
        '{"type": "NEW", "object": {"metadata": {}}}',
        '{"type": "ERROR", "object": 1}',
    ],
)
def test_a_watch_that_is_cut_or_unknown_can_be_tried_again(line: str) -> None:
    cluster = FakeCluster()
    cluster.changes = [line]
    with pytest.raises(ApiError, match="answered WATCH /api/v1/nodes with .* instead of an event") as caught:
        list(cluster.api().watch(NODES, "1", 5))
    assert caught.value.status == 0
