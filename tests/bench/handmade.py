"""Part of `make bench`: a converged prepare against tests/bench/plain, on fixture trees with 8 rails per host.

`python -m tests.bench.handmade [HOSTS ...]` prints a table. Both run on hosts like those of tests/bench/loopback.py, in
turns, with the same forks. The plain role does less, so the ratio is a lower bound: it installs no packages, sets no
kernel arguments, needs no plan and checks nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import Row, loopback, sizes, table
from tests.bench.loopback import Measured
from tests.tools import loopback as fixtures
from tests.tools.environment import REPO

ENTRIES, TURNS = 10, 3
# At least eight times less wall time than the plain role.
SHARE = 1 / 8
PLAIN = REPO / "tests" / "bench" / "plain" / "playbook.yml"
UNIT = "systemd-networkd.service"
# Folders that each Debian has; the roles of this collection make them where they are missing.
FOLDERS = ("modules-load.d", "security/limits.d", "sysctl.d", "systemd/network")
# What the plain role asks of programs beside those that prepare needs.
PRINTS = {
    "modprobe": "",
    f"systemctl show {UNIT}": f"Id={UNIT}\nLoadState=loaded\nActiveState=active\nSubState=running\n",
    f"systemctl is-enabled {UNIT}": "enabled\n",
    f"systemctl is-enabled {UNIT} -l": "enabled\n",
}


def main(entries: int = ENTRIES) -> list[Row]:
    names = [f"gpu-{number:04d}" for number in range(1, entries + 1)]
    with tempfile.TemporaryDirectory(prefix="gpufabric-handmade-") as folder:
        ours, plain = (Path(folder).resolve() / name for name in ("ours", "plain"))
        # Trees of its own for each, so that neither finds the files of the other.
        books = {ours: ours / "playbooks" / "prepare.yml", plain: PLAIN}
        inventories = {work: make_hosts(work, names) for work in books}
        fixtures.make_playbooks(ours / "playbooks", fixtures.path_defaults())
        for work, book in books.items():
            loopback.measure(work, inventories[work], names, book=book)
        turns = [
            [
                loopback.measure(work, inventories[work], names, book=book, converged=True)
                for work, book in books.items()
            ]
            for _turn in range(TURNS)
        ]
    return rows(entries, turns)


def make_hosts(work: Path, names: list[str]) -> Path:
    work.mkdir()
    return fixtures.make_hosts(work, names, extra=plain_variables, programs=PRINTS)


def plain_variables(tree: Path, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the plain role for a host, and make what it needs in the tree: folders, prints."""
    links = json.loads((tree / "prints" / "ip -d -j addr show").read_text())
    by_name = {link["ifname"]: link for link in links}
    for rail in own["rails"]:
        shown = json.dumps([{**by_name[rail["netdev"]], "flags": ["BROADCAST", "UP", "LOWER_UP"]}])
        (tree / "prints" / f"ip -json address show dev {rail['netdev']}").write_text(shown)
    rules = "".join(f"{value}\n" for value in (2, 1, 2)) * len(own["rails"])
    (tree / "prints" / "sysctl").write_text(rules)
    for folder in FOLDERS:
        (tree / "etc" / folder).mkdir(parents=True, exist_ok=True)
    rails = [
        {"driver": "mlx5_core", **{key: rail[key] for key in ("netdev", "pci", "mtu", "address")}}
        for rail in own["rails"]
    ]
    return {
        "plain_hosts": {own["name"]: rails},
        "plain_root": str(tree),
        "plain_packages": [],
        "plain_soft_roce": False,
    }


def rows(entries: int, turns: list[list[Measured]]) -> list[Row]:
    """Return the medians of the turns, and their ratio."""
    name = f"{entries} entries on loopback with 8 rails"
    ours, plain = zip(*turns)
    wall, other = (median(run.wall for run in runs) for runs in (ours, plain))
    return [
        (f"{name}: module executions a host, converged prepare", ours[0].executions, "", loopback.EXECUTIONS),
        (f"{name}: module executions a host, plain role", plain[0].executions, "", None),
        (f"{name}: wall time, converged prepare", wall, "s", None),
        (f"{name}: wall time, plain role", other, "s", None),
        (f"{name}: processor time of Ansible a host, plain role", plain[0].controller / entries, "s", None),
        (f"{name}: prepare / plain role, wall time", wall / other, "", SHARE),
    ]


if __name__ == "__main__":
    for entries in sizes(__doc__, ENTRIES):
        print(table(main(entries)), flush=True)
