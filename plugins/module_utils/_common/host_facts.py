# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rdma_facts reports and the controller relies on: its schema, and the uses of a port."""

from __future__ import annotations

from typing import NamedTuple

# Version of the facts; the controller refuses facts of another one.
SCHEMA = 3

# How holders are called that are no programs; storage keeps such queue pairs.
IN_KERNEL = "kernel module"
ON_VFS = "RDMA queue pairs on VFs"


class Use(NamedTuple):
    """One use of a port; ``text`` names what uses it, for messages of the form "PORT is in use: TEXT, TEXT"."""

    kind: str
    text: str


UNREAD_QUEUE_PAIRS = (
    "it cannot be read how many RDMA queue pairs are open, so jobs may use the rails. Install the rdma tool of iproute2"
)
HIDDEN_QUEUE_PAIRS = Use("unknown", "queue pairs that cannot be read (install the rdma tool of iproute2)")


def is_job(use: Use) -> bool:
    """Return whether programs have queue pairs on the port itself, as jobs on rails do."""
    of_others = f" of {IN_KERNEL}" in use.text or use.text.startswith(ON_VFS)
    return use.kind == "queue_pairs" and not of_others
