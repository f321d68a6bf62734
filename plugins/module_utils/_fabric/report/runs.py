# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of a measurement: their names, what each covers, which are kept, and whether an earlier one is enough."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from ..._common.errors import InputError
from ..._common.reader import some
from ..measure.judge import earlier, shared_links
from ..measure.judge.earlier_report import EarlierReport
from ..measure.readings import identity
from ..plan.traffic import told

# That of galaxy.yml, which a module that runs cannot read; a test compares them.
VERSION = "0.1.0"
# REPORT_DIR/runs/20261123T013000Z-3f9a2c: the time in UTC, so that names sort by age, and six hexadecimal digits.
RUN = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
# REPORT_DIR/runs/unknown-ID: a report that records no run, which run ID set aside.
UNKNOWN = re.compile(rf"unknown-({RUN.pattern}(?:-\d+)?)")
_SHOWN = 3
PLACES = {"host": "bare hosts", "pod": "pods"}


@dataclass(frozen=True)
class Last:
    """What the report folder holds of the last run.

    ``path``: of its report; ``report``: None without a usable one; ``problem``: why it cannot be used, "" if it can or
    there is none. ``plan``: of the report, {} for an unreadable one.
    """

    path: str
    report: EarlierReport | None
    problem: str
    plan: Mapping[str, Any]


def name_of(report: Mapping[str, Any]) -> str:
    """Return the id of the run that wrote a report, "" when it records none."""
    run = report.get("run")
    name = run.get("id") if isinstance(run, Mapping) else None
    return name if isinstance(name, str) and RUN.fullmatch(name) else ""


def moves(
    report: Mapping[str, Any], run: str, present: Collection[str], *, taken: Collection[str]
) -> list[tuple[str, str]]:
    """Return the files of a report and where they are set aside, both relative to its folder.

    ``run``: which sets them aside. ``present``: names of its files, ``taken``: names in its folder runs. Files of an
    unknown run get a folder of their own.
    """
    names = itertools.chain([f"unknown-{run}"], (f"unknown-{run}-{number}" for number in itertools.count(2)))
    target = name_of(report) or next(name for name in names if name not in taken)
    return [(name, f"runs/{target}/{name}") for name in present]


def told_error(error: Exception) -> str:
    """Return the message of an error, with what to do when a file cannot be written."""
    if isinstance(error, OSError):
        return f"run: cannot write {error.filename}: {error.strerror}; choose another folder or free space"
    return str(error)


def no_report(folder: str, name: str, found: str) -> str:
    """Return the message of a run without a report; ``found``: the run whose report is there, "" for none."""
    return (
        f"run {name} ended without a report: {folder}/report.json is {f'that of run {found}' if found else 'missing'};"
        f" see the messages above, and set resume: {folder}/runs/{name} to continue it"
    )


def check_play(plan: Mapping[str, Any], play: Sequence[str]) -> None:
    """Raise InputError when hosts of a play are not those of its plan: nobody would measure them."""
    known = dict.fromkeys(name for place in PLACES for name in plan["endpoints"].get(place, ()))
    missing = [name for name in play if name not in known]
    if missing:
        raise InputError(
            f"the plan has no endpoint for {len(missing)} of {len(play)} hosts of this play: {some(missing)}. It is the"
            f" plan of {some(list(known)) or 'no host'}. Import gpufabric.rdma.plan for the hosts of this play"
        )


def scope_of(plan: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run covers. ``asked``: where, only, limit, image and host_network as the role has them."""
    where = [place for place in PLACES if place in asked["where"]]
    only = earlier.checked(asked["only"]) or plan["tests"].get("only") or {}
    pods = "pod" in where
    found = {
        "where": where,
        "hosts": list(plan["endpoints"]["host"]),
        "rails": [rail["name"] for rail in plan["rails"]],
        "only": {key: value for key, value in only.items() if value},
        "limit": asked["limit"] or "",
        "image": (asked["image"] or "") if pods else "",
        "host_network": bool(asked["host_network"]) if pods else False,
    }
    return {**found, "subset": _subset(plan, found)}


def _subset(plan: Mapping[str, Any], scope: Mapping[str, Any]) -> list[str]:
    """Return why a run does not cover the whole fabric, [] when it does."""
    found = [f"{PLACES[place]} not measured" for place in PLACES if place not in scope["where"]]
    known = plan.get("hosts", {})
    if len(scope["hosts"]) < len(known):
        limit = f" (limit {scope['limit']})" if scope["limit"] else ""
        found.append(f"{len(scope['hosts'])} of {len(known)} hosts{limit}")
    for key, names in scope["only"].items():
        told = [" and ".join(name) if isinstance(name, list) else str(name) for name in names]
        found.append(f"only {key} {', '.join(told[:_SHOWN])}{' and more' if len(told) > _SHOWN else ''}")
    return found


def decide(when: str, last: Last, now: Mapping[str, Any]) -> tuple[bool, list[str]]:
    """Return whether to measure, and why. ``when``: check mode, or rdma_validate_when; the rest as in changes."""
    found = changes(last, now) if when == "changed" else []
    if when == "always" or found:
        return True, found
    reason = {
        "check mode": "check mode",
        "never": "option when is never",
        "changed": "nothing changed since the last report, which is a pass",
    }[when]
    return False, [f"{reason}; {told_last(last)}"]


def changes(last: Last, now: Mapping[str, Any]) -> list[str]:
    """Return why the last report does not stand for a run of today; [] when it does.

    ``now``: {scope, hosts, plan, unread}, the last one those of the hosts that have no facts.
    """
    if now["unread"]:
        return [f"no facts of {some(now['unread'])} could be read in this run"]
    report = last.report
    if last.problem:
        return [last.problem]
    if not report:
        return ["there is no report of an earlier run"]
    if report.verdict != "pass":
        return [f"the last verdict is {report.verdict}"]
    if report.run is None or report.scope is None or report.versions is None:
        return ["the last report does not record what it covers"]
    then, today = report.scope, now["scope"]
    found = [
        f"{key} is {_text(today[key])}, it was {_text(then.get(key))}"
        for key in today
        if key != "subset" and today[key] != then.get(key)
    ]
    found += identity.differences(report.versions, now["hosts"], today["where"])
    return [*found, *([] if last.plan == now["plan"] else ["the plan is not that of the last report"])]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} {_text(own)}" for key, own in value.items()) or "empty"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    return "empty" if value in ("", None, {}) else str(value)


def check_measured(results: Sequence[Mapping[str, Any]], standing: str) -> None:
    """Raise InputError when every result is that of an earlier run with a report: that is no measurement.

    ``standing``: the path of that report, "" when the earlier run did not write one, so that this run has to.
    """
    if standing and results and all(result.get("resumed") for result in results):
        raise InputError(
            f"nothing was measured: all {len(results)} tests passed in the earlier run {results[0]['resumed']}. Its "
            f"report remains valid: {standing}. To measure again, leave resume empty"
        )


def run_of(run: Mapping[str, Any] | None, plan: Mapping[str, Any], ended: int) -> dict[str, Any] | None:
    """Return the ``run`` of a report that is written at ``ended`` (seconds since 1970); None for results of no run."""
    if not run:
        return None
    started = int(run["started"])
    found: dict[str, Any] = {"id": str(run["id"]), "started": _moment(started), "ended": _moment(ended)}
    found["seconds"] = max(ended - started, 0)
    found.update({"collection": VERSION, "release": (plan.get("operator") or {}).get("release")})
    found.update({key: run[key] for key in ("folder", "resumed", "cluster") if run.get(key)})
    return found


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def told_last(last: Last) -> str:
    """Return a sentence about the report that a skipped measurement relies on."""
    path, report = last.path, last.report
    if last.problem:
        return last.problem
    if not report:
        return f"there is no report of an earlier run in {path}"
    run, scope = report.run or {}, report.scope or {}
    subset = f", subset: {'; '.join(scope['subset'])}" if scope.get("subset") else ""
    name, when = run.get("id", "unknown"), run.get("ended", "unknown")
    return f"the last report is {path}: run {name}, ended {when}, verdict {report.verdict}{subset}"


def about(report: Mapping[str, Any]) -> list[list[str]]:
    """Return for people what was measured, by which run (when, how long, releases, cluster), and the traffic class."""
    run, scope = report.get("run") or {}, report.get("scope") or {}
    covers = []
    if scope:
        places = " and ".join(PLACES.get(where, where) for where in scope["where"])
        covers = ["measured: %s, %s, %s" % (places or "nothing", _counted(scope, "host"), _counted(scope, "rail"))]
        covers += ["image %s" % scope["image"]] if scope["image"] else []
        covers += ["network of the host"] if scope["host_network"] else []
    when = []
    if run:
        when = ["run %s" % run["id"], "%s, %s" % (run["started"], duration(run["seconds"]))]
        named = (("gpufabric.rdma", run["collection"]), ("operator", run["release"]), ("cluster", cluster(report)))
        when += ["%s %s" % (word, name) for word, name in named if name]
    proofs = [
        "%s: %s" % (PLACES.get(row.get("where", ""), ""), text)
        for row in report.get("schedule", [])
        for text in [*row.get("traffic", []), *shared_links.texts(row.get("shared_links", []))]
    ]
    return [covers, when, [*told(report.get("tests") or {}), *proofs]]


def _counted(scope: Mapping[str, Any], word: str) -> str:
    number = len(scope[word + "s"])
    return "%d %s%s" % (number, word, "s" * (number != 1))


def cluster(report: Mapping[str, Any]) -> str:
    """Return how people know the cluster that was measured, "" when none was."""
    known = (report.get("run") or {}).get("cluster") or {}
    told = [known.get("name"), known.get("server")]
    first, *rest = [text for text in told if text] or [""]
    rest += ["Kubernetes %s" % known["version"]] if known.get("version") else []
    return "%s (%s)" % (first, ", ".join(rest)) if rest else first


def duration(seconds: int) -> str:
    """Return a duration for people."""
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return "%d h %d min" % (hours, minutes) if hours else "%d min %d s" % (minutes, seconds % 60)
