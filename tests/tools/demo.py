"""`make demo`: the lab, site.yml on it, the verdict. Prints each step with its seconds; exits 0 only when all pass."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from tests.tools import environment

REPO = environment.REPO
REPORT = REPO / ".demo" / "report"


def main() -> int:
    seconds: dict[str, float] = {}
    before = report().get("run")
    for name, argv in (
        ("environment", [sys.executable, "tests/tools/environment.py"]),
        ("lab", [sys.executable, "-m", "tests.lab", "up"]),
        ("site.yml", ["ansible-playbook", "-i", "inventories/lab", "playbooks/site.yml"]),
    ):
        print(f"\n== {name}: {' '.join(argv)}", flush=True)
        begin = time.monotonic()
        done = subprocess.run(argv, cwd=REPO, env=environment.environ() if name == "site.yml" else None)
        seconds[name] = round(time.monotonic() - begin, 1)
        if done.returncode:
            print(f"\ndemo: {name} failed with exit code {done.returncode} after {seconds[name]:.0f} s")
            break
    made = report()
    new = bool(made) and made.get("run") != before
    show(seconds, new)
    # A playbook that ends well and leaves no report of its own has measured nothing.
    return done.returncode or int(not new or made["verdict"] != "pass")


def report() -> dict[str, Any]:
    """Return the report that is there, {} without one. An earlier demo may have left it."""
    path = REPORT / "report.json"
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def show(seconds: dict[str, float], new: bool) -> None:
    """Print the times, and the table of this run when it has one."""
    REPORT.parent.mkdir(exist_ok=True)
    (REPORT.parent / "times.json").write_text(json.dumps(seconds, indent=2) + "\n")
    print("\n== " + ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items()))
    if new:
        print((REPORT / "report.txt").read_text().rstrip())
        print(f"report: {REPORT / 'report.html'}")


if __name__ == "__main__":
    sys.exit(main())
