"""When the other way to exchange addresses is worth a try, and what is said when it worked."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.exchange import (
    exchange_args,
    exchange_failed,
    exchange_warning,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import Run

WAITED = Run(143, "")


@pytest.mark.parametrize(
    ("exchange", "text", "failed"),
    [
        ("cm", "Unexpected CM event bl blka 7", True),
        ("cm", "rdma_resolve_route failed", True),
        ("cm", "Received 10 times ADDR_ERROR", True),
        ("plain", "Couldn't connect to 192.168.0.3:18515", True),
        ("plain", "Found Incompatibility issue with GID types.", True),
        ("plain", "Failed to modify QP 72 to RTR", True),
        ("cm", "Failed to modify QP 72 to RTR", False),
        ("plain", "Unexpected CM event bl blka 7", False),
        ("cm", "Failed status 12: wr_id 0 syndrom 0x81", False),
        ("", "Couldn't connect to 192.168.0.3:18515", False),
    ],
)
def test_only_a_failed_exchange_is_worth_the_other_way(exchange: str, text: str, failed: bool) -> None:
    run = Run(1, text, exchange=exchange)
    assert exchange_failed(run, WAITED) is exchange_failed(WAITED, run) is failed
    assert not exchange_failed(Run(0, text, exchange=exchange), None)


@pytest.mark.parametrize(
    ("rdma_cm", "traffic_class", "options"),
    [
        (False, None, []),
        (True, None, ["-R"]),
        (False, 106, ["--tclass=106"]),
        # perftest ignores --tclass with RDMA-CM, and ends if -T is given without it.
        (True, 106, ["-R", "-T", "106"]),
        (True, 0, ["-R", "-T", "0"]),
    ],
)
def test_options(rdma_cm: bool, traffic_class: int | None, options: list[str]) -> None:
    assert exchange_args(rdma_cm, traffic_class) == options


@pytest.mark.parametrize(
    ("asked", "used", "text"),
    [
        ("cm", "plain", "measured with the plain exchange of addresses, since RDMA-CM failed (why)"),
        ("plain", "cm", "measured with RDMA-CM, since the plain exchange of addresses failed (why)"),
        ("cm", "cm", ""),
        ("cm", "", ""),
    ],
)
def test_warning(asked: str, used: str, text: str) -> None:
    assert exchange_warning(asked, used, "why") == text
