# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of NIC settings: one entry per setting; docs/extending.md describes how to add one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._common.errors import InputError
from ..._common.traffic_class import traffic_class
from . import checks, kernel_files, programs
from .setting import CLASSES, Limits, Option, Setting

# The option of the module that holds the keys.
INPUT = "settings"
_INT = {"type": "int"}
_INTS = {"type": "list", "elements": "int"}
_CLASS = checks.eight(checks.number(0, CLASSES - 1))


def _sorted(key: str) -> Any:
    return lambda given: sorted(given[key]) if key in given else None


def _pause(given: Mapping[str, Any]) -> dict[str, bool] | None:
    return {"rx": given["pause"], "tx": given["pause"]} if "pause" in given else None


def _rdma_cm(given: Mapping[str, Any]) -> dict[str, Any] | None:
    # RDMA-CM gets the traffic class too: it does not follow the driver's.
    manager = {"roce": given.get("roce"), "tos": traffic_class(given)}
    return {key: value for key, value in manager.items() if value is not None} or None


# In the order in which they are set: pause before PFC (one excludes the other), buffers before what fills them.
SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="pause",
        source=(programs.ethtool("a", "pause to set", programs.pause),),
        options={"pause": Option({"type": "bool"})},
        value=_pause,
        excludes="pfc",
        of_pf=True,
    ),
    Setting(
        name="rings",
        source=(
            programs.ethtool(
                "g", "rings to set", programs.rings, limits=Limits(programs.ring_limits, unit="descriptors")
            ),
        ),
        options={
            "rings": Option(
                {"type": "dict", "options": {"rx": _INT, "tx": _INT}},
                checks.fields({"rx": checks.number(1, 1 << 20), "tx": checks.number(1, 1 << 20)}),
            )
        },
    ),
    Setting(
        name="trust",
        source=(
            programs.mlnx_qos(programs.mlnx_trust, lambda value: ["--trust", value]),
            programs.dcb("app", programs.dcb_trust, programs.dcb_trust_words),
        ),
        options={"trust": Option({"type": "str", "choices": ["dscp", "pcp"]})},
        of_pf=True,
    ),
    Setting(
        name="buffer",
        source=(
            programs.mlnx_qos(
                programs.mlnx_buffer, programs.mlnx_lists(priorities="--prio2buffer", size="--buffer_size")
            ),
            programs.dcb(
                "buffer", programs.dcb_buffer, programs.dcb_lists(priorities="prio-buffer", size="buffer-size")
            ),
        ),
        options={
            "buffer": Option(
                {"type": "dict", "options": {"size": _INTS, "priorities": _INTS}},
                checks.fields({"size": checks.eight(checks.number(0, 1 << 31)), "priorities": _CLASS}),
            )
        },
        of_pf=True,
    ),
    Setting(
        name="ets",
        source=(
            programs.mlnx_qos(
                programs.mlnx_ets, programs.mlnx_lists(tsa="--tsa", bandwidth="--tcbw", priorities="--prio_tc")
            ),
            programs.dcb(
                "ets", programs.dcb_ets, programs.dcb_lists(tsa="tc-tsa", bandwidth="tc-bw", priorities="prio-tc")
            ),
        ),
        options={
            "ets": Option(
                {
                    "type": "dict",
                    "options": {
                        "tsa": {"type": "list", "elements": "str", "choices": ["ets", "strict"], "required": True},
                        "bandwidth": {**_INTS, "required": True},
                        "priorities": _INTS,
                    },
                },
                checks.ets,
            )
        },
        of_pf=True,
    ),
    Setting(
        name="pfc",
        source=(
            programs.mlnx_qos(
                programs.mlnx_pfc,
                lambda value: ["--pfc", ",".join("1" if index in value else "0" for index in range(CLASSES))],
            ),
            programs.dcb(
                "pfc",
                programs.dcb_pfc,
                lambda value: ("set", ["prio-pfc", "all:off", *(f"{priority}:on" for priority in value)]),
            ),
        ),
        options={"pfc": Option(_INTS, checks.priorities)},
        value=_sorted("pfc"),
        excludes="pause",
        of_pf=True,
    ),
    Setting(
        name="ecn",
        source=kernel_files.ECN,
        options={"ecn": Option(_INTS, checks.priorities)},
        value=_sorted("ecn"),
        of_pf=True,
    ),
    Setting(
        name="cnp_dscp",
        source=kernel_files.CNP_DSCP,
        options={"cnp_dscp": Option(_INT, checks.number(0, 63))},
        of_pf=True,
    ),
    Setting(
        name="traffic_class",
        source=kernel_files.TRAFFIC_CLASS,
        options={
            "dscp": Option(_INT, checks.number(0, 63)),
            "traffic_class": Option(_INT, checks.number(0, 255)),
        },
        value=traffic_class,
        labels=("traffic_class",),
    ),
    Setting(
        name="rdma_cm",
        source=kernel_files.RDMA_CM,
        options={"roce": Option({"type": "str", "choices": ["v1", "v2"]})},
        value=_rdma_cm,
        labels=("roce", "dscp", "traffic_class"),
    ),
)


def find(name: str) -> Setting:
    """Return a setting of the registry."""
    return next(setting for setting in SETTINGS if setting.name == name)


def names() -> tuple[str, ...]:
    """Return the names of all settings in the order in which they are set."""
    return tuple(setting.name for setting in SETTINGS)


def options() -> dict[str, Option]:
    """Return the keys that a user may set."""
    return {key: option for setting in SETTINGS for key, option in setting.options.items()}


def argument_spec() -> dict[str, Any]:
    """Return the suboptions of the module's option ``settings``."""
    return {key: dict(option.spec) for key, option in options().items()}


def partners() -> dict[str, str]:
    """Return setting -> the one that a port turns off for it."""
    return {setting.name: setting.excludes for setting in SETTINGS if setting.excludes}


def unchanged_statuses() -> list[int]:
    """Return the statuses by which programs report that nothing had to change."""
    return sorted({status for one in SETTINGS for program in one.programs for status in program.unchanged})


def parse(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return setting -> value of the keys of a user, which have the types of ``argument_spec()``.

    InputError reports all problems at once.
    """
    keys = _without_none(given)
    problems = [
        f"{INPUT}.{key}{problem}"
        for key, option in options().items()
        if key in keys
        for problem in option.check(keys[key])
    ]
    problems += _contradictions(keys)
    if problems:
        raise InputError("; ".join(problems))
    found = {setting.name: setting.requested(keys) for setting in SETTINGS}
    return {name: value for name, value in found.items() if value is not None}


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a user set: Ansible adds None for every suboption that is not."""
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in given.items()
        if value is not None
    }


def _contradictions(given: Mapping[str, Any]) -> list[str]:
    found = []
    if "dscp" in given and "traffic_class" in given:
        found.append(f"{INPUT}: dscp and traffic_class are mutually exclusive. Set one of them")
    if given.get("pfc") and given.get("pause") is True:
        found.append(f"{INPUT}: pfc and pause are mutually exclusive on a port. Set pause: false")
    return found
