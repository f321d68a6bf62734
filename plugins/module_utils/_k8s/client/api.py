# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the API server: retries, errors that a user can act on, and a count."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Callable, NamedTuple, Protocol
from urllib.parse import urlencode

from ..._common.errors import ClusterError
from . import answers
from .poll import Clock, Pace

MANAGER = "gpufabric"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
_METADATA = f"application/json;as={answers.METADATA_LIST};g=meta.k8s.io;v=v1"
TRIES = 4
TIMEOUT = 30.0
WATCH_GRACE = 5.0
PAGE = 500
# More than the largest cluster has of anything.
MOST_PAGES = 2000
# What one run asks of the API server at most: all of a step's requests at once would slow everybody else's.
RATE, BURST = 50.0, 50
_AGAIN = frozenset((429, 500, 502, 503, 504))


class Response(NamedTuple):
    """What came back: HTTP status, headers by lower-case name, body as text."""

    status: int
    headers: Mapping[str, str]
    text: str


class ConnectionFailed(Exception):
    """No answer came: refused, reset, timed out or no trust; the text says which."""


class Transport(Protocol):
    """Sends one request; ConnectionFailed when no answer came."""

    server: str

    def send(self, method: str, path: str, headers: Mapping[str, str], *, body: str | None, timeout: float) -> Response:
        """Return the answer, whatever its status."""

    def stream(self, path: str, headers: Mapping[str, str], timeout: float) -> tuple[Response, Iterator[str]]:
        """Return the answer, and its lines as they come if the status is 200; they end quietly after ``timeout``."""

    def execute(self, path: str, command: list[str], stdin: Callable[[], str], *, timeout: float) -> tuple[int, str]:
        """Run a command in a container: exit code and what it printed. ``stdin`` is asked once it has printed."""


class ApiError(ClusterError):
    """The API server said no; ``status`` is the HTTP status, ``answer`` its Status object."""

    def __init__(self, message: str, status: int = 0, answer: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.answer = answer or {}


class Api:
    """One cluster. Safe to use from several threads; ``requests`` counts what was sent, RATE a second at most."""

    def __init__(self, transport: Transport, sleep: Callable[[float], None] = time.sleep) -> None:
        self.transport = transport
        self.requests = 0
        self._sleep = sleep
        self._lock = threading.Lock()
        self._pace = Pace(RATE, BURST, Clock(sleep=sleep))

    def get(self, path: str, **query: Any) -> dict[str, Any] | None:
        """Return the object at ``path``; None when there is none, or when its custom resource is not served.

        A 404 for a built-in kind counts only when the API server itself says that there is no such object: a proxy
        with a wrong path answers 404 to everything.
        """
        found = self.document(path, **query)
        return None if found is None else self._object("GET", path, found)

    def document(self, path: str, **query: Any) -> dict[str, Any] | None:
        """Return what is at ``path``, which need not be an object with a name, as ``get`` does."""
        try:
            return self.call("GET", path, query)
        except ApiError as error:
            if error.status == 404 and (answers.custom(path) or error.answer.get("kind") == "Status"):
                return None
            raise

    def items(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the objects of a collection, page by page; none when its custom resource is not served."""
        for page in self.pages(path, **query):
            yield from page.get("items") or []

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the lists that a collection comes in; their metadata has the version to watch from."""
        query = {"limit": PAGE, **query}
        seen: set[str] = set()
        while len(seen) < MOST_PAGES:
            try:
                page = self.call("GET", path, query)
            except ApiError as error:
                # The kinds of Kubernetes itself are always served: without them this is no API server.
                if error.status == 404 and answers.custom(path):
                    return
                raise
            self._check(path, page)
            yield page
            query["continue"] = token = str((page.get("metadata") or {}).get("continue") or "")
            if not token:
                return
            if token in seen:
                break
            seen.add(token)
        found = f"a list that does not end after {len(seen) + 1} pages"
        raise ApiError(answers.foreign("GET", path, self.transport.server, found=found))

    def metadata(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """Return only the metadata of a collection's objects: definitions and nodes are big, Secrets are secret."""
        page = self._answer("GET", path, self.send("GET", path, query, accept=_METADATA))
        self._check(path, page)
        return [item["metadata"] for item in page.get("items") or []]

    def apply(self, path: str, body: dict[str, Any], force: bool, *, dry_run: bool) -> dict[str, Any]:
        """Server-side apply ``body`` with our field manager and return the object that results."""
        query = {"fieldManager": MANAGER, "force": str(force).lower(), **_dry(dry_run)}
        return self._object("PATCH", path, self.call("PATCH", path, query, body=body, content_type=APPLY))

    def merge(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Merge ``body`` into the object at ``path`` with our field manager and return the object that results."""
        return self._object(
            "PATCH", path, self.call("PATCH", path, {"fieldManager": MANAGER}, body=body, content_type=MERGE)
        )

    def delete(self, path: str, body: dict[str, Any] | None = None) -> None:
        """Delete with Background propagation (Foreground never ends while an operator runs); gone is fine."""
        try:
            self.call("DELETE", path, {}, body={"propagationPolicy": "Background", **(body or {})})
        except ApiError as error:
            if error.status != 404:
                raise

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        body: dict[str, Any] | None = None,
        content_type: str = "application/json",
        tries: int = TRIES,
    ) -> dict[str, Any]:
        """Send and return the JSON answer; ApiError for any other answer."""
        return self._answer(
            method, path, self.send(method, path, query, body=body, content_type=content_type, tries=tries)
        )

    def _answer(self, method: str, path: str, response: Response) -> dict[str, Any]:
        """Return the JSON object of a good answer; ApiError for every other one."""
        if not 200 <= response.status < 300:
            raise _refused(method, path, response, server=self.transport.server)
        answer = answers.load(response.text)
        if answer is None:
            found = f"{answers.quoted(response.text)} instead of a JSON object"
            raise ApiError(answers.foreign(method, path, self.transport.server, found=found))
        return answer

    def _check(self, path: str, page: Mapping[str, Any]) -> None:
        """ApiError when an answer is not the list that was asked for."""
        if not answers.is_list(path, page):
            found = f"an object of kind {page.get('kind') or '(none)'} instead of a list"
            raise ApiError(answers.foreign("GET", path, self.transport.server, found=found))
        wrong = next(filter(None, map(answers.fault, page.get("items") or [])), "")
        if wrong:
            raise ApiError(answers.foreign("GET", path, self.transport.server, found=f"a list with {wrong}"))

    def _object(self, method: str, path: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Return an answer; ApiError when it is not an object with a name."""
        wrong = answers.fault(answer)
        if wrong:
            raise ApiError(answers.foreign(method, path, self.transport.server, found=wrong))
        return answer

    def follow(self, path: str, query: Mapping[str, Any], timeout: float) -> Iterator[str]:
        """Yield the lines of an answer as they come, for ``timeout`` seconds at most; ApiError when it is refused.

        One that breaks off is an ApiError too: its lines are not sent again.
        """
        target = path + "?" + urlencode(_given(query))
        for attempt in (1, 2):
            self.count()
            try:
                response, lines = self.transport.stream(target, {"Accept": "application/json, */*"}, timeout)
                if response.status not in _AGAIN or attempt == 2:
                    break
                self._sleep(_pause(response, attempt))
            except ConnectionFailed as failed:
                if attempt == 2:
                    raise ApiError(answers.silent("GET", path, self.transport.server, failed=str(failed))) from None
                self._sleep(0.5)
        if not 200 <= response.status < 300:
            raise _refused("GET", path, response, server=self.transport.server)
        try:
            yield from lines
        except ConnectionFailed as failed:
            raise ApiError(answers.silent("GET", path, self.transport.server, failed=str(failed))) from None

    def watch(self, path: str, version: str, timeout: float, **query: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what changes in a collection since ``version``: ADDED, MODIFIED or DELETED, and the object.

        ApiError with status 410 when that is too long ago.
        """
        seconds = max(math.ceil(timeout), 1)
        asked = {"watch": "true", "resourceVersion": version, "timeoutSeconds": seconds, **query}
        # The server ends it; our own limit is for one that forgets.
        for line in self.follow(path, asked, seconds + WATCH_GRACE):
            kind, item = answers.event(line)
            if kind == "ERROR":
                code = item.get("code")
                refused = Response(code if isinstance(code, int) else 500, {}, json.dumps(item))
                raise _refused("WATCH", path, refused, server=self.transport.server)
            if not kind:
                # Most often the connection was cut in the middle of a line.
                found = f"{answers.quoted(line)} instead of an event"
                raise ApiError(answers.foreign("WATCH", path, self.transport.server, found=found))
            yield kind, item

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        body: dict[str, Any] | None = None,
        content_type: str = "application/json",
        timeout: float = TIMEOUT,
        accept: str = "application/json, */*",
        tries: int = TRIES,
    ) -> Response:
        """Send one request and try again what may pass: no connection, 429 and 5xx.

        Every request of ours may be repeated: reads, applies, deletes and access reviews.
        """
        target = path + ("?" + urlencode(_given(query)) if _given(query) else "")
        headers = {"Accept": accept, "Content-Type": content_type}
        text = None if body is None else json.dumps(body)
        for attempt in range(1, tries + 1):
            self.count()
            try:
                response = self.transport.send(method, target, headers, body=text, timeout=timeout)
            except ConnectionFailed as failed:
                if attempt == tries:
                    raise ApiError(answers.silent(method, path, self.transport.server, failed=str(failed))) from None
                self._sleep(0.5 * 2 ** (attempt - 1))
                continue
            if response.status not in _AGAIN or attempt == tries:
                return response
            self._sleep(_pause(response, attempt))
        raise AssertionError("unreachable")

    def execute(self, path: str, command: list[str], stdin: Callable[[], str], *, timeout: float) -> tuple[int, str]:
        """Run a command in a container, once; ApiError when it could not be started."""
        self.count()
        try:
            return self.transport.execute(path, command, stdin, timeout=timeout)
        except ConnectionFailed as failed:
            raise ApiError(f"exec {path.partition('?')[0]}: {failed}") from None

    def count(self) -> None:
        """Count one request, and wait for its turn."""
        with self._lock:
            self.requests += 1
        self._pace.wait()


def _given(query: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (query or {}).items() if value is not None}


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _pause(response: Response, attempt: int) -> float:
    wanted = response.headers.get("retry-after", "")
    return min(float(wanted), 10.0) if wanted.isdecimal() else 0.5 * 2 ** (attempt - 1)


def _refused(method: str, path: str, response: Response, *, server: str) -> ApiError:
    answer = answers.load(response.text) or {}
    return ApiError(
        answers.refused(method, path, server, status=response.status, text=response.text), response.status, answer
    )
