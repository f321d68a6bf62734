# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a collection, kept up to date by a watch: one list, and then only what changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable

from .api import Api, ApiError
from .poll import Clock

# A watch is renewed after so many seconds, and whoever waits looks at the time. It costs one request.
WINDOW = 10.0
_GONE = 410
# A server that is starting, or busy: the next watch goes on from the same version.
_BUSY = 429


def watched(
    api: Api,
    path: str,
    selector: str,
    *,
    see: Callable[[Mapping[str, Any]], Any],
    timeout: float,
    clock: Clock,
    window: float = WINDOW,
) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Yield the seconds since the start and name -> ``see(object)``: at once, after each change, every ``window``
    seconds without one, and a last time at ``timeout``. The objects themselves are not kept.
    """
    start = clock.now()
    found: dict[str, Any] = {}
    version = ""
    while True:
        if not version:
            version, found = _listed(api, path, selector, see=see)
        yield clock.now() - start, found
        left = timeout - (clock.now() - start)
        if left <= 0:
            return
        begin = clock.now()
        try:
            for kind, item in api.watch(path, version, min(window, left), labelSelector=selector):
                version = str(item["metadata"].get("resourceVersion") or "")
                _note(found, kind, item, see=see)
                yield clock.now() - start, found
        except ApiError as error:
            if error.status != _BUSY:
                if 400 <= error.status < 500 and error.status != _GONE:
                    raise
                # Too long ago, or broken off: what was missed is in a new list.
                version = ""
        if clock.now() - begin < 1.0:
            clock.sleep(1.0)


def _listed(
    api: Api, path: str, selector: str, *, see: Callable[[Mapping[str, Any]], Any]
) -> tuple[str, dict[str, Any]]:
    found: dict[str, Any] = {}
    version = ""
    for page in api.pages(path, labelSelector=selector):
        version = version or str((page.get("metadata") or {}).get("resourceVersion") or "")
        found.update((item["metadata"]["name"], see(item)) for item in page.get("items") or [])
    return version, found


def _note(
    found: dict[str, Any], kind: str, item: Mapping[str, Any], *, see: Callable[[Mapping[str, Any]], Any]
) -> None:
    if kind == "DELETED":
        found.pop(item["metadata"]["name"], None)
    else:
        found[item["metadata"]["name"]] = see(item)
