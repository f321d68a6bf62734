# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Raw logs of the testers' pods, one file an endpoint, or the reason why there is none."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from ..._common.errors import ClusterError, FabricError
from ..._fabric.measure.readings import frames
from ..client.api import Api
from ..client.kinds import collection
from .manifests import CONTAINER

# More than a tester prints to its log: what a long pass tells is in a file (tester.sh).
LARGEST_LOG = 4 << 20


def pod_path(namespace: str, pod: str) -> str:
    """Return the path of a pod."""
    return f"{collection('v1', 'pods', namespace)}/{pod}"


def read_log(api: Api, namespace: str, pod: str, *, until: str, timeout: float, since: int | None = None) -> str:
    """Return a pod's log up to the line that begins with ``until``, or what there is in ``timeout`` seconds.

    It is followed in one request, however long the line takes to come. ``since``: only the last so many seconds.
    ApiError when there is no log, ClusterError when it is larger than any tester's.
    """
    lines = []
    size = 0
    asked = {"container": CONTAINER, "follow": "true", "sinceSeconds": since, "limitBytes": LARGEST_LOG + 1}
    for line in api.follow(f"{pod_path(namespace, pod)}/log", asked, timeout):
        size += len(line) + 1
        if size > LARGEST_LOG:
            raise ClusterError(f"the log has more than {LARGEST_LOG} bytes; expected the output of one tester")
        lines.append(line + "\n")
        if line.startswith(until):
            break
    return "".join(lines)


def describe_part(text: str) -> str:
    """Return what a tester said of itself, without what it printed later; ClusterError when it is not all there."""
    head, found, tail = text.partition("\n" + frames.DESCRIBED)
    if not found:
        last = (text.strip().splitlines() or ["nothing"])[-1]
        raise ClusterError(f"the tester did not describe its rails; its last line: {last[:300]}")
    return head + found + tail.partition("\n")[0] + "\n"


def batch_part(text: str, number: int) -> str:
    """Return what a tester printed for one batch, to its end or as far as it came; empty when it did not begin."""
    begin = text.rfind(frames.begin(number))
    return text[begin:] if begin >= 0 else ""


def kept_bytes(text: str, number: int) -> int:
    """Return how many bytes of a batch the tester kept in a file, 0 when its log has them (``text``)."""
    found = re.search(rf"^{frames.kept(number)}([0-9]{{1,12}})$", text, re.MULTILINE)
    return int(found[1]) if found else 0


class Evidence:
    """A folder of the evidence: `describe` or `pass-N`."""

    def __init__(self, root: str, part: str) -> None:
        self.folder = Path(root) / part

    def prepare(self) -> None:
        """Make the folder, empty; ClusterError when that cannot be."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for old in self.folder.glob("*.log"):
                old.unlink()
            for old in self.folder.glob("*.error"):
                old.unlink()
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def log(self, endpoint: str, text: str) -> None:
        """Keep the raw output of an endpoint."""
        self._write(f"{endpoint}.log", text)

    def mark(self, name: str) -> None:
        """Note what kind of pass it is."""
        self._write(name, "")

    def errors(self, reasons: Mapping[str, str]) -> None:
        """Keep why endpoints have no log."""
        for endpoint, reason in reasons.items():
            self._write(f"{endpoint}.error", reason + "\n")

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        partial = path.with_name(path.name + ".part")
        try:
            partial.write_text(text, encoding="utf-8")
            os.replace(partial, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> ClusterError:
    return ClusterError(f"evidence {path} cannot be written: {error.strerror}. Choose another folder")


def reason_without_log(error: FabricError, pod: str, node: str, *, ready: bool) -> str:
    """Return why a log could not be read, for people: the node first, since that is what they can look at."""
    where = f"node {node} is not ready" if not ready else f"node {node}"
    return f"no log of pod {pod} ({where}): {error}"
