# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NIC configuration operator: the section ``rdma_fabric.operator.nic_configuration``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.reader import Form, Reader, converted
from .driver import read_env

_NAME = Form(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", 'a name such as connectx-7 (lowercase letters, digits and "-")')
_NIC_TYPE = Form(r"[0-9a-f]{4}", 'the PCI device id of the NICs, such as "1021" (four hexadecimal digits, lowercase)')
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# A login in it would be shown in the plan and in objects.
_URL = Form(r"https?://[^@\s]+", "an address that begins with https:// or http://, without user and password")
_CLAIM = Form(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", "a name such as nic-fw-storage-pvc")
_SIZE = Form(r"[1-9][0-9]{0,5}[MGT]i", "a size such as 1Gi")


@dataclass(frozen=True)
class Nics:
    """Which NICs are meant: device id, and PCI addresses or serial numbers unless all of it."""

    nic_type: str
    pci_addresses: tuple[str, ...]
    serial_numbers: tuple[str, ...]

    def shares(self, other: Nics) -> bool:
        """Return whether one NIC can be among both."""
        return self.nic_type == other.nic_type and all(
            not (own and others) or bool(set(own) & set(others))
            for own, others in (
                (self.pci_addresses, other.pci_addresses),
                (self.serial_numbers, other.serial_numbers),
            )
        )


@dataclass(frozen=True)
class Template:
    """``settings``: those of a NicConfigurationTemplate; ``reset``: the defaults of the NIC in their place."""

    name: str
    nics: Nics
    settings: Mapping[str, Any]
    reset: bool


@dataclass(frozen=True)
class Firmware:
    """``urls``: archives of firmware; ``bundle_url``: a bundle of BlueField. ``update``: install, not only compare."""

    name: str
    nics: Nics
    urls: tuple[str, ...]
    bundle_url: str | None
    update: bool


@dataclass(frozen=True)
class Storage:
    """The volume claim for firmware files."""

    claim: str
    create: bool
    storage_class: str | None
    size: str


@dataclass(frozen=True)
class NicConfiguration:
    """``maintenance_operator``: whether the chart brings the maintenance operator, which is needed to drain nodes."""

    enabled: bool
    maintenance_operator: bool
    log_level: str
    env: Mapping[str, str]
    storage: Storage
    templates: tuple[Template, ...]
    firmware: tuple[Firmware, ...]


def sets_roce(settings: Any) -> bool:
    """Return whether the settings of a template set trust, flow control and congestion control of RoCE."""
    sections = ("roceOptimized", "spectrumXOptimized")
    return isinstance(settings, Mapping) and any(_enabled(settings.get(name)) for name in sections)


def read_nic_configuration(reader: Reader) -> NicConfiguration:
    """Read the section; problems are noted in the reader."""
    found = NicConfiguration(
        enabled=reader.flag("enabled", False),
        maintenance_operator=reader.flag("maintenance_operator", True),
        log_level=reader.text("log_level", "info", choices=("info", "debug")),
        env=read_env(reader),
        storage=_storage(reader.section("storage")),
        templates=tuple(_template(item) for item in reader.sections("templates")),
        firmware=tuple(_firmware(item) for item in reader.sections("firmware")),
    )
    for key, entries in (("templates", found.templates), ("firmware", found.firmware)):
        if entries and not found.enabled:
            reader.refuse(key, "has an effect with enabled: true only. Set enabled, or remove it")
        for problem in _twice(entries):
            reader.refuse(key, problem)
    reader.close()
    return found


def _twice(entries: Sequence[Template | Firmware]) -> Iterator[str]:
    for one, other in itertools.combinations(entries, 2):
        if one.name == other.name:
            yield f'the name "{one.name}" is given to more than one entry'
        elif one.nics.shares(other.nics):
            yield (
                f"{one.name} and {other.name} can match the same NIC, and the operator then applies neither. Set"
                " pci_addresses or serial_numbers that differ"
            )


def _storage(reader: Reader) -> Storage:
    found = Storage(
        claim=reader.text("claim", "nic-fw-storage-pvc", form=_CLAIM),
        create=reader.flag("create", True),
        storage_class=reader.text("storage_class", None, form=_CLAIM),
        size=reader.text("size", "1Gi", form=_SIZE),
    )
    reader.close()
    return found


def _nics(reader: Reader) -> Nics:
    addresses = tuple(address.lower() for address in reader.texts("pci_addresses"))
    for address in addresses:
        if not _PCI.fullmatch(address):
            reader.refuse("pci_addresses", f'expected PCI addresses such as 0000:18:00.0, found "{address}"')
    if "nic_type" not in reader:
        reader.refuse("nic_type", f"missing. Set it to {_NIC_TYPE.words}")
    nic_type = reader.text("nic_type", None, form=_NIC_TYPE) or ""
    return Nics(nic_type, addresses, reader.texts("serial_numbers"))


def _named(reader: Reader) -> str:
    if "name" not in reader:
        reader.refuse("name", "missing; it becomes the name of the object")
    return reader.text("name", None, form=_NAME) or ""


def _template(reader: Reader) -> Template:
    settings = reader.mapping("settings")
    if not settings:
        reader.refuse("settings", "missing. Set numVfs, linkType and the groups of settings to apply")
    if _enabled(settings.get("gpuDirectOptimized")) and not _enabled(settings.get("pciPerformanceOptimized")):
        reader.refuse("settings", "gpuDirectOptimized requires pciPerformanceOptimized.enabled: true")
    template = Template(_named(reader), _nics(reader), settings, reader.flag("reset", False))
    reader.close()
    return template


def _firmware(reader: Reader) -> Firmware:
    urls, bundle = reader.texts("urls"), reader.text("bundle_url", None, form=_URL)
    for url in urls:
        if not re.fullmatch(_URL.pattern, url):
            reader.refuse("urls", f"expected {_URL.words}")
    if not urls and not bundle:
        reader.refuse("urls", "missing. Set urls, or bundle_url for BlueField")
    firmware = Firmware(_named(reader), _nics(reader), urls, bundle, reader.flag("update", False))
    reader.close()
    return firmware


def _enabled(section: Any) -> bool:
    return isinstance(section, Mapping) and converted(section.get("enabled"), bool) is True
