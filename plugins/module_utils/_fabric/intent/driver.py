# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver container of the operator: the section ``rdma_fabric.operator.driver``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..._common.reader import Form, Reader
from .images import TAG
from .releases import Line

# The operator adds operating system and architecture to the tag.
_COMPLETE = re.compile(r".*-(ubuntu|rhel|rhcos|sles|sl|ol)[0-9][0-9.]*(-[a-z0-9_]+)?", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_CONFIG_MAP = Form(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", "the name of a ConfigMap, such as mirror-certificates")


@dataclass(frozen=True)
class Upgrade:
    """How the operator replaces the driver on the nodes. Seconds to wait; ``max_parallel`` 0: all at once."""

    auto: bool
    max_parallel: int
    safe_load: bool
    drain: bool
    drain_force: bool
    drain_empty_dir: bool
    drain_timeout: int
    wait_selector: str
    wait_timeout: int


@dataclass(frozen=True)
class Driver:
    """The driver container. ``version``: tag without operating system and architecture. ``env``: variable -> value.

    ``startup_minutes``: how long it may compile and load.
    """

    enabled: bool
    version: str | None
    precompiled: bool
    env: Mapping[str, str]
    cert_config: str | None
    repo_config: str | None
    startup_minutes: int
    upgrade: Upgrade


def read_driver(reader: Reader, line: Line | None, release: str) -> Driver:
    """Read the section; problems are noted in the reader. ``line``: that of the ``release``, None when unsupported."""
    precompiled = reader.flag("precompiled", False)
    driver = Driver(
        enabled=reader.flag("enabled", False),
        version=reader.text("version", _known_tag(line, release, precompiled) if line else None, form=TAG),
        precompiled=precompiled,
        env=read_env(reader),
        cert_config=reader.text("cert_config", None, form=_CONFIG_MAP),
        repo_config=reader.text("repo_config", None, form=_CONFIG_MAP),
        startup_minutes=reader.integer("startup_minutes", 30, 1, high=1440),
        upgrade=_upgrade(reader.section("upgrade")),
    )
    if driver.enabled and line and not driver.version:
        what = "with precompiled images " if line.releases.get(release) else ""
        reader.refuse(
            "version",
            f"missing. The tag of the driver {what}for release {release} is not known here. Take it from the list of"
            " container images of the release, such as doca3.5.0-26.07-0.7.7.0-1",
        )
    if has_system(driver.version or ""):
        reader.refuse("version", f"{driver.version} has the operating system in it, which the operator adds. Remove it")
    reader.close()
    return driver


def _known_tag(line: Line, release: str, precompiled: bool) -> str | None:
    """Return the tag of a release; not all tags have images with drivers that are compiled already."""
    usual = line.releases.get(release)
    return (line.precompiled.get(release, usual) if precompiled else usual) or None


def has_system(tag: str) -> bool:
    """Return whether the tag of a driver names an operating system, which the operator would add again."""
    return bool(_COMPLETE.fullmatch(tag))


def _upgrade(reader: Reader) -> Upgrade:
    upgrade = Upgrade(
        auto=reader.flag("auto", False),
        max_parallel=reader.integer("max_parallel", 1, 0, high=100000),
        safe_load=reader.flag("safe_load", False),
        drain=reader.flag("drain", True),
        drain_force=reader.flag("drain_force", False),
        drain_empty_dir=reader.flag("drain_empty_dir", False),
        drain_timeout=reader.integer("drain_timeout", 300, 0, high=1 << 31),
        wait_selector=reader.text("wait_selector", ""),
        wait_timeout=reader.integer("wait_timeout", 0, 0, high=1 << 31),
    )
    if upgrade.safe_load and not upgrade.auto:
        reader.refuse("safe_load", "has an effect with auto: true only. Set auto, or remove safe_load")
    reader.close()
    return upgrade


def read_env(reader: Reader) -> dict[str, str]:
    """Read the variables of a container."""
    found = reader.mapping("env")
    for key, value in found.items():
        if not (isinstance(key, str) and _VARIABLE.fullmatch(key)):
            reader.refuse("env", f'expected names of variables such as UNLOAD_STORAGE_MODULES, found "{key}"')
        elif isinstance(value, bool) or not isinstance(value, (str, int)):
            reader.refuse("env", f'{key}: expected text. Quote the value, such as "true"')
    return {str(key): str(found[key]) for key in sorted(found, key=str)}
