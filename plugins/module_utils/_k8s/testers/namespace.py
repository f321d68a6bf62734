# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The namespace of the testers: created and removed by us only with the testers' own label, never changed otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._common.errors import InputError
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.installation import ADMITTING, ENFORCE
from ..checks import pull_secrets
from ..client.api import Api
from ..client.kinds import path_of
from ..client.poll import Clock
from ..objects.apply import Options, apply_object, remove_object, wait_gone
from .manifests import COMPONENT, Testers, namespace_object


def prepare(api: Api, testers: Testers, clock: Clock) -> None:
    """Create the namespace; use one that was there before as it is, when it admits the testers."""
    item = namespace_object(testers)
    absent = pull_secrets.problems(api, testers.namespace, testers.pull_secrets, option="image_pull_secret")
    if absent:
        raise InputError("; ".join(absent))
    live = api.get(path_of(api, item))
    if live is None or is_testers(live) or live["metadata"].get("deletionTimestamp"):
        apply_object(api, item, Options(), clock=clock)
        return
    level = (live["metadata"].get("labels") or {}).get(ENFORCE)
    if level not in ADMITTING:
        raise InputError(
            f"namespace {testers.namespace} was not created for the testers, and its label {ENFORCE} is {level}. The"
            " testers need privileged. Set that label, or set namespace to a name that is not used"
        )


def remove(api: Api, testers: Testers, options: Options, *, clock: Clock) -> bool:
    """Delete the namespace if it was created for the testers; whether there was anything to do."""
    item = namespace_object(testers)
    live = api.get(path_of(api, item))
    if live is None or not is_testers(live):
        return False
    outcome = remove_object(api, item, options)
    if outcome.action == "delete" and not options.check:
        wait_gone(api, [outcome.item], options, clock=clock)
    return outcome.action != "none"


def is_testers(live: Mapping[str, Any]) -> bool:
    """Whether a namespace was created for the testers, and for nothing else."""
    labels = live["metadata"].get("labels") or {}
    return made_by_us(live) and COMPONENT.items() <= labels.items()
