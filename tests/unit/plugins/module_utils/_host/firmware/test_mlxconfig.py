"""Outputs of mlxconfig and mstconfig become settings; values compare as values."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError, ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.firmware import mlxconfig
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.firmware.mlxconfig import Setting

FIXTURES = Path(__file__).resolve().parents[5] / "fixtures" / "firmware"


def fixture(name: str) -> str:
    """The output without the lines that say where it is from."""
    text = (FIXTURES / f"{name}.txt").read_text()
    assert text.startswith("# ")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


@pytest.mark.parametrize(
    ("name", "count", "parameter", "setting"),
    [
        ("connectx7-next-only", 3, "SRIOV_EN", Setting(None, None, "True(1)")),
        ("connectx6lx-verbose", 6, "MEMIC_SIZE_LIMIT", Setting("_256KB(1)", "_256KB(1)", "_256KB(1)")),
        ("connectx6lx-verbose", 6, "HOST_CHAINING_DESCRIPTORS", Setting(*["Array[0..7]"] * 3)),
        ("connectx6lx-verbose", 6, "ROCE_NEXT_PROTOCOL", Setting("254", "254", "254")),
        ("bluefield3-verbose", 7, "NUM_OF_VFS", Setting("16", "46", "46")),
        ("connectx8-verbose", 9, "SRIOV_EN", Setting("False(0)", "False(0)", "True(1)")),
        ("connectx8-verbose", 9, "HOST_CHAINING_DESCRIPTORS[0]", Setting("128", "128", "128")),
        ("connectx8-verbose", 9, "CURRENT_SLOT_POWER", Setting(None, "75", "75", read_only=True)),
        ("connectx7.json", 3, "NUM_OF_VFS", Setting("0", "8", "16")),
        ("connectx7.json", 3, "SRIOV_EN", Setting("False(0)", "True(1)", "True(1)")),
        (
            "connectx7.json",
            3,
            "HOST_CHAINING_DESCRIPTORS",
            Setting(None, "Array[0..7]", "Array[0..7]", read_only=True),
        ),
    ],
)
def test_queries(name: str, count: int, parameter: str, setting: Setting) -> None:
    found = mlxconfig.parse_query(fixture(name))
    assert (len(found), found[parameter]) == (count, setting)


@pytest.mark.parametrize("name", ["bluefield3", "connectx6lx", "connectx8"])
def test_text_and_json_say_the_same(name: str) -> None:
    assert mlxconfig.parse_query(fixture(f"{name}-verbose")) == mlxconfig.parse_query(fixture(f"{name}.json"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            fixture("mstconfig-4.21-cannot-open"),
            "the tool's output contains no configuration: -E- Failed to open the device",
        ),
        ("", "the tool's output contains no configuration: nothing"),
        (
            "Configurations:    Default    Next Boot\n      NUM_OF_VFS     1\n",
            "NUM_OF_VFS has 1 values in 2 columns: NUM_OF_VFS     1",
        ),
        ('{"Device #1": {}}', "the tool's JSON cannot be read: KeyError('tlv_configuration')"),
    ],
)
def test_what_is_no_query(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        mlxconfig.parse_query(text)
    assert str(caught.value) == message


def test_a_second_device_and_errors_end_the_table() -> None:
    text = "Configurations:   Next Boot\n      AB_C   1\nDevice #2:\n      DE_F   1\n"
    assert list(mlxconfig.parse_query(text)) == ["AB_C"]
    text = "Configurations:   Next Boot\n      AB_C   1\n-E- Failed to query some of the TLVs:\n      DE_F   1\n"
    assert list(mlxconfig.parse_query(text)) == ["AB_C"]


LINES = st.sampled_from([*fixture("connectx8-verbose").splitlines(), *fixture("connectx6-set").splitlines(), "", "*"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["tlv_configuration", "X", "next_value"]), inner),
)


@given(st.one_of(st.text(), st.lists(LINES | st.text()).map("\n".join), JSON.map(json.dumps)))
def test_any_text_is_a_query_or_an_error_of_ours(text: str) -> None:
    with contextlib.suppress(ParseError):
        mlxconfig.parse_query(text)
    mlxconfig.unknown_parameter(text)
    mlxconfig.number(text)
    with contextlib.suppress(FabricError):
        mlxconfig.wanted_values({text: text})


@given(st.binary(max_size=200), st.integers(0, 1500))
def test_a_damaged_query_is_no_traceback(noise: bytes, at: int) -> None:
    for name in ("connectx8-verbose", "connectx7.json"):
        text = fixture(name)
        with contextlib.suppress(ParseError):
            mlxconfig.parse_query(text[:at] + noise.decode("latin-1") + text[at:])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-E- The Device doesn't support MAX_ACC_OUT_READ parameter", "MAX_ACC_OUT_READ"),
        ("-E- Unknown Parameter: NUM_OF_VFZ", "NUM_OF_VFZ"),
        ("-E- Unknown Parameter NUM_OF_VFZ", "NUM_OF_VFZ"),
        ("-E- Failed to find Param / TLV with name 'PF_NUM_SAT_PF'", "PF_NUM_SAT_PF"),
        ("-E- Failed to open the device", None),
    ],
)
def test_who_is_not_known(text: str, expected: str | None) -> None:
    assert mlxconfig.unknown_parameter(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("16", "16", True),
        ("6", "16", False),
        ("16", "6", False),
        ("1", "True(1)", True),
        ("0", "True(1)", False),
        ("ETH", "ETH(2)", True),
        ("2", "ETH(2)", True),
        ("IB", "ETH(2)", False),
        ("eth", "ETH", True),
        ("1", "True", True),
        ("0x10", "16", True),
        ("_256KB", "_256KB(1)", True),
        ("Array[0..3]", "Array[0..7]", False),
        ("A(" + "1" * 5000 + ")", "1", False),
        ("1" * 5000, "1", False),
        (None, "1", False),
        ("1", None, False),
    ],
)
def test_values_compare_as_values(one: str | None, other: str | None, expected: bool) -> None:
    assert mlxconfig.same(one, other) is expected


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_numbers_are_the_same_when_they_are_equal(one: int, other: int) -> None:
    assert mlxconfig.same(str(one), f"NAME({other})") is (one == other)
    assert mlxconfig.same(mlxconfig.plain("N", one), f"{one}")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"SRIOV_EN": True, "NUM_OF_VFS": 16}, {"SRIOV_EN": "1", "NUM_OF_VFS": "16"}),
        ({"LINK_TYPE_P1": "ETH", "LINK_TYPE_P2": "IB(1)"}, {"LINK_TYPE_P1": "ETH", "LINK_TYPE_P2": "1"}),
        ({"AB_C[2..4]": 7}, {"AB_C[2]": "7", "AB_C[3]": "7", "AB_C[4]": "7"}),
        ({"AB_C[0..1]": [1, "x"]}, {"AB_C[0]": "1", "AB_C[1]": "x"}),
        ({"AB_C[5]": False}, {"AB_C[5]": "0"}),
        ({"EXP_ROM_UEFI_x86_ENABLE": "True"}, {"EXP_ROM_UEFI_x86_ENABLE": "1"}),
    ],
)
def test_wanted_values(settings: dict[str, Any], expected: dict[str, str]) -> None:
    assert mlxconfig.wanted_values(settings) == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"num_of_vfs": 1},
            "'num_of_vfs' is not the name of a firmware parameter; expected one such as NUM_OF_VFS",
        ),
        (
            {"-d": 1},
            "'-d' is not the name of a firmware parameter; expected one such as NUM_OF_VFS",
        ),
        ({"AB_C[0..3]": [1, 2]}, "AB_C[0..3] has 2 values; expected 4, or one for all"),
        ({"AB_C[3..0]": 1}, "AB_C[3..0] is an empty range: write the smaller index first"),
        (
            {"AB_C": "1 -y"},
            "AB_C: '1 -y' is not a value; expected true or false, a number, or a name such as ETH",
        ),
        ({"AB_C": None}, "AB_C: None is not a value; expected true or false, a number, or a name such as ETH"),
        ({"AB_C": 1.5}, "AB_C: 1.5 is not a value; expected true or false, a number, or a name such as ETH"),
    ],
)
def test_what_cannot_be_wanted(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        mlxconfig.wanted_values(settings)
    assert str(caught.value) == message
