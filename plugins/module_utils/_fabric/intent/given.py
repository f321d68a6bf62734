# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma_fabric`` as a user wrote it, from the options of a module: Ansible fills in what is not given."""

from __future__ import annotations

from typing import Any

from .options import FABRIC


def given(value: Any, option: Any = None) -> Any:
    """Return options without the keys that have no value, which Ansible adds for every option that is not given.

    ``option``: the specification of the value, that of ``rdma_fabric`` by default. What has none stays as it is.
    """
    options = (option or {"options": FABRIC}).get("options")
    if options is None or value is None:
        return value
    if isinstance(value, list):
        return [given(one, option) for one in value]
    return {key: given(one, options[key]) for key, one in value.items() if one is not None}
