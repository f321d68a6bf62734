# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small client of the Kubernetes API: requests on one kept connection, and watched copies of objects."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from .components import Object

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
#: Seconds that one watch lasts before it is made anew; also how long a dead connection goes unnoticed.
WATCH = 60


class ApiError(Exception):
    """An answer of 400 or more, with its HTTP code and the server's message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Api:
    """Requests to one server. Not for several threads at once: `another()` makes one for each."""

    def __init__(self, server: str, ca: Path, token: Path | None = None, cert: Path | None = None) -> None:
        """token: file with a bearer token, read for each request. cert: PEM with certificate and key."""
        self._parts = urlsplit(server)
        self._context = ssl.create_default_context(cafile=str(ca))
        if cert:
            self._context.load_cert_chain(str(cert))
        self._token = token
        self._kept: http.client.HTTPSConnection | None = None

    def another(self) -> Api:
        """The same server and identity on a connection of its own."""
        made = Api.__new__(Api)
        made.__dict__.update(self.__dict__, _kept=None)
        return made

    def request(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Object:
        """The decoded answer. Raises ApiError, or OSError when there is no connection."""
        data = None if body is None else json.dumps(body)
        try:
            answer = self._send(method, path, data, kind, 30.0)
        except (http.client.HTTPException, OSError):
            # A kept connection may have been closed by the server: once again on a new one.
            self.close()
            answer = self._send(method, path, data, kind, 30.0)
        text = answer.read().decode()
        # A path of a kind that is not served has an answer of plain text.
        is_json = text and "json" in (answer.getheader("Content-Type") or "")
        found = json.loads(text) if is_json else {}
        if answer.status >= 400:
            raise ApiError(answer.status, found.get("message", f"HTTP {answer.status}"))
        return dict(found)

    def lines(self, path: str) -> http.client.HTTPResponse:
        """An open watch. Raises ApiError."""
        answer = self._send("GET", path, None, "application/json", WATCH + 10.0)
        if answer.status >= 400:
            answer.read()
            raise ApiError(answer.status, f"HTTP {answer.status}")
        return answer

    def close(self) -> None:
        """Forget the kept connection."""
        if self._kept:
            self._kept.close()
        self._kept = None

    def _send(self, method: str, path: str, data: str | None, kind: str, limit: float) -> http.client.HTTPResponse:
        if self._kept is None:
            host, port = self._parts.hostname or "", self._parts.port or 443
            self._kept = http.client.HTTPSConnection(host, port, timeout=limit, context=self._context)
        headers = {"Content-Type": kind, "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token.read_text().strip()}"
        self._kept.request(method, path, data, headers)
        return self._kept.getresponse()


class Watched:
    """A copy of all objects of one collection, kept up to date by a thread.

    changed(old, new) is called for each change, with None for what is not there. A collection that is not
    served (its CRD is not there) is empty; `nudge()` makes it look again at once.
    """

    def __init__(self, api: Api, path: str, changed: Callable[[Object | None, Object | None], None]) -> None:
        self._api, self._path, self._changed = api.another(), path, changed
        self._items: dict[tuple[str, str], Object] = {}
        self._kind, self._version = "", ""
        self._again = threading.Event()
        self.listed = threading.Event()
        threading.Thread(target=self._run, daemon=True, name=path).start()

    def all(self) -> list[Object]:
        """The objects as last seen, by namespace and name."""
        return [one for _, one in sorted(self._items.items())]

    def get(self, name: str, namespace: str = "") -> Object | None:
        """One object, None when it is not there."""
        return self._items.get((namespace, name))

    def nudge(self) -> None:
        """List again now, if it is waiting to do so."""
        self._again.set()

    def _run(self) -> None:
        version = ""
        while True:
            try:
                version = self._watch(version or self._list())
            except ApiError as error:
                version = ""
                if error.code == 404:
                    self._replace({})
                    self.listed.set()
                self._rest(1)
            except (OSError, http.client.HTTPException, ValueError):
                version = ""
                self._rest(1)
            self._api.close()

    def _rest(self, seconds: float) -> None:
        self._again.wait(seconds)
        self._again.clear()

    def _list(self) -> str:
        found = self._api.request("GET", self._path)
        self._version, self._kind = found["apiVersion"], found["kind"].removesuffix("List")
        self._replace({self._key(one): self._typed(one) for one in found["items"]})
        self.listed.set()
        return str(found["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> str:
        """Follow for a while; returns the version to go on from, "" to list again."""
        ask = {
            "watch": "true",
            "resourceVersion": version,
            "timeoutSeconds": WATCH,
            "allowWatchBookmarks": "true",
        }
        for line in self._api.lines(f"{self._path}?{urlencode(ask)}"):
            event = json.loads(line)
            if event["type"] == "ERROR":
                return ""
            one = event["object"]
            version = one["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                gone = event["type"] == "DELETED"
                self._set(self._key(one), None if gone else self._typed(one))
        return version

    def _replace(self, items: dict[tuple[str, str], Object]) -> None:
        for key in set(self._items) | set(items):
            if self._items.get(key) != items.get(key):
                self._set(key, items.get(key))

    def _set(self, key: tuple[str, str], one: Object | None) -> None:
        old = self._items.pop(key, None)
        if one is not None:
            self._items[key] = one
        self._changed(old, one)

    def _typed(self, one: Object) -> Object:
        return {"apiVersion": self._version, "kind": self._kind, **one}

    @staticmethod
    def _key(one: Object) -> tuple[str, str]:
        return one["metadata"].get("namespace", ""), one["metadata"]["name"]


def now() -> str:
    """The time as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
