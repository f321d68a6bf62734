# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets out of texts and objects that leave the site: passwords, tokens, private keys, credentials of kubeconfigs.

By the name of a value, and by forms that only secrets have. A name in a reference to a Secret is no secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

REMOVED = "<removed>"
# Copies of the whole object, or of no use to a reader.
_DROPPED = ("managedFields", "kubectl.kubernetes.io/last-applied-configuration")
# Which Secret is used where, and settings of tokens: needed to find errors.
_REFERENCES = re.compile(
    r"(secret_?name|(image)?_?pull_?secrets?|secret_?(key_?)?ref|secret|automount_?service_?account_?token"
    r"|service_?account_?token(_?(volume|projection))?|secrets|token_?(ttl|expiration)\w*)",
    re.IGNORECASE,
)
# PKeys of InfiniBand are no secrets, the management keys of its subnet manager are.
_WORDS = (
    r"pass(?:word|wd|phrase)s?|pwd|secrets?|tokens?|credentials?|kube_?config|authorization|dockerconfigjson|dockercfg"
    r"|(?:api|private|access|account|auth|client|encryption|host|signing|shared|ssh|tls|ca|m|sa|sm)[_.-]?key(?:[_.-]data)?"
    r"|psk|(?:certificate|key|authority)[_.-]data|wep[_.-]?key\d?|community"
)
_NAME = re.compile(
    rf"(?:^|(?<=[^a-z])|(?<=[a-z])(?=[A-Z]))(?:{_WORDS})(?![a-z])|(?:password|token|secret)", re.IGNORECASE
)
_LONE = re.compile(r"(?:.*[_.-])?(?:auth|pass|creds?|key)", re.IGNORECASE)
# Each name above has one of these, and each form below a mark.
_HINTS = ["pass", "pwd", "secret", "token", "cred", "config", "auth", "docker", "key", "psk", "data", "community"]
_HINTS += ["bearer", "basic"]
_MARKS = re.compile(r"eyJ|sha256~|AKIA|ASIA|gh[pousr]_|glpat-|nvapi-|xox|://|\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
_OPTION = re.compile(r"--?[\w.-]+")
_LARGEST_JSON = 1 << 20

# A private key, also one whose end was cut off; its lines may be escaped in JSON.
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=:,.\- \r\n\t]|\\[nrt])*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z|(?=[^A-Za-z0-9+/=:,.\- \r\n\t\\]))"
)
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_FORMS = re.compile(
    r"\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?"  # JSON web token
    r"|\bsha256~[\w-]{20,}"  # OpenShift
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_\w{20,}|\bglpat-[\w-]{16,}|\bnvapi-[\w-]{16,}|\bxox[abpr]-[\w-]{10,}"
    r"|\b[a-z0-9]{6}\.[a-z0-9]{16}\b"  # bootstrap token
)
_USER = re.compile(r"(?<=://)[^/\s\"'<>]{1,300}@")
_HEADER = re.compile(r"\b(bearer|basic)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
# A text in quotes, whose end may be cut off; all of it may be in a text that is escaped itself.
_QUOTED = r"\"(?:[^\"\\\n]|\\.)*(?:\"|$)|\\\"(?:[^\"\\\n]|\\{3}.|\\[^\"\n])*(?:\\\"|$)"
# NAME=value, NAME: value and "NAME":"value", in which quotes may be escaped; a name with -- may have a space after it.
_PAIR = re.compile(
    rf"(?P<name>(?<![\w-])-{{0,2}}[\w.-]{{0,60}}?(?:(?:{_WORDS})(?![a-z])|(?:password|token|secret)[a-z]{{1,30}}"
    r"|(?-i:(?<=[_.-])(?:KEY|PASS)(?![A-Za-z]))|(?<![a-z])auth(?![a-z]))[\w.-]{0,30})"
    r"(?P<between>\\?[\"']?\s{0,4}[=:]\s{0,4}|(?<=\w)\s+(?=[^\s-]))"
    rf"(?P<value>{REMOVED}|{_QUOTED}|'[^'\n]*(?:'|$)|[^\s\"']+)",
    re.IGNORECASE,
)
_VARIABLE = re.compile(
    rf"(?P<head>\\?\"name\\?\"\s*:\s*\\?\"[\w.-]*(?:{_WORDS}|_KEY|_AUTH|_PASS)\w*\\?\"\s*,\s*\\?\"value\\?\"\s*:\s*)"
    rf"(?:{_QUOTED})",
    re.IGNORECASE,
)


# YAML: a variable, a text of several lines, and an option of a command have their value on the next line.
_YAML_VARIABLE = re.compile(
    r"^(?P<head>(?P<in>[ \t]*(?:- )?)name:[ ]*[\"']?(?P<name>[\w.-]+)[\"']?[ ]*\n[ \t]*value:)[ ]*"
    r"(?P<value>[^\n]*(?:\n(?!(?P=in))[ \t]{4,}(?![\w.-]+:|- )[^\n]*)*)",
    re.MULTILINE,
)
_YAML_BLOCK = re.compile(
    r"^(?P<head>(?P<in>[ \t]*)(?:- )?[\"']?(?P<name>[\w./-]+)[\"']?:)[ ]*[|>][-+0-9]*[ ]*"
    r"(?:\n(?P=in)[ \t]+[^\n]*|\n[ \t]*(?=\n))+",
    re.MULTILINE,
)
_YAML_OPTION = re.compile(r"^(?P<head>[ \t]*- --?(?P<name>[\w.-]+)[ ]*\n[ \t]*-) (?!-)[^\n]*", re.MULTILINE)
_YAML = (_YAML_VARIABLE, _YAML_BLOCK, _YAML_OPTION)


def is_secret(name: str) -> bool:
    """Whether a value of this name is a secret, by its name."""
    if _REFERENCES.fullmatch(name):
        return False
    return bool(_NAME.search(name)) or bool(_LONE.fullmatch(name)) and name not in ("key", "Key")


def hide(text: str) -> str:
    """Return text without the secrets in it."""
    end = _END.search(text)
    if end and not 0 <= text.find("-----BEGIN ") < end.start():
        # The end of a log may begin within a key.
        text = REMOVED + text[end.end() :]
    text = _PEM.sub(REMOVED, text)
    for form in _YAML:
        text = form.sub(_yaml, text)
    return "\n".join(map(_line, text.split("\n")))


def hide_in(value: Any) -> Any:
    """Return an object of any nesting without the secrets in it."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, (list, tuple)):
        return _list(value)
    return value


def _yaml(match: re.Match[str]) -> str:
    return f"{match['head']} {REMOVED}" if is_secret(match["name"]) else match[0]


def _line(text: str) -> str:
    text = _USER.sub(f"{REMOVED}@", _FORMS.sub(REMOVED, text)) if _MARKS.search(text) else text
    lower = text.lower()
    # Most lines have no such word, and the patterns below are slow.
    if any(word in lower for word in _HINTS):
        text = _HEADER.sub(rf"\1\2{REMOVED}", text)
        text = _PAIR.sub(_pair, _VARIABLE.sub(rf'\g<head>"{REMOVED}"', text))
    return text


def _pair(match: re.Match[str]) -> str:
    name, between, value = match["name"], match["between"], match["value"]
    spaced = not between.strip("\"'\\ \t\n")
    if value in ("", REMOVED) or _REFERENCES.fullmatch(name.lstrip("-")):
        return match[0]
    if spaced and not name.startswith("--"):
        return match[0]
    return f"{name}{between}{REMOVED}"


def _text(text: str) -> str:
    """Return a text without secrets; one that is JSON itself, as in annotations, is treated as what it says."""
    if text[:1] in ("{", "[") and len(text) <= _LARGEST_JSON:
        try:
            return json.dumps(hide_in(json.loads(text)))
        except (ValueError, RecursionError):
            pass
    return hide(text)


def _mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    named = value.get("name")
    secret = isinstance(named, str) and (is_secret(named) or named.lower() in ("secret", "secrets"))
    variable = secret and "value" in value
    found = {}
    for key, item in value.items():
        name = str(key)
        if name in _DROPPED:
            continue
        hidden = (variable and name == "value") or (is_secret(name) and not isinstance(item, (bool, type(None))))
        found[hide(name)] = REMOVED if hidden else hide_in(item)
    return found


def _list(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    """Return a list without secrets; in a command, the word after an option such as --token is one."""
    found: list[Any] = []
    after = False
    for item in value:
        found.append(REMOVED if after and isinstance(item, str) else hide_in(item))
        after = isinstance(item, str) and bool(_OPTION.fullmatch(item)) and is_secret(item.lstrip("-"))
    return found
