# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are in use, so that measuring would disturb jobs, and what a run does then."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..._common.errors import InputError
from ..._common.host_facts import UNREAD_QUEUE_PAIRS
from ..._common.reader import some
from ..intent.typed import plain

EXCLUDE = "exclude"
_WORDS = {"true": "true", "yes": "true", "false": "false", "no": "false", EXCLUDE: EXCLUDE}
_SHOWN = 300


def read(asked: Any) -> str:
    """Return the option as true, false or exclude; InputError for anything else."""
    found = _WORDS.get(str(asked).strip().lower())
    if found is None:
        raise InputError(
            f"busy_hosts: {plain(str(asked), 60)!r} is not known. Set true (measure hosts in use, which"
            " disturbs their jobs), false, or exclude (measure the other hosts)"
        )
    return found


def busy(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return host -> why measuring could disturb it. A host without facts is not among them: it is not measured.

    ``facts``: host -> what it reports just now, which may be anything.
    """
    found = {name: _why(own) for name, own in facts.items() if own}
    return {name: why for name, why in found.items() if why}


def _why(own: Any) -> str:
    work = own.get("workloads") if isinstance(own, Mapping) else None
    pairs = work.get("queue_pairs") if isinstance(work, Mapping) else None
    if not isinstance(work, Mapping) or not isinstance(pairs, int) or isinstance(pairs, bool) or pairs < 0:
        return UNREAD_QUEUE_PAIRS
    holders = work.get("holders")
    names = ", ".join(map(str, holders)) if isinstance(holders, list) else ""
    return f"{pairs} RDMA queue pairs are open ({plain(names, _SHOWN) or 'holder unknown'})" if pairs else ""


def unanswered(asked: Any, hosts: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Return host -> why no tester may start in a pod on it: it did not answer, so its jobs are unknown.

    ``known``: the hosts that answered. Testers on hosts need no such care, since they cannot start there.
    """
    if read(asked) == "true":
        return {}
    return {
        name: "the host did not answer, so it is unknown whether it is in use" for name in hosts if name not in known
    }


def left_out(plan: Mapping[str, Any], facts: Mapping[str, Any], asked: Any) -> dict[str, str]:
    """Return which hosts of a plan must not run collectives and why; InputError when none may.

    ``facts``: host -> what it reports just now; without that it is not known whether it is in use.
    """
    if read(asked) == "true":
        return {}
    names = [name for name in plan["endpoints"]["pod"] if name not in plan.get("absent", ())]
    excluded, refused = decide(asked, busy({name: facts.get(name) for name in names}))
    if refused:
        raise InputError(
            f"{refused}, or set busy_hosts to exclude to run on the other hosts, or to true to run on these hosts too"
        )
    return {**unanswered(asked, names, [name for name in names if facts.get(name)]), **excluded}


def decide(asked: Any, found: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return which hosts a run leaves out and why, and why it must not begin, "" when it may."""
    wish = read(asked)
    if wish == EXCLUDE:
        return {name: f"the host is in use or may be: {why}" for name, why in found.items()}, ""
    if wish == "true" or not found:
        return {}, ""
    told = some([f"{name}: {why}" for name, why in found.items()])
    return {}, f"Nothing was measured, since measuring would disturb hosts in use. {told}. Wait for the jobs to end"
