# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time measures in the pods of a cluster: a Lease in the testers' namespace, held by the run's ID.

Nothing runs between two steps of a run, so the Lease is valid long enough for what the controller does in between;
during a step a thread renews it. The clocks of two controllers may differ: a waiting run takes over when it saw no
renewal for as long as the Lease is valid.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Callable

from ..._common.errors import ClusterError
from ..client.api import Api, ApiError
from ..client.kinds import collection
from ..client.poll import Clock, ticks

VERSION = "coordination.k8s.io/v1"
# Seconds that a Lease is valid, and more for each endpoint: judging a pass of a large fleet takes longer.
VALID = 45
PER_ENDPOINT = 0.2
RENEW = 10.0
_POLL = 3.0
# Clocks differ by less. A Lease that is older by this is not watched first.
_SKEW = 600.0
_LONGEST = 3600


class LeaseLost(ClusterError):
    """Another run measures in this cluster now, or the testers were removed."""


class Lease:
    """The Lease of ``run``; ``seconds``: how long it is valid."""

    def __init__(self, api: Api, namespace: str, name: str, *, run: str, endpoints: int, clock: Clock) -> None:
        self._api, self._namespace, self._name, self._run = api, namespace, name, run
        self._path = f"{collection(VERSION, 'leases', namespace)}/{name}"
        self._seconds = VALID + int(PER_ENDPOINT * endpoints)
        self._clock = clock

    def holder(self) -> str:
        """Return the ID of the run that holds the Lease, "" when there is none."""
        return _holder(self._api.get(self._path))

    def take(self, prepare: Callable[[], None], patience: float) -> None:
        """Take the Lease, or wait for the run that holds it; ClusterError names that run after ``patience`` seconds.

        ``prepare`` makes the namespace, which a run that ends meanwhile removes.
        """
        live: Mapping[str, Any] | None = None
        seen: tuple[Any, float] = (None, 0.0)
        for _elapsed in ticks(patience, _POLL, self._clock):
            prepare()
            live = self._api.get(self._path)
            if live is not None and live["metadata"].get("resourceVersion") != seen[0]:
                seen = (live["metadata"].get("resourceVersion"), self._clock.now())
            free = live is None or _holder(live) in ("", self._run) or self._lapsed(live, seen[1])
            if free and self._write(live):
                return
        raise ClusterError(
            f"the testers in namespace {self._namespace} are in use by run {_holder(live)} since"
            f" {_spec(live).get('acquireTime')}, last renewed at {_spec(live).get('renewTime')}. Wait until it ends, or"
            " end it with the playbook gpufabric.rdma.abort"
        )

    def _lapsed(self, live: Mapping[str, Any], since: float) -> bool:
        valid = _spec(live).get("leaseDurationSeconds")
        valid = min(valid, _LONGEST) if isinstance(valid, int) else VALID
        renewed = _seconds(str(_spec(live).get("renewTime")))
        return self._clock.now() - since >= valid or renewed + valid + _SKEW < time.time()

    def renew(self) -> None:
        """Say that the run goes on; LeaseLost when the Lease is not its own any more."""
        for _try in range(3):
            live = self._api.get(self._path)
            if live is None:
                raise LeaseLost(
                    f"the Lease {self._name} of run {self._run} in namespace {self._namespace} is gone: the playbook"
                    " gpufabric.rdma.abort or another tool removed the testers. Rerun the measurement"
                )
            if _holder(live) != self._run:
                raise LeaseLost(
                    f"run {_holder(live)} took over the testers in namespace {self._namespace} from run {self._run},"
                    f" which had not renewed its Lease for {self._seconds} s. Rerun the measurement after it has ended"
                )
            if self._write(live):
                return

    def release(self) -> bool:
        """Remove the Lease if the run holds it, or whoever holds it for a run without an ID; whether it was there."""
        live = self._api.get(self._path)
        if live is None or (self._run and _holder(live) != self._run):
            return False
        meta = live["metadata"]
        held = {key: meta[key] for key in ("uid", "resourceVersion") if meta.get(key)}
        self._api.delete(self._path, {"preconditions": held} if self._run else None)
        return True

    def _write(self, live: Mapping[str, Any] | None) -> bool:
        """Write the Lease as that of the run, if it is still as in ``live``; whether that worked."""
        now = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
        own = live is not None and _holder(live) == self._run
        since = _spec(live).get("acquireTime") if own else None
        meta: dict[str, Any] = {"name": self._name, "namespace": self._namespace}
        spec = {"holderIdentity": self._run, "leaseDurationSeconds": self._seconds}
        spec.update(acquireTime=since or now, renewTime=now)
        body = {"apiVersion": VERSION, "kind": "Lease", "metadata": meta, "spec": spec}
        try:
            if live is None:
                self._api.call("POST", collection(VERSION, "leases", self._namespace), None, body=body)
            else:
                meta["resourceVersion"] = live["metadata"].get("resourceVersion")
                self._api.call("PUT", self._path, None, body=body)
        except ApiError as error:
            # Somebody else was faster, or the namespace is just being removed.
            if error.status in (404, 409) or "being terminated" in str(error):
                return False
            raise
        return True


@contextmanager
def renewed(lease: Lease | None) -> Iterator[None]:
    """Renew a Lease while something is done, and once more after it; LeaseLost when it was lost meanwhile."""
    if lease is None:
        yield
        return
    lease.renew()
    ended = threading.Event()
    thread = threading.Thread(target=_renew, args=(lease, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    lease.renew()


def _renew(lease: Lease, ended: threading.Event) -> None:
    while not ended.wait(RENEW):
        try:
            lease.renew()
        except LeaseLost:
            return
        except ClusterError:
            # The API server may answer the next time; the last renewal tells.
            continue


def _spec(live: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (live or {}).get("spec") or {}


def _holder(live: Mapping[str, Any] | None) -> str:
    return str(_spec(live).get("holderIdentity") or "")


def _seconds(text: str) -> float:
    """Return a time as the API server writes it in seconds of the epoch; of anything else now."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return time.time()
