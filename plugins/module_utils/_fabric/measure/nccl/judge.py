# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a collective: it ran over RDMA on all rails, its values are right, and it is fast enough.

NCCL hides which port is slow, so nothing here is a diagnosis of a port: that is the measurement with perftest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...intent.nccl import NETWORK
from ..judge.verdict import FAIL, NO_DATA, PASS
from .limits import BITS, Limit, carried, far, limit
from .output import Pod, Run
from .units import Collective, Unit, options

# What is measured above the rails' rate is no measurement.
_ABOVE = 1.02
# Networks of NCCL and its plugins that use RDMA; sockets do not, and what another plugin uses is not known.
_RDMA, _SOCKET, _DIRECT = re.compile(r"NET/(IB|.*RDMA)"), "NET/Socket", "/GDRDMA"


def judge(
    plan: Mapping[str, Any], unit: Unit, what: Sequence[Collective], *, pods: Mapping[str, Pod], gpus: int
) -> list[dict[str, Any]]:
    """Return one result for each collective of a unit. ``pods``: host -> what its pod printed."""
    return [_result(plan, unit, one, number=number, pods=pods, gpus=gpus) for number, one in enumerate(what, 1)]


def unmeasured(unit: Unit, what: Sequence[Collective], reason: str) -> list[dict[str, Any]]:
    """Return the results of a unit that did not run."""
    return [_row(unit, one, Run(), wanted=Limit(None, ""), verdict=NO_DATA, reasons=[reason]) for one in what]


def _result(
    plan: Mapping[str, Any], unit: Unit, what: Collective, *, number: int, pods: Mapping[str, Pod], gpus: int
) -> dict[str, Any]:
    runs = {host: pods[host].runs.get(number, Run()) for host in unit.hosts if host in pods}
    first = next((run for run in runs.values() if run.value is not None), Run())
    joined = _joined(first, runs.values())
    model = joined.models.most_common(1)[0][0] if joined.models else ""
    wanted = limit(plan, unit, what, gpus=gpus, model=model)
    # A value that is wrong is so however the program ended, and only then does it end with an error.
    bad = sum(run.wrong or 0.0 for run in runs.values())
    if bad:
        reasons = [f"{bad:g} values were wrong"]
        return _row(unit, what, joined, wanted=wanted, verdict=FAIL, reasons=reasons)
    missing = (
        _missing(unit, what, pods, runs=runs, gpus=gpus)
        or _unknown(plan, runs, wrong=first.wrong)
        or _impossible(plan, unit, what, run=joined, gpus=gpus)
    )
    if missing:
        return _row(unit, what, joined, wanted=wanted, verdict=NO_DATA, reasons=missing)
    wrong = _wrong(plan, unit, runs, joined=joined, wanted=wanted, gpus=gpus)
    return _row(unit, what, joined, wanted=wanted, verdict=FAIL if wrong else PASS, reasons=wrong)


def _joined(first: Run, runs: Iterable[Run]) -> Run:
    """Return what the pods of a unit reported together: the values of one, the transports of all."""
    found = Run(first.rc, first.size, first.value, first.wrong, Counter(first.ranks), Counter(first.models))
    for run in runs:
        found.transports.update(run.transports)
        found.networks.update(run.networks)
        found.versions.update(run.versions)
        found.warnings = [*found.warnings, *run.warnings][:3]
    return found


def _missing(unit: Unit, what: Collective, pods: Mapping[str, Pod], *, runs: Mapping[str, Run], gpus: int) -> list[str]:
    """Return why there is no valid measurement, [] if there is one."""
    absent = [host for host in unit.hosts if host not in pods]
    if absent:
        return [f"no output of {', '.join(absent)}"]
    ended = [f"{host}: {_end(run, pods[host])}" for host, run in runs.items() if run.rc != 0]
    if ended:
        return ended
    cut = [f"the output of {host} was cut" for host, run in runs.items() if run.cut]
    values = [run for run in runs.values() if run.value is not None]
    if cut or len(values) != 1 or not values[0].value:
        return cut or [f"{len(values)} pods reported a bus bandwidth above 0, expected 1"]
    ranks, expected = values[0].ranks, what.ranks(len(unit.hosts), gpus)
    if set(ranks.values()) != {expected} or sum(ranks.values()) != len(unit.hosts) * gpus:
        found = ", ".join(f"{count} GPUs" for count in sorted(set(ranks.values()))) or "none"
        return [f"communicators with {found}, expected {expected} GPUs in each of {len(unit.hosts) * gpus // expected}"]
    unknown = [host for host, run in runs.items() if not any(kind.startswith("NET/") for kind in run.transports)]
    if unknown:
        return [f"NCCL logged no connection over a network on {', '.join(unknown)}, so its transport is not known"]
    return []


def _unknown(plan: Mapping[str, Any], runs: Mapping[str, Run], *, wrong: float | None) -> list[str]:
    """Return what a measurement does not tell although a verdict needs it."""
    found = [] if wrong is not None else ["the values were not checked"]
    kinds = {kind.partition(_DIRECT)[0] for run in runs.values() for kind in run.transports if kind.startswith("NET/")}
    strange = sorted(kind for kind in kinds if kind != _SOCKET and not _RDMA.match(kind))
    if strange:
        found.append(f"it is not known whether {', '.join(strange)} uses RDMA")
    for host, run in runs.items():
        count = len(_rails(plan, host))
        if not run.listed and len(run.used) < count:
            found.append(f"NCCL did not log its RDMA devices on {host}, and used {len(run.used)} for {count} rails")
    return found


def _rails(plan: Mapping[str, Any], host: str) -> list[str]:
    return [name for name, own in plan["expectations"].items() if host in own]


def _impossible(plan: Mapping[str, Any], unit: Unit, what: Collective, *, run: Run, gpus: int) -> list[str]:
    """Return why a value is not valid: another size, or more than a GPU's share of the rails on the network alone."""
    value, size = run.value, options(plan)["size"]
    # nccl-tests rounds a size down to whole elements for each rank.
    if run.size is None or not 0.99 * size <= run.size <= size:
        return [f"the row is about {run.size} bytes, expected {size}"]
    rate = carried(plan, unit.hosts, gpus=gpus).most
    most = rate / BITS / gpus if rate and what.path == NETWORK else None
    if most and value and value > most * _ABOVE:
        return [f"invalid reading: {value:g} GB/s, the rails carry {most:.0f} GB/s for each GPU"]
    return []


def _end(run: Run, pod: Pod) -> str:
    said = run.warnings[0] if run.warnings else run.said or pod.problem
    code = "it did not run" if run.rc is None else f"it ended with exit code {run.rc}"
    return f"{code}: {said}" if said else code


def _wrong(
    plan: Mapping[str, Any], unit: Unit, runs: Mapping[str, Run], *, joined: Run, wanted: Limit, gpus: int
) -> list[str]:
    """Return what is wrong with a measurement, the transport first, since it explains a low value."""
    kinds = {kind: count for kind, count in joined.transports.items() if _RDMA.match(kind)}
    staged = sum(count for kind, count in kinds.items() if not kind.endswith(_DIRECT))
    # Where GPUs are far from rails, NCCL may use host memory, and leave out rails.
    near = not far(plan, unit.hosts, gpus)
    found = []
    if joined.transports.get(_SOCKET):
        found.append(f"NCCL used {_SOCKET} instead of RDMA for some connections")
    if staged and near:
        of = sum(kinds.values())
        found.append(f"{staged} of {of} connections over RDMA did not use GPUDirect (no GDRDMA in the log)")
    for host, run in runs.items():
        rails, used = len(_rails(plan, host)), len(run.rails())
        if run.listed and len(run.devices) < rails:
            found.append(f"NCCL found {len(run.devices)} RDMA devices of {host}, which has {rails} rails")
        elif near and used < min(rails, gpus):
            found.append(f"NCCL used {used} rails of {host}, which has {rails}")
    if wanted.value is not None and (joined.value or 0.0) < wanted.value:
        found.append(f"{joined.value:g} GB/s, expected at least {wanted.value:g} GB/s ({wanted.source})")
    return found


def _row(
    unit: Unit, what: Collective, run: Run, *, wanted: Limit, verdict: str, reasons: Sequence[str]
) -> dict[str, Any]:
    return {
        "unit": unit.name,
        "scope": unit.scope,
        "hosts": list(unit.hosts),
        "collective": what.collective,
        "path": what.path,
        "size": run.size,
        "value": run.value,
        "unit_of_value": "GB/s",
        "expected": wanted.value,
        "expected_from": wanted.source,
        "verdict": verdict,
        "reason": "; ".join(reasons),
        "transports": dict(sorted(run.transports.items())),
        "nccl": sorted(run.versions),
        "gpu": next(iter(run.models), ""),
        "warnings": list(run.warnings),
    }
