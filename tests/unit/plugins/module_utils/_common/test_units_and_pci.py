"""Numbers, PCI addresses and paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common import pci, units
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [("400000", 400.0), ("2500", 2.5), ("-1", None), ("4294967295", None), ("0", None), ("", None), (None, None)],
)
def test_gigabits(text: str | None, expected: float | None) -> None:
    assert units.gigabits(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("16.0 GT/s PCIe", 16.0), ("2.5 GT/s", 2.5), ("100 Gb/sec (4X EDR)", 100.0), ("Unknown", None), (None, None)],
)
def test_leading_number(text: str | None, expected: float | None) -> None:
    assert units.leading_number(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("0", 0), ("-1", None), ("0x1003", 4099), ("x", None), (None, None)])
def test_natural(text: str | None, expected: int | None) -> None:
    assert units.natural(text) == expected


@pytest.mark.parametrize(
    ("netdev", "rdma"), [(9000, 4096), (4192, 4096), (4191, 2048), (1500, 1024), (352, 256), (351, None)]
)
def test_roce_mtu(netdev: int, rdma: int | None) -> None:
    assert units.roce_mtu(netdev) == rdma


@pytest.mark.parametrize(("netdev", "rdma"), [(2044, 2048), (4092, 4096), (65520, None)])
def test_ipoib_mtu(netdev: int, rdma: int | None) -> None:
    assert units.ipoib_mtu(netdev) == rdma


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0000:18:00.0", "0000:18:00.0"), ("3A:00.1", "0000:3a:00.1"), ("10000:e1:00.0", "10000:e1:00.0")],
)
def test_pci_address(text: str, expected: str) -> None:
    assert str(pci.PciAddress.parse(text)) == expected


@pytest.mark.parametrize("text", ["", "0000:18:00", "18:00.8", "eth0", "0000:18:20.0"])
def test_wrong_pci_address(text: str) -> None:
    with pytest.raises(InputError) as caught:
        pci.PciAddress.parse(text)
    assert str(caught.value) == f"'{text}' is not a PCI address; expected the form 0000:18:00.0"


def test_addresses_are_ordered_as_numbers() -> None:
    first, second = pci.PciAddress.parse("0000:ff:00.0"), pci.PciAddress.parse("10000:01:00.0")
    assert first < second


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0", ("pci0000:00", "0000:00:01.0", "0000:01:00.0")),
        ("/sys/devices/platform/x/pci0001:00/0001:00:00.0", ("pci0001:00", "0001:00:00.0")),
        ("/sys/devices/virtual/infiniband/rxe0", ()),
        ("", ()),
    ],
)
def test_device_path(path: str, expected: tuple[str, ...]) -> None:
    assert pci.device_path(path) == expected


def config_space(*capabilities: tuple[int, int, int], size: int = 256) -> bytes:
    """A function's config space, made by hand from the layout of the PCI specification.

    ``capabilities``: (offset, id, Device Control) in the order of their list.
    """
    space = bytearray(256)
    at = 0x34
    for offset, kind, control in capabilities:
        space[at] = offset
        space[offset] = kind
        space[offset + 8 : offset + 10] = control.to_bytes(2, "little")
        at = offset + 1
    return bytes(space[:size])


@pytest.mark.parametrize(
    ("config", "payload"),
    [
        # Device Control 0x5936 and 0x2810 as servers have it: MPS is bits 7:5, MRRS (14:12) does not count.
        (config_space((0x40, 0x01, 0), (0x60, 0x10, 0x5936)), 256),
        (config_space((0x60, 0x10, 0x2810)), 128),
        (config_space((0x60, 0x10, 0x5956), (0x9C, 0x11, 0)), 512),
        (config_space((0x60, 0x10, 0x00A0)), 4096),
        # Reserved, no PCIe capability, a list that runs in a circle, what others than root read, nothing.
        (config_space((0x60, 0x10, 0x00E0)), None),
        (config_space((0x40, 0x01, 0)), None),
        (config_space((0x40, 0x01, 0), (0x60, 0x05, 0), (0x40, 0x01, 0)), None),
        (config_space((0x60, 0x10, 0x5936), size=64), None),
        (b"", None),
    ],
)
def test_max_payload(config: bytes, payload: int | None) -> None:
    assert pci.max_payload(config) == payload


@given(st.binary(max_size=256))
def test_any_config_space_is_read(config: bytes) -> None:
    assert pci.max_payload(config) in (None, 128, 256, 512, 1024, 2048, 4096)
