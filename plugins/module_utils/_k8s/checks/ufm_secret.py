# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Secret with which ib-kubernetes logs in to UFM, by the names of its keys; their values are never looked at."""

from __future__ import annotations

from urllib.parse import quote

from ..._fabric.lint.policy_rules import UFM_NEEDED
from ..client.api import Api, ApiError
from ..client.kinds import collection


def problems(api: Api, namespace: str, name: str | None) -> list[str]:
    """Return what is surely wrong with the Secret; one that cannot be read, or whose namespace is new, is no reason."""
    if not name:
        return []
    try:
        if api.get(f"{collection('v1', 'namespaces')}/{quote(namespace)}") is None:
            return []
        secret = api.get(f"{collection('v1', 'secrets', namespace)}/{quote(name)}")
    except ApiError as error:
        if error.status == 403:
            return []
        raise
    what = f"Secret {name} of UFM, named by rdma_fabric.sriov.ib_kubernetes.ufm_secret,"
    if secret is None:
        return [f"{what} does not exist in namespace {namespace}. Create it there, or correct ufm_secret"]
    missing = [key for key in UFM_NEEDED if key not in (secret.get("data") or {})]
    return [f"{what} in namespace {namespace} lacks {', '.join(missing)}. Add these keys"] if missing else []
