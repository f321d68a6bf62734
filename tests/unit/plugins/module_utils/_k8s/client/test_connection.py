"""The one file that knows the kubernetes client, against an HTTP server on the loopback."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ClusterError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client import connection, converse
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.api import Api, ApiError, ConnectionFailed

SECRET = "planted-secret-token"


class Server(http.server.BaseHTTPRequestHandler):
    seen: list[tuple[str, dict[str, str]]] = []
    codes: list[int] = []
    parts: list[bytes] = []

    def do_GET(self) -> None:
        Server.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
        code = Server.codes.pop(0) if Server.codes else 200
        if code == 0:
            self.connection.close()
            return
        if Server.parts and code == 200:
            self.chunks()
            return
        body = json.dumps({"message": "said", "metadata": {}}).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def chunks(self) -> None:
        """Send the parts one by one, up to one that says to wait until the client has gone, or to break off."""
        if Server.parts == [b"silent"]:
            self.connection.recv(1)
            return
        self.protocol_version = "HTTP/1.1"
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in Server.parts:
            if part == b"wait":
                self.connection.recv(1)
                return
            if part == b"break":
                self.connection.close()
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Server.seen, Server.codes, Server.parts = [], [], []
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}"
    found.shutdown()
    found.server_close()


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "K8S_AUTH_KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def kubeconfig(folder: Path, url: str) -> str:
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": SECRET}}],
            }
        )
    )
    return str(path)


def connect(**params: Any) -> Api:
    transport = connection.KubernetesTransport(connection.configuration(params), connection.impersonation(params))
    return Api(transport, sleep=lambda seconds: None)


def test_kubeconfig_token_and_impersonation(server: str, tmp_path: Path) -> None:
    api = connect(kubeconfig=kubeconfig(tmp_path, server), impersonate_user="eve", impersonate_groups=["a", "b"])
    assert api.document("/version") == {"message": "said", "metadata": {}}
    path, headers = Server.seen[0]
    assert (path, headers["authorization"]) == ("/version", f"Bearer {SECRET}")
    assert headers["user-agent"] == "gpufabric.rdma"
    assert headers["impersonate-user"] == "eve"
    assert headers["impersonate-group"] in ("a", "b")


def test_single_options_go_over_the_kubeconfig(server: str, tmp_path: Path) -> None:
    api = connect(kubeconfig=kubeconfig(tmp_path, "http://127.0.0.1:1"), host=server, api_key="other")
    api.document("/version")
    assert Server.seen[0][1]["authorization"] == "Bearer other"


@pytest.mark.parametrize(
    ("given", "name"),
    [({}, "k"), ({"context": "other"}, "prod"), ({"host": "https://elsewhere"}, ""), ({"kubeconfig": ""}, "")],
)
def test_a_cluster_is_called_by_its_name_and_never_by_a_context_which_may_hold_a_user(
    given: dict[str, str], name: str, tmp_path: Path
) -> None:
    path = Path(kubeconfig(tmp_path, "https://127.0.0.1:1"))
    config = json.loads(path.read_text())
    config["contexts"].append({"name": "other", "context": {"cluster": "prod", "user": "u"}})
    config["clusters"].append({"name": "prod", "cluster": {"server": "https://127.0.0.1:2"}})
    path.write_text(json.dumps(config))
    assert connection.cluster_name({"kubeconfig": str(path), **given}) == name


def test_user_and_password(server: str) -> None:
    connect(host=server, username="u", password="p").document("/version")
    assert Server.seen[0][1]["authorization"] == "Basic dTpw"


def test_environment_names_the_kubeconfig(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, server))
    connect(kubeconfig="").document("/version")
    assert len(Server.seen) == 1


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([b"one\nt", b"wo\n"], ["one", "two"]),
        ([b"one\n", "gr\u00fc".encode()[:-1], "gr\u00fc".encode()[-1:] + b"n"], ["one", "gr\u00fcn"]),
        # Nothing more comes: what there is at the end of the time is all.
        ([b"silent"], []),
        ([b"one\nhalf", b"wait"], ["one"]),
    ],
)
def test_lines_as_they_come(server: str, tmp_path: Path, parts: list[bytes], expected: list[str]) -> None:
    Server.parts = parts
    api = connect(kubeconfig=kubeconfig(tmp_path, server))
    assert list(api.follow("/log", {"follow": "true"}, 0.2)) == expected
    assert (Server.seen[0][0], api.requests) == ("/log?follow=true", 1)


def test_who_has_seen_enough_leaves(server: str, tmp_path: Path) -> None:
    Server.parts = [b"one\n", b"wait"]
    lines = connect(kubeconfig=kubeconfig(tmp_path, server)).follow("/log", {"container": "c"}, 60.0)
    assert next(iter(lines)) == "one"
    lines.close()  # type: ignore[attr-defined]


def test_lines_that_break_off_are_an_error(server: str, tmp_path: Path) -> None:
    Server.parts = [b"one\n", b"break"]
    lines = connect(kubeconfig=kubeconfig(tmp_path, server)).follow("/log", {"container": "c"}, 5.0)
    assert next(iter(lines)) == "one"
    with pytest.raises(ApiError, match="does not answer"):
        next(iter(lines))


def test_following_is_tried_again_before_the_first_line(server: str, tmp_path: Path) -> None:
    Server.codes, Server.parts = [503], [b"one\n"]
    api = connect(kubeconfig=kubeconfig(tmp_path, server))
    assert list(api.follow("/log", {"container": "c"}, 5.0)) == ["one"]
    assert api.requests == 2


def test_following_that_is_refused(server: str, tmp_path: Path) -> None:
    Server.codes = [403]
    with pytest.raises(ApiError, match="refused GET /log with 403: said"):
        list(connect(kubeconfig=kubeconfig(tmp_path, server)).follow("/log", {"container": "c"}, 5.0))


def test_a_connection_that_breaks_is_tried_again(server: str, tmp_path: Path) -> None:
    Server.codes = [0, 503, 200]
    api = connect(kubeconfig=kubeconfig(tmp_path, server))
    assert api.document("/version")
    assert api.requests == 3


def test_a_server_that_is_down_is_named_without_secrets(tmp_path: Path) -> None:
    with pytest.raises(ApiError) as caught:
        connect(kubeconfig=kubeconfig(tmp_path, "http://127.0.0.1:1")).document("/version")
    assert "http://127.0.0.1:1 does not answer" in str(caught.value)
    assert "refused" in str(caught.value)
    assert "0x" not in str(caught.value) and SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"users: [{{name: u, user: {{token: {SECRET}", "line 1 is not valid YAML"),
        (f"users:\n  token: {SECRET}\n", "Invalid kube-config file."),
        (f"- {SECRET}\n", "it does not have the form of a kubeconfig"),
        (f'{{"current-context": "c", "contexts": "{SECRET}"}}', "kube"),
    ],
)
def test_a_broken_kubeconfig_is_named_but_not_quoted(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "broken"
    path.write_text(content)
    with pytest.raises(ClusterError) as caught:
        connect(kubeconfig=str(path))
    assert str(caught.value).startswith(f"kubeconfig {path}: it cannot be used: ")
    assert expected in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ClusterError) as caught:
        connect(kubeconfig=str(tmp_path / "none"))
    assert str(caught.value) == (
        f"kubeconfig {tmp_path}/none: it cannot be read: No such file or directory;"
        " name the file by option kubeconfig or KUBECONFIG"
    )


def test_exec_to_a_server_that_does_not_stream(server: str, tmp_path: Path) -> None:
    api = connect(kubeconfig=kubeconfig(tmp_path, server))
    with pytest.raises(ApiError) as caught:
        api.execute("/api/v1/namespaces/n/pods/p/exec?container=c", ["true"], lambda: "", timeout=1.0)
    assert SECRET not in str(caught.value)


class Stream:
    """A command that prints without an end, as the client's WebSocket gives it."""

    def __init__(self) -> None:
        self._all: Any = None

    def is_open(self) -> bool:
        return True

    def peek_stdout(self) -> str:
        return "x"

    def update(self, timeout: float) -> None:
        self._all.write("x" * 65536)


def test_a_command_that_prints_without_an_end_is_cut() -> None:
    stream = Stream()
    stream._all = converse.Output()
    with pytest.raises(ConnectionFailed, match="the command printed more than 4194304 bytes"):
        converse.converse(stream, lambda: "", 60.0)
    assert stream._all.tell() == 4194304


def test_a_line_without_an_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer:
        def stream(self, size: int) -> Iterator[bytes]:
            while True:
                yield b"x" * size

        def close(self) -> None:
            pass

    monkeypatch.setattr(connection, "LONGEST_LINE", 1 << 20)
    with pytest.raises(ConnectionFailed, match="a line has more than 1048576 bytes"):
        list(connection._lines(Answer(), 1e12))


def test_a_long_line_in_small_parts_is_read_in_time_that_grows_with_it() -> None:
    """Each part was joined with all before it: 20 times as long."""

    class Answer:
        def stream(self, _size: int) -> Iterator[bytes]:
            yield from [b"x" * 200] * 20_000
            yield b"\nab\n\nc"
            yield b"d"

        def close(self) -> None:
            pass

    begin = time.process_time()
    assert list(connection._lines(Answer(), 1e12)) == ["x" * 4_000_000, "ab", "", "cd"]
    assert time.process_time() - begin < 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"status": "Success"}', 0),
        ('{"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "2"}]}}', 2),
    ],
)
def test_exit_code_of_a_command(text: str, expected: int) -> None:
    assert converse.exit_code(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the stream ended without an exit code"),
        ('{"status": "Failure", "message": "no such container"}', "no such container"),
        ("[1]", "the stream ended without an exit code"),
        ('{"status": "Failure", "details": "x"}', "the command could not be run"),
        ('{"details": {"causes": [1, {"reason": "ExitCode", "message": "\u00b2"}]}}', "the command could not be run"),
        (
            '{"details": {"causes": [{"reason": "ExitCode", "message": "%s"}]}}' % ("9" * 5000),
            "the command could not be run",
        ),
    ],
)
def test_a_command_without_exit_code(text: str, message: str) -> None:
    with pytest.raises(ConnectionFailed) as caught:
        converse.exit_code(text)
    assert str(caught.value) == message
