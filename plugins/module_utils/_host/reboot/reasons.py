# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host must be rebooted, whether it may be, and whether it helped. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..._common.consent import CONSENT
from ..._common.errors import ConflictError


@dataclasses.dataclass(frozen=True)
class Due:
    """A host before its reboot; ``record`` is what the last reboot of ours was for, with the boot id before it.

    ``controller``: the boot id of the machine that runs Ansible, empty when it is not known.
    """

    host: str
    boot_id: str
    reasons: tuple[str, ...]
    record: Mapping[str, Any]
    controller: str = ""

    @property
    def rebooted(self) -> bool:
        """Whether the host booted since a reboot of ours began that nobody has finished."""
        return bool(self.record) and self.record["boot_id"] != self.boot_id

    @property
    def stayed(self) -> tuple[str, ...]:
        """Reasons that the host was rebooted for, and that are still there."""
        before = self.record.get("reasons", []) if self.rebooted else []
        return tuple(reason for reason in self.reasons if reason in before)

    @property
    def due(self) -> bool:
        """Whether there is something to do: to reboot, or to finish what a run left that was cut off."""
        return bool(self.reasons) or bool(self.record)

    def refusal(self, allowed: bool, repeat: bool) -> str:
        """Say why the host must not be rebooted, empty when it may be or need not be."""
        if self.stayed and not repeat:
            return (
                f"{self.host} was already rebooted, but these reasons remain: {'; '.join(self.stayed)}. Another reboot "
                "would not help. Find what undoes the change, or set repeat: true"
            )
        if self.reasons and self.boot_id and self.boot_id == self.controller:
            return (
                f"{self.host} must be rebooted before the run can continue on it: {'; '.join(self.reasons)}. Ansible "
                f"runs on this machine or in a container on it (both have the boot id {self.boot_id}), and a reboot "
                "would end the run. Reboot it manually, then rerun the playbook, or run it from another machine"
            )
        if self.reasons and not allowed:
            return (
                f"{self.host} must be rebooted before the run can continue on it: {'; '.join(self.reasons)}. Set "
                "allowed: true, or reboot it manually; then rerun the playbook"
            )
        return ""


def verify(due: Due) -> None:
    """ConflictError when the host did not boot, or when reasons are there after it, by name."""
    if not due.record or not (due.rebooted or due.reasons):
        # Nothing began, or what it was for was taken back meanwhile.
        return
    if not due.rebooted:
        raise ConflictError(f"{due.host} did not reboot: its boot id is still {due.boot_id}")
    new = [reason for reason in due.reasons if reason not in due.stayed]
    parts = [*_listed("still there after the reboot", due.stayed), *_listed("new after the reboot", new)]
    if parts:
        raise ConflictError(f"{due.host} rebooted, but its state is not as expected: {'; '.join(parts)}")


def check_users(host: str, users: Sequence[str], consent: bool) -> None:
    """ConflictError when a reboot would end the work of ``users``, right before it."""
    if users and not consent:
        raise ConflictError(
            f"{host} is not rebooted: a reboot would end {'; '.join(users)}. Stop these users and rerun the playbook, "
            f"or set {CONSENT}: true"
        )


def begin(due: Due) -> dict[str, Any]:
    """Return the record of a reboot that begins now."""
    return {"boot_id": due.boot_id, "reasons": list(due.reasons)}


def _listed(title: str, reasons: Sequence[str]) -> list[str]:
    return [f"{title}: {'; '.join(reasons)}"] if reasons else []
