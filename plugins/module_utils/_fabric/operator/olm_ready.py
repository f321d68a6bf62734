# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far OLM is with an installation, what may be approved, and what waiting cannot help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.reader import some
from .olm import Aim
from .readiness import Finding, Readiness

Object = Mapping[str, Any]
# OLM tries again by itself for a while: what it reports must hold for longer than that.
_RETRIES = 60.0
_BROKEN = ("ResolutionFailed", "InstallPlanFailed", "BundleUnpackFailed")
# One unhealthy catalog of the cluster is enough for it, and catalogs recover.
_UNHEALTHY = "CatalogSourcesUnhealthy"


@dataclass(frozen=True)
class Progress:
    """One look at an installation. ``approve``: the InstallPlan to approve now; ``others``: what else it installs.

    ``refused``: why it is not approved.
    """

    readiness: Readiness
    plan: str = ""
    approve: Object | None = None
    others: tuple[str, ...] = ()
    refused: str = ""


def progress(aim: Aim, subscription: Object | None, plans: Sequence[Object], *, csv: Object | None) -> Progress:
    """Return how far it is. ``plans``: the InstallPlans of the namespace; ``csv``: the wanted release, if it is there.

    OLM puts pending changes of all Subscriptions of a namespace into one InstallPlan, and approval installs them all.
    """
    if subscription is None:
        return Progress(Readiness.of([Finding(f"Subscription of {aim.catalog.package} is absent", True)]))
    phase = str(_status(csv).get("phase") or "")
    if phase == "Succeeded" and _status(subscription).get("installedCSV") == aim.csv:
        return Progress(Readiness.of([]), _plan_name(subscription))
    plan = _plan(aim, subscription, plans)
    found = list(_of_subscription(subscription))
    others = tuple(name for name in _names(plan) if name != aim.csv)
    approve, refused = None, ""
    if csv is not None:
        found += _of_version(aim, csv, phase)
    elif plan is None:
        found += _no_plan(aim, subscription, plans)
    elif _approved(plan):
        found.append(_of_plan(plan))
    elif others and not aim.others:
        refused = _others(aim, plan, others)
        found.append(Finding(refused, True))
    else:
        # Before this phase OLM still works out its steps.
        approve = plan if _status(plan).get("phase") == "RequiresApproval" else None
        found.append(Finding(f"InstallPlan {_name(plan)} of {aim.csv} is not approved yet"))
    return Progress(Readiness.of(found), _name(plan) if plan else "", approve, others, refused)


def _others(aim: Aim, plan: Object, others: Sequence[str]) -> str:
    return (
        f"InstallPlan {aim.namespace}/{_name(plan)} was not approved: beside {aim.csv} it installs or upgrades"
        f" {some(others)}, and approval is for all of them. Approve it yourself, or set"
        " olm_approve_others: true"
    )


def _of_subscription(subscription: Object) -> Iterator[Finding]:
    for condition in _status(subscription).get("conditions") or []:
        kind = condition.get("type")
        if condition.get("status") == "True" and (kind in _BROKEN or kind == _UNHEALTHY):
            text = f"Subscription {_name(subscription)}: {kind}{_why(condition)}"
            yield Finding(text, kind in _BROKEN, _RETRIES)


def _no_plan(aim: Aim, subscription: Object, plans: Sequence[Object]) -> Iterator[Finding]:
    named = [plan for plan in plans if _name(plan) == _plan_name(subscription)]
    for plan in named:
        if not _approved(plan) and _names(plan):
            yield Finding(
                f"InstallPlan {aim.namespace}/{_name(plan)} of the Subscription installs {some(_names(plan))}, and"
                f" {aim.csv} is expected. OLM takes the newest release of the channel that can replace the installed"
                " one. Set rdma_fabric.operator.release to it, or approve the InstallPlan yourself",
                True,
                _RETRIES,
            )
            return
    yield Finding(f"OLM has not made an InstallPlan of {aim.csv} yet")


def _of_plan(plan: Object) -> Finding:
    status = _status(plan)
    phase = str(status.get("phase") or "none")
    if phase != "Failed":
        return Finding(f"InstallPlan {_name(plan)} is approved, phase {phase}")
    wrong = [one for one in status.get("conditions") or [] if one.get("status") == "False"]
    why = "; ".join(_why(one).lstrip(": ") for one in wrong) or "no reason given"
    return Finding(f"InstallPlan {_name(plan)} failed: {why}. Remove it and the Subscription, then rerun", True)


def _of_version(aim: Aim, csv: Object, phase: str) -> Iterator[Finding]:
    status = _status(csv)
    if phase == "Failed":
        yield Finding(f"ClusterServiceVersion {aim.csv} failed{_why(status)}", True, _RETRIES)
        return
    text = f"ClusterServiceVersion {aim.csv}: phase {phase or 'none'}"
    lacking = [
        f"{one.get('kind')} {one.get('name')}"
        for one in status.get("requirementStatus") or []
        if isinstance(one, Mapping) and one.get("status") not in ("Present", "Satisfied")
    ]
    if phase == "Succeeded":
        text += ", but the Subscription does not report it as installed yet"
    elif phase == "Pending" and lacking:
        text += f", requirements that are not met: {some(lacking)}"
    yield Finding(text)


def _plan(aim: Aim, subscription: Object, plans: Sequence[Object]) -> Object | None:
    """Return the newest InstallPlan of the Subscription that has the wanted release."""
    uid = subscription["metadata"].get("uid")
    found = [
        plan
        for plan in plans
        if aim.csv in _names(plan)
        and (
            _name(plan) == _plan_name(subscription)
            or any(owner.get("uid") == uid for owner in plan["metadata"].get("ownerReferences") or [])
        )
    ]
    return max(found, key=_age) if found else None


def _age(plan: Object) -> int:
    generation = (plan.get("spec") or {}).get("generation")
    return generation if isinstance(generation, int) else 0


def _plan_name(subscription: Object) -> str:
    reference = _status(subscription).get("installPlanRef")
    return str(reference.get("name") or "") if isinstance(reference, Mapping) else ""


def _names(plan: Object | None) -> list[str]:
    listed = ((plan or {}).get("spec") or {}).get("clusterServiceVersionNames")
    return [str(name) for name in listed] if isinstance(listed, list) else []


def _approved(plan: Object) -> bool:
    return (plan.get("spec") or {}).get("approved") is True


def _status(item: Object | None) -> Object:
    return (item or {}).get("status") or {}


def _why(condition: Object) -> str:
    reason, message = str(condition.get("reason") or ""), str(condition.get("message") or "")
    said = ": ".join(filter(None, (reason, message)))
    return f": {said}" if said else ""


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])
