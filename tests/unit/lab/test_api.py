# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API client of the tests: counters and kubeconfigs, without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.lab import api, certificates

METRICS = """# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",\
subresource="",verb="LIST",version="v1"} 3
apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="pods",scope="resource",\
subresource="",verb="LIST",version="v1"} 2
apiserver_request_total{code="101",component="apiserver",dry_run="",group="",resource="pods",scope="resource",\
subresource="exec",verb="CONNECT",version="v1"} 1
apiserver_request_sli_duration_seconds_count{verb="LIST"} 99
"""


def kubeconfig(**user: object) -> dict[str, object]:
    return {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:26443"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def test_request_counts_are_summed_over_codes() -> None:
    assert api.parse_request_counts(METRICS) == {("LIST", "pods"): 5, ("CONNECT", "pods/exec"): 1}


def test_endpoint_with_token() -> None:
    found = api.endpoint(kubeconfig(token="t"), Path("."))
    assert (found.host, found.port, found.token) == ("127.0.0.1", 26443, "t")


def test_endpoint_with_certificate_files(tmp_path: Path) -> None:
    certificates.authority(tmp_path)
    certificates.issue(tmp_path, certificates.Subject("u", "somebody"))
    config = kubeconfig(**{"client-certificate": "u.crt", "client-key": "u.key"})
    assert api.endpoint(config, tmp_path).token == ""


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            kubeconfig(exec={}),
            "kubeconfig: a user with exec or auth-provider is not supported, use a token or certificate",
        ),
        ({**kubeconfig(), "current-context": "y"}, "kubeconfig: no context named y"),
    ],
)
def test_bad_kubeconfigs(config: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        api.endpoint(config, Path("."))
    assert str(caught.value) == message


def test_yaml_of_others_is_read(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "config"
    path.write_text("current-context: x\n")
    assert api.read_kubeconfig(path) == {"current-context": "x"}
    path.write_text(json.dumps(kubeconfig()))
    assert api.server_of(api.read_kubeconfig(path)) == "https://127.0.0.1:26443"


def test_an_error_names_request_and_reason() -> None:
    body = {"reason": "NotFound", "message": 'pods "a" not found'}
    error = api.ApiError("GET", "/api/v1/pods/a", 404, body)
    assert str(error) == 'GET /api/v1/pods/a: 404 NotFound: pods "a" not found'
    assert (error.status, error.reason) == (404, "NotFound")
