# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do with an operator of OLM: install it, leave it, or refuse because it belongs to someone else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.reader import some
from ..intent.releases import line_of, upgrade_problem
from .common import made_by_us
from .installation import Decision, namespace_problems
from .mark import namespace_object
from .olm import Aim, group_object, is_copy, subscription_object, version_of

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Seen:
    """What the cluster has. ``subscriptions``: those of the package, in all namespaces.

    ``groups``, ``versions``: OperatorGroups and ClusterServiceVersions of the namespace. ``manifest``: the package in
    its catalog. ``operators``: as survey.py returns them, of all namespaces. ``applied``: whether this collection
    applied the Subscription of the namespace; manifests in a folder that another tool applies have its label, too.
    ``neighbours``: Subscriptions of other packages in the namespace.
    """

    namespace: Object | None
    groups: Sequence[Object]
    subscriptions: Sequence[Object]
    versions: Sequence[Object]
    manifest: Object | None
    operators: Sequence[Object] = ()
    applied: bool = False
    neighbours: Sequence[Object] = ()

    def subscription(self, aim: Aim) -> Object | None:
        """Return the Subscription of the package in its namespace."""
        return next((item for item in self.subscriptions if _space(item) == aim.namespace), None)

    def managed(self, aim: Aim) -> bool:
        """Return whether this collection made the Subscription."""
        found = self.subscription(aim)
        return found is not None and made_by_us(found) and self.applied

    def own_versions(self, aim: Aim) -> list[Object]:
        """Return the releases of the package in its namespace."""
        found = [item for item in self.versions if not is_copy(item)]
        return [item for item in found if _name(item).startswith(f"{aim.catalog.package}.")]

    def installed(self, aim: Aim) -> str:
        """Return the release that is installed, as the Subscription or else OLM's objects show it."""
        status = (self.subscription(aim) or {}).get("status") or {}
        found = self.own_versions(aim)
        return str(status.get("installedCSV") or (_name(found[-1]) if found else ""))


def decide(aim: Aim, seen: Seen) -> Decision:
    """Return what to apply for an installation by OLM, or why nothing may be done."""
    return Decision("subscribe", tuple(_objects(aim, seen)), tuple(_problems(aim, seen)))


def _objects(aim: Aim, seen: Seen) -> Iterator[dict[str, Any]]:
    if seen.namespace is None or made_by_us(seen.namespace):
        yield namespace_object(aim.namespace)
    if all(map(made_by_us, seen.groups)):
        yield group_object(aim)
    live = seen.subscription(aim)
    yield subscription_object(aim, _name(live) if live else "")


def _problems(aim: Aim, seen: Seen) -> Iterator[str]:
    yield from namespace_problems(aim.namespace, seen.namespace)
    yield from _groups(aim, seen)
    yield from _subscriptions(aim, seen)
    yield from _neighbours(aim, seen)
    yield from _versions(aim, seen)
    yield from _operators(aim, seen)
    installed = seen.installed(aim)
    if installed and installed != aim.csv and line_of(aim.version):
        problem = upgrade_problem(version_of(installed), aim.version)
        if problem:
            yield f"package {aim.catalog.package} in namespace {aim.namespace}: {problem}"
    if installed != aim.csv and line_of(aim.version):
        yield from _offer(aim, seen.manifest)


def _groups(aim: Aim, seen: Seen) -> Iterator[str]:
    names = [_name(item) for item in seen.groups]
    if len(names) > 1:
        yield (
            f"namespace {aim.namespace} has {len(names)} OperatorGroups ({some(sorted(names))}), and OLM installs"
            " nothing where there is more than one. Remove all but one"
        )
    for item in seen.groups:
        spec = item.get("spec") or {}
        targets = spec.get("targetNamespaces") or []
        if not made_by_us(item) and (targets != [aim.namespace] or spec.get("selector")):
            found = some(targets) if targets else "other namespaces"
            yield (
                f"OperatorGroup {aim.namespace}/{_name(item)} selects {found}, and package"
                f" {aim.catalog.package} needs one that selects only {aim.namespace}. Choose another"
                " rdma_fabric.operator.namespace, or change the OperatorGroup"
            )


def _subscriptions(aim: Aim, seen: Seen) -> Iterator[str]:
    inside = [item for item in seen.subscriptions if _space(item) == aim.namespace]
    if len(inside) > 1:
        yield (
            f"package {aim.catalog.package} has {len(inside)} Subscriptions in namespace {aim.namespace}"
            f" ({some(sorted(map(_name, inside)))}). Remove all but one"
        )
    for item in seen.subscriptions:
        name = f"Subscription {_space(item)}/{_name(item)}"
        if _space(item) != aim.namespace:
            yield (
                f"{name} installs package {aim.catalog.package} in another namespace than {aim.namespace}. Set"
                f" rdma_fabric.operator.namespace to {_space(item)} and rdma_fabric.operator.existing to use or adopt,"
                " or remove it"
            )
        elif not seen.managed(aim) and aim.existing == "refuse":
            yield (
                f"{name} installs package {aim.catalog.package} and is not managed by this collection. Set"
                " rdma_fabric.operator.existing to use (it stays as it is) or to adopt (this collection changes it, and"
                " removes it at teardown)"
            )
        elif not seen.managed(aim):
            yield from _catalog(aim, item)


def _catalog(aim: Aim, item: Object) -> Iterator[str]:
    """Yield that a Subscription to adopt is of another catalog, such as a mirror; that cluster may lack ours."""
    spec = item.get("spec") or {}
    found, expected = (spec.get("sourceNamespace"), spec.get("source")), (aim.catalog.namespace, aim.catalog.source)
    if found != expected:
        yield (
            f"Subscription {_space(item)}/{_name(item)} is of catalog {found[0]}/{found[1]}, and this collection needs"
            f" catalog {expected[0]}/{expected[1]} to manage it. Set rdma_fabric.operator.existing: use"
        )


def _neighbours(aim: Aim, seen: Seen) -> Iterator[str]:
    """Yield that our Subscription would stop the updates of others: OLM approves a namespace as a whole."""
    inside = [*seen.neighbours, *filter(None, [seen.subscription(aim)])]
    stopped = any(_approval(item) == "Manual" for item in inside)
    if aim.others or stopped or seen.managed(aim) or not seen.neighbours:
        return
    yield (
        f"namespace {aim.namespace} has Subscriptions that are updated automatically"
        f" ({some(sorted(map(_name, seen.neighbours)))}), and OLM would update none of them without approval beside"
        " this one. Choose another rdma_fabric.operator.namespace, or set olm_approve_others: true"
    )


def _approval(item: Object) -> str:
    return str((item.get("spec") or {}).get("installPlanApproval"))


def _versions(aim: Aim, seen: Seen) -> Iterator[str]:
    if seen.subscription(aim) is not None:
        return
    for item in seen.own_versions(aim):
        if not item["metadata"].get("deletionTimestamp") and not made_by_us(item):
            name = f"{aim.namespace}/{_name(item)}"
            yield (
                f"ClusterServiceVersion {name} exists without a Subscription and is not managed by this collection. Set"
                " rdma_fabric.operator.existing to use, or remove it with: oc --namespace"
                f" {aim.namespace} delete clusterserviceversion {_name(item)}"
            )


def _operators(aim: Aim, seen: Seen) -> Iterator[str]:
    for item in seen.operators:
        by_olm = item["namespace"] == aim.namespace and not item["release"]
        if not (by_olm and (seen.subscription(aim) or seen.own_versions(aim))):
            origin = f"Helm release {item['release']}" if item["release"] else "not of OLM in this namespace"
            yield (
                f"network operator {item['namespace']}/{item['name']} ({origin}) runs already, and a second one would"
                " conflict. Set rdma_fabric.operator.existing to use and rdma_fabric.operator.namespace to"
                f" {item['namespace']}, or remove it"
            )


def _offer(aim: Aim, manifest: Object | None) -> Iterator[str]:
    """Yield why a catalog does not offer what is to be installed."""
    package, place = aim.catalog.package, f"catalog {aim.catalog.namespace}/{aim.catalog.source}"
    if manifest is None:
        yield (
            f"package {package} is not in {place}, or OLM does not serve it. Check the catalog: oc --namespace"
            f" {aim.catalog.namespace} get catalogsource {aim.catalog.source} and oc --namespace"
            f" {aim.catalog.namespace} get packagemanifest {package}"
        )
        return
    found = {str(one.get("name")): one for one in _channels(manifest)}
    if aim.channel not in found:
        yield (
            f"package {package} of {place} has no channel {aim.channel}. It has: {some(sorted(found)) or 'none'}."
            " Set rdma_fabric.operator.release to a release of one of these, or mirror that channel"
        )
        return
    # Catalogs of older releases of OLM list the newest release of a channel only.
    entries = [str(one.get("name")) for one in found[aim.channel].get("entries") or [] if isinstance(one, Mapping)]
    if entries and aim.csv not in entries:
        yield (
            f"channel {aim.channel} of package {package} in {place} does not have {aim.csv}. It has: {some(entries)}."
            " Set rdma_fabric.operator.release to one of these, or mirror that release"
        )


def _channels(manifest: Object) -> list[Object]:
    listed = (manifest.get("status") or {}).get("channels")
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def _space(item: Object) -> str:
    return str(item["metadata"].get("namespace"))
