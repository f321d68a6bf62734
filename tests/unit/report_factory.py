"""Made-up plans and results for tests of reports: N hosts, R rails, every ordered pair, with planted failures."""

from __future__ import annotations

from typing import Any


def plan(hosts: int, rails: int) -> dict[str, Any]:
    """A plan with what reports read of it."""
    return {
        "schema": 1,
        "hosts": {
            f"gpu-{h:03d}": {
                "node": f"gpu-{h:03d}",
                "rails": [
                    {"rail": f"rail{r}", "pci": f"0000:{16 + r:02x}:00.0", "netdev": f"rail{r}",
                     "address": f"192.168.{r}.{h + 1}/24", "mtu": 9000}
                    for r in range(rails)
                ],
            }
            for h in range(hosts)
        },
    }


def result(client: str, server: str, **changes: Any) -> dict[str, Any]:
    """A result that passed, with some fields changed."""
    base = {
        "where": "host", "rail": "rail0", "client": client, "server": server, "test": "write_bw", "value": 98.01,
        "unit": "Gb/s", "expected": 93.1, "bound_by": "link", "verdict": "pass", "reason": "",
        "passes": [{"pass": 1, "value": 98.01, "verdict": "pass", "reason": ""}],
    }
    return {**base, **changes}


def results(hosts: int, rails: int, bad: dict[tuple[str, str], tuple[str, str]] | None = None) -> list[dict[str, Any]]:
    """Every ordered pair on every rail; ``bad``: (host, rail) -> (verdict, reason) of all that touch it."""
    names = list(plan(hosts, rails)["hosts"])
    return [
        one(client, server, f"rail{r}", bad or {})
        for r in range(rails) for client in names for server in names if client != server
    ]


def one(client: str, server: str, rail: str, bad: dict[tuple[str, str], tuple[str, str]]) -> dict[str, Any]:
    for name in (client, server):
        if (name, rail) in bad:
            verdict, reason = bad[name, rail]
            value = None if verdict == "no_data" else 12.5
            return result(client, server, rail=rail, value=value, verdict=verdict, reason=reason,
                          passes=[{"pass": 1, "value": value, "verdict": verdict, "reason": reason}])
    return result(client, server, rail=rail)
