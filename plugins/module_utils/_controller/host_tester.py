# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a measurement runs on a bare host: the shell commands that prepare, start, collect and remove its tester.

The mark ``FOLDER.run`` reserves a host for one run: the run, its begin, and until when the mark is valid, in seconds
since the boot of the host. A lock on the folder above excludes the modules that change hosts (_host/system/lock.py).
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._fabric.measure.readings import frames

# An error that is no failure of the command: the host is in use, or is no longer that of this run.
IN_USE = 75
# What a host may write to its log: 8 KB for each of 16 ports and 2 KiB for each test, doubled.
_LOG_BASE, _LOG_TEST = 262144, 4096
_LONGEST_REASON = 300
# Until the shell ends or closes 9, no module of another run changes the host, and no other run reserves it. The end of
# a measurement removes the folder; a lock on a folder that is gone is none.
_LOCK = """exec 9<@parent@ && flock -w 20 9 && [ /proc/self/fd/9 -ef @parent@ ] || {
  holder=; read -r holder 2>/dev/null <@parent@/holder
  echo "another run changes this host: ${holder:-its module is not known}." \\
    "Wait until it has ended, then measure again" >&2
  exit 75
}
"""
_OWN = """read -r run since _ 2>/dev/null <@folder@.run && [ "$run" = "@run@" ]"""
_LOST = """{ echo "this run lost the host to another run, or to the playbook gpufabric.rdma.abort"; exit 75; }"""
_READ_MARK = """run='' until=''; read -r run since until 2>/dev/null <@folder@.run
case $until in "" | *[!0-9]*) until=0 ;; esac
"""
_MEASURED = """"this host is being measured by run $run since $since, for at most $((until - ${up%.*})) s more. \
Wait until it ends, or end it with the playbook gpufabric.rdma.abort\""""
# Every write of the mark has the lock: a module that finds the mark expired removes it and changes the host.
_RENEW = f"""[ -e @folder@.run ] || {_LOST}
{_LOCK}{_OWN} || {_LOST}
read -r up _ </proc/uptime && echo "$run $since $((${{up%.*}} + @hold@))" >@folder@.run && exec 9<&- &&
  echo "$up @now@" >>@folder@/clocks || exit 1
"""
# One command for all, since each costs a start of Python on the host: reserves the host, ends what an earlier run left,
# brings script and rails into a private folder, and describes the rails.
_PREPARE = f"""umask 077
mkdir -p @parent@ || exit 1
{_LOCK}read -r up _ </proc/uptime || exit 1
{_READ_MARK}[ "$run" != "@continued@" ] || systemctl is-active --quiet @unit@.service || until=0
if [ "$run" != "@run@" ] && [ "$until" -gt "${{up%.*}}" ]; then
  echo {_MEASURED} >&2
  exit 75
fi
echo "@run@ $(date -u +%Y-%m-%dT%H:%M:%SZ) $((${{up%.*}} + @hold@))" >@folder@.run && exec 9<&- || exit 1
systemctl stop @unit@.service 2>/dev/null
systemctl reset-failed @unit@.service 2>/dev/null
rm -rf @folder@ && mkdir -p @folder@ && cat >@folder@/tester.sh && printf '%s\\n' "$1" >@folder@/rails &&
  echo "$up @now@" >@folder@/clocks || exit 1
sh @folder@/tester.sh describe @folder@/rails >@folder@/describe &&
  {{ cat @folder@/describe; sh @folder@/tester.sh ports @folder@/rails; }} | head -c 262144
"""
# Reads only, so it reserves nothing.
_PORTS = """umask 077
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cat >"$folder/tester.sh" && printf '%s\\n' "$1" >"$folder/rails" || exit 1
TMPDIR=$folder sh "$folder/tester.sh" ports "$folder/rails" | head -c 262144
"""
_DELIVER = f"umask 077\n{_RENEW}cat >@folder@/batch\n"
_START = f"""{_RENEW}read -r _ number _ 2>/dev/null <@folder@/batch && [ "$number" = "@pass@" ] ||
  {{ echo "the schedule of pass @pass@ did not reach this host in time"; exit 75; }}
systemd-run --unit=@unit@ --quiet --collect --setenv=TMPDIR=@folder@ \
--property=MemoryMax=50% --property=TasksMax=8192 --property=LimitFSIZE=1G --property=RuntimeMaxSec=@longest@ \
--property=StandardInput=file:@folder@/batch \
sh @folder@/tester.sh run @folder@/rails @log@ @folder@/clocks @start@
"""
# A host may be some seconds behind the announced end, and reads its ports after it.
_COLLECT = f"""left=60; while [ "$left" -gt 0 ] && systemctl is-active --quiet @unit@.service
do sleep 1; left=$((left - 1)); done
{_OWN} || {_LOST}
[ -f @log@ ] || {{ echo "the tester left no log of this pass"; exit 66; }}
[ "$(wc -c <@log@)" -le @most@ ] || {{ head -c @most@ @log@ >@log@.part; mv @log@.part @log@; }}
"""
_FIND = f"""read -r up _ </proc/uptime || exit 1
{_READ_MARK}if [ "$run" = "@run@" ] && [ "$until" -gt "${{up%.*}}" ] &&
  {{ [ @ended@ = no ] || systemctl is-active --quiet @unit@.service; }}; then
  echo {_MEASURED}
  exit 75
fi
[ -f @log@ ] && [ "$(wc -c <@log@)" -le @most@ ] &&
  tail -n 1 @log@ | grep -q "^{frames.done("@pass@")}" || exit 66
"""
# The unit's control group holds every process, the folder every file.
_REMOVE = """systemctl stop @unit@.service 2>/dev/null; rm -rf @folder@ @folder@.run
flock -n @parent@ rmdir @parent@ 2>/dev/null; true
"""


@dataclass(frozen=True)
class Tester:
    """The tester of a run on a host: its private folder, its systemd unit and the run."""

    folder: str
    unit: str
    run: str

    def log(self, number: int) -> str:
        """Return the path of the log of a pass. The log of another run or pass is never taken for it."""
        return f"{self.folder}/{self.run}-{number}.log"

    def fill(self, text: str, **values: object) -> str:
        """Return a command with its values."""
        known = {"parent": posixpath.dirname(self.folder), "folder": self.folder, "unit": self.unit, "run": self.run}
        for name, value in {**known, **values}.items():
            text = text.replace(f"@{name}@", str(value))
        return text


def hold(timeout: int, hosts: int) -> int:
    """Return the seconds for which a mark is valid between two passes: tasks on many hosts take their time."""
    return 2 * timeout + 60 + hosts


def rails_text(rails: Iterable[Mapping[str, Any]]) -> str:
    """Return the rails as the tester reads them: it finds the addresses by the network interface."""
    return "\n".join(f"rail {rail['name']} {rail.get('master') or rail['netdev']}" for rail in rails)


def batch_text(number: int, slot: int, lines: Sequence[str]) -> str:
    """Return the schedule of a pass as the tester reads it."""
    return "\n".join([f"BATCH {number} 0 {slot}", *lines])


def prepare(tester: Tester, rails: str, hold_for: int, *, now: float, continued: str) -> list[str]:
    """Return the command that reserves a host and describes its rails; its input is the tester's script.

    The mark of the run ``continued`` is taken over when its tester has ended.
    """
    text = tester.fill(_PREPARE, hold=hold_for, now=now, continued=continued)
    return ["sh", "-c", text, "sh", rails]


def ports(rails: str) -> list[str]:
    """Return the command that prints what the ports of a host show; its input is the tester's script."""
    return ["sh", "-c", _PORTS, "sh", rails]


def deliver(tester: Tester, hold_for: int, now: float) -> list[str]:
    """Return the command whose input is the schedule of a pass: it can be too long for a command line."""
    return ["sh", "-c", tester.fill(_DELIVER, hold=hold_for, now=now)]


def lead(wanted: int, deliveries: Sequence[Mapping[str, Any]]) -> int:
    """Return the seconds until the first round: ``wanted``, or what the delivery of the schedule took on all hosts.

    ``deliveries``: what state delivered returned, without ``ended`` for a host that was skipped. Starting a tester is
    less work than the delivery, and both run on as many hosts at a time as there are ``forks``. A host that did not
    answer delays no other.
    """
    began = [each["began"] for each in deliveries if "began" in each]
    ended = [each["ended"] for each in deliveries if each.get("delivered")]
    return max(wanted, math.ceil(max(ended) - min(began)) if ended else 0)


def start(tester: Tester, number: int, seconds: int, *, begin: float, now: float, hold_for: int) -> str:
    """Return the command that starts a pass of ``seconds`` at ``begin`` of the controller's clock.

    The unit runs on its own, so that all hosts measure at the same time whatever ``forks`` is, and it ends every
    process with it.
    """
    values = {"hold": hold_for, "now": now, "pass": number, "start": begin, "log": tester.log(number)}
    return tester.fill(_START, longest=int(begin - now) + seconds + 60, **values)


def collect(tester: Tester, number: int, tests: int) -> str:
    """Return the command that waits for the end of a pass and limits its log."""
    return tester.fill(_COLLECT, log=tester.log(number), most=_LOG_BASE + _LOG_TEST * tests)


def find(tester: Tester, number: int, ended: bool, *, most: int) -> str:
    """Return the command that looks for the complete log of a run that did not end.

    ``ended``: whether the process of that run is known to have ended.
    """
    values = {"log": tester.log(number), "pass": number, "most": most}
    return tester.fill(_FIND, ended="yes" if ended else "no", **values)


def remove(tester: Tester) -> str:
    """Return the command that ends the tester and removes its files; with a run, only on a host of that run."""
    own = f"{_OWN} || exit 0\n" if tester.run else ""
    return tester.fill(own + _REMOVE)


def why_unstarted(answer: Mapping[str, Any]) -> str:
    """Return why a command did not end well: what it printed, or why the host did not answer."""
    return shortened(str(answer.get("stderr") or answer.get("msg") or ""))


def why_no_log(unstarted: str, ended: Mapping[str, Any], fetched: Mapping[str, Any]) -> str:
    """Return why there is no log of a pass: its start, its end, or its transfer failed."""
    arrived = ended.get("rc") == 0
    printed = "" if arrived else f"{ended.get('stderr', '')}{ended.get('stdout', '')}"
    message = (fetched if arrived else ended).get("msg") or "no answer in time"
    return shortened(unstarted or printed or str(message))


def shortened(text: str) -> str:
    """Return as much of a reason as people read."""
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 3]}..."
