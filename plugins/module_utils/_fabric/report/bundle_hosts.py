# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts' part of a support bundle: results of host_bundle, of hosts that may be broken, hostile or away."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .bundle import Bundle, name_of


def add(bundle: Bundle, hosts: Mapping[str, Any]) -> None:
    """Add what each host returned; note hosts that returned nothing."""
    for host in sorted(hosts):
        result = hosts[host] if isinstance(hosts[host], Mapping) else {}
        folder = f"hosts/{name_of(host)}"
        if not isinstance(result.get("files"), Mapping) or result.get("failed") or result.get("unreachable"):
            bundle.miss(folder, _why(result))
            continue
        cut = result.get("cut") if isinstance(result.get("cut"), list) else []
        for name, text in sorted(result["files"].items()):
            _add(bundle, folder, name, text=text, cut=name in (cut or []))
        missing = result.get("missing")
        for name, why in sorted(missing.items()) if isinstance(missing, Mapping) else []:
            bundle.miss(_path(folder, name), str(why))


def _why(result: Mapping[str, Any]) -> str:
    state = "unreachable: " if result.get("unreachable") else ""
    said = str(result.get("module_stderr") or "").strip()[-300:]
    return f"{state}{result.get('msg') or 'it returned nothing'}{said and ': '}{said}"


def _path(folder: str, name: Any) -> str:
    parts = [name_of(part) for part in str(name).split("/")[:5]]
    return "/".join((folder, *parts))


def _add(bundle: Bundle, folder: str, name: Any, *, text: Any, cut: bool) -> None:
    """Add a file of a host; the facts as a value, so that they are JSON whatever the host made of them."""
    path = _path(folder, name)
    if not isinstance(text, str):
        bundle.miss(path, "the host returned something else than text")
        return
    if name == "facts.json":
        try:
            bundle.add_object(path, json.loads(text))
        except (ValueError, RecursionError):
            bundle.miss(path, "the host returned facts that are not JSON")
        return
    bundle.add(path, text, cut=cut)
