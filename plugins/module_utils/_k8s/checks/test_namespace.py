# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the namespace of the testers admits them: one that was not created for them is used as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.installation import ADMITTING, ENFORCE
from ..client.api import Api, ApiError
from ..client.kinds import collection

COMPONENT = {"app.kubernetes.io/component": "tester"}


def is_testers(live: Mapping[str, Any]) -> bool:
    """Whether a namespace was created for the testers, and for nothing else."""
    labels = live["metadata"].get("labels") or {}
    return made_by_us(live) and COMPONENT.items() <= labels.items()


def kept(live: Mapping[str, Any] | None) -> bool:
    """Whether a namespace stays as it is: it is neither absent, nor the testers' own, nor being deleted."""
    return live is not None and not is_testers(live) and not live["metadata"].get("deletionTimestamp")


def refusal(live: Mapping[str, Any]) -> str:
    """Return why a namespace that stays as it is does not admit testers, empty when it does."""
    level = (live["metadata"].get("labels") or {}).get(ENFORCE)
    if level in ADMITTING:
        return ""
    return (
        f"namespace {live['metadata']['name']} was not created for the testers, and its label {ENFORCE} is {level}. The"
        " testers need privileged. Set that label, or set namespace to a name that is not used"
    )


def problems(api: Api, name: str) -> list[str]:
    """Return why pods that measure would not start in a namespace. What cannot be read is no reason."""
    try:
        live = api.get(f"{collection('v1', 'namespaces')}/{quote(name)}")
    except ApiError as error:
        if error.status == 403:
            return []
        raise
    text = refusal(live) if live is not None and kept(live) else ""
    return [text] if text else []
