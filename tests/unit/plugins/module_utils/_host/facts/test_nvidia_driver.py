"""The NVIDIA driver's own words, as users have published them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.nvidia_driver import NvidiaDriver

OPEN = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build  (dvs-builder@U16-I3-B03-4-3)
GCC version:  gcc version 14.2.1 20240801 (Red Hat 14.2.1-1) (GCC)
"""
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OPEN, NvidiaDriver("555.58.02", True)),
        (CLOSED, NvidiaDriver("535.129.03", False)),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  560.35.03", NvidiaDriver("560.35.03", True)),
        ("", None),
        ("NVRM version: something else", None),
    ],
)
def test_version_and_flavour(text: str, expected: NvidiaDriver | None) -> None:
    assert NvidiaDriver.from_proc(text) == expected


def test_how_messages_name_it() -> None:
    assert NvidiaDriver("535.129.03", False).title == "NVIDIA driver 535.129.03 (closed kernel modules)"
    assert NvidiaDriver("535.129.03", False).branch == 535


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    NvidiaDriver.from_proc(text)
    NvidiaDriver.from_proc(f"Kernel Module  {text}")
