"""Messages may quote what a hostile machine wrote: they do nothing to a terminal."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.api import ApiError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.drain import cordon


@pytest.mark.parametrize("kind", [FabricError, ParseError, ApiError])
def test_no_message_holds_control_characters(kind: type[FabricError]) -> None:
    error = kind("a\x1b[2J\x9bb\r\x00\ud800\tc\nd \u00e9")
    assert str(error) == "a\ufffd[2J\ufffdb\ufffd\ufffd\ufffd\tc\nd \u00e9"


def test_what_a_kubelet_reports_about_itself_reaches_no_terminal() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "\x1b[2Jowned"}
    found = cordon.not_ready({"metadata": {"name": "a"}, "status": {"conditions": [ready]}}, "")
    assert str(FabricError(found)) == "KubeletNotReady: \ufffd[2Jowned"
