"""`make soak`: what is too long for `make test`. Healthy and faulty fabrics that must be told right, again and again,
power cuts during prepare.

Everything is seeded and bounded; each step prints what it did and how it ended. Exit code 0 only when all held.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time

from tests.scenario import REPO, lab, playbook, report
from tests.scenario.preparation import WISHES, cut_in, prepare, unfinished
from tests.scenario.state import files
from tests.tools import environment, fuzz, planted_faults

STEPS = (
    "fuzz",
    "properties",
    "repeat",
    "diagnosis",
    "power cut",
    "hosts",
    "batches",
    "managers",
    "sriov_faults",
)
CUT_HOST = "lab-2"
ON_HOSTS = ("-e", '{"rdma_validate_where": ["host"]}')


def main() -> int:
    options = arguments()
    if set(options.only) - {"fuzz", "properties"}:
        lab("up")
    problems: list[str] = []
    done = (
        parsers,
        properties,
        repeat,
        diagnosis,
        power_cuts,
        hosts,
        batches,
        managers,
        sriov_faults,
    )
    for name, steps in zip(STEPS, done):
        if name in options.only:
            problems += [f"{name}: {problem}" for problem in steps(options)]
    print("\n".join(["", f"soak: {len(problems)} problems", *problems]))
    return 1 if problems else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.tools.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=10, help="healthy measurements in a row")
    parser.add_argument("--cuts", type=int, default=20, help="power cuts at random points of prepare")
    parser.add_argument("--faults", type=int, default=10, help="planted faults of each kind")
    parser.add_argument("--resume", action="store_true", help="add these faults to those of earlier runs")
    parser.add_argument("--fuzz-seconds", type=float, default=600, help="seconds for all parsers together")
    parser.add_argument("--only", nargs="+", default=STEPS, choices=STEPS)
    return parser.parse_args()


def parsers(options: argparse.Namespace) -> list[str]:
    """Parsers take what a host, a tool or a file says, however damaged."""
    return fuzz.fuzz(options.fuzz_seconds, options.seed)


def properties(options: argparse.Namespace) -> list[str]:
    """What holds for every input, with examples that no run before had."""
    env = {**environment.environ(), "HYPOTHESIS_PROFILE": "soak"}
    done = subprocess.run(["pytest", "tests/unit", "-m", "hypothesis"], cwd=REPO, env=env)
    return [] if done.returncode == 0 else ["a property does not hold, see above"]


def repeat(options: argparse.Namespace) -> list[str]:
    """A healthy fleet is judged healthy, every time."""
    lab("reset")
    playbook("prepare").must()
    problems = []
    for number in range(1, options.repeats + 1):
        run = playbook("validate", *ON_HOSTS)
        if run.rc:
            bad = [r for r in report()["results"] if r["verdict"] != "pass"]
            problems.append(f"measurement {number} of a healthy fleet: {json.dumps(bad)[:500]}")
    return problems


def diagnosis(options: argparse.Namespace) -> list[str]:
    """Planted faults are found and nothing else is diagnosed; writes docs/diagnosis-lab.md."""
    return planted_faults.run(options.faults, options.seed, options.resume)


def power_cuts(options: argparse.Namespace) -> list[str]:
    """Cut lab-2's power at random points of a full preparation; the next run converges and no file is half written."""
    only, consent = ("--limit", CUT_HOST), {"host_reboot_allowed": True}
    lab("reset")
    seconds = prepare(*only, **consent).must().seconds
    after = files(CUT_HOST)
    chance = random.Random(options.seed)
    return [p for number in range(options.cuts) for p in one_cut(number, chance.uniform(2, seconds), after)]


def one_cut(number: int, seconds: float, after: dict[str, str]) -> list[str]:
    """Cut the power once, prepare again; what was wrong."""
    lab("reset")
    # The point of the cut is what is chosen here; nothing waits for a condition by it.
    cut = cut_in(CUT_HOST, {**WISHES, "host_reboot_allowed": True}, lambda: time.sleep(seconds))
    found = [cut.damaged, *(f"half-written {path}" for path in unfinished(cut, after))]
    prepare("--limit", CUT_HOST, host_reboot_allowed=True).must()
    found += [f"not converged: {line}" for line in prepare("--limit", CUT_HOST).must().changed]
    now = files(CUT_HOST)
    found += [f"not as without the cut: {path}" for path in {**after, **now} if after.get(path) != now.get(path)]
    problems = [f"cut {number} after {seconds:.0f} s: {one}" for one in found if one]
    print("\n".join(problems or [f"cut {number} after {seconds:.0f} s: right"]), flush=True)
    return problems


def hosts(options: argparse.Namespace) -> list[str]:
    """One host in full without consent, with a power cut, and back."""
    return scenario("hosts")


def batches(options: argparse.Namespace) -> list[str]:
    """Reboots of several hosts, a host that does not come back, packages of a vendor."""
    return scenario("batches")


def managers(options: argparse.Namespace) -> list[str]:
    """Rails under NetworkManager, netplan, and networkd beside NetworkManager."""
    return scenario("managers")


def sriov_faults(options: argparse.Namespace) -> list[str]:
    """The real SR-IOV operator when something is wrong, on VFs of the role sriov; the RDMA shared device plugin."""
    return scenario("sriov_faults")


def scenario(name: str) -> list[str]:
    """A scenario that is too long for `make test`."""
    lab("reset")
    argv = [sys.executable, "-m", "pytest", f"molecule/{name}/tests", "-v", "--tb=short", "--capture=no"]
    return [] if subprocess.run(argv, cwd=REPO).returncode == 0 else ["see the tests above"]


if __name__ == "__main__":
    sys.exit(main())
