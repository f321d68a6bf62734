# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be done with the network operator of a cluster (whose it is: mark.py); removal.py has the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..intent.releases import line_of, upgrade_problem
from .common import made_by_us
from .mark import Mark, Revision, Seen, Target, mark_object, namespace_object, state

ENFORCE = "pod-security.kubernetes.io/enforce"
# Without the label the API server's own default holds, which admits everything unless it is configured otherwise.
ADMITTING = (None, "privileged")


@dataclass(frozen=True)
class Decision:
    """What a run does: ``action`` is install, repair or none; ``objects`` are applied before and after it."""

    action: str
    objects: tuple[Mapping[str, Any], ...]
    problems: tuple[str, ...]


def decide(target: Target, seen: Seen) -> Decision:
    """Return what to do with the operator, or why nothing may be done."""
    problems = tuple(_problems(target, seen))
    if target.existing == "use" and seen.managed != target.release:
        return Decision("none", (), problems)
    found = _operators(seen, target.namespace, target.release)
    status = state(seen.history(target.release))
    broken = status == "failed" or (status == "deployed" and not found)
    return Decision("repair" if broken else "install", tuple(_objects(target, seen)), problems)


def _objects(target: Target, seen: Seen) -> Iterator[dict[str, Any]]:
    if seen.namespace is None or made_by_us(seen.namespace):
        yield namespace_object(target.namespace)
    mark = seen.mark if seen.managed == target.release else None
    found = _operators(seen, target.namespace, target.release)
    history = seen.history(target.release)
    yield mark_object(
        target.namespace,
        Mark(
            target.release,
            history[-1].uid if history else "",
            mark.definitions if mark else tuple(sorted(seen.definitions)),
            bool(mark and mark.nfd) or (target.nfd and not seen.discoveries),
            str(found[0]["version"]) if found else mark.version if mark else "",
        ),
    )


def _problems(target: Target, seen: Seen) -> Iterator[str]:
    ours = seen.managed == target.release
    for item in seen.operators:
        yield from _operator(target, seen, item)
    if target.existing == "use" and not ours:
        if not any(item["namespace"] == target.namespace for item in seen.operators):
            yield (
                "rdma_fabric.operator.existing is use, but no network operator runs in namespace"
                f" {target.namespace}. Install one, or set rdma_fabric.operator.existing to refuse"
            )
        return
    yield from namespace_problems(target.namespace, seen.namespace)
    yield from _release(target, seen, ours)


def _operator(target: Target, seen: Seen, item: Mapping[str, Any]) -> Iterator[str]:
    name = f"network operator {item['namespace']}/{item['name']}"
    origin = f"Helm release {item['release']}" if item["release"] else "not installed by Helm"
    inside = item["namespace"] == target.namespace
    if inside and item["release"] == seen.managed == target.release:
        problem = upgrade_problem(str(item["version"]), target.version) if line_of(target.version) else ""
    elif not inside:
        problem = (
            f"it runs in another namespace than {target.namespace} and is not managed by this collection ({origin})."
            f" Set rdma_fabric.operator.namespace to {item['namespace']} and rdma_fabric.operator.existing to use or"
            " adopt, or remove it"
        )
    elif item["release"] and item["release"] == seen.managed:
        problem = f"this collection manages it as {origin}. Set operator_name to {item['release']}"
    elif target.existing == "refuse":
        problem = (
            f"it is not managed by this collection ({origin}). Set rdma_fabric.operator.existing to use (it stays as it"
            " is) or to adopt (this collection upgrades it, and removes it at teardown)"
        )
    elif target.existing == "use":
        problem = _unusable(target, seen, item)
    else:
        problem = _not_adoptable(target, item)
    if problem:
        yield f"{name}: {problem}"


def _unusable(target: Target, seen: Seen, item: Mapping[str, Any]) -> str:
    status = state(seen.history(item["release"]))
    if status not in ("", "deployed"):
        return (
            f"its Helm release {item['release']} in namespace {target.namespace} is in state {status}, so the operator"
            " may be half removed or half upgraded. Repair it with the tool that manages it. Inspect it with: helm"
            f" history {item['release']} --namespace {target.namespace}"
        )
    line, installed = line_of(target.version), line_of(str(item["version"]))
    if line and line != installed:
        return (
            f"it is of release {item['version']}, and the plan is for release {target.version}. Set"
            " rdma_fabric.operator.release to the installed release, if its line is supported"
        )
    return "" if item["available"] else "its Deployment is not available. Repair it, then rerun the playbook"


def _not_adoptable(target: Target, item: Mapping[str, Any]) -> str:
    if not item["release"]:
        return "it was not installed by Helm and cannot be adopted. Set rdma_fabric.operator.existing to use"
    if item["release"] != target.release:
        return f"it belongs to Helm release {item['release']}. Set operator_name to {item['release']}"
    return upgrade_problem(str(item["version"]), target.version) if line_of(target.version) else ""


def namespace_problems(name: str, live: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield why the operator cannot run in a namespace; ``live`` is None where it does not exist."""
    if live is None:
        return
    meta = live["metadata"]
    level = (meta.get("labels") or {}).get(ENFORCE)
    if meta.get("deletionTimestamp"):
        yield f"namespace {name} is being deleted. Wait until it is gone, then rerun the playbook"
    elif not made_by_us(live) and level not in ADMITTING:
        yield (
            f"namespace {name} was not created by this collection, and its label {ENFORCE} is {level}. The operator's"
            f" pods need privileged. Run: kubectl label namespace {name} {ENFORCE}=privileged --overwrite"
        )


def _release(target: Target, seen: Seen, ours: bool) -> Iterator[str]:
    history = seen.history(target.release)
    status = state(history)
    name = f"Helm release {target.release} in namespace {target.namespace}"
    yield from _other_name(target, seen)
    if ours and status:
        yield from _lost(target, seen, history)
    if status and not ours and not _operators(seen, target.namespace, target.release):
        yield (
            f"{name} is not managed by this collection and has no Deployment of a network operator (state {status})."
            " Set operator_name to another name, or remove the release with:"
            f" {_uninstall(target.release, target.namespace)}"
        )
    elif status.startswith("pending-"):
        yield (
            f"{name} is in state {status}: a Helm operation is running or was interrupted. Wait until it is complete."
            f" If none is running, run: {_undo(target, history)}"
        )
    elif status == "uninstalling":
        yield half_removed(target.release, target.namespace)
    elif status not in ("", "deployed", "failed"):
        yield f"{name} is in state {status}. Inspect it with: helm history {target.release} -n {target.namespace}"


def _other_name(target: Target, seen: Seen) -> Iterator[str]:
    """Yield why a release of ours without a Deployment stops an installation under another name: the mark names one."""
    status = state(seen.history(seen.managed))
    if seen.managed != target.release and status and not _operators(seen, target.namespace, seen.managed):
        yield (
            f"Helm release {seen.managed} in namespace {target.namespace} is in state {status}, and this collection"
            f" manages it. Set operator_name to {seen.managed}, or remove it with playbook"
            " gpufabric.rdma.teardown first"
        )


def _lost(target: Target, seen: Seen, history: Sequence[Revision]) -> Iterator[str]:
    """Yield why a release whose Deployment was deleted cannot go to another one, by what the mark records."""
    installed = seen.mark.version if seen.mark else ""
    complete = any(revision.status in ("deployed", "superseded") for revision in history)
    if installed and complete and line_of(target.version) and not _operators(seen, target.namespace, target.release):
        problem = upgrade_problem(installed, target.version)
        if problem:
            yield f"Helm release {target.release} in namespace {target.namespace}: {problem}"


def _undo(target: Target, history: Sequence[Revision]) -> str:
    """Return the command that ends an interrupted operation: back to the last good revision, or away with the first."""
    good = [revision.number for revision in history if revision.status in ("deployed", "superseded")]
    if good:
        return f"helm rollback {target.release} {good[-1]} --namespace {target.namespace}"
    return _uninstall(target.release, target.namespace)


def half_removed(release: str, namespace: str) -> str:
    """Return what to do about a removal that was interrupted."""
    return (
        f"Helm release {release} in namespace {namespace} is in state uninstalling: its removal is running or was"
        f" interrupted. Wait until it is complete. If none is running, run: {_uninstall(release, namespace)}"
    )


def _uninstall(release: str, namespace: str) -> str:
    return f"helm uninstall {release} --namespace {namespace}"


def _operators(seen: Seen, namespace: str, release: str) -> list[Mapping[str, Any]]:
    return [item for item in seen.operators if (item["namespace"], item["release"]) == (namespace, release)]


def installed_problem(target: Target, seen: Seen) -> str:
    """Return why an installation that has just ended is not complete; empty when it is."""
    status = state(seen.history(target.release)) or "absent"
    name = f"Helm release {target.release} in namespace {target.namespace}"
    if status != "deployed":
        return (
            f"{name} is in state {status} after the installation, expected deployed. Inspect it with: helm history"
            f" {target.release} --namespace {target.namespace}"
        )
    if not _operators(seen, target.namespace, target.release):
        return (
            f"{name} is deployed, but has no Deployment of a network operator. Check that chart_ref is"
            " the chart of the network operator"
        )
    return ""
