# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of modules that measure in pods; plugins/doc_fragments/pods.py describes them."""

from __future__ import annotations

from typing import Any

POD_SPEC: dict[str, dict[str, Any]] = {
    "namespace": {"type": "str", "default": "gpufabric-validate"},
    "image_pull_policy": {"type": "str", "choices": ["Always", "IfNotPresent", "Never"], "default": "IfNotPresent"},
    "image_pull_secret": {"type": "str", "no_log": False},
    "tolerations": {"type": "list", "elements": "dict", "default": []},
    "runtime_class": {"type": "str"},
}
