# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tool by which OpenShift collects its own state: a program of the controller."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

TIMEOUT = "15m"
Run = Callable[[Sequence[str]], tuple[int, str, str]]
# How the API is reached by these options, which oc would need on its command line, where others can read them.
_OWN = ("host", "api_key", "username", "password", "client_cert", "client_key")


def run(program: Run, params: Mapping[str, Any], folder: str) -> str:
    """Let oc write to a folder; return why it did not, "" if it did."""
    found = shutil.which("oc")
    if not found:
        return "oc is not installed on the controller. Install it, or run oc adm must-gather yourself"
    if any(params.get(key) for key in _OWN):
        return "credentials are set by options. Use a kubeconfig, or run oc adm must-gather yourself"
    argv = [found, "adm", "must-gather", f"--dest-dir={folder}", f"--timeout={TIMEOUT}"]
    kubeconfig = params.get("kubeconfig")
    argv += [f"--kubeconfig={os.path.expanduser(kubeconfig)}"] if kubeconfig else []
    argv += [f"--context={params['context']}"] if params.get("context") else []
    rc, out, err = program(argv)
    return f"oc adm must-gather failed with status {rc}: {(err or out).strip()[-300:] or 'no message'}" if rc else ""
