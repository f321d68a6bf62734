# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which CPUs a tester may use, and how often its CPU limit stopped it. perftest keeps a CPU busy for each test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .perftest import Run

# From this share of the periods of its CPU limit on in which it was stopped, a tester says nothing about a low reading.
THROTTLED = 0.05
STOPPED, PERIODS = "nr_throttled", "nr_periods"


def share(amounts: Mapping[str, int]) -> float:
    """Return in which share of the periods the limit stopped a tester, by the growth of its counters."""
    periods = amounts.get(PERIODS, 0)
    return min(1.0, amounts.get(STOPPED, 0) / periods) if periods else 0.0


def stopped(amounts: Mapping[str, int]) -> bool:
    """Return whether the limit stopped a tester for so long that a low reading says nothing."""
    return share(amounts) >= THROTTLED


def throttled(sides: Mapping[str, Run | None]) -> dict[str, float]:
    """Return by name whose tester was stopped for so long that a low reading says nothing; ``sides``: by name.

    Of a run without its seconds nothing counts for the port, so nothing would show what was left out.
    """
    return {name: share(run.amounts) for name, run in sides.items() if run and run.ran and stopped(run.amounts)}


def text(parts: Mapping[str, float]) -> str:
    """Return the sentence about testers that were stopped."""
    told = ", ".join(f"{name} in {part:.0%} of the time" for name, part in parts.items())
    return f"the CPU limit stopped the tester of {told}"


def count(cpus: str) -> int:
    """Return how many CPUs a list such as ``0-3,8`` has."""
    ends = (part.partition("-") for part in cpus.split(",") if part not in ("", "-"))
    return sum(max(0, int(last or first) - int(first) + 1) for first, _dash, last in ends)


def sentences(host: Mapping[str, str], tests: int) -> Iterator[str]:
    """Yield what is wrong with the CPUs of testers that run ``tests`` at once; ``host``: what each described."""
    allowed, online = count(host.get("allowed", "-")), count(host.get("online", "-"))
    quota = host.get("quota", "-")
    limit = float(quota) if quota != "-" else 0.0
    if allowed and allowed < online and allowed < tests:
        yield (
            f"a tester can use {allowed} of {online} CPUs ({host['allowed']}) for {tests} tests at once, so"
            " they share cores and can read low. Give it more CPUs (cpus, for pods)"
        )
    if limit and limit < tests:
        yield (
            f"the CPU limit of a tester is {limit:g}, and {tests} tests at once need as many CPUs. Set"
            f" cpus to {tests + 1}, or remove the limit (a LimitRange of the namespace sets one)"
        )
    elif limit and allowed > limit:
        yield (
            f"a tester has a limit of {limit:g} CPUs and no CPUs of its own (it can use {allowed}), so other"
            " processes can use the same cores. Set the CPU manager policy of the kubelet to static, or cpus to 0"
        )
