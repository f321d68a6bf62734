"""Numbers, PCI addresses and paths."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._core import pci, units
from ansible_collections.gpufabric.rdma.plugins.module_utils._core.errors import InputError


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
