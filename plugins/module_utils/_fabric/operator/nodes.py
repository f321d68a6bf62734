# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of the fabric's nodes: those that we set, and those that select a node of the fabric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._common.pci import NIC_VENDOR

# The operator itself runs nothing on a node without this label; NFD sets it where it runs.
NIC_LABEL_NAME = f"feature.node.kubernetes.io/pci-{NIC_VENDOR}.present"
NIC_LABEL = {NIC_LABEL_NAME: "true"}


def fabric_selector(extra: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that a node of the fabric has."""
    return {**NIC_LABEL, **extra}


def selected_labels(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels by which an object of a plan selects its nodes, whatever form its kind has for that."""
    selector = (item.get("spec") or {}).get("nodeSelector") or {}
    if "nodeSelectorTerms" in selector:
        rules = [rule for term in selector["nodeSelectorTerms"] for rule in term.get("matchExpressions") or ()]
        return {rule["key"]: rule["values"][0] for rule in rules if rule["operator"] == "In"}
    return dict(selector.get("matchLabels") or selector)


def node_objects(names: Iterable[str], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return Nodes that carry only the labels to set, in the order of ``names``."""
    return [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels)}} for name in names]
