# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Operators of the Operator Lifecycle Manager in a cluster: what is there, and its removal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._common.reader import some
from ..._fabric.operator import olm
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.installation import Decision
from ..._fabric.operator.mark import namespace_object
from ..._fabric.operator.olm_ready import Progress, progress
from ..._fabric.operator.olm_state import Seen, decide
from ..._fabric.operator.removal import passing
from ..client.api import Api, ApiError
from ..client.kinds import collection, path_of
from ..client.poll import Clock
from . import converge, inhabitants, leftovers
from .apply import Options, Outcome, wait_gone
from .ownership import owned_fields
from .release import GROUPS, NODE_LABELS

_PACKAGES = "packages.operators.coreos.com/v1"
# What OpenShift puts into every namespace, beside what Kubernetes does.
_BUILT_IN = {
    ("ConfigMap", "openshift-service-ca.crt"),
    ("ServiceAccount", "builder"),
    ("ServiceAccount", "deployer"),
}
# Credentials of these and of the default ServiceAccount, which OpenShift makes.
_ACCOUNT = ("kubernetes.io/service-account.name", "openshift.io/internal-registry-auth-token.service-account")
_ACCOUNTS = ("builder", "default", "deployer")


def seen(api: Api, aim: olm.Aim, operators: Sequence[Mapping[str, Any]] = (), *, offer: bool = True) -> Seen:
    """Return what the cluster has of a package; ``operators``: as survey.py lists them.

    ``offer``: whether the catalog is asked for the package, which another API server than that of Kubernetes answers.
    """
    every = list(api.items(collection(olm.V1ALPHA1, "subscriptions")))
    package = [item for item in every if (item.get("spec") or {}).get("name") == aim.catalog.package]
    inside = [item for item in every if item["metadata"].get("namespace") == aim.namespace]
    return Seen(
        namespace=api.get(f"{collection('v1', 'namespaces')}/{aim.namespace}"),
        groups=list(api.items(collection(olm.V1, "operatorgroups", aim.namespace))),
        subscriptions=package,
        versions=list(api.items(collection(olm.V1ALPHA1, "clusterserviceversions", aim.namespace))),
        manifest=_manifest(api, aim) if offer else None,
        operators=operators,
        applied=any(owned_fields(item) for item in inside if item in package),
        neighbours=[item for item in inside if item not in package],
    )


def _manifest(api: Api, aim: olm.Aim) -> Mapping[str, Any] | None:
    """Return the package as its catalog offers it; several catalogs can have packages of one name."""
    path = collection(_PACKAGES, "packagemanifests", aim.catalog.namespace)
    found = api.get(f"{path}/{aim.catalog.package}")
    if found is None or (found.get("status") or {}).get("catalogSource") == aim.catalog.source:
        return found
    of_catalog = api.items(path, labelSelector=f"catalog={aim.catalog.source}")
    return next((item for item in of_catalog if item["metadata"]["name"] == aim.catalog.package), None)


def judged(api: Api, aim: olm.Aim, operators: Sequence[Mapping[str, Any]]) -> tuple[Decision, dict[str, Any]] | None:
    """Return what a run does, and what the module reports of it; None where an operator is used as it is."""
    try:
        found = seen(api, aim, operators)
    except ApiError as error:
        if error.status != 403:
            raise
        if aim.existing == "use":
            return None
        # The missing permissions are the problem.
        found = Seen(None, (), (), (), None)
        return Decision("none", (), ()), _told(aim, found, Decision("none", (), ()))
    if aim.existing == "use" and not found.managed(aim):
        return None
    decision = _decided(api, aim, found)
    return decision, _told(aim, found, decision)


def decided(api: Api, aim: olm.Aim, operators: Sequence[Mapping[str, Any]]) -> Decision:
    """Return what to apply, or why nothing may be done."""
    return _decided(api, aim, seen(api, aim, operators))


def _decided(api: Api, aim: olm.Aim, found: Seen) -> Decision:
    decision = decide(aim, found)
    refused = look(api, aim, found.subscription(aim)).refused
    return replace(decision, problems=(*decision.problems, refused)) if refused else decision


def look(api: Api, aim: olm.Aim, subscription: Mapping[str, Any] | None) -> Progress:
    """Return how far OLM is with an installation; ``subscription``: as it is now."""
    if subscription is None:
        return progress(aim, None, (), csv=None)
    plans = list(api.items(collection(olm.V1ALPHA1, "installplans", aim.namespace)))
    return progress(aim, subscription, plans, csv=api.get(path_of(api, olm.version_object(aim))))


def _told(aim: olm.Aim, found: Seen, decision: Decision) -> dict[str, Any]:
    live = next((item for item in found.own_versions(aim) if item["metadata"]["name"] == found.installed(aim)), {})
    return {
        "name": aim.catalog.package if found.managed(aim) else "",
        "state": str((live.get("status") or {}).get("phase") or ""),
        "managed": found.managed(aim),
        "action": decision.action,
        "objects": list(decision.objects),
        "remains": None,
        "notes": [],
    }


@dataclass(frozen=True)
class Removed:
    """What a removal did, and what stays and why."""

    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...]


def remove(api: Api, aim: olm.Aim, options: Options, *, clock: Clock) -> Removed:
    """Remove the Subscription, release, OperatorGroup and namespace that this collection made, in this order.

    Without its Subscription, OLM does not install the release again. Definitions stay, as OLM leaves them.
    """
    try:
        found = seen(api, aim, offer=False)
    except ApiError as error:
        # An account for an operator that is only used needs no permissions for OLM.
        if error.status != 403 or aim.existing != "use":
            raise
        return Removed((), (f"Operators of OLM cannot be read ({error}). Nothing of them was removed.",))
    return _remove(api, aim, found, options=options, clock=clock)


def _remove(api: Api, aim: olm.Aim, found: Seen, *, options: Options, clock: Clock) -> Removed:
    live = found.subscription(aim)
    if live is not None and not found.managed(aim):
        name = f"{aim.namespace}/{live['metadata']['name']}"
        return Removed((), (f"Subscription {name} is not managed by this collection. It was not removed.",))
    reported = {str(((live or {}).get("status") or {}).get(key)) for key in ("installedCSV", "currentCSV")}
    versions = [item for item in found.own_versions(aim) if made_by_us(item) or item["metadata"]["name"] in reported]
    if live is None and not versions:
        return _emptied(api, aim, found, versions=[], options=options, clock=clock)
    first = [olm.subscription_object(aim, live["metadata"]["name"])] if live else []
    done = converge.remove_old(api, first, options, clock=clock)
    done += _versions_gone(api, aim, versions, options=options, clock=clock)
    rest = _emptied(api, aim, found, versions=versions, options=options, clock=clock)
    labels = leftovers.Wanted(labels=NODE_LABELS)
    done += [*rest.outcomes, *leftovers.remove(api, labels, options, clock=clock)]
    stay = f"The definitions (CRDs) of package {aim.catalog.package} were not removed: OLM leaves them."
    return Removed(tuple(done), (*rest.notes, stay))


def _versions_gone(
    api: Api, aim: olm.Aim, versions: Sequence[Mapping[str, Any]], *, options: Options, clock: Clock
) -> list[Outcome]:
    """Remove releases that a Subscription of this collection installed, also those without our label."""
    done = []
    for live in versions:
        item = olm.version_object(aim, live["metadata"]["name"])
        if not options.check:
            api.delete(path_of(api, item), {"preconditions": {"uid": live["metadata"]["uid"]}})
        done.append(Outcome(item, {"status": {"phase": (live.get("status") or {}).get("phase")}}, None, "delete"))
    if not options.check:
        wait_gone(api, [one.item for one in done], options, clock=clock)
    return done


def _emptied(
    api: Api, aim: olm.Aim, found: Seen, *, versions: Sequence[Mapping[str, Any]], options: Options, clock: Clock
) -> Removed:
    """Remove OperatorGroup and namespace of this collection, unless the namespace holds something of others."""
    space = found.namespace
    removed = {item["metadata"]["name"] for item in versions}
    ours = made_by_us(space or {}) or any(map(made_by_us, found.groups))
    strangers = sorted(set(_strangers(api, aim, removed))) if space and ours else []
    others = [text for text in strangers if text.startswith(("Subscription ", "ClusterServiceVersion "))]
    notes, done = [], []
    if not others:
        own = [olm.group_object(aim)] if any(map(made_by_us, found.groups)) else []
        done += converge.remove_old(api, own, options, clock=clock)
    if space is not None and made_by_us(space):
        if strangers:
            notes.append(
                f"Namespace {aim.namespace} was not removed: it holds objects that this collection does not manage:"
                f" {some(strangers)}."
            )
        else:
            done += converge.remove_old(api, [namespace_object(aim.namespace)], options, clock=clock)
    return Removed(tuple(done), tuple(notes))


def _strangers(api: Api, aim: olm.Aim, removed: Collection[str]) -> Iterator[str]:
    """Yield what the namespace holds and neither the platform nor this collection made; ``removed``: releases."""
    for item in inhabitants.read(api, aim.namespace, (*GROUPS, olm.GROUP)):
        kind, meta = item["kind"], item["metadata"]
        notes = meta.get("annotations") or {}
        of_account = kind == "Secret" and any(notes.get(key) in _ACCOUNTS for key in _ACCOUNT)
        of_package = kind == "ClusterServiceVersion" and (olm.is_copy(item) or meta["name"] in removed)
        known = (kind, meta["name"]) in _BUILT_IN or of_account or of_package
        if not (known or passing(item) or made_by_us(item)):
            yield f"{kind} {meta['name']}"
