"""The mirror of a collection: one list, then only what changes; errors reach the reader. About 1 s."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ClusterError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client import mirror
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.api import Api, ApiError, Response
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.mirror import Mirror, slim

PODS = "/api/v1/namespaces/op/pods"


class Server:
    """Lists of two pages, and a watch that ends when None is put into ``events``."""

    server = "https://cluster.test"

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.events: queue.Queue[Any] = queue.Queue()
        self.asked: list[str] = []

    def send(self, method: str, path: str, headers: Mapping[str, str], *, body: Any, timeout: float) -> Response:
        self.asked.append(path)
        return self.answers.pop(0)

    def stream(self, path: str, headers: Mapping[str, str], timeout: float) -> tuple[Response, Iterator[str]]:
        self.asked.append(path)
        return Response(200, {}, ""), iter(self.events.get, None)

    def execute(self, *args: Any, **named: Any) -> Any:
        raise AssertionError


def pod(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": "2", "managedFields": [1]}, "spec": {"volumes": []}, **more}


def page(*items: Any, more: str = "", kind: str = "PodList") -> Response:
    meta = {"resourceVersion": "1", "continue": more}
    return Response(200, {}, json.dumps({"kind": kind, "metadata": meta, "items": items}))


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_one_list_and_then_changes() -> None:
    server = Server(page(pod("a"), more="next"), page(pod("b")))
    api = Api(server)
    found = Mirror(api, 60)

    def names() -> list[str]:
        return [item["metadata"]["name"] for item in found.items(PODS)]

    assert names() == ["a", "b"]
    for kind, item in (("ADDED", pod("c")), ("MODIFIED", pod("a", status={"phase": "Running"})), ("DELETED", pod("b"))):
        server.events.put(json.dumps({"type": kind, "object": item}))
    eventually(lambda: names() == ["a", "c"])
    assert found.get(f"{PODS}/a") == {
        "metadata": {"name": "a", "resourceVersion": "2"},
        "spec": {},
        "status": {"phase": "Running"},
    }
    assert found.get(f"{PODS}/none") is None
    # However often it is read: two pages and one watch.
    assert api.requests == len(server.asked) == 3 and "resourceVersion=1" in server.asked[2]
    server.events.put(None)


def test_errors_reach_the_reader() -> None:
    denied = Response(403, {}, json.dumps({"kind": "Status", "message": "pods is forbidden"}))
    found = Mirror(Api(Server(denied, denied, denied)), 60)
    for _turn in (1, 2):
        with pytest.raises(ApiError, match="pods is forbidden"):
            list(found.items(PODS))


def test_a_kind_that_is_served_later() -> None:
    path = "/apis/nv-ipam.nvidia.com/v1alpha1/ippools"
    absent = Response(404, {}, json.dumps({"kind": "Status", "message": "not found"}))
    server = Server(absent, page({"metadata": {"name": "x"}}, kind="IPPoolList"))
    server.stream = lambda *args: (absent, iter(()))  # type: ignore[method-assign]
    found = Mirror(Api(server), 60)
    assert list(found.items(path)) == []
    server.stream = lambda *args: (Response(200, {}, ""), iter(server.events.get, None))  # type: ignore[method-assign]
    assert [item["metadata"]["name"] for item in found.items(path)] == ["x"]
    server.events.put(None)


def test_a_list_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "LIST_SECONDS", 0.05)
    never = queue.Queue()  # type: ignore[var-annotated]
    server = Server()
    server.send = lambda *args, **named: never.get()  # type: ignore[method-assign]
    with pytest.raises(ClusterError, match="was not listed in 0 s. Check the API server"):
        list(Mirror(Api(server), 60).items(PODS))
    never.put(page())


def test_what_is_large_is_not_kept() -> None:
    node = {"metadata": {"name": "n", "labels": {"a": "b"}}, "status": {"images": [1], "allocatable": {"x": 1}}}
    assert slim(node) == {"metadata": node["metadata"], "status": {"allocatable": {"x": 1}}}


def test_an_account_that_may_list_and_not_watch_reads_lists() -> None:
    class NoWatch(Server):
        def stream(self, path: str, headers: Mapping[str, str], timeout: float) -> tuple[Response, Iterator[str]]:
            return Response(403, {}, json.dumps({"kind": "Status", "message": "no watch"})), iter(())

    server = NoWatch(page(pod("a")), page(pod("a"), pod("b")), page(pod("b")))
    found = Mirror(Api(server), 60)
    names: list[list[str]] = []

    def settled() -> bool:
        names.append([item["metadata"]["name"] for item in found.items(PODS)])
        return names[-1] == ["b"]

    eventually(settled)
    assert ["a", "b"] in names
