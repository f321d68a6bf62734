# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of earlier reports."""

from __future__ import annotations

import json
import os
from typing import Any

from .._common.errors import InputError
from .._fabric.measure.judge import earlier_report
from .._fabric.measure.judge.earlier_report import EarlierReport, UnusableReport

# What a run can resume.
RESUMABLE = "report.json or folder"


def read(option: str, path: str, accepted: str = "report.json") -> EarlierReport:
    """Return the report in a file; InputError begins with the ``option``, which names something ``accepted``."""
    try:
        return EarlierReport.read(_content(path), path)
    except OSError as error:
        raise InputError(
            f"{option}: cannot read {path}: {error.strerror}. Give the {accepted} of an earlier run"
        ) from error
    except UnusableReport as error:
        raise InputError(f"{option}: {error}") from error


def read_part(folder: str, name: str) -> dict[str, Any]:
    """Return a JSON file in the folder of a run that is resumed; TypeError or ValueError when it holds no dict."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file))
    except OSError as error:
        raise InputError(
            f"resume: cannot read {path}: {error.strerror}. Give the {RESUMABLE} of an earlier run"
        ) from error


def find(path: str) -> tuple[EarlierReport | None, str]:
    """Return the report in a file, None without one, and why it cannot be used, "" if it can or is not there."""
    try:
        return EarlierReport.read(_content(path), path), ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"cannot read {path}: {error.strerror}"
    except UnusableReport as error:
        return None, error.problem


def _content(path: str) -> bytes:
    """Return what a file holds, at most one byte more than a report may have."""
    with open(path, "rb") as file:
        return file.read(earlier_report.LARGEST + 1)
