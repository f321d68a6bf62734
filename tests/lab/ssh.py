# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reaching the hosts over ssh, with a key and pinned host keys of the lab's own."""

from __future__ import annotations

import shlex
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lab import cache, command, settings
from tests.lab.errors import LabError
from tests.lab.settings import ACCESS, HOSTS

_CONFIG = ACCESS / "ssh_config"
_KNOWN_HOSTS = ACCESS / "known_hosts"
_KEY = ACCESS / "id_ed25519"
_ATTEMPT_SECONDS = 8
_CLOCK_SECONDS = 15
_THAW = f"""echo; read -r now; date -s "@$now" >/dev/null
ss -K dst {settings.OUTSIDE} dport = {settings.API_PORT} >/dev/null
echo set"""


def key() -> Path:
    """The lab's own key pair, made once."""
    return cache.artefact("ssh-key", "ed25519", _make_key) / "id_ed25519"


def public_key() -> str:
    """The line that the hosts accept."""
    return key().with_suffix(".pub").read_text()


def write_access(host_keys: dict[str, str]) -> None:
    """Write what a user, Ansible and `run` need; `host_keys` maps a host to its public key.

    A host without a key is one whose first boot is still to come: it is not checked.
    """
    ACCESS.mkdir(exist_ok=True)
    _KEY.unlink(missing_ok=True)
    _KEY.symlink_to(key())
    _KNOWN_HOSTS.write_text("".join(known_host(host, line) for host, line in host_keys.items()))
    _CONFIG.write_text("\n".join(config_entry(host, host in host_keys) for host in HOSTS))


def known_host(host: str, public: str) -> str:
    """The known_hosts line of a host."""
    return f"[{settings.address(host)}]:{settings.SSH_PORT} {' '.join(public.split()[:2])}\n"


def config_entry(host: str, pinned: bool) -> str:
    """The ssh_config section of a host; `pinned` when its key is in known_hosts."""
    known, checking = (_KNOWN_HOSTS, "yes") if pinned else ("/dev/null", "no")
    return f"""Host {host}
    HostName {settings.address(host)}
    Port {settings.SSH_PORT}
    User root
    IdentityFile {_KEY}
    IdentitiesOnly yes
    UserKnownHostsFile {known}
    StrictHostKeyChecking {checking}
    LogLevel ERROR
"""


def login(host: str, words: Sequence[str] = ()) -> list[str]:
    """The command line of ssh into a host, for a shell or to run `words` in one."""
    return ["ssh", "-F", str(_CONFIG), host, *words]


def run(host: str, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 60) -> str:
    """Run a program on a host and return its standard output.

    Raises LabError when it fails, takes too long or the host cannot be reached.
    """
    return command.run(login(host, [shlex.join(argv)]), stdin=stdin, timeout=timeout)


def succeeds(host: str, script: str, seconds: float) -> bool:
    """Whether a shell script on a host ends well within `seconds`; false when it is unreachable."""
    try:
        command.run([*_attempt(host), script], timeout=seconds)
    except LabError:
        return False
    return True


def thaw(host: str) -> bool:
    """Tell a restored host that time has passed; whether that worked.

    Its clock is set to ours, and its kubelet's connections, whose other ends are gone, are closed,
    or it would wait for half a minute. The host says when it listens, since a connection takes a
    second to make on emulated hosts.
    """
    argv = [*_attempt(host), _THAW]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=none, text=True) as asked:
        timer = threading.Timer(_CLOCK_SECONDS, asked.kill)
        timer.start()
        try:
            listens = asked.stdout is not None and asked.stdout.readline() != ""
            said, _none = asked.communicate(f"{time.time():.2f}\n" if listens else None)
        finally:
            timer.cancel()
    return said.strip() == "set"


def _attempt(host: str) -> list[str]:
    """As `login`, giving up early: a connection made before the host is up may never get on."""
    start, *rest = login(host)
    return [start, "-o", f"ConnectTimeout={_ATTEMPT_SECONDS}", *rest]


def _make_key(target: Path) -> None:
    target.mkdir(mode=0o700)
    name = str(target / "id_ed25519")
    command.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpufabric-lab", "-f", name])
