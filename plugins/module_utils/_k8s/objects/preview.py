# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run would do to a cluster, in its order: the code of the run itself, as a server-side dry run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..._common.errors import ConflictError
from ..._common.reader import some
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.order import apply_order
from ..client.api import Api, ApiError
from ..client.kinds import NICS, collection, label
from ..client.poll import Clock
from . import converge, pools, prune
from .apply import Options, Outcome

STEPS = ("policy", "networks")
# A policy of another tool stays as it is, and those of classes with it.
_POLICIES = ("NicClusterPolicy", "NicNodePolicy")
WORDS = {"create": "add", "update": "change", "delete": "remove", "release": "release"}
_DEEP = 3


class Step(NamedTuple):
    """What one step applies. ``prune``: where it looks for objects to remove, None where it removes nothing.

    ``consent``: whether it may remove what pods use.
    """

    name: str
    objects: Sequence[Mapping[str, Any]]
    prune: Mapping[str, Any] | None
    adopt: bool
    consent: bool = False


class Preview(NamedTuple):
    """``changes``: one dict for each object that differs, in order; ``unchanged``: how many do not.

    ``blocked``: why the run would be rejected as long as pods run; ``unknown``: what could not be compared, and why.
    ``refused``: those of ``blocked`` that no earlier step of the run can change, such as a new release of the operator.
    """

    changes: list[dict[str, Any]]
    unchanged: int
    blocked: list[str]
    unknown: list[str]
    refused: list[str]


def steps(api: Api, objects: Mapping[str, Sequence[Mapping[str, Any]]], params: Mapping[str, Any]) -> list[Step]:
    """Return the steps of a run, as the roles of the cluster take them. ``objects``: step -> what it applies."""
    used = params["existing"] == "use"
    kept = used and not all(map(made_by_us, api.items(collection(NICS, "nicclusterpolicies"))))
    found = []
    for name in STEPS:
        items = [item for item in objects[name] if not (kept and item.get("kind") in _POLICIES)]
        places = {"step": name, **{key: params[key] for key in ("namespace", "network_namespace", "platform")}}
        prune = places if name in params["prune"] and not used else None
        consent = name == "networks" and bool(params.get("disrupt_users"))
        found.append(Step(name, items, prune, name == "policy" and params["existing"] == "adopt", consent))
    return found


def preview(api: Api, steps: Sequence[Step]) -> Preview:
    """Return what the steps would do, one after the other. Changes nothing."""
    found = Preview([], 0, [], [], [])
    for step in steps:
        try:
            outcomes = _outcomes(api, step, found)
        except ApiError as error:
            if error.status != 403:
                raise
            found.unknown.append(f"{step.name}: {error}")
            continue
        differ = [one for one in outcomes if one.action != "none"]
        found = found._replace(unchanged=found.unchanged + len(outcomes) - len(differ))
        found.changes.extend(_change(step.name, outcome) for outcome in differ)
    return found


def _outcomes(api: Api, step: Step, found: Preview) -> list[Outcome]:
    options, clock = Options(check=True, adopt=step.adopt), Clock()
    items: list[Any] = list(step.objects)
    old = converge.outdated(api, {"prune": step.prune, "state": "present"}, items)
    found.unknown.extend(f"{step.name}: no permission to {what}" for what in old.unseen)
    live = pools.existing(api, items)
    in_use = prune.problems(api, old.items)
    found.blocked.extend([*in_use, *pools.problems(api, items, live)])
    found.refused.extend([] if step.consent else in_use)
    outcomes = converge.remove_old(api, old.items, options, clock=clock)
    for item in apply_order(items):
        try:
            outcomes += converge.apply_all(api, [item], old.items, known=live, nodes=(), options=options, clock=clock)
        except ConflictError as error:
            found.blocked.append(str(error))
            found.refused.append(str(error))
        except ApiError as error:
            if not error.status:
                raise
            # An object that the server does not accept, or that this account may not apply.
            (found.unknown if error.status == 403 else found.blocked).append(str(error))
    return outcomes


def _change(step: str, outcome: Outcome) -> dict[str, Any]:
    fields = list(paths(outcome.before, outcome.after)) if outcome.action == "update" else []
    return {"step": step, **outcome.to_dict(), "fields": fields}


def paths(before: Any, after: Any, at: str = "", *, depth: int = 0) -> Iterator[str]:
    """Yield the paths of fields that differ, a few levels deep."""
    if before == after:
        return
    if depth < _DEEP and isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}, key=str):
            yield from paths(before.get(key), after.get(key), f"{at}.{key}" if at else str(key), depth=depth + 1)
    elif at:
        yield at


def table(found: Preview) -> list[str]:
    """Return the preview for people: one line for each object, numbered in the order of the run."""
    counts = {word: sum(one["action"] == action for one in found.changes) for action, word in WORDS.items()}
    shown = ", ".join(f"{count} to {word}" for word, count in counts.items() if count or word != "release")
    lines = [f"objects of the cluster: {shown}, {found.unchanged} unchanged"]
    width = len(str(len(found.changes)))
    for number, one in enumerate(found.changes, 1):
        name = label({"kind": one["kind"], "metadata": one})
        fields = f": {some(one['fields'])}" if one["fields"] else ""
        lines.append(f"{number:>{width}}. {WORDS[one['action']]:<6} {name}{fields}")
    lines += [f"blocked: {text}" for text in found.blocked]
    return lines + [f"not compared: {text}" for text in found.unknown]
