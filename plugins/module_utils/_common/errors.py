# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors that a user is meant to read; every one carries a message only."""

from __future__ import annotations

import re

# Control characters of C0 and C1 but tab and line end, and halves of a surrogate pair: what a hostile or damaged text
# could change a terminal with, or what no file can hold.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def harmless(text: str) -> str:
    """Return text that does nothing to a terminal: each control character becomes U+FFFD."""
    return _CONTROL.sub("\ufffd", text)


class FabricError(Exception):
    """Base of all errors of the collection; ``str(exc)`` is the whole message.

    The message says what failed, on which object, what was expected and found, and what to do. It may quote what
    others wrote, such as a host, a kubelet or a proxy, so it is made harmless.
    """

    def __init__(self, message: str) -> None:
        super().__init__(harmless(message))


class InputError(FabricError):
    """A value given by the user cannot be accepted."""


class ParseError(FabricError):
    """Text read from a host, a tool or a file does not have the expected form."""


class ConflictError(FabricError):
    """Something that is not ours stands in the way."""


class InUseError(ConflictError):
    """What would be changed is in use now."""


class ClusterError(FabricError):
    """The cluster refused a request or did not reach the wanted state."""


class CommandError(FabricError):
    """A command could not be run or failed."""
