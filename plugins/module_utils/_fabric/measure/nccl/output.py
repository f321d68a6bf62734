# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nccl-tests and NCCL print, in the frames of the script that runs them in pods.

A pod may be broken or hostile: sizes are bounded, numbers are checked, and text that is shown is plain.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...intent.typed import plain
from ..readings import frames

_MARK = f"{frames.MARK}nccl "
BEGIN = f"{_MARK}begin "
LOG = f"{_MARK}log "
END = f"{_MARK}end "
DONE = f"{_MARK}done"
_SETTING = re.compile(r"[A-Z][A-Z0-9_]{0,63}=")
ENVIRONMENT = f"{_MARK}environment"
# Of the output of a program and of a log, as nccl.sh cuts them.
CUT = f"{_MARK}cut"

# size, count, type, operation, root, then time, algbw, busbw and wrong values out of place. More columns may follow.
_ROW = re.compile(
    r"^\s*(?P<size>[0-9]{1,15})\s+[0-9]{1,15}\s+[a-z0-9_]{1,16}\s+[a-z0-9_]{1,16}\s+-?[0-9]{1,6}"
    r"\s+(?P<time>[0-9.e+]{1,16})\s+(?P<algbw>[0-9.e+]{1,16})\s+(?P<busbw>[0-9.e+]{1,16})"
    r"\s+(?P<wrong>N/A|[0-9.e+]{1,16})(?:\s|$)"
)
_RANK = re.compile(
    r"^#\s+Rank\s+(?P<rank>[0-9]{1,6})\s+(?:Group\s+(?P<group>[0-9]{1,6})\s+)?Pid\s+[0-9]+\s+on\s+(?P<host>\S{1,255})"
    r"\s+device\s+[0-9]{1,3}\s+\[[^\]]{1,40}\]\s+(?P<model>.{1,100})$"
)
_BAD = re.compile(r"^#\s+Out of bounds values\s*:\s*(?P<bad>[0-9]{1,15})\s")
# A line of the log, or how many nccl.sh counted: "12 via ...". A network has the name of its plugin; the number of
# its device follows, the process in between if there is one, and how memory is used.
_VIA = re.compile(
    r"^(?:\s*(?P<count>[0-9]{1,9})|.*\D)\s+via (?:(?P<other>P2P|SHM)(?:/|\s|$)"
    r"|(?P<net>NET/[A-Za-z0-9_. -]{1,40})/(?P<device>[0-9]{1,3})(?:\([0-9]{0,6}\))?(?P<rest>[A-Za-z0-9/()_-]{0,80}))"
)
_USING = re.compile(r"NET/[A-Za-z0-9_. -]{1,40} ?: Using (?P<devices>\[[0-9]{1,3}\].{1,4000})")
# One device of NCCL may stand for several: "[0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}", or one that it made of others.
_LISTED = re.compile(
    r"\[(?P<number>[0-9]{1,3})\](?:=\{(?P<several>[^}]{1,1000})\}|(?P<one>[A-Za-z0-9_.-]{1,64}:[0-9]{1,3}))"
)
_MEMBER = re.compile(r"\[[0-9]{1,3}\] ?(?P<device>[A-Za-z0-9_.-]{1,64}:[0-9]{1,3})")
_MADE = re.compile(r"Made virtual device \[(?P<number>[0-9]{1,3})\] name=(?P<names>[A-Za-z0-9_.+-]{1,400})")
_NETWORK = re.compile(r"Using network (?P<name>[A-Za-z0-9_.-]{1,64})")
_VERSION = re.compile(r"NCCL version (?P<version>[0-9][0-9A-Za-z.+-]{1,40})")
_WARN = re.compile(r"NCCL WARN (?P<text>.{1,300})")
_MOST_WARNINGS = 3


@dataclass
class Run:
    """One collective as one pod saw it. ``value``: bus bandwidth out of place in GB/s; ``ranks``: GPUs by group.

    ``wrong``: how many values were wrong, None when they were not checked.
    """

    rc: int | None = None
    size: int | None = None
    value: float | None = None
    wrong: float | None = None
    ranks: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    transports: Counter[str] = field(default_factory=Counter)
    # Number of a device of NCCL -> the RDMA devices that it stands for; and the numbers that connections use.
    listed: dict[int, set[str]] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    networks: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    cut: bool = False
    said: str = ""

    @property
    def devices(self) -> set[str]:
        """The RDMA devices that NCCL found."""
        return {name for names in self.listed.values() for name in names}

    def rails(self) -> set[str]:
        """Return the RDMA devices over which connections go; the number of one that is not in NCCL's list."""
        return {name for number in self.used for name in self.listed.get(number, {str(number)})}


@dataclass
class Pod:
    """What a pod printed: its collectives by number, its environment, whether it came to its end."""

    runs: dict[int, Run]
    environment: Mapping[str, str]
    done: bool
    problem: str = ""


def parse(text: str) -> Pod:
    """Return what a pod printed; lines outside of the frames are taken for the reason why it ended."""
    pod = Pod({}, {}, False)
    environment: dict[str, str] = {}
    part, run = "", Run()
    for line in text.splitlines():
        number = _number(line)
        if line.startswith((BEGIN, LOG)) and number is not None:
            part, run = LOG if line.startswith(LOG) else BEGIN, pod.runs.setdefault(number, Run())
        elif line.startswith(END) and number is not None:
            part, pod.runs.setdefault(number, Run()).rc = "", _code(line)
        elif line == CUT:
            run.cut = True
        elif line.startswith(_MARK):
            part, pod.done = line if line == ENVIRONMENT else "", pod.done or line == DONE
        elif part == ENVIRONMENT and _SETTING.match(line):
            name, _equals, value = line.partition("=")
            environment[plain(name, 64)] = plain(value, 300)
        elif part == LOG:
            _log_line(run, line)
        elif part == BEGIN:
            _output_line(run, line)
        elif line.strip():
            pod.problem = plain(line, 300)
    pod.environment = environment
    return pod


def _number(line: str) -> int | None:
    word = line.split(" ")[4] if line.startswith((BEGIN, LOG, END)) else ""
    return int(word) if re.fullmatch("[0-9]{1,3}", word) else None


def _code(line: str) -> int | None:
    found = re.search(r" rc=([0-9]{1,3})$", line)
    return int(found[1]) if found else None


def _output_line(run: Run, line: str) -> None:
    row, rank, bad = _ROW.match(line), _RANK.match(line), _BAD.match(line)
    if row:
        run.size, run.value = int(row["size"]), _float(row["busbw"])
        found = None if row["wrong"] == "N/A" else _float(row["wrong"])
        run.wrong = found if run.wrong is None else max(run.wrong, found or 0.0)
    elif rank:
        run.ranks[rank["group"] or "0"] += 1
        run.models[plain(rank["model"].strip(), 60)] += 1
    elif bad:
        # Of both kinds of buffers; 0 is also said where nothing was checked.
        run.wrong = max(run.wrong or 0.0, float(bad["bad"])) if int(bad["bad"]) else run.wrong
    elif line.strip() and not line.startswith("#"):
        run.said = plain(line, 300)


def _log_line(run: Run, line: str) -> None:
    via, using, made = _VIA.match(line), _USING.search(line), _MADE.search(line)
    if via:
        kind = via["other"] or via["net"] + ("/GDRDMA" if "/GDRDMA" in via["rest"] else "")
        run.transports[kind] += int(via["count"] or 1)
        if via["device"]:
            run.used.add(int(via["device"]))
    elif using:
        for found in _LISTED.finditer(using["devices"]):
            own = {found["one"]} if found["one"] else set(_MEMBER.findall(found["several"]))
            run.listed.setdefault(int(found["number"]), set()).update(own)
    elif made:
        names = made["names"].split("+")
        run.listed[int(made["number"])] = {one for one in run.devices if one.partition(":")[0] in names}
    elif _NETWORK.search(line):
        run.networks.update(_NETWORK.findall(line))
    elif _VERSION.search(line):
        run.versions.update(_VERSION.findall(line))
    elif _WARN.search(line) and len(run.warnings) < _MOST_WARNINGS:
        run.warnings += [plain(text, 300) for text in _WARN.findall(line)]


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
