# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reaching the hosts over ssh, with a key and pinned host keys of the lab's own."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.lab import cache, command, settings
from tests.lab.errors import LabError
from tests.lab.settings import ACCESS, HOSTS

_CONFIG = ACCESS / "ssh_config"
_KNOWN_HOSTS = ACCESS / "known_hosts"
_KEY = ACCESS / "id_ed25519"
_UNREACHABLE = 255
_TRY_SECONDS = 20


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


def wait(host: str, argv: Sequence[str], seconds: float, alive: Callable[[], bool]) -> str:
    """As `run`, trying again until the host can be reached; for a host that is starting.

    Only for what may be run more than once. Raises LabError when `seconds` are over or the host
    is not `alive`.
    """
    deadline = time.monotonic() + seconds
    while True:
        done = _try(host, argv)
        if done is not None and done.returncode != _UNREACHABLE:
            break
        if not alive():
            raise LabError(f"{host} has ended")
        if time.monotonic() > deadline:
            said = done.stderr.decode().strip() if done else f"silent for {_TRY_SECONDS} s"
            raise LabError(f"{host} cannot be reached over ssh after {seconds:.0f} s: {said}")
        time.sleep(0.3)
    if done.returncode != 0:
        raise LabError(f"{shlex.join(argv)} on {host}: {done.stderr.decode().strip()}")
    return done.stdout.decode()


def reachable(host: str, seconds: float = 5) -> bool:
    """Whether a host answers now."""
    try:
        run(host, ["true"], timeout=seconds)
    except LabError:
        return False
    return True


def _try(host: str, argv: Sequence[str]) -> subprocess.CompletedProcess[bytes] | None:
    line = login(host, [shlex.join(argv)])
    line[1:1] = ["-o", f"ConnectTimeout={_TRY_SECONDS // 2}", "-o", "BatchMode=yes"]
    try:
        return subprocess.run(
            line, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRY_SECONDS
        )
    except subprocess.TimeoutExpired:
        return None


def _make_key(target: Path) -> None:
    target.mkdir(mode=0o700)
    name = str(target / "id_ed25519")
    command.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpufabric-lab", "-f", name])
