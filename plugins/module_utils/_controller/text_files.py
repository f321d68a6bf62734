# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of text, read and written as a whole."""

from __future__ import annotations

import os
import tempfile


def text_of(path: str, most: int = -1) -> str | None:
    """Return the text of a file, its first ``most`` characters; None when there is no file. OSError for all else."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(most)
    except FileNotFoundError:
        return None


def write(path: str, text: str, mode: int) -> None:
    """Write a file whole, or leave nothing of it; OSError as the system says. Runs with one folder do not mix."""
    folder, name = os.path.split(path)
    handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, mode)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
