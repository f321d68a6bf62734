# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether one provider of the RDMA stack may take the place of another, and what waits for a boot. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._common.errors import ConflictError
from .plan import CONTAINER, DOCA, Have, Want, leaves_doca


def check_replacing(
    want: Want, have: Have, record: Mapping[str, Any], *, vendor: Iterable[str], replace: bool, hostname: str
) -> None:
    """ConflictError when a stack would be replaced without consent.

    ``vendor`` are packages that do not go together with another vendor stack. DOCA-OFED puts its own in their place,
    and the other providers leave them alone.
    """
    if want.provider is not None and leaves_doca(want, record) and record.get("came") and not replace:
        raise ConflictError(
            f"DOCA-OFED was installed on {hostname} by this role, but provider {want.provider} is requested. Set "
            "replace: true to replace it"
        )
    there = [name for name in vendor if name in have.installed]
    if want.provider == CONTAINER and there and not (replace and record.get("came")):
        raise ConflictError(
            f"{hostname} has {', '.join(there)}: drivers that are installed on a host, and the driver container of the"
            " operator exclude each other. Remove these packages, or choose provider doca_ofed"
        )
    settled = all(have.installed.get(name) == version for name, version in want.pins.items())
    if want.provider == DOCA and record.get("provider") != DOCA and there and not settled and not replace:
        raise ConflictError(
            f"{hostname} has {', '.join(there)}, which this role did not install. Set replace: true to let provider "
            f"{want.provider} replace them"
        )
