# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hand each tester its lines, wait for the announced end, and bring the logs back.

The end is known before the start: start_in + seconds. Nothing waits for a tester to say that it
is done, since one that died never will.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable

from ..._common.errors import ClusterError, FabricError
from ..._fabric.measure.readings import frames
from ..client.api import Api, ApiError
from ..client.kinds import collection
from ..client.pods import State, ready_nodes
from ..client.poll import Clock
from .jobs import pod_states
from .logs import Evidence, batch_part, describe_part, kept_bytes, pod_path, read_log, reason_without_log
from .manifests import CONTAINER, FOLDER, MAILBOX, Testers

AT_ONCE = 32
_TRIES = 3
_EXEC_SECONDS = 30.0
# Time for an exec that has to be tried again, and then for every 32 execs: so many times what the first one took, which
# has to wait for 31 others that begin with it; at least what the limit on requests needs, and at most what a slow
# machine needs with retries.
_LEAD = 12
_LEAD_TIMES = 1.5
_LEAD_LEAST, _LEAD_MOST = 1.0, 8.0
# More than a log's clock and ours can be apart in what they call so many seconds ago.
_SINCE_MORE = 30
# A frame has 2 KiB; the rest of a log is a few lines.
_FRAME = 4096
_REST = 1 << 16
_CHUNK = 1 << 20
_DESCRIBE_SECONDS = 40.0
_LOG_SECONDS = 8.0


@dataclass(frozen=True)
class Batch:
    """One pass: its number, lines by endpoint (each list ends with END), seconds of a slot, of all, and before it.

    ``start_in`` is the least that the first round is to be away; handing out the lines may need more.
    """

    number: int
    lines: Mapping[str, Sequence[str]]
    slot: int
    seconds: int
    start_in: int

    def text(self, endpoint: str, start_in: float) -> str:
        """Return the batch as sent; always equally long, since its length is announced before the time is known.

        A tester that gets it too late finds its start in the past, and says which rounds it missed.
        """
        head = f"BATCH {self.number} {start_in:<10.2f} {self.slot}"
        return "\n".join([head, *self.lines[endpoint]]) + "\n"


def lead(wanted: int, endpoints: int, took: float) -> int:
    """Return how many seconds before the first round the lines are handed out: ``wanted``, or what they take.

    ``took``: seconds until the first exec was ready for its lines, with 32 under way.
    """
    more = min(max(_LEAD_TIMES * took, _LEAD_LEAST), _LEAD_MOST)
    return max(wanted, math.ceil(_LEAD + more * math.ceil(endpoints / AT_ONCE)))


class Start:
    """When the first round begins: settled by the first tester that is ready for its lines."""

    def __init__(self, wanted: int, endpoints: int, clock: Clock) -> None:
        self._wanted, self._endpoints, self._clock = wanted, endpoints, clock
        self._lock = threading.Lock()
        self.begun = clock.now()
        self.start_in: int | None = None

    def left(self) -> float:
        """Return the seconds until the first round."""
        now = self._clock.now()
        with self._lock:
            if self.start_in is None:
                self.start_in = lead(self._wanted, self._endpoints, now - self.begun) + math.ceil(now - self.begun)
            return self.begun + self.start_in - now


def each(names: Sequence[str], work: Callable[[str], Any]) -> dict[str, Any]:
    """Do ``work`` for every name, 32 at once; a FabricError becomes the value of its name."""

    def safe(name: str) -> Any:
        try:
            return work(name)
        except FabricError as error:
            return error

    if not names:
        return {}
    with ThreadPoolExecutor(min(AT_ONCE, len(names))) as pool:
        return dict(zip(names, pool.map(safe, names)))


def describe(api: Api, namespace: str, running: Mapping[str, State], *, evidence: Evidence) -> dict[str, str]:
    """Keep what every tester says of itself; return endpoint -> why there is nothing."""

    def work(endpoint: str) -> None:
        text = read_log(api, namespace, running[endpoint].name, until=frames.DESCRIBED, timeout=_DESCRIBE_SECONDS)
        evidence.log(endpoint, describe_part(text))

    failed = {name: error for name, error in each(list(running), work).items() if error is not None}
    return {name: f"tester on node {running[name].node}: {error}" for name, error in failed.items()}


def play(
    api: Api, testers: Testers, nodes: Mapping[str, str], *, batch: Batch, evidence: Evidence, clock: Clock
) -> tuple[dict[str, str], int]:
    """Play one batch on all endpoints (``nodes``: endpoint -> node).

    Return endpoint -> why it has no log, and how many seconds the first round was away.
    """
    namespace = testers.namespace
    states = {state.node: state for state in pod_states(api, testers)}
    there = {name: states[node] for name, node in nodes.items() if node in states and states[node].running}
    problems = {name: _absent(node, states.get(node)) for name, node in nodes.items() if name not in there}
    start = Start(batch.start_in, len(there), clock)
    sent = each(
        list(there),
        lambda name: _deliver(api, namespace, there[name], batch=batch, endpoint=name, start=start, clock=clock),
    )
    for name, error in sent.items():
        if error is not None:
            problems[name] = f"node {there[name].node}: the schedule was not delivered to the tester: {error}"
    waiting = [name for name in there if name not in problems]
    if waiting:
        clock.sleep(max(start.left() + batch.seconds, 0))
        since = math.ceil(clock.now() - start.begun) + _SINCE_MORE
        problems.update(
            _collect(api, testers, {name: there[name] for name in waiting}, batch=batch, evidence=evidence, since=since)
        )
    return problems, batch.start_in if start.start_in is None else start.start_in


def _absent(node: str, state: State | None) -> str:
    if state is None:
        return f"no tester on node {node}: its pod is gone"
    return f"no tester on node {node}: {state.problem or f'pod {state.name} has not started'}"


def _deliver(api: Api, namespace: str, pod: State, *, batch: Batch, endpoint: str, start: Start, clock: Clock) -> None:
    """Send the lines by one exec. `head` knows where they end: not every server can close standard input.

    Its clock is read before it asks for the lines, and the start is worked out after that. So the tester knows by how
    much a slow way may have shifted the start.
    """
    size = len(batch.text(endpoint, 0).encode())
    deliver = f"sh {FOLDER}/tester.sh deliver {MAILBOX} {batch.number}"
    script = f'read -r up _ </proc/uptime; echo ready; head -c {size} | {deliver} "$up"'
    path = f"{pod_path(namespace, pod.name)}/exec?container={CONTAINER}"
    error = ApiError(f"pod {pod.name}: not tried")
    for _attempt in range(_TRIES):
        try:
            code, said = api.execute(
                path, ["sh", "-c", script], lambda: batch.text(endpoint, start.left()), timeout=_EXEC_SECONDS
            )
            if code == 0:
                return
            error = ApiError(f"exec in pod {pod.name} ended with {code}: {said.strip()[-300:]}")
        except ApiError as failed:
            error = failed
        clock.sleep(1.0)
    raise error


def _collect(
    api: Api, testers: Testers, pods: Mapping[str, State], *, batch: Batch, evidence: Evidence, since: int
) -> dict[str, str]:
    """Bring back what each tester printed in the last ``since`` seconds; return endpoint -> why that is not all."""
    done = frames.done(batch.number)
    namespace = testers.namespace

    def work(name: str) -> bool:
        """Keep the log at once: those of a whole fleet would fill the memory."""
        pod = pods[name].name
        text = batch_part(read_log(api, namespace, pod, until=done, timeout=_LOG_SECONDS, since=since), batch.number)
        kept = kept_bytes(text, batch.number)
        if kept:
            most = _FRAME * len(batch.lines[name]) + _REST
            text = read_kept(api, namespace, pod, number=batch.number, size=kept, most=most)
        if text:
            evidence.log(name, text)
        return done in text

    ended = each(list(pods), work)
    failed = {name: outcome for name, outcome in ended.items() if outcome is not True}
    ready, now = _situation(api, testers) if failed else (set(), {})
    problems: dict[str, str] = {}
    for name, outcome in failed.items():
        pod = pods[name]
        where = f"node {pod.node}" if pod.node in ready else f"node {pod.node} is not ready"
        reason = f"{where}: the tester did not finish in time"
        if outcome:
            reason = reason_without_log(outcome, pod.name, str(pod.node), ready=pod.node in ready)
        problems[name] = _ended(pod, now) or reason
    return problems


def read_kept(api: Api, namespace: str, pod: str, *, number: int, size: int, most: int) -> str:
    """Return the ``size`` bytes that a tester kept of a batch, fetched by execs in parts; ClusterError above ``most``.

    A log of so many bytes would have lost its begin: container runtimes rotate logs.
    """
    if size > most:
        raise ClusterError(f"the tester kept {size} bytes; expected {most} at most")
    path = f"{pod_path(namespace, pod)}/exec?container={CONTAINER}"
    parts = []
    for offset in range(0, size, _CHUNK):
        script = f"tail -c +{offset + 1} {MAILBOX}/kept-{number} | head -c {min(_CHUNK, size - offset)}"
        code, text = api.execute(path, ["sh", "-c", script], lambda: "", timeout=_EXEC_SECONDS)
        if code:
            raise ClusterError(f"the kept output of the tester cannot be read: exit code {code}: {text.strip()[-300:]}")
        parts.append(text)
    return "".join(parts)


def _situation(api: Api, testers: Testers) -> tuple[set[str], dict[str, State]]:
    states = {state.name: state for state in pod_states(api, testers)}
    return ready_nodes(api.items(collection("v1", "nodes"))), states


def _ended(pod: State, now: Mapping[str, State]) -> str:
    """Return that a tester was killed or deleted under way; empty when its pod still runs."""
    state = now.get(pod.name)
    if state is None:
        return f"node {pod.node}: the tester's pod {pod.name} was deleted while it measured"
    return "" if state.running else f"node {pod.node}: the tester was killed while it measured: {state.problem}"
