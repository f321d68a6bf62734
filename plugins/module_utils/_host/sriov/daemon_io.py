# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that the daemon of the SR-IOV operator leaves on a host; all of them have names that only it uses."""

from __future__ import annotations

import contextlib
import os
import stat

from ..._common.errors import ConflictError
from ..system import files
from ..system.files import Roots

DAEMON = "sriov-network-config-daemon"
_FOLDERS = ("sriov-operator", "sriov-operator/pci")
_FILES = (
    "udev/disable-nm-sriov.sh",
    "udev/switchdev-vf-link-name.sh",
    "modprobe.d/sriov_network_operator_modules_config.conf",
)
# Rules that call the script, one for each port.
_RULES, _RULE, _SCRIPT = "udev/rules.d", "10-nm-disable-", "/disable-nm-sriov.sh"
_FIRST_STATE = "sno-initial-node-state.json"
# Their content is of no use to anybody once the daemon is gone.
TEXT = "left by the SR-IOV operator"


def read(roots: Roots) -> dict[str, str]:
    """Return path -> what it is, of all such files; ConflictError while the daemon runs here."""
    paths = [f"{roots.etc}/{name}" for name in _FILES] + [f"{roots.tmp}/{_FIRST_STATE}"]
    for folder in _folders(roots):
        paths += [f"{folder}/{name}" for name in files.names(folder)]
    rules = files.read_folder(f"{roots.etc}/{_RULES}", ".rules", _RULE)
    paths += [path for path, text in rules.items() if _SCRIPT in text]
    found = {path: TEXT for path in sorted(paths) if _is_file(path)}
    running = _running(roots.proc) if found else ""
    if running:
        raise ConflictError(
            f"remove_operator_files is set, but the daemon of the SR-IOV operator runs on this host (process {running},"
            f" {DAEMON}) and uses its files. Remove the operator first, or leave remove_operator_files unset"
        )
    return found


def remove_folders(roots: Roots) -> None:
    """Remove the folders of the daemon; one that is not empty holds something of another tool."""
    for folder in reversed(_folders(roots)):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _folders(roots: Roots) -> list[str]:
    return [f"{roots.etc}/{name}" for name in _FOLDERS]


def _is_file(path: str) -> bool:
    """Whether there is a file itself: everybody can put a link into a folder for temporary files."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _running(proc: str) -> str:
    """Return the process id of the daemon, empty where it does not run."""
    for name in files.names(proc):
        if name.isdecimal():
            command = files.read_bytes(f"{proc}/{name}/cmdline", 4096) or b""
            if os.path.basename(command.split(b"\0")[0]) == DAEMON.encode():
                return name
    return ""
