# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DOCA-OFED on a host: which release supports which system, its package source, what must be there first. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..._common.errors import ConflictError, InputError
from ..._common.units import version_numbers
from ..facts.inventory import HostInventory
from .openpgp import armored, check_key

BUILDS = ("dkms", "precompiled")
REPOSITORY = "https://linux.mellanox.com/public/repo/doca/{release}/{distribution}/{arch}"
NAME = "gpufabric-doca"
TITLE = "Written by gpufabric.rdma.rdma_stack, which removes it with state: absent or another provider."
# From this release on the vendor's own repository holds sources for DKMS alone (DOCA 3.2.1 documentation, General
# Support), and a repository serves a whole major release of RHEL.
FIRST_WITHOUT_BINARIES = (3, 2)
_GENERIC = {"ubuntu22.04": ("5.15.",), "ubuntu24.04": ("6.8.",)}
_RHEL = {"rhel8": ("4.18.0-",), "rhel9": ("5.14.0-",), "rhel10": ("6.12.0-",)}
# Release line -> distribution -> kernels, by how their release begins. Sources: GPUDirect Storage release notes (3.1:
# Ubuntu 24.04, RHEL 9 and 10); platform support of Network Operator 25.10, 26.1 and 26.4, whose drivers are DOCA 3.2,
# 3.3 and 3.4, for the distributions; its precompiled drivers for Ubuntu's kernels (3.4 has newer ones).
SUPPORTED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "3.1": {"ubuntu24.04": _GENERIC["ubuntu24.04"], "rhel9": _RHEL["rhel9"], "rhel10": _RHEL["rhel10"]},
    "3.2": {**_GENERIC, **_RHEL},
    "3.3": {**_GENERIC, **_RHEL},
    "3.4": {"ubuntu22.04": ("5.15.", "6.8."), "ubuntu24.04": ("6.8.", "6.17."), **_RHEL},
}
# RHEL's rebuilds share its kernels and its repositories.
_RHEL_LIKE = ("rhel", "rocky", "almalinux", "ol", "centos")
_ARCHES = {"aarch64": "arm64-sbsa"}


NEEDED = ("release", "version", "key", "fingerprint")


class Fit(NamedTuple):
    """What decides whether a release can be on a host; ``supported`` as in ``Wanted``."""

    release: str
    build: str
    supported: Mapping[str, tuple[str, ...]]

    @property
    def line(self) -> str:
        """Return the release line: 3.2.1 is of 3.2."""
        return ".".join(self.release.split(".")[:2])


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The user's wishes; ``supported`` replaces the table: distribution -> how kernel releases begin."""

    release: str
    package: str
    version: str
    repository: str
    suite: str
    components: tuple[str, ...]
    key: str
    fingerprint: str
    build: str
    hold: bool
    supported: Mapping[str, tuple[str, ...]]

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Wanted:
        """Build it from the option ``doca``; InputError names what is missing or cannot be."""
        fit = read_fit(params)
        values = {field.name: params[field.name] for field in dataclasses.fields(cls)}
        return cls(**{**values, "components": tuple(params["components"]), "supported": fit.supported})

    @property
    def fit(self) -> Fit:
        """Return what decides whether it can be on a host."""
        return Fit(self.release, self.build, self.supported)


def read_fit(params: Mapping[str, Any]) -> Fit:
    """Build it from the option ``doca``; InputError names every input that is missing."""
    missing = [f"doca.{name}" for name in NEEDED if not params.get(name)]
    if missing:
        raise InputError(f"provider doca_ofed requires {', '.join(missing)}. A release is never chosen automatically")
    supported = {name: _several(kernels) for name, kernels in (params["supported"] or {}).items()}
    return Fit(params["release"], params["build"], supported)


def distribution(inventory: HostInventory) -> str:
    """Return the system as the vendor names its repositories: ubuntu24.04, rhel9, debian13."""
    name, version = inventory.os["id"], inventory.os["version"]
    major = version.partition(".")[0]
    if name in _RHEL_LIKE:
        return f"rhel{major}"
    return f"{name}{version if name == 'ubuntu' else major}"


def headers_package(inventory: HostInventory, release: str) -> str:
    """Return the package with the headers of a kernel."""
    if distribution(inventory).startswith("rhel"):
        return f"kernel-64k-devel-{release}" if release.endswith("+64k") else f"kernel-devel-{release}"
    return f"linux-headers-{release}"


def check(wanted: Wanted, inventory: HostInventory, headers: Mapping[str, bool]) -> None:
    """Make sure that this release can be on this host, before anything changes.

    ``headers`` as in ``problems``. ConflictError has every problem.
    """
    check_key(wanted.key, wanted.fingerprint)
    if wanted.build == "precompiled" and wanted.repository.startswith(REPOSITORY.partition("{")[0]):
        _check_binaries(wanted)
    found = problems(wanted.fit, inventory, headers)
    if found:
        raise ConflictError(
            f"DOCA-OFED {wanted.release} cannot be installed on {inventory.hostname}: {'; '.join(found)}"
        )


def problems(fit: Fit, inventory: HostInventory, headers: Mapping[str, bool]) -> list[str]:
    """Return why this release cannot be on this host: its system, its kernels, and their headers for DKMS.

    ``headers`` says of each kernel release whether its headers are there. The kernel that boots next counts as the
    running one does: what does not fit it would be missing after the next reboot.
    """
    following = inventory.next_kernel
    kernels = {inventory.kernel_release: f"kernel {inventory.kernel_release}, which runs,"}
    if following and following not in kernels:
        kernels[following] = f"kernel {following}, which boots next,"
    found = _unsupported(fit, inventory, kernels)
    if fit.build == "dkms":
        found += [
            f"{title} has no headers for DKMS: install {headers_package(inventory, release)}"
            for release, title in kernels.items()
            if not headers.get(release)
        ]
    return found


def _check_binaries(wanted: Wanted) -> None:
    if version_numbers(wanted.release)[:2] >= FIRST_WITHOUT_BINARIES:
        raise InputError(
            f"the vendor's repository of DOCA-OFED {wanted.release} has no precompiled kernel modules; set "
            "doca.build: dkms, or doca.repository to one that has them"
        )


def _unsupported(fit: Fit, inventory: HostInventory, kernels: Mapping[str, str]) -> list[str]:
    table = fit.supported or SUPPORTED.get(fit.line)
    if table is None:
        return [
            f"release line {fit.line} is unknown; known lines: {', '.join(SUPPORTED)}. "
            "Set doca.supported to the kernels that it supports on each distribution"
        ]
    own = distribution(inventory)
    if own.startswith(("sles", "opensuse")):
        return ["there is no package source for SUSE"]
    if own not in table:
        return [f"it does not support {own}; supported are {', '.join(sorted(table))}"]
    known = ", ".join(f"{start}*" for start in table[own])
    return [
        f"{title} is not supported on {own}; supported are {known}"
        for release, title in kernels.items()
        if not release.startswith(table[own])
    ]


def address(wanted: Wanted, inventory: HostInventory) -> str:
    """Return the address of the package source, with its placeholders filled in."""
    own = distribution(inventory)
    old = version_numbers(wanted.release)[:2] < FIRST_WITHOUT_BINARIES
    # Older releases have a repository for each minor release of RHEL.
    own = f"rhel{inventory.os['version']}" if old and own.startswith("rhel") else own
    filled = {"release": wanted.release, "distribution": own, "arch": _ARCHES.get(inventory.arch, inventory.arch)}
    text = wanted.repository or REPOSITORY
    for name, value in filled.items():
        text = text.replace(f"{{{name}}}", value)
    if not text.startswith(("https://", "http://", "file:/")):
        raise InputError(f"doca.repository is '{text}'; expected an address that begins with https://")
    return text.rstrip("/") + "/"


def source(wanted: Wanted, inventory: HostInventory, manager: str, *, etc: str) -> dict[str, str]:
    """Return path -> text of the package source and of its key, for the package manager apt or dnf.

    apt checks the signed lists, and so every package, against this key alone. dnf checks packages against every key in
    rpm's database, and vendors do not sign its lists, so it needs a server with a certificate (InputError otherwise).
    """
    url = address(wanted, inventory)
    if manager == "apt":
        key = f"{etc}/apt/keyrings/{NAME}.asc"
        lines = [f"# {TITLE}", "Types: deb", f"URIs: {url}", f"Suites: {wanted.suite}"]
        lines += [f"Components: {' '.join(wanted.components)}"] if wanted.components else []
        lines += [f"Signed-By: {key}"]
        return {key: armored(wanted.key), f"{etc}/apt/sources.list.d/{NAME}.sources": _text(lines)}
    if url.startswith("http://"):
        raise InputError(
            f"doca.repository is '{url}'. The lists of a dnf repository are not signed: use an address that "
            "begins with https:// or file:/."
        )
    key = f"{etc}/pki/rpm-gpg/RPM-GPG-KEY-{NAME}"
    lines = [f"# {TITLE}", f"[{NAME}]", f"name=DOCA-OFED {wanted.release}", f"baseurl={url}", "enabled=1"]
    lines += ["gpgcheck=1", f"gpgkey=file://{key}"]
    return {key: armored(wanted.key), f"{etc}/yum.repos.d/{NAME}.repo": _text(lines)}


def paths(etc: str) -> list[str]:
    """Return where a package source of ours can be."""
    return [
        f"{etc}/apt/keyrings/{NAME}.asc",
        f"{etc}/apt/sources.list.d/{NAME}.sources",
        f"{etc}/pki/rpm-gpg/RPM-GPG-KEY-{NAME}",
        f"{etc}/yum.repos.d/{NAME}.repo",
    ]


def check_offer(wanted: Wanted, url: str, offered: list[str]) -> None:
    """Make sure that the package source has the version; ConflictError names those that it has."""
    if wanted.version not in offered:
        raise ConflictError(
            f"the package source {url} has no {wanted.package} {wanted.version}. Available: "
            f"{', '.join(offered) or 'none'}. Nothing was changed"
        )


def _several(value: Any) -> tuple[str, ...]:
    """Return the texts of a list; one text alone is a list of one."""
    return tuple(str(item) for item in value) if isinstance(value, list) else (str(value),)


def unsigned(wanted: Wanted, inventory: HostInventory) -> list[str]:
    """Return what people should know of Secure Boot: who signs the modules of this host."""
    if wanted.build != "dkms" or not inventory.secure_boot:
        return []
    return ["Secure Boot is enabled: modules built by DKMS are loaded only if their key is enrolled (mokutil --import)"]


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
