# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user wants: the dict ``rdma_fabric`` of the inventory as a checked, immutable value."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.pci import NIC_VENDOR
from ..._common.reader import Form, Reader, describe, raise_problems
from .addressing import (
    STATIC,
    V4,
    V6,
    Network,
    Pools,
    Span,
    read_family,
    read_pools,
    read_reserved,
)
from .by_version import address_problems, by_version
from .components import Parts, read_parts, read_tolerations
from .driver import Driver, read_driver
from .images import PULL_SECRET, REPOSITORY, TAG
from .namespaces import NAMESPACE
from .networks import Networks, read_networks
from .platforms import Platform, brought, read_platform
from .rails import LAST_VLAN, RailIntent, read_rails
from .releases import DEFAULT, LINES, line_of
from .sriov import Sriov, read_pkey, read_sriov
from .tests import port_problems, read_tests
from .thresholds import Thresholds, read_thresholds

EXISTING = ("refuse", "use", "adopt")

_RELEASE = Form(r"\d+\.\d+\.\d+(-[a-z0-9.]+)?", f'a release such as {DEFAULT} (three numbers, without "v")')


@dataclass(frozen=True)
class Select:
    """Which ports can be rails; empty tuples and 0 mean any. ``min_speed`` in Gb/s."""

    vendors: tuple[str, ...]
    drivers: tuple[str, ...]
    min_speed: float


@dataclass(frozen=True)
class Capacity:
    """For how many hosts the address blocks are laid out, and how many pods each may run on a rail."""

    hosts: int
    pods_per_host: int


@dataclass(frozen=True)
class Operator(Parts):
    """The Network Operator: chart version, where it runs, where its component images come from, what of others'.

    ``platform``: the kind of cluster. ``machine_pool``: the MachineConfigPool of hosts with CoreOS.
    ``multus``, ``cni_plugins``: whether the policy installs them; ``tolerations``: as in a pod; ``policy_overrides``:
    merged into the spec of the policy, where None removes a key; ``driver``: the driver container.
    """

    release: str
    platform: Platform
    machine_pool: str
    namespace: str
    image_repository: str
    component_version: str
    nfd: bool
    existing: str
    multus: bool
    cni_plugins: bool
    image_pull_secrets: tuple[str, ...]
    tolerations: tuple[Mapping[str, Any], ...]
    policy_overrides: Mapping[str, Any]
    driver: Driver


@dataclass(frozen=True)
class Intent:
    """The whole intent. Fields are named and documented as the keys of ``rdma_fabric``.

    ``version``: that of the addresses. ``ipv6``: the same intent with IPv6 addresses, beside IPv4 ones. Where rails
    have IPv6 addresses only, they are those of the intent itself.
    """

    profile: str
    rails: tuple[RailIntent, ...]
    select: Select
    rail_count: int | None
    rename: bool
    supernet: Network | None
    rail_prefix: int
    gateway: str
    host_prefix: int | None
    reserved: tuple[Span, ...]
    pools: Pools
    capacity: Capacity
    addresses: str
    mtu: int | None
    vlan: int
    pkey: str | None
    link_speed: float | None
    routing: str
    operator: Operator
    network_namespace: str
    networks: Networks
    shared_devices_max: int
    sriov: Sriov
    node_labels: Mapping[str, str]
    node_selector: Mapping[str, str]
    thresholds: Thresholds
    tests: Mapping[str, Any]
    absent_hosts: str
    version: int = V4
    ipv6: Intent | None = None
    class_name: str = ""

    @property
    def own_networks(self) -> tuple[Network, ...]:
        """The networks of this version in which the addresses of rails are: supernet, and subnets of single rails."""
        own = [rail.subnet for rail in self.rails if rail.subnet]
        return (*([self.supernet] if self.supernet else []), *own)

    def vlan_of(self, rail: str) -> int:
        """Return the VLAN of a rail, 0 for none."""
        own = next((one.vlan for one in self.rails if one.name == rail), None)
        return self.vlan if own is None else own

    @property
    def bonds(self) -> dict[str, str]:
        """The rails that are bonds, with the names of these."""
        return {rail.name: rail.bond for rail in self.rails if rail.bond}

    @property
    def rail_networks(self) -> tuple[Network, ...]:
        """The networks in which the addresses of rails are, of both versions."""
        return (*self.own_networks, *(self.ipv6.own_networks if self.ipv6 else ()))

    @property
    def path(self) -> str:
        """Where the keys of these addresses are in the inventory."""
        return "rdma_fabric" if self.version == V4 else "rdma_fabric.ipv6"

    @property
    def writes_definitions(self) -> bool:
        """Whether networks need what only NetworkAttachmentDefinitions can say on every release line."""
        return self.networks.chains or self.pools.ipam == STATIC

    @classmethod
    def from_params(
        cls, params: Any, profiles: Sequence[str], sections: Mapping[str, Collection[str]] | None = None
    ) -> Intent:
        """Read ``rdma_fabric``; raise one InputError that names every wrong key by its path.

        ``profiles``: the names of the network models, the default first; ``sections``: key of a section that only some
        models use -> their names (operator/profiles/registry.py has both).
        """
        problems: list[str] = []
        reader = Reader(params, "rdma_fabric", problems)
        raise_problems(problems)
        rails = read_rails(reader)
        ipv6 = reader.section("ipv6")
        family, family_ipv6 = read_family(reader, V4), read_family(ipv6, V6)
        intent = cls(
            profile=reader.text("profile", profiles[0], choices=profiles),
            rails=rails,
            select=_select(reader.section("select")),
            rail_count=reader.integer("rail_count", len(rails) or None, 1, high=64),
            rename=reader.flag("rename", True),
            supernet=family.supernet,
            rail_prefix=family.rail_prefix,
            gateway=family.gateway,
            host_prefix=family.host_prefix,
            reserved=read_reserved(reader),
            pools=read_pools(reader.section("pools")),
            capacity=_capacity(reader.section("capacity")),
            addresses=reader.text("addresses", "plan", choices=("plan", "keep")),
            mtu=reader.integer("mtu", None, 1280, high=16384),
            vlan=reader.integer("vlan", 0, 0, high=LAST_VLAN),
            pkey=read_pkey(reader),
            link_speed=reader.number("link_speed", None, 0.001, high=10000),
            routing=reader.text("routing", "none", choices=("none", "between_rails")),
            operator=_operator(reader.section("operator")),
            network_namespace=reader.text("network_namespace", "default", form=NAMESPACE),
            networks=read_networks(reader.section("networks")),
            shared_devices_max=reader.integer("shared_devices_max", 63, 1, high=10000),
            sriov=read_sriov(reader.section("sriov")),
            node_labels=reader.labels("node_labels"),
            node_selector=reader.labels("node_selector"),
            thresholds=read_thresholds(reader.section("thresholds")),
            tests=read_tests(reader.section("tests")),
            absent_hosts=reader.text("absent_hosts", "stop", choices=("stop", "report")),
        )
        reader.items("classes")
        reader.close()
        read, intent = intent, by_version(intent, family_ipv6)
        problems += address_problems(read, intent, wanted="ipv6" in reader and "supernet" not in ipv6)
        _check_together(reader, intent)
        _check_sections(reader, intent.profile, sections or {})
        raise_problems(problems)
        return intent


def _select(reader: Reader) -> Select:
    select = Select(
        vendors=tuple(vendor.lower() for vendor in reader.texts("vendors", (NIC_VENDOR,))),
        drivers=reader.texts("drivers"),
        min_speed=reader.number("min_speed", 0.0, 0, high=10000),
    )
    reader.close()
    return select


def _capacity(reader: Reader) -> Capacity:
    capacity = Capacity(
        hosts=reader.integer("hosts", 32, 1, high=100000),
        pods_per_host=reader.integer("pods_per_host", 2, 1, high=10000),
    )
    reader.close()
    return capacity


def _operator(reader: Reader) -> Operator:
    release = reader.text("release", DEFAULT, form=_RELEASE)
    line = line_of(release)
    if line is None:
        reader.refuse("release", f"{release} is not of a supported release line. Supported: {', '.join(LINES)}")
    platform, machine_pool = read_platform(reader)
    operator = Operator(
        **vars(read_parts(reader, line, release)),
        release=release,
        platform=platform,
        machine_pool=machine_pool,
        namespace=reader.text("namespace", "nvidia-network-operator", form=NAMESPACE),
        image_repository=reader.text("image_repository", line.repository(release) if line else None, form=REPOSITORY),
        component_version=reader.text("component_version", "network-operator-v" + release, form=TAG),
        nfd=brought(platform, reader, "nfd"),
        existing=reader.text("existing", "refuse", choices=EXISTING),
        multus=brought(platform, reader, "multus"),
        cni_plugins=brought(platform, reader, "cni_plugins"),
        image_pull_secrets=_pull_secrets(reader),
        tolerations=read_tolerations(reader, "tolerations"),
        policy_overrides=_overrides(reader),
        driver=read_driver(reader.section("driver"), line, release),
    )
    reader.close()
    return operator


def _check_sections(reader: Reader, profile: str, sections: Mapping[str, Collection[str]]) -> None:
    """Refuse a section that the network model does not use: without it the user would get something else."""
    for key, profiles in sections.items():
        if key in reader and profile not in profiles:
            reader.refuse(
                key, f"is used by profile {' or '.join(profiles)}, but rdma_fabric.profile is {profile}. Remove one"
            )


def _pull_secrets(reader: Reader) -> tuple[str, ...]:
    names: tuple[str, ...] = reader.texts("image_pull_secrets")
    for name in names:
        if not re.fullmatch(PULL_SECRET.pattern, name):
            reader.refuse("image_pull_secrets", f'expected {PULL_SECRET.words}, found "{name}"')
    return names


def _overrides(reader: Reader) -> dict[str, Any]:
    found = reader.mapping("policy_overrides")
    for key in found:
        if not isinstance(key, str):
            reader.refuse("policy_overrides", f"expected names of fields, found {describe(key)}")
    return found


def _check_together(reader: Reader, intent: Intent) -> None:
    """Note what only several keys together show."""
    given = "supernet" in reader or "ipv6" in reader or bool(reader.items("classes"))
    if intent.addresses == "plan" and not given and not intent.own_networks:
        reader.refuse(
            "supernet", "missing. Set the network from which rails get their addresses, or set addresses: keep"
        )
    if intent.rails and intent.rail_count != len(intent.rails):
        reader.refuse("rail_count", f"{intent.rail_count}, but rails lists {len(intent.rails)}")
    if intent.tests["cross_rail"] and intent.routing == "none":
        reader.refuse(
            "tests.cross_rail",
            "rails cannot reach each other (rdma_fabric.routing: none). Set cross_rail: false, or set routing: "
            "between_rails if the fabric routes between all rails",
        )
    if intent.tests["mode"] == "loopback" and intent.routing == "none":
        reader.refuse(
            "tests.mode",
            "loopback measures from rail to rail, and rails cannot reach each other (rdma_fabric.routing: none). Set"
            " another mode, or set routing: between_rails if the fabric connects all rails",
        )
    for text in port_problems(intent.tests, intent.rail_count or 16):
        reader.refuse("tests.port_base", text)
