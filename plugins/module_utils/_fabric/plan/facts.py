# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of a host (_core/inventory.py), checked by type before anything on the controller uses them.

A host may be broken or hostile. What it reports must neither end the plan of the others nor reach a terminal as it is.
"""

from __future__ import annotations

import re
from typing import Any

from ..._common import host_facts
from ..._common.reader import describe
from ..intent.typed import (
    MACHINE_ID,
    Later,
    Unfit,
    dict_of,
    interface,
    list_of,
    matching,
    name,
    number,
    optional,
    plain,
    record,
    text,
    truth,
)

_MOST = 1024
# Gb/s; GT/s of PCIe are far below.
_RATE = optional(number(0, 10_000_000))
_COUNT = number(0, 1_000_000, whole=True)
_PCI = matching(re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"), "a PCI address such as 0000:18:00.0")
_ID = matching(re.compile("[0-9A-Fa-f]{0,8}"), "a PCI id")
# What the kernel takes as a name, less what is not ASCII.
_NAME = matching(re.compile("[!-.0-9;-~]{1,15}"), "the name of a network device")
_NETDEV = optional(_NAME)
_MAC = matching(re.compile("(?:[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){0,31})?"), "a MAC address")
_PATH = list_of(matching(re.compile("[0-9A-Za-z.:_-]{1,64}"), "an element of a PCI path"), 64)
_NODE = optional(number(0, 65536, whole=True))
_LAYER = matching(re.compile("ethernet|infiniband"), "ethernet or infiniband")
_RAIL = name("the name of a rail")
_SWITCH = record(
    system=text,
    chassis=text,
    port=text,
    max_frame=Later(optional(number(0, 99999, whole=True))),
    pfc=Later(optional(list_of(number(0, 7, whole=True), 8))),
)
_UPLINKS = list_of(
    record(
        pci=_PCI,
        speed=_RATE,
        width=optional(_COUNT),
        max_speed=_RATE,
        max_width=optional(_COUNT),
        redirects=Later(optional(truth)),
        translated_direct=Later(optional(truth)),
    ),
    64,
)
_PORT = record(
    pci=_PCI,
    vendor=_ID,
    device=_ID,
    driver=optional(name("the name of a driver")),
    netdev=_NETDEV,
    mac=_MAC,
    mtu=optional(_COUNT),
    carrier=optional(truth),
    speed=_RATE,
    max_speed=_RATE,
    link_layer=_LAYER,
    numa_node=_NODE,
    pcie=record(
        speed=_RATE, width=optional(_COUNT), max_speed=_RATE, max_width=optional(_COUNT), max_payload=optional(_COUNT)
    ),
    vfs=record(rate=_RATE, total=_COUNT, count=_COUNT),
    master=_NETDEV,
    addresses=list_of(interface, _MOST),
    rdma=list_of(name("the name of an RDMA device"), _MOST),
    path=_PATH,
    duty=text,
    uses=list_of(record(kind=text, text=text), _MOST),
    configured=optional(record(rail=_RAIL, addresses=list_of(interface, _MOST))),
    switch=optional(_SWITCH),
    pkey=Later(optional(matching(re.compile("0x[0-9A-Fa-f]{1,4}"), "a partition key"))),
    uplinks=Later(_UPLINKS, []),
    ats=Later(optional(truth)),
    passthrough=Later(optional(matching(re.compile("pf|vf"), "pf or vf"))),
)
_BOND = record(
    name=_NAME,
    members=list_of(record(netdev=_NAME, pci=optional(_PCI), speed=_RATE, carrier=optional(truth)), _MOST),
    problem=text,
    port=optional(_PORT),
)
_GUID = matching(re.compile("(?:[0-9A-Fa-f]{4}(?::[0-9A-Fa-f]{4}){3})?"), "a GUID")
_DEVICE = record(
    name=name("the name of an RDMA device"),
    pci=optional(_PCI),
    state=text,
    rate=_RATE,
    firmware=optional(text),
    node_guid=optional(_GUID, ""),
)
_FACTS = record(
    machine_id=optional(MACHINE_ID, ""),
    hostname=text,
    kernel=record(release=text),
    arch=Later(text, ""),
    os=Later(record(id=Later(text, ""), version=Later(text, "")), {}),
    perftest=optional(record(version=text)),
    drivers=dict_of(name("the name of a driver"), optional(text), _MOST),
    ports=list_of(_PORT, _MOST),
    lost_rails=dict_of(_RAIL, _PCI, _MOST),
    lost_addresses=Later(dict_of(_RAIL, list_of(interface, _MOST), _MOST), {}),
    rdma_devices=list_of(_DEVICE, _MOST),
    gpus=list_of(record(pci=_PCI, path=_PATH, numa_node=_NODE), _MOST),
    networks=list_of(interface, _MOST),
    bonds=Later(list_of(_BOND, _MOST), []),
)


def read_facts(facts: Any) -> tuple[dict[str, Any] | None, str]:
    """Return what the controller uses of the facts of a host, and "".

    None for a host without facts. None and what is wrong with them when a value has another type than it should.
    """
    if not facts:
        return None, ""
    try:
        return _checked(facts), ""
    except Unfit as error:
        found = plain(describe(error.value), 80)
        return None, f"{error.path or 'ansible_facts.rdma'}: expected {error.expected}, found {found}"


def _checked(facts: Any) -> dict[str, Any]:
    if not isinstance(facts, dict):
        raise Unfit("a dict", facts)
    if facts.get("schema") != host_facts.SCHEMA:
        expected = f"{host_facts.SCHEMA} (run rdma_facts of this collection again)"
        raise Unfit(expected, facts.get("schema")).below("schema")
    found: dict[str, Any] = _FACTS(facts)
    addresses = [port["pci"] for port in found["ports"]]
    for at, address in enumerate(addresses):
        if addresses.index(address) < at:
            raise Unfit("each PCI address once", address).below(f"ports[{at}].pci")
    return found
