# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of values that hosts and testers report about themselves. A machine may be broken or hostile.

A type is a function that returns the value to use, or raises ``Unfit``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

Type = Callable[[Any], Any]

_LONGEST = 300
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_DIGITS = re.compile(r"[0-9]{1,9}")
# No scope of IPv6, which may be any text.
_INTERFACE = re.compile(r"[0-9A-Fa-f.:]{2,45}/[0-9]{1,3}")


class Unfit(Exception):
    """A value of another type than expected; ``path`` leads to it from the value that was read."""

    def __init__(self, expected: str, value: Any = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.value = value
        self.path = ""

    def below(self, key: str) -> Unfit:
        """Return this with a path that begins at the value that holds ``key``: a name, or an index in brackets."""
        self.path = f"{key}.{self.path}" if self.path and not self.path.startswith("[") else f"{key}{self.path}"
        return self


def plain(text: str, most: int = _LONGEST) -> str:
    """Return text as one line without control characters, ``most`` characters at most."""
    one = " ".join(text[: 4 * most].split())
    if not one.isprintable():
        one = "".join(letter if letter.isprintable() else "?" for letter in one)
    return one[:most]


def text(value: Any) -> str:
    """Read text for people, made plain."""
    if isinstance(value, str):
        return plain(value)
    raise Unfit("text", value)


def truth(value: Any) -> bool:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    raise Unfit("true or false", value)


def matching(pattern: re.Pattern[str], expected: str) -> Type:
    """Return the type of text that a pattern describes as a whole."""
    fits = pattern.fullmatch

    def read(value: Any) -> str:
        if isinstance(value, str) and fits(value):
            return value
        raise Unfit(expected, value)

    return read


#: Of a machine that has one.
MACHINE_ID = matching(re.compile(r"[0-9A-Za-z-]{1,64}"), "a machine ID")


def name(what: str) -> Type:
    """Return the type of names that may stand in commands."""
    return matching(_NAME, what)


def number(least: float, most: float, whole: bool = False) -> Type:
    """Return the type of finite numbers in a range."""
    kinds = (int,) if whole else (int, float)

    def read(value: Any) -> Any:
        # Neither true and false, nor what is not a number (NaN compares as false).
        if value.__class__ is not bool and isinstance(value, kinds) and least <= value <= most:
            return value
        raise Unfit(f"{'a whole number' if whole else 'a number'} from {least} to {most}", value)

    return read


def digits(least: int, most: int, note: str = "") -> Type:
    """Return the type of whole numbers as text."""

    def read(value: Any) -> str:
        if isinstance(value, str) and _DIGITS.fullmatch(value) and least <= int(value) <= most:
            return value
        raise Unfit(f"a number from {least} to {most}{note}", value)

    return read


def ipv4_address(value: Any) -> str:
    """Read an IPv4 address as text."""
    try:
        if isinstance(value, str):
            ipaddress.IPv4Address(value)
            return value
    except ValueError:
        pass
    raise Unfit("an IPv4 address", value)


def ipv4_addresses(value: Any) -> str:
    """Read IPv4 addresses with spaces between them."""
    try:
        for one in value.split():
            ipv4_address(one)
    except Unfit:
        raise Unfit("IPv4 addresses", value) from None
    return str(value)


def interface(value: Any) -> str:
    """Read an address of either family with its prefix length."""
    try:
        if isinstance(value, str) and _INTERFACE.fullmatch(value):
            ipaddress.ip_interface(value)
            return value
    except ValueError:
        pass
    raise Unfit("an IP address with prefix length", value)


def optional(known: Type, none: Any = None) -> Type:
    """Return a type that may be ``none`` too."""

    def read(value: Any) -> Any:
        return none if value == none else known(value)

    return read


def list_of(known: Type, most: int) -> Type:
    """Return the type of lists of ``most`` items at most."""

    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Unfit("a list", value)
        if len(value) > most:
            raise Unfit(f"a list of {most} items at most", len(value))
        found: list[Any] = []
        try:
            for item in value:
                found.append(known(item))
        except Unfit as error:
            raise error.below(f"[{len(found)}]") from None
        return found

    return read


def dict_of(keys: Type, values: Type, most: int) -> Type:
    """Return the type of dicts with any keys, ``most`` at most."""

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Unfit("a dict", value)
        if len(value) > most:
            raise Unfit(f"a dict of {most} keys at most", len(value))
        found = {}
        for key, item in value.items():
            known = keys(key)
            try:
                found[known] = values(item)
            except Unfit as error:
                raise error.below(known) from None
        return found

    return read


@dataclass(frozen=True)
class Later:
    """The type of a key that a record of an earlier version does not have: then it is as if it were ``default``."""

    known: Type
    default: Any = None

    def __call__(self, value: Any) -> Any:
        """Read a value of the type."""
        return self.known(value)


def record(**known: Type) -> Type:
    """Return the type of dicts with these keys. Others are left out: nothing may use what is not checked."""
    parts = tuple(known.items())

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Unfit("a dict", value)
        found: dict[str, Any] = {}
        key = ""
        try:
            for key, part in parts:
                found[key] = part(value.get(key, part.default) if isinstance(part, Later) else value[key])
        except KeyError:
            raise Unfit("a value").below(key) from None
        except Unfit as error:
            raise error.below(key) from None
        return found

    return read
