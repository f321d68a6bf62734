# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small client of the Kubernetes API for tests: raw paths, JSON, certificate or token from a kubeconfig."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_METRIC = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<value>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class ApiError(Exception):
    """The API server refused: status is its HTTP code, reason its machine-readable reason."""

    def __init__(self, method: str, path: str, status: int, body: Mapping[str, Any]) -> None:
        self.status = status
        self.reason = str(body.get("reason", ""))
        super().__init__(f"{method} {path}: {status} {self.reason}: {body.get('message', '')}")


@dataclass(frozen=True)
class Endpoint:
    """Where an API server is, and who asks: context holds authority and client certificate."""

    host: str
    port: int
    context: ssl.SSLContext
    token: str = ""


class Api:
    """One API server. Every call is a connection of its own: a restarted server is no special case."""

    def __init__(self, endpoint: Endpoint, agent: str = "gpufabric-lab") -> None:
        self.endpoint = endpoint
        self.agent = agent

    @classmethod
    def from_kubeconfig(cls, path: Path, agent: str = "gpufabric-lab") -> Api:
        """The server and user of the current context of a kubeconfig file (JSON; YAML needs PyYAML)."""
        return cls(endpoint(read_kubeconfig(path), path.parent), agent)

    @classmethod
    def in_cluster(cls, host: str, port: int, agent: str = "gpufabric-lab") -> Api:
        """The server at host and port, as the service account of the pod that this runs in."""
        context = ssl.create_default_context(cafile=str(_SERVICE_ACCOUNT / "ca.crt"))
        token = (_SERVICE_ACCOUNT / "token").read_text(encoding="utf-8")
        return cls(Endpoint(host, port, context, token), agent)

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """The object or list at path."""
        return self.request("GET", path, query=query)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create the object in the collection at path."""
        return self.request("POST", path, body)

    def put(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the object at path."""
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = MERGE_PATCH, **query: str) -> dict[str, Any]:
        """Patch the object at path; kind is the content type of the patch."""
        return self.request("PATCH", path, body, kind=kind, query=query)

    def delete(self, path: str, **query: str) -> dict[str, Any]:
        """Delete the object or collection at path."""
        return self.request("DELETE", path, query=query)

    def text(self, path: str, timeout: float = 10.0) -> str:
        """The body at path as it is (logs, metrics, health)."""
        return self._send("GET", path, None, {}, timeout).decode()

    def watch(self, path: str, timeout: float, **query: str) -> Iterator[dict[str, Any]]:
        """The events {type, object} of the collection at path, until the server ends it after timeout seconds."""
        query = {"watch": "1", "timeoutSeconds": str(int(timeout)), **query}
        connection = self._connect(timeout + 10.0)
        try:
            connection.request("GET", _with_query(path, query), headers=self._headers())
            answer = connection.getresponse()
            if answer.status >= 300:
                raise ApiError("WATCH", path, answer.status, _json_or_message(answer.read()))
            yield from (json.loads(line) for line in answer)
        finally:
            connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> dict[str, Any]:
        """Send one request and return the JSON answer.

        Raises ApiError when the server refuses, OSError when it is not there.
        """
        raw = None if body is None else json.dumps(body).encode()
        headers = {} if raw is None else {"Content-Type": kind}
        answer = self._send(method, _with_query(path, query or {}), raw, headers, timeout)
        return dict(json.loads(answer))

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float) -> bytes:
        connection = self._connect(timeout)
        try:
            connection.request(method, path, body, {**self._headers(), **headers})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise ApiError(method, path, answer.status, _json_or_message(content))
        return content

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        where = self.endpoint
        return http.client.HTTPSConnection(where.host, where.port, timeout=timeout, context=where.context)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json, */*", "User-Agent": self.agent}
        if self.endpoint.token:
            headers["Authorization"] = f"Bearer {self.endpoint.token}"
        return headers


def request_counts(api: Api) -> dict[tuple[str, str], int]:
    """How many requests the API server has answered since it started, by (verb, resource), whoever asked."""
    return parse_request_counts(api.text("/metrics"))


def parse_request_counts(metrics: str) -> dict[tuple[str, str], int]:
    """Sum apiserver_request_total of a /metrics page by (verb, resource/subresource)."""
    counts: dict[tuple[str, str], int] = {}
    for match in _METRIC.finditer(metrics):
        labels = dict(_LABEL.findall(match["labels"]))
        resource = "/".join(filter(None, (labels["resource"], labels.get("subresource", ""))))
        key = (labels["verb"], resource)
        counts[key] = counts.get(key, 0) + int(float(match["value"]))
    return counts


def read_kubeconfig(path: Path) -> dict[str, Any]:
    """The content of a kubeconfig file. The lab writes JSON; other people's YAML needs PyYAML."""
    text = path.read_text(encoding="utf-8")
    try:
        return dict(json.loads(text))
    except ValueError:
        import yaml  # only here: the lab itself needs the standard library alone

        return dict(yaml.safe_load(text))


def server_of(config: Mapping[str, Any]) -> str:
    """The URL of the server of a kubeconfig's current context."""
    return str(_named(config, "clusters", "cluster", _context(config)["cluster"])["server"])


def endpoint(config: Mapping[str, Any], folder: Path) -> Endpoint:
    """Where and as whom a kubeconfig's current context asks; relative file names start at folder."""
    context = _context(config)
    cluster = _named(config, "clusters", "cluster", context["cluster"])
    user = _named(config, "users", "user", context["user"])
    if "exec" in user or "auth-provider" in user:
        raise ValueError("kubeconfig: a user with exec or auth-provider is not supported, use a token or certificate")
    url = urllib.parse.urlsplit(cluster["server"])
    authority = _pem(cluster, "certificate-authority", folder)
    tls = ssl.create_default_context(cadata=authority or None)
    if "client-certificate" in user or "client-certificate-data" in user:
        _load_client(tls, _pem(user, "client-certificate", folder), _pem(user, "client-key", folder))
    return Endpoint(url.hostname or "", url.port or 443, tls, user.get("token", ""))


def _context(config: Mapping[str, Any]) -> dict[str, Any]:
    return _named(config, "contexts", "context", config["current-context"])


def _named(config: Mapping[str, Any], group: str, kind: str, name: str) -> dict[str, Any]:
    for entry in config[group]:
        if entry["name"] == name:
            return dict(entry[kind])
    raise ValueError(f"kubeconfig: no {kind} named {name}")


def _pem(entry: Mapping[str, Any], key: str, folder: Path) -> str:
    if f"{key}-data" in entry:
        return base64.b64decode(entry[f"{key}-data"]).decode()
    return (folder / entry[key]).read_text(encoding="utf-8") if key in entry else ""


def _load_client(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # OpenSSL takes the pair from a file only; this one is of mode 0600 and gone at once.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".pem") as file:
        file.write(certificate + "\n" + key)
        file.flush()
        context.load_cert_chain(file.name)


def _with_query(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urllib.parse.urlencode(query)}" if query else path


def _json_or_message(content: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(content))
    except ValueError:
        return {"message": content.decode(errors="replace").strip()}
