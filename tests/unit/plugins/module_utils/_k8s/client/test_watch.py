"""A collection that is watched: one list, then what changes; never a request for each object or each second."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster, down, status

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.api import ApiError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.watch import watched

PODS = "/api/v1/namespaces/n/pods"


def pod(name: str, phase: str = "Pending") -> dict[str, Any]:
    meta = {"name": name, "namespace": "n", "labels": {"a": "b"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"phase": phase}}


Seen = list[tuple[float, dict[str, str]]]


def look(cluster: FakeCluster, timeout: float, until: dict[str, str] | None = None) -> Seen:
    """Return what was seen until it is as wanted, each state once."""
    seen: Seen = []
    clock = cluster.clock.clock()
    for elapsed, found in watched(
        cluster.api(), PODS, "a=b", see=lambda item: item["status"]["phase"], timeout=timeout, clock=clock
    ):
        if not seen or seen[-1][1] != found:
            seen.append((elapsed, dict(found)))
        if found == until:
            break
    return seen


def test_changes_are_seen_when_they_happen() -> None:
    cluster = FakeCluster(pod("x"))
    cluster.clock.at(3, lambda: cluster.put(pod("x", "Running")))
    cluster.clock.at(4, lambda: cluster.put(pod("y", "Running")))
    cluster.clock.at(25, lambda: cluster.objects.pop(f"{PODS}/x"))
    assert look(cluster, 60, {"y": "Running"}) == [
        (0, {"x": "Pending"}),
        (3, {"x": "Running"}),
        (4, {"x": "Running", "y": "Running"}),
        (25, {"y": "Running"}),
    ]
    # A list, and a watch every ten seconds.
    asked = [path.partition("?")[2] for _method, path in cluster.calls]
    assert [("watch=true" in query, "limit=500" in query) for query in asked] == [(False, True), *[(True, False)] * 3]


def test_it_ends_in_time_and_looks_a_last_time() -> None:
    cluster = FakeCluster(pod("x"))
    cluster.clock.at(14, lambda: cluster.put(pod("x", "Running")))
    assert look(cluster, 14) == [(0, {"x": "Pending"}), (14, {"x": "Running"})]
    assert cluster.clock.time == 14


@pytest.mark.parametrize("answer", [status(410, "Expired", "too old resource version"), [down(), down()]])
def test_what_a_broken_watch_missed_is_in_a_new_list(answer: Any) -> None:
    cluster = FakeCluster(pod("x"))
    cluster.answers = [None, *(answer if isinstance(answer, list) else [answer])]
    cluster.clock.at(1, lambda: cluster.put(pod("x", "Running")))
    assert look(cluster, 60, {"x": "Running"}) == [(0, {"x": "Pending"}), (1, {"x": "Running"})]


@pytest.mark.parametrize(
    "line", ['{"type": "ERROR", "object": {"code": 410, "message": "too old"}}', '{"type": "MODIFIED", "object": {"me']
)
def test_after_an_error_inside_the_watch_everything_is_listed_again(line: str) -> None:
    cluster = FakeCluster(pod("x"))
    cluster.changes = [line]
    cluster.clock.at(1, lambda: cluster.put(pod("x", "Running")))
    assert look(cluster, 60, {"x": "Running"})[-1] == (1, {"x": "Running"})


def test_a_watch_that_is_not_allowed_says_so() -> None:
    cluster = FakeCluster(pod("x"))
    cluster.answers = [None, status(403, "Forbidden", "cannot watch pods")]
    with pytest.raises(ApiError, match=f"refused GET {PODS} with 403: cannot watch pods. Grant this permission"):
        look(cluster, 60)


def test_a_server_that_is_busy_is_asked_again_without_a_list() -> None:
    cluster = FakeCluster(pod("x"))
    cluster.answers = [None, status(429, "TooManyRequests", "busy"), status(429, "TooManyRequests", "busy")]
    cluster.clock.at(3, lambda: cluster.put(pod("x", "Running")))
    assert look(cluster, 60, {"x": "Running"})[-1][1] == {"x": "Running"}
