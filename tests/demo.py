"""`make demo`: the lab, site.yml on it, the verdict. Prints each step with its seconds; exits 0 only when all pass."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from tests import environment

REPO = environment.REPO
REPORT = REPO / ".demo" / "report"


def main() -> int:
    seconds: dict[str, float] = {}
    for name, argv in (
        ("environment", [sys.executable, "tests/environment.py"]),
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
    show(seconds)
    return verdict(done.returncode)


def show(seconds: dict[str, float]) -> None:
    REPORT.parent.mkdir(exist_ok=True)
    (REPORT.parent / "times.json").write_text(json.dumps(seconds, indent=2) + "\n")
    print("\n== " + ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items()))
    table = REPORT / "report.txt"
    if "site.yml" in seconds and table.is_file():
        print(table.read_text().rstrip())
        print(f"report: {REPORT / 'report.html'}")


def verdict(rc: int) -> int:
    """0 only when the playbook ended well and its report says pass."""
    if rc:
        return rc
    return 0 if json.loads((REPORT / "report.json").read_text())["verdict"] == "pass" else 1


if __name__ == "__main__":
    sys.exit(main())
