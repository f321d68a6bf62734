# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What testers need of their nodes beyond the rails: huge pages and GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._fabric.intent.tests import complete
from ..._fabric.measure.schedule.hugepages import PAGE, pages_at_once
from ..._fabric.plan.link_findings import usual

HUGEPAGES = "hugepages-2Mi"
_MIB = 1 << 20
_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_NO_REQUEST = 'set gpu_resource: "" if a runtime class exposes all GPUs'


@dataclass(frozen=True)
class Needs:
    """Resource -> amount that each tester asks for (huge pages in bytes); ``show_gpus``: all GPUs without asking."""

    amounts: Mapping[str, int] = field(default_factory=dict)
    show_gpus: bool = False

    def explained(self, problem: str) -> str:
        """Return why a tester does not start, with what to do where others have what it asks for."""
        for resource, amount in self.amounts.items():
            if f"Insufficient {resource}" not in problem:
                continue
            if resource == HUGEPAGES:
                return (
                    f"{problem} A tester requests {amount // _MIB} Mi. Wait for the pods that use them, or reserve more"
                    " (host_kernel_hugepages)"
                )
            return (
                f"{problem} A tester requests all {amount} of its node, so that those next to its rails are among them."
                f" Wait for the pods that use them, or {_NO_REQUEST}"
            )
        return problem


def needs(plan: Mapping[str, Any], gpu_resource: str, nodes: Iterable[Mapping[str, Any]]) -> Needs:
    """Return what each tester of the plan needs, the same for all since one Job makes them.

    All GPUs of a node are asked for: of fewer the device plugin chooses, and not by what is next to the rails.
    ``nodes``: those of the testers; the number of GPUs that most of them have counts.
    """
    amounts = {}
    pages = pages_at_once(plan)
    if pages:
        amounts[HUGEPAGES] = pages * PAGE
    cuda = complete(plan.get("tests") or {})["memory"] != "host"
    if cuda and gpu_resource:
        amounts[gpu_resource] = usual(_allocatable(node, gpu_resource) or None for node in nodes) or 1
    return Needs(amounts, show_gpus=cuda and not gpu_resource)


def refusals(wanted: Needs, nodes: Mapping[str, Mapping[str, Any]], *, must_request: bool = False) -> dict[str, str]:
    """Return endpoint -> why its node (``nodes``: endpoint -> Node) cannot give what a tester needs.

    ``must_request``: whether GPUs are requested in any case, so that to request none is no way out.
    """
    found = {}
    for endpoint, node in nodes.items():
        for resource, amount in wanted.amounts.items():
            why = _refusal(resource, amount, _allocatable(node, resource), must_request=must_request)
            if why:
                found[endpoint] = f"no tester on node {node['metadata']['name']}: {why}"
    return found


def _refusal(resource: str, amount: int, has: int, *, must_request: bool) -> str:
    if resource == HUGEPAGES:
        if has >= amount:
            return ""
        return (
            f"it offers {has // _MIB} Mi of {resource}, a tester needs {amount // _MIB} Mi"
            " (rdma_fabric.tests.hugepages). Reserve more (host_kernel_hugepages) and restart its kubelet,"
            " which counts them when it starts, or set hugepages: false"
        )
    if has == amount:
        return ""
    of, others = f"it offers {has} {resource}, a tester needs {amount}, as many as most nodes have", "(--limit)"
    if must_request:
        return f"{of}. Check its device plugin, or measure nodes with another number in a separate run {others}"
    return (
        f"{of} (rdma_fabric.tests.memory). Check its device plugin, measure nodes with another number in a separate"
        f" run {others}, or {_NO_REQUEST}"
    )


def _allocatable(node: Mapping[str, Any], resource: str) -> int:
    """Return how much of a resource a Node can give in all, in whole units or bytes."""
    text = str(((node.get("status") or {}).get("allocatable") or {}).get(resource) or "0")
    digits = text.rstrip("KkMGTi")
    return int(digits) * _UNITS.get(text[len(digits) :], 1) if digits.isdigit() else 0
