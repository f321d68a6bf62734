# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How to reach the cluster: the only file that imports the kubernetes client.

The client loads the configuration and keeps the connections; requests are raw JSON, since its
typed and dynamic layers cost a second for a list of nodes and dozens of discovery requests.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from ansible.module_utils.basic import AnsibleModule, env_fallback, missing_required_lib

from ..._common.errors import ClusterError
from .api import Api, ApiError, ConnectionFailed, Response
from .converse import PART, Output, converse

try:
    import kubernetes
    import urllib3
    import websocket
    from kubernetes.stream import ws_client

    IMPORT_ERROR = None
except ImportError:
    IMPORT_ERROR = traceback.format_exc()

# By which an administrator finds our requests in the API server's audit log.
USER_AGENT = "gpufabric.rdma"
CONNECT_SECONDS = 10.0
POOL = 40
# More than any object, log or command of ours needs; what sends more is broken or hostile.
LONGEST_LINE = 16 << 20
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"


def _option(env: str, kind: str = "str", **more: Any) -> dict[str, Any]:
    return {"type": kind, "fallback": (env_fallback, env.split()), **more}


AUTH_SPEC: dict[str, dict[str, Any]] = {
    "kubeconfig": _option("K8S_AUTH_KUBECONFIG KUBECONFIG", "path"),
    "context": _option("K8S_AUTH_CONTEXT"),
    "host": _option("K8S_AUTH_HOST"),
    "api_key": _option("K8S_AUTH_API_KEY", no_log=True),
    "username": _option("K8S_AUTH_USERNAME"),
    "password": _option("K8S_AUTH_PASSWORD", no_log=True),
    "validate_certs": _option("K8S_AUTH_VERIFY_SSL", "bool", aliases=["verify_ssl"]),
    "ca_cert": _option("K8S_AUTH_SSL_CA_CERT", "path", aliases=["ssl_ca_cert"]),
    "client_cert": _option("K8S_AUTH_CERT_FILE", "path", aliases=["cert_file"]),
    "client_key": _option("K8S_AUTH_KEY_FILE", "path", aliases=["key_file"], no_log=False),
    "proxy": _option("K8S_AUTH_PROXY", no_log=True),
    "impersonate_user": _option("K8S_AUTH_IMPERSONATE_USER"),
    "impersonate_groups": _option("K8S_AUTH_IMPERSONATE_GROUPS", "list", elements="str"),
}


def connect(module: AnsibleModule) -> Api:
    """Return the cluster that the module's auth options name; ClusterError when they cannot be used."""
    if IMPORT_ERROR:
        module.fail_json(msg=missing_required_lib("kubernetes"), exception=IMPORT_ERROR)
    return reach(module.params)


def reach(params: Mapping[str, Any]) -> Api:
    """Return the cluster that the options of AUTH_SPEC name; ClusterError when they cannot be used."""
    if IMPORT_ERROR:
        raise ClusterError(
            "the Python package kubernetes is missing on the controller. Install kubernetes 29.0.0 or newer"
        )
    return Api(KubernetesTransport(configuration(params), impersonation(params)))


def configuration(params: Mapping[str, Any]) -> Any:
    """Return the client's configuration: kubeconfig or in-cluster, then the single options over it."""
    found = kubernetes.client.Configuration()
    path = _kubeconfig(params)
    if path or not params.get("host"):
        _load(found, path, params.get("context") or None)
    found.connection_pool_maxsize = POOL
    found.retries = False
    for option, attribute in (
        ("host", "host"),
        ("validate_certs", "verify_ssl"),
        ("ca_cert", "ssl_ca_cert"),
        ("client_cert", "cert_file"),
        ("client_key", "key_file"),
        ("proxy", "proxy"),
    ):
        if params.get(option) is not None:
            setattr(found, attribute, params[option])
    _credentials(found, params)
    return found


def _kubeconfig(params: Mapping[str, Any]) -> str | None:
    """Return the path that the options or the environment name. An empty option is no option."""
    return params.get("kubeconfig") or os.environ.get("K8S_AUTH_KUBECONFIG") or os.environ.get("KUBECONFIG")


def cluster_name(params: Mapping[str, Any]) -> str:
    """Return what the kubeconfig calls the cluster, "" without one. Names of contexts often contain a user's name."""
    if params.get("host"):
        return ""
    try:
        found, active = kubernetes.config.list_kube_config_contexts(_kubeconfig(params))
        wanted = params.get("context") or active["name"]
        return next(str(one["context"]["cluster"]) for one in found if one["name"] == wanted)
    except Exception:  # without a usable kubeconfig there is no name, and connect() reports why
        return ""


def _credentials(found: Any, params: Mapping[str, Any]) -> None:
    if params.get("api_key"):
        found.api_key = {"authorization": "Bearer " + params["api_key"]}
        found.api_key_prefix = {}
        found.refresh_api_key_hook = None
    elif params.get("username") and params.get("password"):
        basic = f"{params['username']}:{params['password']}"
        found.api_key = {"authorization": urllib3.make_headers(basic_auth=basic)["authorization"]}


def _load(found: Any, path: str | None, context: str | None) -> None:
    if not path and os.environ.get(_IN_CLUSTER) and not os.path.exists(os.path.expanduser("~/.kube/config")):
        kubernetes.config.load_incluster_config(client_configuration=found)
        return
    name = path or os.path.expanduser("~/.kube/config")
    for part in filter(None, name.split(os.pathsep)):
        _check_readable(part)
    try:
        kubernetes.config.load_kube_config(
            config_file=name, context=context, client_configuration=found, persist_config=False
        )
    except Exception as error:  # any content of a kubeconfig can break the client in any way
        raise ClusterError(
            f"kubeconfig {name}: it cannot be used: {_without_content(error)}; check the file with kubectl config view"
        ) from None


def _check_readable(path: str) -> None:
    try:
        with open(path, encoding="utf-8") as file:
            file.read(1)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise ClusterError(
            f"kubeconfig {path}: it cannot be read: {why}; name the file by option kubeconfig or KUBECONFIG"
        ) from None


def _without_content(error: Exception) -> str:
    """Say what is wrong without quoting the file: parsers' messages repeat lines of it, secrets included."""
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return f"line {mark.line + 1} is not valid YAML"
    if isinstance(error, kubernetes.config.ConfigException):
        return str(error).splitlines()[0][:200]
    return f"it does not have the form of a kubeconfig ({type(error).__name__})"


def impersonation(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the headers that ask the API server to act as somebody else."""
    user = params.get("impersonate_user")
    groups = params.get("impersonate_groups") or []
    return ([("Impersonate-User", user)] if user else []) + [("Impersonate-Group", g) for g in groups]


class KubernetesTransport:
    """Requests over the kubernetes client's connection pool."""

    def __init__(self, config: Any, more_headers: list[tuple[str, str]]) -> None:
        self.config = config
        self.server = config.host.rstrip("/")
        self._more = more_headers
        self._pool = kubernetes.client.ApiClient(config).rest_client.pool_manager
        # The exec stream has no time limit of its own for connecting.
        websocket.setdefaulttimeout(CONNECT_SECONDS)

    def send(self, method: str, path: str, headers: Mapping[str, str], *, body: str | None, timeout: float) -> Response:
        """Send one request; ConnectionFailed when no answer came."""
        try:
            answer = self._request(method, path, headers, body=body, timeout=timeout, whole=True)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ConnectionFailed(_plain(error)) from None
        return _response(answer, answer.data)

    def stream(self, path: str, headers: Mapping[str, str], timeout: float) -> tuple[Response, Iterator[str]]:
        """Send one request; the answer without its text if it is good, and its lines as they come."""
        begin = time.monotonic()
        try:
            answer = self._request("GET", path, headers, body=None, timeout=timeout, whole=False)
            if answer.status != 200:
                return _response(answer, answer.data), iter(())
        except urllib3.exceptions.ReadTimeoutError:
            # A kubelet answers with the first line of a log: there was none in all the time.
            return Response(200, {}, ""), iter(())
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ConnectionFailed(_plain(error)) from None
        return _response(answer, b""), _lines(answer, begin + timeout)

    def _request(
        self, method: str, path: str, headers: Mapping[str, str], *, body: str | None, timeout: float, whole: bool
    ) -> Any:
        given = urllib3.HTTPHeaderDict({"User-Agent": USER_AGENT, **headers, **self._authorization()})
        for name, value in self._more:
            given.add(name, value)
        return self._pool.request(
            method,
            self.server + path,
            body=None if body is None else body.encode(),
            headers=given,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=timeout),
            retries=False,
            redirect=False,
            preload_content=whole,
        )

    def _authorization(self) -> dict[str, str]:
        setting = self.config.auth_settings().get("BearerToken")
        return {"Authorization": setting["value"]} if setting and setting["value"] else {}

    def execute(self, path: str, command: list[str], stdin: Callable[[], str], *, timeout: float) -> tuple[int, str]:
        """Run a command in a container over a WebSocket: exit code, and what it printed.

        ``stdin`` is asked and sent once the command has printed something, so it may hold a time. It cannot be
        closed in the older protocol, so the command must know where it ends.
        """
        query = [("command", word) for word in command]
        query += [("stdin", "true"), ("stdout", "true"), ("stderr", "true")]
        headers = {name.lower(): value for name, value in self._authorization().items()}
        try:
            stream = ws_client.websocket_call(
                self.config, "GET", self.server + path, query_params=query, headers=headers, _preload_content=False
            )
        except kubernetes.client.rest.ApiException as error:
            raise _handshake(error, path) from None
        # It keeps what both channels print; by itself it would keep any amount.
        stream._all = Output()
        try:
            return converse(stream, stdin, timeout)
        except (OSError, websocket.WebSocketException) as error:
            raise ConnectionFailed(_plain(error)) from None
        finally:
            stream.close()


def _response(answer: Any, data: bytes) -> Response:
    names = {name.lower(): value for name, value in answer.headers.items()}
    return Response(answer.status, names, data.decode("utf-8", "replace"))


def _lines(answer: Any, deadline: float) -> Iterator[str]:
    """Yield lines as they come, until the server ends, or nothing more has come by the deadline."""
    # A line in parts, which are put together once.
    rest: list[bytes] = []
    size = 0
    try:
        for part in answer.stream(PART):
            *whole, last = part.split(b"\n")
            for line in whole:
                yield b"".join((*rest, line)).decode("utf-8", "replace")
                rest, size = [], 0
            rest.append(last)
            size += len(last)
            if size > LONGEST_LINE:
                raise ConnectionFailed(f"a line has more than {LONGEST_LINE} bytes")
            if time.monotonic() >= deadline:
                return
        if size:
            yield b"".join(rest).decode("utf-8", "replace")
    except urllib3.exceptions.ReadTimeoutError:
        return
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ConnectionFailed(_plain(error)) from None
    finally:
        # Whoever has seen enough leaves; what is still on its way goes with the connection.
        answer.close()


def _handshake(error: Any, path: str) -> Exception:
    """The client's exception for a refused stream may repeat the answer; the first line is enough."""
    first = (str(error.reason or "").splitlines() or ["no reason given"])[0][:200]
    return ConnectionFailed(first) if not error.status else ApiError(f"exec {path}: {first}", error.status)


def _plain(error: Exception) -> str:
    """Drop the object addresses that the HTTP library puts in front of the reason."""
    return str(error).rsplit("object at 0x", 1)[-1].split(": ", 1)[-1][:300] or type(error).__name__
