"""Which hosts are in use by their facts, and what a run does with them. Cost: below 1 s."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.busy import busy, decide, read

UNREAD = (
    "it cannot be read how many RDMA queue pairs are open, so jobs may use the rails. Install the rdma tool of iproute2"
)
IDLE = {"workloads": {"queue_pairs": 0, "holders": []}}
BUSY = {"workloads": {"queue_pairs": 4, "holders": ["python3[4711]", "a\x1b[1mb"]}}
BLIND = {"workloads": {"queue_pairs": None, "holders": []}}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (IDLE, None),
        ({}, None),
        (BUSY, "4 RDMA queue pairs are open (python3[4711], a?[1mb)"),
        ({"workloads": {"queue_pairs": 1}}, "1 RDMA queue pairs are open (holder unknown)"),
        (BLIND, UNREAD),
        ({"workloads": 3}, UNREAD),
        ({"workloads": {"queue_pairs": "0"}}, UNREAD),
        ({"workloads": {"queue_pairs": False}}, UNREAD),
        ({"hostname": "x"}, UNREAD),
    ],
)
def test_a_host_is_idle_only_if_its_facts_show_it(facts: dict[str, Any], expected: str | None) -> None:
    assert busy({"h": facts}).get("h") == expected


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    )
)
def test_whatever_a_host_reports(value: Any) -> None:
    found = busy({"a": value, "b": {"workloads": value}, "c": {"workloads": {"queue_pairs": value, "holders": value}}})
    assert "b" in found
    assert all(text.isprintable() and len(text) < 400 for text in found.values())
    assert ("c" in found) == (type(value) is not int or value != 0)


def test_what_a_run_does() -> None:
    found = busy({"gpu-1": IDLE, "gpu-2": BUSY, "gpu-3": BLIND})
    assert decide(True, found) == ({}, "")
    assert decide("exclude", found) == (
        {
            "gpu-2": "the host is in use or may be: 4 RDMA queue pairs are open (python3[4711], a?[1mb)",
            "gpu-3": f"the host is in use or may be: {UNREAD}",
        },
        "",
    )
    left_out, refused = decide(False, found)
    assert left_out == {}
    assert refused == (
        "Nothing was measured, since measuring would disturb hosts in use. gpu-2: 4 RDMA queue pairs are open"
        f" (python3[4711], a?[1mb), gpu-3: {UNREAD}. Wait for the jobs to end"
    )
    assert decide("no", busy({"gpu-1": IDLE})) == ({}, "")


@pytest.mark.parametrize(
    ("asked", "expected"), [(True, "true"), ("yes", "true"), ("False", "false"), (" Exclude", "exclude")]
)
def test_words_of_the_option(asked: Any, expected: str) -> None:
    assert read(asked) == expected


def test_other_words_are_refused() -> None:
    with pytest.raises(InputError, match="busy_hosts: 'maybe' is not known. Set true"):
        read("maybe")
