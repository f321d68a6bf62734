# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network operator by the Operator Lifecycle Manager (OLM), where the platform has it.

A Subscription names package, channel and catalog. OLM answers with an InstallPlan, which waits for approval, and then
makes the ClusterServiceVersion (CSV), which is one release of the operator.
"""

from __future__ import annotations

from typing import Any

from ..intent.platforms import Catalog
from ..intent.releases import line_of
from .common import metadata
from .mark import namespace_object

GROUP = "operators.coreos.com"


def objects(namespace: str, release: str, catalog: Catalog) -> list[dict[str, Any]]:
    """Return what installs a release of the operator, in the order to apply it."""
    line = line_of(release)
    return [
        namespace_object(namespace),
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "OperatorGroup",
            "metadata": metadata(catalog.package, namespace),
            # The operator supports no other mode than its own namespace.
            "spec": {"targetNamespaces": [namespace]},
        },
        {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "Subscription",
            "metadata": metadata(catalog.package, namespace),
            "spec": {
                "name": catalog.package,
                "source": catalog.source,
                "sourceNamespace": catalog.namespace,
                "channel": f"v{line.name}" if line else "",
                "startingCSV": f"{catalog.package}.v{release}",
                # A later release of the channel is not installed by itself.
                "installPlanApproval": "Manual",
            },
        },
    ]
