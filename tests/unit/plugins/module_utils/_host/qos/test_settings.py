"""QoS: what a user may ask for, what tools and files say, and the commands and the unit that set it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError, ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos import boot_unit, kernel_files, programs
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos import settings as qos_settings
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos.setting import (
    NO_RDMA,
    Device,
    KernelFiles,
    Program,
    Step,
)

FIXTURES = Path(__file__).resolve().parents[5] / "fixtures/qos"
STRICT = ["strict"] * 8
ZEROS = [0] * 8
DEVICE = Device("rail0", "mlx5_0")


def fixture(name: str) -> str:
    return (FIXTURES / name).read_text()


def program(tool: str, setting: str) -> Program:
    return next(one for one in qos_settings.find(setting).programs if one.name == tool)


def parse(tool: str, setting: str, text: str) -> Any:
    return programs.parse(program(tool, setting), setting, text)


def files(setting: str) -> KernelFiles:
    source = qos_settings.find(setting).source
    assert isinstance(source, KernelFiles)
    return source


def refused_by_ansible(given: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """What Ansible refuses before the module sees it, and what the module gets."""
    spec = {"settings": {"type": "dict", "options": qos_settings.argument_spec()}}
    try:
        result = ArgumentSpecValidator(spec).validate({"settings": given})
    except (TypeError, OverflowError) as error:
        # ansible-core ends so when a number or null is where a dict with suboptions should be, and for an infinite
        # number where a whole one should be. The playbooks refuse both before (test_role_options.py).
        return [str(error)], {}
    return result.error_messages, result.validated_parameters["settings"]


def test_a_whole_wish_becomes_settings_in_their_order() -> None:
    given = {"roce": "v2", "dscp": 26, "pfc": [3], "ecn": [3], "cnp_dscp": 48, "trust": "dscp", "pause": False}
    assert list(qos_settings.parse({**given, "rings": {"rx": 8192}}).items()) == [
        ("pause", {"rx": False, "tx": False}),
        ("rings", {"rx": 8192}),
        ("trust", "dscp"),
        ("pfc", [3]),
        ("ecn", [3]),
        ("cnp_dscp", 48),
        ("traffic_class", 106),
        ("rdma_cm", {"roce": "v2", "tos": 106}),
    ]
    assert qos_settings.parse({}) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"pfc": [3, 8], "cnp_dscp": 64, "traffic_class": 256, "dscp": 64},
            "settings.pfc: 8 is not a priority from 0 to 7; settings.cnp_dscp: 64 is not a number from 0 to 63; "
            "settings.dscp: 64 is not a number from 0 to 63; settings.traffic_class: 256 is not a number from 0 to "
            "255; settings: dscp and traffic_class are mutually exclusive. Set one of them",
        ),
        ({"pfc": [3, 3]}, "settings.pfc: a priority is listed twice"),
        ({"ecn": [True]}, "settings.ecn: True is not a priority from 0 to 7"),
        (
            {"dscp": 26, "traffic_class": 106},
            "settings: dscp and traffic_class are mutually exclusive. Set one of them",
        ),
        (
            {"pfc": [3], "pause": True},
            "settings: pfc and pause are mutually exclusive on a port. Set pause: false",
        ),
        ({"buffer": {}}, "settings.buffer: set at least one of size, priorities"),
        (
            {"ets": {"tsa": STRICT[:7], "bandwidth": ZEROS, "priorities": [8, *ZEROS[1:]]}},
            f"settings.ets.tsa: {STRICT[:7]} is not a list of 8 values; settings.ets.priorities[0]: 8 is not a "
            "number from 0 to 7",
        ),
        (
            {"ets": {"tsa": ["ets", *STRICT[1:]], "bandwidth": [50, 50, *ZEROS[2:]]}},
            "settings.ets.bandwidth[1]: a strict class has no share. Set it to 0; settings.ets.bandwidth: the shares "
            "of the ets classes add up to 50 %, expected 100 %",
        ),
        (
            {"buffer": {"size": [-1, *ZEROS[1:]]}},
            "settings.buffer.size[0]: -1 is not a number from 0 to 2147483648",
        ),
        ({"rings": {"rx": 0}}, "settings.rings.rx: 0 is not a number from 1 to 1048576"),
    ],
)
def test_everything_wrong_is_named(given: dict[str, Any], message: str) -> None:
    errors, typed = refused_by_ansible(given)
    assert errors == []
    with pytest.raises(InputError) as error:
        qos_settings.parse(typed)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pfcs": [3]}, "settings.pfcs. Supported parameters include: "),
        ({"trust": "both"}, "value of trust must be one of: dscp, pcp, got: both found in settings"),
        ({"roce": "v3"}, "value of roce must be one of: v1, v2, got: v3 found in settings"),
        ({"pfc": ["three"]}, "Elements value for option 'pfc' found in 'settings' is of type"),
        ({"cnp_dscp": "high"}, "argument 'cnp_dscp' is of type"),
        ({"pause": "never"}, "argument 'pause' is of type"),
        ({"rings": 512}, "is not iterable"),
        ({"ets": {}}, "missing required arguments: bandwidth, tsa found in settings -> ets"),
        ({"ets": {"tsa": ["vendor"], "bandwidth": ZEROS}}, "value of tsa must be one or more of: ets, strict"),
        ({"ets": {"tsa": STRICT, "bandwidth": ZEROS, "tcs": 1}}, "settings.ets.tcs. Supported parameters include: "),
    ],
)
def test_ansible_refuses_types_choices_and_unknown_keys(given: dict[str, Any], message: str) -> None:
    (error,) = refused_by_ansible(given)[0]
    assert message in error


def test_a_key_that_is_not_set_is_not_requested() -> None:
    """Ansible adds None for each suboption."""
    errors, typed = refused_by_ansible({"rings": {"rx": 512}, "pause": None})
    assert errors == [] and typed["pfc"] is None and typed["rings"]["tx"] is None
    assert qos_settings.parse(typed) == {"rings": {"rx": 512}}


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["dscp", "ets"]),
    lambda inner: (
        st.lists(inner, max_size=9)
        | st.dictionaries(st.sampled_from(["tsa", "bandwidth", "priorities", "size", "rx", "tx", "x"]), inner)
    ),
)


@given(given=st.dictionaries(st.sampled_from([*qos_settings.options(), "x"]), ANY))
def test_no_wish_ends_in_another_error(given: dict[str, Any]) -> None:
    errors, typed = refused_by_ansible(given)
    with contextlib.suppress(InputError):
        if not errors:
            qos_settings.parse(typed)


@pytest.mark.parametrize(
    ("tool", "setting", "name", "expected"),
    [
        ("mlnx_qos", "trust", "mlnx_qos-default.txt", "pcp"),
        ("mlnx_qos", "trust", "mlnx_qos-roce.txt", "dscp"),
        ("mlnx_qos", "pfc", "mlnx_qos-default.txt", []),
        ("mlnx_qos", "pfc", "mlnx_qos-roce.txt", [3]),
        ("mlnx_qos", "pfc", "mlnx_qos-4.2.txt", [0, 2, 6, 7]),
        (
            "mlnx_qos",
            "buffer",
            "mlnx_qos-roce.txt",
            {"size": [130944, 130944, 0, 0, 0, 0, 0, 0], "priorities": [0, 0, 0, 1, 0, 0, 0, 0]},
        ),
        (
            "mlnx_qos",
            "ets",
            "mlnx_qos-4.2.txt",
            {
                "tsa": ["ets"] * 6 + ["strict", "ets"],
                "bandwidth": [10] * 6 + [0, 40],
                "priorities": [1, 0, 2, 3, 4, 5, 6, 7],
            },
        ),
        (
            "mlnx_qos",
            "ets",
            "mlnx_qos-roce.txt",
            {
                "tsa": ["ets", None, None, "ets", None, None, "vendor", None],
                "bandwidth": [50, None, None, 50, None, None, 0, None],
                "priorities": [0, 0, 0, 3, 0, 0, 6, 0],
            },
        ),
        ("dcb", "pfc", "dcb-pfc.json", [3]),
        ("dcb", "trust", "dcb-app.json", "dscp"),
        (
            "dcb",
            "ets",
            "dcb-ets.json",
            {
                "tsa": ["ets", "strict", "strict", "ets", *STRICT[4:]],
                "bandwidth": [50, 0, 0, 50, 0, 0, 0, 0],
                "priorities": [0, 0, 0, 3, 0, 0, 6, 0],
            },
        ),
        (
            "dcb",
            "buffer",
            "dcb-buffer.json",
            {"size": [130944, 130944, 0, 0, 0, 0, 0, 0], "priorities": [0, 0, 0, 1, 0, 0, 0, 0]},
        ),
        ("ethtool", "rings", "ethtool-g-mlx5.txt", {"rx": 1024, "tx": 1024}),
        ("ethtool", "rings", "ethtool-g.txt", {"rx": 256, "tx": 256}),
        ("ethtool", "pause", "ethtool-a.txt", {"rx": True, "tx": True}),
    ],
)
def test_what_tools_print(tool: str, setting: str, name: str, expected: Any) -> None:
    assert parse(tool, setting, fixture(name)) == expected


def test_dcb_without_applications_trusts_pcp() -> None:
    assert [parse("dcb", "trust", text) for text in ("", "{}", "{ }\n")] == ["pcp"] * 3


def test_limits_of_rings() -> None:
    assert programs.ring_limits(fixture("ethtool-g-mlx5.txt")) == {"rx": 8192, "tx": 8192}
    assert programs.ring_limits("") == {}


def test_a_tool_that_does_not_tell_is_a_parse_error() -> None:
    with pytest.raises(ParseError) as error:
        parse("mlnx_qos", "buffer", fixture("mlnx_qos-4.2.txt"))
    assert str(error.value).startswith("the output of mlnx_qos does not contain 'buffer': ValueError(")


TOOLS = st.sampled_from([(tool.name, setting.name) for setting in qos_settings.SETTINGS for tool in setting.programs])
WORDS = [path.read_text() for path in sorted(FIXTURES.glob("*.*"))]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """An output with a part of it cut out or put in twice, and a few letters more."""
    text = draw(st.sampled_from(WORDS))
    cut = st.integers(0, len(text))
    return text[: draw(cut)] + draw(st.text(max_size=3)) + text[draw(cut) :]


@given(tool=TOOLS, text=st.text() | ANY.map(json.dumps) | damaged())
def test_other_output_is_a_value_or_a_parse_error(tool: tuple[str, str], text: str) -> None:
    with contextlib.suppress(ParseError):
        parse(*tool, text)
    programs.ring_limits(text)


ETS = {"tsa": ["ets", "strict", "strict", "ets", *STRICT[4:]], "bandwidth": [50, 0, 0, 50, 0, 0, 0, 0]}


@pytest.mark.parametrize(
    ("tool", "setting", "value", "expected"),
    [
        ("mlnx_qos", "trust", "dscp", "mlnx_qos -i rail0 --trust dscp"),
        ("mlnx_qos", "pfc", [3], "mlnx_qos -i rail0 --pfc 0,0,0,1,0,0,0,0"),
        (
            "mlnx_qos",
            "ets",
            ETS,
            "mlnx_qos -i rail0 --tsa ets,strict,strict,ets,strict,strict,strict,strict --tcbw 50,0,0,50,0,0,0,0",
        ),
        ("mlnx_qos", "ets", {"priorities": [None, *ZEROS[1:]]}, "mlnx_qos -i rail0 --prio_tc 0,0,0,0,0,0,0,0"),
        ("mlnx_qos", "buffer", {"size": ZEROS}, "mlnx_qos -i rail0 --buffer_size 0,0,0,0,0,0,0,0"),
        ("dcb", "trust", "pcp", "dcb app flush dev rail0 dscp-prio"),
        ("dcb", "pfc", [3, 4], "dcb pfc set dev rail0 prio-pfc all:off 3:on 4:on"),
        (
            "dcb",
            "ets",
            ETS,
            "dcb ets set dev rail0 tc-tsa 0:ets 1:strict 2:strict 3:ets 4:strict 5:strict 6:strict 7:strict "
            "tc-bw 0:50 1:0 2:0 3:50 4:0 5:0 6:0 7:0",
        ),
        (
            "dcb",
            "buffer",
            {"size": [1, None, *ZEROS[2:]]},
            "dcb buffer set dev rail0 buffer-size 0:1 2:0 3:0 4:0 5:0 6:0 7:0",
        ),
        ("ethtool", "rings", {"rx": 8192, "tx": 4096}, "ethtool -G rail0 rx 8192 tx 4096"),
        ("ethtool", "pause", {"rx": False, "tx": False}, "ethtool -A rail0 rx off tx off"),
    ],
)
def test_commands(tool: str, setting: str, value: Any, expected: str) -> None:
    assert " ".join(program(tool, setting).set_argv("rail0", value)) == expected


def test_dcb_maps_every_dscp_by_its_upper_bits() -> None:
    words = program("dcb", "trust").set_argv("rail0", "dscp")
    assert words[:6] == ["dcb", "app", "replace", "dev", "rail0", "dscp-prio"]
    assert [words[6], words[6 + 26], words[6 + 48], words[-1]] == ["0:0", "26:3", "48:6", "63:7"]


def texts(setting: str, *values: str | None) -> dict[str, str | None]:
    return dict(zip(files(setting).paths(DEVICE), values))


@pytest.mark.parametrize(
    ("setting", "values", "expected"),
    [
        ("ecn", (*"00010000", *"00010001"), [3]),
        ("cnp_dscp", ("48",), 48),
        ("traffic_class", ("Global tclass=106",), 106),
        ("traffic_class", ("",), -1),
        ("rdma_cm", ("RoCE v2", "0"), {"roce": "v2", "tos": 0}),
        ("rdma_cm", (None, None), {}),
    ],
)
def test_what_files_hold(setting: str, values: tuple[str | None, ...], expected: Any) -> None:
    assert kernel_files.read(files(setting), DEVICE, texts(setting, *values)) == expected


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("ecn", kernel_files.NO_ECN), ("cnp_dscp", kernel_files.NO_ECN), ("traffic_class", None)],
)
def test_files_that_a_kernel_has_not(setting: str, expected: Any) -> None:
    assert kernel_files.read(files(setting), DEVICE, texts(setting, None)) == expected


@pytest.mark.parametrize("setting", ["traffic_class", "rdma_cm"])
def test_a_port_without_an_rdma_device(setting: str) -> None:
    assert kernel_files.read(files(setting), Device("rail0", None), {}) == NO_RDMA


@given(
    setting=st.sampled_from([one.name for one in qos_settings.SETTINGS if not one.programs]),
    values=st.lists(st.none() | st.text(), min_size=16, max_size=16),
)
def test_other_files_are_a_value_or_a_known_error(setting: str, values: list[str | None]) -> None:
    with contextlib.suppress(FabricError):
        kernel_files.read(files(setting), DEVICE, texts(setting, *values))


def test_steps_of_rdma_cm_make_its_folder_and_take_it_away_as_the_kernel_has_it() -> None:
    folder = "/sys/kernel/config/rdma_cm/mlx5_0"
    tos, mode = f"{folder}/ports/1/default_roce_tos", f"{folder}/ports/1/default_roce_mode"
    assert files("rdma_cm").steps(DEVICE, {"tos": 106}) == [
        Step(("modprobe", "rdma_cm")),
        Step(("mkdir", "-p", folder)),
        Step(path=tos, value="106"),
    ]
    assert files("rdma_cm").steps(DEVICE, {}) == [
        Step(path=mode, value="RoCE v2"),
        Step(path=tos, value="0"),
        Step(("rmdir", folder)),
    ]


def test_the_unit_waits_for_its_rdma_device_where_there_is_one() -> None:
    steps = [Step(path="/sys/x", value="RoCE v2")]
    assert "ExecStartPre" in boot_unit.text(Device("rail-0", "mlx5_0"), steps)
    assert "ExecStartPre" not in boot_unit.text(Device("rail-0", None), steps)
