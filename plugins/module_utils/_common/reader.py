# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a user's dict key by key; problems are collected so that all are told at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .errors import InputError

# So many hosts are named in a message; a fleet's worth helps nobody.
MOST = 8
_KINDS = {bool: "true or false", int: "a whole number", str: "text", list: "a list", dict: "a dict"}
# What Ansible takes for true and false in the options of its modules and roles.
_TRUE, _FALSE = {"y", "yes", "on", "1", "true", "t"}, {"n", "no", "off", "0", "false", "f"}


class Form(NamedTuple):
    """A form that text must have: the pattern for the whole text, and the same in words with an example."""

    pattern: str
    words: str


def converted(value: Any, kind: type) -> Any:
    """Return a number or boolean that was given as text as what it means, like Ansible does; all else as it is."""
    text = str(value).strip().lower() if isinstance(value, (str, int, float)) else ""
    if kind is bool and text in _TRUE | _FALSE:
        return text in _TRUE
    if kind is int and re.fullmatch(r"[+-]?[0-9]{1,20}(\.0+)?", text):
        return int(text.partition(".")[0])
    if kind is float and isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,20}(\.[0-9]{0,20})?", text):
        return float(text)
    return value


def describe(value: Any) -> str:
    """Return a value and its kind as a user writes them: ``"9k" (text)``."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return f"{str(value).lower()} (true or false)"
    if isinstance(value, Mapping):
        return "a dict"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, str):
        return f'"{value}" (text)'
    # Python refuses to write out very long numbers.
    return "a number of more than 40 digits" if isinstance(value, int) and abs(value) > 10**40 else f"{value} (number)"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "x"?`` when a known word is close, otherwise the list of known words."""
    # Fields of Kubernetes differ from what users write in upper and lower case more than in letters.
    words = {one.lower(): one for one in sorted(known)}
    match = difflib.get_close_matches(str(word).lower(), list(words), n=1, cutoff=0.6)
    if match:
        return f'did you mean "{words[match[0]]}"?'
    return "known here: %s" % (", ".join(words.values()) or "nothing")


def some(names: Sequence[str], most: int = MOST) -> str:
    """Return names for a message, cut when they are many."""
    return ", ".join(names[:most]) + and_more(names, most)


def and_more(items: Sequence[object], most: int = MOST, what: str = "") -> str:
    """Return how many items, ``what``, a message leaves out after the first ``most``."""
    return left_out(len(items) - most, what)


def left_out(count: int, what: str = "") -> str:
    """Return that a message leaves out ``count``; empty when it leaves out nothing."""
    return f" and {count}{what and ' '}{what} more" if count > 0 else ""


def raise_problems(problems: Sequence[str]) -> None:
    """Raise one InputError that lists every problem; nothing happens without problems."""
    if len(problems) == 1:
        raise InputError(problems[0])
    if problems:
        raise InputError(f"{len(problems)} problems: {'; '.join(problems)}")


class Reader:
    """One level of a user's dict. Each method reads one key; ``close`` refuses the keys that nobody read."""

    def __init__(self, params: Any, path: str, problems: list[str]) -> None:
        """Wrap ``params`` found at ``path``; messages are appended to ``problems``."""
        self.path = path
        self.problems = problems
        self._seen: set[str] = set()
        self._params: Mapping[str, Any] = {}
        if isinstance(params, Mapping):
            self._params = params
        else:
            self._problem("", f"expected a dict, found {describe(params)}")

    def __contains__(self, key: str) -> bool:
        return self._params.get(key) is not None

    def _problem(self, key: str, message: str) -> None:
        path = f"{self.path}.{key}" if key else self.path
        self.problems.append(f"{path}: {message}")

    def _get(self, key: str, kind: type, default: Any) -> Any:
        self._seen.add(key)
        value = converted(self._params.get(key), kind)
        if value is None:
            return default
        number_as_bool = isinstance(value, bool) and kind is not bool
        if not isinstance(value, kind) or number_as_bool:
            self._problem(key, f"expected {_KINDS[kind]}, found {describe(value)}")
            return default
        return value

    def refuse(self, key: str, message: str) -> None:
        """Note a problem of ``key`` that only the caller can see."""
        self._problem(key, message)

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        return bool(self._get(key, bool, default))

    def integer(self, key: str, default: int | None, low: int, *, high: int) -> Any:
        """Return a whole number between ``low`` and ``high``, or the default."""
        value = self._get(key, int, default)
        if value is not None and not low <= value <= high:
            self._problem(key, f"expected {low} to {high}, found {value}")
            return default
        return value

    def number(self, key: str, default: float | None, low: float, *, high: float) -> Any:
        """Return a number between ``low`` and ``high`` as float, or the default."""
        self._seen.add(key)
        value = converted(self._params.get(key), float)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self._problem(key, f"expected a number, found {describe(value)}")
            return default
        if not low <= value <= high:
            self._problem(key, f"expected {low:g} to {high:g}, found {value}")
            return default
        return float(value)

    def text(self, key: str, default: str | None, choices: Sequence[str] = (), *, form: Form | None = None) -> Any:
        """Return text, one of ``choices`` or of the ``form`` when those are given."""
        value = self._get(key, str, default)
        if value is None or value == default:
            return default
        if choices and value not in choices:
            self._problem(key, f"expected one of {', '.join(choices)}, found {describe(value)}")
            return default
        if form and not re.fullmatch(form.pattern, value):
            self._problem(key, f'expected {form.words}, found "{value}"')
            return default
        return value

    def texts(self, key: str, default: Sequence[str] = (), choices: Sequence[str] = ()) -> tuple[str, ...]:
        """Return a list of texts as a tuple."""
        values = self._get(key, list, list(default))
        wrong = [value for value in values if not isinstance(value, str)]
        unknown = [value for value in values if choices and value not in choices and value not in wrong]
        for value in wrong:
            self._problem(key, f"expected a list of texts, found {describe(value)} in it")
        for value in unknown:
            self._problem(key, f"expected some of {', '.join(choices)}, found {describe(value)}")
        return tuple(default) if wrong or unknown else tuple(values)

    def integers(self, key: str, low: int, high: int) -> list[int]:
        """Return a list of whole numbers between ``low`` and ``high``; empty when absent."""
        values = [converted(value, int) for value in self.items(key)]
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                self._problem(key, f"expected whole numbers from {low} to {high}, found {describe(value)} in it")
                return []
        return values

    def items(self, key: str) -> list[Any]:
        """Return a list as it is, for callers that check what is in it; empty when absent."""
        return list(self._get(key, list, []))

    def mapping(self, key: str) -> dict[Any, Any]:
        """Return a dict as it is, for callers that check what is in it; empty when absent."""
        return dict(self._get(key, dict, {}))

    def rest(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return those of ``keys`` that have a value and nobody read yet, as they are, for another reader."""
        found = {key: self._params[key] for key in keys if key in self and key not in self._seen}
        self._seen.update(keys)
        return found

    def labels(self, key: str) -> dict[str, str]:
        """Return a dict of text to text, as Kubernetes labels are."""
        values = self._get(key, dict, {})
        for name, value in values.items():
            if not isinstance(value, str):
                self._problem(f"{key}.{name}", f"expected text (quote it), found {describe(value)}")
        return {str(name): str(values[name]) for name in sorted(values)}

    def section(self, key: str) -> Reader:
        """Return a reader of the dict under ``key`` (empty when absent)."""
        return Reader(self._get(key, dict, {}), f"{self.path}.{key}", self.problems)

    def sections(self, key: str) -> list[Reader]:
        """Return one reader for each dict of the list under ``key``."""
        values = self._get(key, list, [])
        return [Reader(v, f"{self.path}.{key}[{i}]", self.problems) for i, v in enumerate(values)]

    def close(self) -> None:
        """Refuse every key that was not read, with the nearest known key."""
        for key in self._params:
            if key not in self._seen:
                self._problem(str(key), f"unknown key; {nearest(str(key), self._seen)}")
