# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user sets for one host: the dict ``rdma_host``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._common.reader import Reader, raise_problems


@dataclass(frozen=True)
class HostSettings:
    """``number`` fixes a host's addresses, ``node_name`` its Node, ``rails`` maps rails to PCI addresses."""

    number: int | None
    node_name: str | None
    rails: Mapping[str, str]


def read_settings(name: str, settings: Any, problems: list[str]) -> HostSettings:
    """Return the settings of the host ``name``; what is wrong with them is added to ``problems``."""
    reader = Reader({} if settings is None else settings, f"rdma_host of {name}", problems)
    found = HostSettings(
        number=reader.integer("number", None, 1, high=1 << 24),
        node_name=reader.text("node_name", None),
        rails={rail: pci.lower() for rail, pci in reader.labels("rails").items()},
    )
    reader.close()
    return found


def check_settings(name: str, settings: Any) -> None:
    """Raise one InputError that names every problem of the dict ``rdma_host`` of a host."""
    problems: list[str] = []
    read_settings(name, settings, problems)
    raise_problems(problems)
