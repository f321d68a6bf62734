# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the lab."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

from tests.lab import faults, lab, lock, programs, report, ssh
from tests.lab.errors import LabError
from tests.lab.settings import HOSTS

_FAULTS = """
faults:
  cable HOST RAIL              the cable is pulled: the host sees no carrier
  slow [HOST] RAIL [RATE]      RATE (5mbit) in each direction; without HOST at each port of the rail
  lossy HOST RAIL [PERCENT]    PERCENT (2) of the frames vanish, in each direction
  oneway HOST RAIL [in|out]    what the host gets (in) or sends (out) vanishes
  blackhole [HOST] RAIL        frames over 1500 bytes vanish; without HOST on the whole rail
  swapped HOST                 the cables of its rails are exchanged
  dead HOST                    the host is gone until it is healed
  cut HOST                     its power fails for a moment; it boots again from its disk
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 1 after an error of the lab, else its own status."""
    options = _parser().parse_args(arguments)
    work: Callable[[argparse.Namespace], int] = options.work
    try:
        if options.unlocked:
            return work(options)
        with lock.held(options.command):
            return work(options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lab: interrupted; `up` goes on from what is built", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.lab",
        description="Three small RDMA hosts and a control plane on this machine.",
        epilog=_FAULTS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def add(
        name: str, work: Callable[[argparse.Namespace], int], text: str, unlocked: bool = False
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(work=work, unlocked=unlocked)
        return command

    up = add("up", _up, "build what is missing and bring everything up")
    up.add_argument("--hosts-only", action="store_true", help="without a control plane and its nodes")
    add("reset", _reset, "back to how it was when it came up, with no faults")
    status = add("status", _status, "what runs, what is wrong; status 0 when all runs", unlocked=True)
    status.add_argument("--json", action="store_true", help="for programs")
    login = add("ssh", _ssh, "log in to a host, or run a command there", unlocked=True)
    login.add_argument("host", choices=HOSTS)
    login.add_argument("words", nargs=argparse.REMAINDER, metavar="command")
    fault = add("fault", _fault, "make something go wrong")
    fault.add_argument("words", nargs="+", metavar="KIND [HOST] [RAIL] [VALUE]")
    heal = add("heal", _heal, "undo faults: all, or those of a kind, a host, a rail")
    heal.add_argument("words", nargs="*", metavar="KIND, HOST or RAIL")
    add("down", _down, "end everything; what is built is kept")
    add("clean", _clean, "end everything and remove what is built")
    add("install", _install, "install the Debian packages that are missing")
    return parser


def _up(options: argparse.Namespace) -> int:
    programs.check()
    lab.up(with_cluster=not options.hosts_only)
    return _status_text()


def _reset(_options: argparse.Namespace) -> int:
    lab.reset()
    return 0


def _status(options: argparse.Namespace) -> int:
    if not options.json:
        return _status_text()
    found = report.collect()
    print(json.dumps(found, indent=2))
    return 0 if found["up"] else 1


def _status_text() -> int:
    found = report.collect()
    print("\n".join(report.lines(found)))
    return 0 if found["up"] else 1


def _ssh(options: argparse.Namespace) -> int:
    line = ssh.login(options.host, options.words)
    os.execvp(line[0], line)


def _fault(options: argparse.Namespace) -> int:
    fault = faults.parse(options.words)
    lab.add_fault(fault)
    print(f"{fault}: over, it is up again" if fault.kind == "cut" else f"{fault}: on")
    return 0


def _heal(options: argparse.Namespace) -> int:
    healed = lab.heal(options.words)
    print("\n".join(f"{fault}: healed" for fault in healed) or "nothing to heal")
    return 0


def _down(_options: argparse.Namespace) -> int:
    lab.down()
    return 0


def _clean(_options: argparse.Namespace) -> int:
    lab.clean()
    return 0


def _install(_options: argparse.Namespace) -> int:
    programs.install()
    return 0
