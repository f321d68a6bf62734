# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators by the Operator Lifecycle Manager (OLM), where the platform has it.

A Subscription names package, channel and catalog. OLM answers with an InstallPlan, which waits for approval, and then
makes the ClusterServiceVersion (CSV), which is one release of the operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..intent.platforms import Catalog
from ..intent.releases import line_of
from .common import metadata
from .mark import namespace_object

Object = Mapping[str, Any]
GROUP = "operators.coreos.com"
V1, V1ALPHA1 = f"{GROUP}/v1", f"{GROUP}/v1alpha1"


@dataclass(frozen=True)
class Aim:
    """What OLM is to install, and where. ``csv``: the exact release.

    ``existing``: what to do with one that this collection does not manage. ``others``: an InstallPlan may be approved
    that installs other operators, too.
    """

    catalog: Catalog
    namespace: str
    channel: str
    csv: str
    existing: str = "refuse"
    others: bool = False

    @property
    def version(self) -> str:
        """The version in the name of the release."""
        return version_of(self.csv)


def version_of(csv: str) -> str:
    """Return the version in the name of a release, such as ``nvidia-network-operator.v26.7.1``."""
    return csv.partition(".v")[2]


def aim_of(namespace: str, release: str, catalog: Catalog, *, existing: str = "refuse", others: bool = False) -> Aim:
    """Return the aim for a release of the network operator."""
    line = line_of(release)
    channel, csv = f"v{line.name}" if line else "", f"{catalog.package}.v{release}"
    return Aim(catalog, namespace, channel, csv, existing, others)


def group_object(aim: Aim) -> dict[str, Any]:
    """Return the OperatorGroup. The operators in question support no other mode than their own namespace."""
    return {
        "apiVersion": V1,
        "kind": "OperatorGroup",
        "metadata": metadata(aim.catalog.package, aim.namespace),
        "spec": {"targetNamespaces": [aim.namespace]},
    }


def subscription_object(aim: Aim, name: str = "") -> dict[str, Any]:
    """Return the Subscription; ``name``: that of an existing one."""
    return {
        "apiVersion": V1ALPHA1,
        "kind": "Subscription",
        "metadata": metadata(name or aim.catalog.package, aim.namespace),
        "spec": {
            "name": aim.catalog.package,
            "source": aim.catalog.source,
            "sourceNamespace": aim.catalog.namespace,
            "channel": aim.channel,
            "startingCSV": aim.csv,
            # A later release of the channel is not installed by itself.
            "installPlanApproval": "Manual",
        },
    }


def version_object(aim: Aim, csv: str = "") -> dict[str, Any]:
    """Return the ClusterServiceVersion, which OLM makes, as far as it gets our label."""
    return {
        "apiVersion": V1ALPHA1,
        "kind": "ClusterServiceVersion",
        "metadata": metadata(csv or aim.csv, aim.namespace),
    }


def objects(aim: Aim) -> list[dict[str, Any]]:
    """Return what installs a release of an operator, in the order to apply it."""
    return [namespace_object(aim.namespace), group_object(aim), subscription_object(aim)]


def is_copy(item: Mapping[str, Any]) -> bool:
    """Return whether OLM copied a ClusterServiceVersion from the namespace of an operator of all namespaces."""
    return "olm.copiedFrom" in (item["metadata"].get("labels") or {})
