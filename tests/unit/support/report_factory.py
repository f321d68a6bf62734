"""Made-up plans and results for tests of reports: N hosts, R rails, with planted failures and all that judges add.

plan(3, 1), results(3, 1, bad)              # every ordered pair, tables of two lines
fleet(1024, 8, rounds=8, faults={...})      # the arguments of summary.build for a sampled fleet, with diagnoses
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

Faults = Mapping[tuple[str, str], str]
EXPECTED, LINE = 186.3, 196.0
SERVER = "ib_write_bw -d mlx5_3 -i 1 -x 3 -p 18500 -F --report_gbits -c RC -q 4 -s 65536 -t 128 -D 10 -f 2"


def plan(hosts: int, rails: int) -> dict[str, Any]:
    """A plan with what reports read of it."""
    return {
        "schema": 1,
        "hosts": {
            f"gpu-{h:03d}": {
                "node": f"gpu-{h:03d}",
                "rails": [
                    {
                        "rail": f"rail{r}",
                        "pci": f"0000:{16 + r:02x}:00.0",
                        "netdev": f"rail{r}",
                        "address": f"192.168.{r + 8 * (h // 250)}.{h % 250 + 1}/24",
                        "mtu": 9000,
                    }
                    for r in range(rails)
                ],
            }
            for h in range(hosts)
        },
    }


def result(client: str, server: str, **changes: Any) -> dict[str, Any]:
    """A result that passed, with some fields changed."""
    base = {
        "where": "host",
        "rail": "rail0",
        "client": client,
        "server": server,
        "test": "write_bw",
        "value": 98.01,
        "unit": "Gb/s",
        "expected": 93.1,
        "bound_by": "link",
        "verdict": "pass",
        "reason": "",
        "passes": [{"pass": 1, "value": 98.01, "verdict": "pass", "reason": ""}],
    }
    return {**base, **changes}


def results(hosts: int, rails: int, bad: dict[tuple[str, str], tuple[str, str]] | None = None) -> list[dict[str, Any]]:
    """Every ordered pair on every rail; ``bad``: (host, rail) -> (verdict, reason) of all that touch it."""
    names = list(plan(hosts, rails)["hosts"])
    return [
        one(client, server, f"rail{r}", bad or {})
        for r in range(rails)
        for client in names
        for server in names
        if client != server
    ]


def one(client: str, server: str, rail: str, bad: dict[tuple[str, str], tuple[str, str]]) -> dict[str, Any]:
    for name in (client, server):
        if (name, rail) in bad:
            verdict, reason = bad[name, rail]
            value = None if verdict == "no_data" else 12.5
            return result(
                client,
                server,
                rail=rail,
                value=value,
                verdict=verdict,
                reason=reason,
                passes=[{"pass": 1, "value": value, "verdict": verdict, "reason": reason}],
            )
    return result(client, server, rail=rail)


def sampled(names: list[str], rounds: int) -> list[tuple[str, str]]:
    """Ordered pairs of ``rounds`` rounds in which nobody is used twice: each host meets ``rounds`` others."""
    count = len(names)
    pairs = {
        frozenset((names[a], names[(offset - a) % (count - 1)] if (offset - a) % (count - 1) != a else names[-1]))
        for offset in (7 * turn + 1 for turn in range(rounds))
        for a in range(count - 1)
    }
    ordered = sorted(tuple(sorted(pair)) for pair in pairs if len(pair) == 2)
    return [pair for a, b in ordered for pair in ((a, b), (b, a))]


def fleet(hosts: int, rails: int, rounds: int = 0, faults: Faults | None = None) -> dict[str, Any]:
    """The arguments of summary.build; ``rounds`` 0: all pairs. ``faults``: (host, rail) -> cable, slow, receive, pair.

    A pair is bad between the host and the next one only. Whoever meets two faults has the reason of the first.
    """
    planned = plan(hosts, rails)
    names = list(planned["hosts"])
    pairs = sampled(names, rounds) if rounds else [(a, b) for a in names for b in names if a != b]
    made = [
        measured(client, server, f"rail{rail}", faults or {}, names)
        for rail in range(rails)
        for client, server in pairs
    ]
    diagnoses = [diagnosis(host, rail, kind, made, names) for (host, rail), kind in (faults or {}).items()]
    schedule = [
        {
            "where": "host",
            "mode": "sampled" if rounds else "all pairs",
            "rounds": 2 * (rounds or hosts - 1),
            "slot": 14,
            "seconds": 28 * (rounds or hosts - 1),
            "passes": 2,
            "share": 0.83,
            "lateness": {names[0]: 0.2, names[-1]: 1.4},
            "text": "every host met others on all rails at once",
        }
    ]
    links = (
        [
            {
                "host": names[1],
                "rail": "rail0",
                "kind": "pcie",
                "found": "x8 16 GT/s",
                "expected": "x16 16 GT/s",
                "text": f"{names[1]} rail0: PCIe x8 of x16 lanes came up",
            }
        ]
        if faults
        else []
    )
    return {
        "plan": planned,
        "results": made,
        "warnings": [],
        "context": {"written": "2026-11-21 03:12 UTC"},
        "parts": {"diagnoses": diagnoses, "links": links, "schedule": schedule},
    }


def measured(client: str, server: str, rail: str, faults: Faults, names: list[str]) -> dict[str, Any]:
    """One result of a fleet, with a value that differs a little from pair to pair, and always in the same way."""
    noise = zlib.crc32(f"{client} {server} {rail}".encode()) % 1000 / 1000
    basis = f"95 % of what RoCE v2 can carry at MTU 4096 on the 200 Gb/s port of {client}"
    base = {"rail": rail, "expected": EXPECTED, "basis": basis, "bound_by": "link"}
    for side, host, peer in (("client", client, server), ("server", server, client)):
        kind = faults.get((host, rail))
        if kind == "cable":
            reason = f"{host} {rail}: port is down"
            return result(
                client,
                server,
                **base,
                value=None,
                verdict="no_data",
                reason=reason,
                passes=[{"pass": n, "value": None, "verdict": "no_data", "reason": reason} for n in (1, 2)],
            )
        next_one = names[(names.index(host) + 1) % len(names)] if kind == "pair" else ""
        if kind == "slow" or (kind == "receive" and side == "server") or (next_one and peer == next_one):
            value = round(22 + noise, 2)
            reason = f"{value} Gb/s measured, {EXPECTED} Gb/s expected ({basis})"
            grown = {side: {"rx_discards_phy": 1000 + int(900 * noise), "out_of_sequence": 17}}
            return result(
                client,
                server,
                **base,
                value=value,
                verdict="fail",
                reason=reason,
                counters=grown,
                passes=[{"pass": 1, "value": value, "verdict": "fail", "reason": reason}],
            )
    value = round(LINE - 6 * noise, 2)
    return result(
        client, server, **base, value=value, passes=[{"pass": 1, "value": value, "verdict": "pass", "reason": ""}]
    )


def diagnosis(host: str, rail: str, kind: str, made: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    """The diagnosis for one planted fault, as the isolation words it."""
    own = [r for r in made if r["rail"] == rail and host in (r["client"], r["server"])]
    failed = [r for r in own if r["verdict"] != "pass"]
    peer = names[(names.index(host) + 1) % len(names)]
    direction = "receive" if kind == "receive" else None
    what = {
        "cable": ("port", "no test passed; the port is down: cable, transceiver or switch port"),
        "slow": ("port", "every test is slow, at most 23 Gb/s of 186 Gb/s: NIC port, cable or PCIe slot"),
        "receive": ("direction", "receives at 23 Gb/s and sends at full rate: check its receive side"),
        "pair": ("pair", f"is slow with {peer} only: the path between these two"),
    }[kind]
    return {
        "where": "host",
        "kind": what[0],
        "rail": rail,
        "host": host,
        "peer": peer if kind == "pair" else None,
        "direction": direction,
        "confidence": "suspected" if kind == "pair" else "confirmed",
        "failed": len(failed),
        "tests": len(own),
        "text": f"{host} {rail}: {what[1]}",
        "evidence": [
            f"{len(failed)} of {len(own)} tests of {host} on {rail} did not pass",
            f"its partners pass with others on {rail}",
            f"{host} passes on its other rails",
        ],
        "reproduce": [f"ssh {host} -- {SERVER}", f"ssh {peer} -- {SERVER} 192.168.3.8"],
    }
