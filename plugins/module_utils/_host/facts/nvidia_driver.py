# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA driver that is loaded: version and flavour of its kernel modules. Pure."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

# "NVIDIA UNIX Open Kernel Module for x86_64  555.58.02 ..." or "NVIDIA UNIX x86_64 Kernel Module  535.129.03 ...".
_VERSION = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)")


@dataclasses.dataclass(frozen=True)
class NvidiaDriver:
    """``open``: the open kernel modules, which alone export GPU memory as DMA-BUF."""

    version: str
    open: bool

    @classmethod
    def from_proc(cls, text: str) -> NvidiaDriver | None:
        """Parse /proc/driver/nvidia/version; None when no driver is loaded."""
        match = _VERSION.search(text)
        return cls(match.group(1), "Open Kernel Module" in text) if match else None

    @property
    def branch(self) -> int:
        """Return the driver branch, the first number of the version."""
        return int(self.version.partition(".")[0])

    @property
    def title(self) -> str:
        """Return how messages name it."""
        return f"NVIDIA driver {self.version} ({'open' if self.open else 'closed'} kernel modules)"

    def to_dict(self) -> dict[str, Any]:
        """Return the value of ``ansible_facts.rdma.nvidia_driver``."""
        return dataclasses.asdict(self)
