# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install an operator by OLM: apply its objects, approve its InstallPlan, wait for its release."""

from __future__ import annotations

from dataclasses import dataclass

from ..._common.errors import ClusterError
from ..._fabric.operator import olm
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.installation import Decision
from ..._fabric.operator.olm_ready import Progress
from ..._fabric.operator.readiness import Hopeless, Readiness
from ..client.api import Api, ApiError
from ..client.kinds import collection, path_of
from ..client.poll import Clock, ticks
from ..objects.apply import Options, Outcome, apply_object
from ..objects.olm import look

POLL = 3.0


@dataclass(frozen=True)
class Installed:
    """What an installation did: objects, the approved InstallPlan, and what else that installed."""

    outcomes: tuple[Outcome, ...]
    plan: str = ""
    others: tuple[str, ...] = ()


def install(api: Api, aim: olm.Aim, decision: Decision, *, options: Options, clock: Clock) -> Installed:
    """Bring the release to phase Succeeded; ClusterError with all reasons when it does not get there."""
    outcomes = [apply_object(api, item, options, clock=clock) for item in decision.objects]
    subscription = outcomes[-1].item
    found = look(api, aim, api.get(path_of(api, subscription)))
    if found.refused:
        raise ClusterError(found.refused)
    made = [] if found.readiness.ready else [Outcome(olm.version_object(aim), None, {"status": {"phase": "Succeeded"}})]
    if options.check:
        return Installed((*outcomes, *made), found.plan, found.others)
    if made:
        found = _wait(api, aim, subscription, options=options, clock=clock)
    _mark(api, aim)
    return Installed((*outcomes, *made), found.plan, found.others)


def _wait(api: Api, aim: olm.Aim, subscription: olm.Object, *, options: Options, clock: Clock) -> Progress:
    """Approve the InstallPlan when it comes, and return it when its release is installed."""
    hopeless, approved = Hopeless(), Progress(Readiness.of([]))
    reasons: tuple[str, ...] = ()
    for elapsed in ticks(options.timeout, POLL, clock):
        found = look(api, aim, api.get(path_of(api, subscription)))
        reasons = found.readiness.reasons
        if found.readiness.ready:
            return approved
        if found.approve is not None and _approve(api, aim, found.approve):
            approved = found
        if hopeless.update(elapsed, found.readiness):
            how = f"stopped after {elapsed:.0f} s, because waiting cannot resolve this"
            raise ClusterError(_failed(aim, reasons, how))
    raise ClusterError(_failed(aim, reasons, f"not installed after {options.timeout:.0f} s"))


def _failed(aim: olm.Aim, reasons: tuple[str, ...], how: str) -> str:
    return (
        f"OLM could not install {aim.csv} in namespace {aim.namespace}: {how}: {'; '.join(reasons)}."
        " Correct the cause, then rerun the playbook: it continues the installation"
    )


def _approve(api: Api, aim: olm.Aim, plan: olm.Object) -> bool:
    """Approve an InstallPlan as it was read; one that has changed meanwhile is read again."""
    meta = plan["metadata"]
    path = f"{collection(olm.V1ALPHA1, 'installplans', aim.namespace)}/{meta['name']}"
    body = {"metadata": {"resourceVersion": meta.get("resourceVersion")}, "spec": {"approved": True}}
    try:
        api.merge(path, body)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True


def _mark(api: Api, aim: olm.Aim) -> None:
    """Label the release: without its Subscription, a teardown could not know whose it is."""
    item = olm.version_object(aim)
    path = path_of(api, item)
    live = api.get(path)
    if live is not None and not made_by_us(live):
        # The uid makes sure that nothing is created in place of one that went away meanwhile.
        meta = {**item["metadata"], "uid": live["metadata"]["uid"]}
        api.apply(path, {**item, "metadata": meta}, False, dry_run=False)
