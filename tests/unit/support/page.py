"""The page of a report as users get it: its data as JSON, as the module returns it, and rendered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import formats
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.page import page
from ansible_collections.gpufabric.rdma.plugins.plugin_utils.page import render


def to_html(report: Mapping[str, Any]) -> str:
    return render(json.loads(json.dumps(page(report))))


def files(report: Mapping[str, Any], plan: Mapping[str, Any], shown: int) -> dict[str, str]:
    """All files of a report by name."""
    return {**formats.render(report, plan, shown), "report.html": to_html(report)}
