# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helm for the lab: put its folder on PATH."""

from __future__ import annotations

from pathlib import Path

from tests.lab import golang

VERSION = "v3.21.4"


def helm() -> Path:
    """The helm command, from the cache."""
    return golang.installed("helm.sh/helm/v3/cmd/helm", VERSION)
