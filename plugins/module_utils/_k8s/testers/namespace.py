# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The namespace of the testers: created and removed by us only with the testers' own label, never changed otherwise."""

from __future__ import annotations

from ..._common.errors import InputError
from ..checks import pull_secrets, test_namespace
from ..client.api import Api
from ..client.kinds import path_of
from ..client.poll import Clock
from ..objects.apply import Options, apply_object, remove_object, wait_gone
from .manifests import Testers, namespace_object


def prepare(api: Api, testers: Testers, clock: Clock) -> None:
    """Create the namespace; use one that was there before as it is, when it admits the testers."""
    item = namespace_object(testers)
    absent = pull_secrets.problems(api, testers.namespace, testers.pull_secrets, option="image_pull_secret")
    if absent:
        raise InputError("; ".join(absent))
    live = api.get(path_of(api, item))
    if live is None or not test_namespace.kept(live):
        apply_object(api, item, Options(), clock=clock)
    elif text := test_namespace.refusal(live):
        raise InputError(text)


def remove(api: Api, testers: Testers, options: Options, *, clock: Clock) -> bool:
    """Delete the namespace if it was created for the testers; whether there was anything to do."""
    item = namespace_object(testers)
    live = api.get(path_of(api, item))
    if live is None or not test_namespace.is_testers(live):
        return False
    outcome = remove_object(api, item, options)
    if outcome.action == "delete" and not options.check:
        wait_gone(api, [outcome.item], options, clock=clock)
    return outcome.action != "none"
