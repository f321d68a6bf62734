"""One run at a time measures in a cluster; a run that was killed is taken over, one that lives is not."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster, status

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ClusterError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers import lease as testers_lease
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers.lease import Lease, LeaseLost, renewed

SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/testers"


def cluster() -> FakeCluster:
    return FakeCluster(SPACE)


def lease(fake: FakeCluster, run: str, endpoints: int = 3) -> Lease:
    return Lease(fake.api(), "ns", "testers", run=run, endpoints=endpoints, clock=fake.clock.clock())


def take(one: Lease, patience: float = 120) -> None:
    one.take(lambda: None, patience)


def test_it_is_taken_renewed_and_released_by_its_holder() -> None:
    fake = cluster()
    own = lease(fake, "a", 1000)
    take(own)
    spec = fake.objects[PATH]["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("a", 245)
    since = spec["acquireTime"]
    own.renew()
    assert fake.objects[PATH]["spec"]["acquireTime"] == since < fake.objects[PATH]["spec"]["renewTime"]
    assert not lease(fake, "b").release() and PATH in fake.objects
    assert own.release() and PATH not in fake.objects and not own.release()


def test_a_run_that_lives_is_waited_for_and_named() -> None:
    fake = cluster()
    own = lease(fake, "a")
    take(own)
    for second in range(10, 130, 10):
        fake.clock.at(second, own.renew)
    with pytest.raises(ClusterError) as caught:
        take(lease(fake, "b"), 120)
    spec = fake.objects[PATH]["spec"]
    assert str(caught.value) == (
        f"the testers in namespace ns are in use by run a since {spec['acquireTime']}, last renewed at"
        f" {spec['renewTime']}. Wait until it ends, or end it with the playbook gpufabric.rdma.abort"
    )
    assert fake.clock.time == 120


def test_a_run_that_was_killed_is_taken_over_when_its_lease_has_expired() -> None:
    fake = cluster()
    own = lease(fake, "a")
    take(own)
    take(lease(fake, "b"))
    assert 45 <= fake.clock.time <= 48 and lease(fake, "b").holder() == "b"
    with pytest.raises(LeaseLost, match="run b took over the testers in namespace ns from run a, which had not"):
        own.renew()


def test_one_that_ends_meanwhile_is_followed_at_once() -> None:
    fake = cluster()
    own = lease(fake, "a")
    take(own)
    fake.clock.at(7, own.release)
    take(lease(fake, "b"))
    assert fake.clock.time == 9


def test_one_of_yesterday_is_taken_without_waiting() -> None:
    fake = cluster()
    take(lease(fake, "a"))
    fake.objects[PATH]["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z"
    take(lease(fake, "b"))
    assert fake.clock.time == 0


def test_of_two_that_want_it_one_gets_it() -> None:
    fake = cluster()
    take(lease(fake, "a"))
    fake.objects[PATH]["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z"
    first, second = lease(fake, "b"), lease(fake, "c")
    # Both saw the old one; the first one that writes has it.
    live = fake.api().get(PATH)
    assert (first._write(live), second._write(live)) == (True, False)
    assert first.holder() == "b"


@pytest.mark.parametrize("valid", [None, "x", 10**9])
def test_a_lease_of_any_content_expires(valid: Any) -> None:
    fake = cluster()
    take(lease(fake, "a"))
    fake.objects[PATH]["spec"] = {"holderIdentity": "a", "leaseDurationSeconds": valid, "renewTime": "soon"}
    take(lease(fake, "b"), 4000)
    assert fake.clock.time <= 3603


def test_a_namespace_that_is_being_removed_is_waited_for() -> None:
    fake = cluster()
    fake.objects["/api/v1/namespaces/ns"]["metadata"]["deletionTimestamp"] = "now"
    fake.clock.at(5, lambda: fake.objects.pop("/api/v1/namespaces/ns"))
    fake.clock.at(8, lambda: fake.put(SPACE) and None)
    take(lease(fake, "a"))
    assert fake.clock.time == 9 and lease(fake, "a").holder() == "a"


def test_a_missing_permission_is_named_at_once() -> None:
    fake = cluster()
    fake.answers = [None, leases_forbidden()]
    with pytest.raises(ClusterError, match="cannot create resource"):
        take(lease(fake, "a"))


def leases_forbidden() -> Any:
    return status(403, "Forbidden", 'leases is forbidden: User "u" cannot create resource "leases"')


def test_it_is_renewed_while_something_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testers_lease, "RENEW", 0.01)
    fake = cluster()
    own = lease(fake, "a")
    take(own)
    seen = threading.Event()
    count, renew = [0], own.renew

    def counted() -> None:
        renew()
        count[0] += 1
        if count[0] > 3:
            seen.set()

    monkeypatch.setattr(own, "renew", counted)
    with renewed(own):
        assert seen.wait(10)
    assert not [one for one in threading.enumerate() if one.name.endswith("(_renew)")]


def test_a_step_whose_lease_is_lost_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = cluster()
    own = lease(fake, "a")
    take(own)
    with pytest.raises(LeaseLost, match="the Lease testers of run a in namespace ns is gone"), renewed(own):
        del fake.objects[PATH]
    done = []
    with pytest.raises(LeaseLost), renewed(own):
        done.append("nothing is done without it")
    assert done == []
