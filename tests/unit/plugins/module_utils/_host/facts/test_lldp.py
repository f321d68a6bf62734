"""Which switch port a network device hangs on, as lldpd and systemd-networkd tell it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.lldp import Neighbour, parse

FIXTURES = Path(__file__).resolve().parents[5] / "fixtures" / "lldp"
LLDPD = (FIXTURES / "lldpd-1.0.16.json").read_text()
NOBODY = (FIXTURES / "lldpd-1.0.16-nobody.json").read_text()
NETWORKD = (FIXTURES / "networkd.json").read_text()
TABLE = "LINK CHASSIS-ID        SYSTEM-NAME CAPS        PORT-ID\neth0 xx:dd:xx:xx:xx:80 leaf        ..b.r...... 516\n"

FROM_LLDPD = {
    "rail0": Neighbour("leaf3", "02:00:00:00:03:0c", "Ethernet12"),
    "rail1": Neighbour("leaf3", "02:00:00:00:03:0c", "etp5"),
}
# A neighbour that neither bridges nor routes is another host, seen through a switch that forwards LLDP.
FROM_NETWORKD = {
    "rail0": Neighbour("leaf1", "48:b0:2d:11:22:33", "swp12"),
    "rail1": Neighbour("", "48:b0:2d:11:22:44", "swp12"),
}


@pytest.mark.parametrize(
    ("lldpd", "networkd", "expected"),
    [
        (LLDPD, None, FROM_LLDPD),
        (NOBODY, None, {}),
        (None, NETWORKD, FROM_NETWORKD),
        # lldpd was installed on purpose; what it does not know, networkd may.
        (LLDPD, NETWORKD, FROM_LLDPD),
        (NOBODY, NETWORKD, FROM_NETWORKD),
        (None, TABLE, {}),
        (None, None, {}),
        ("", "", {}),
        ('{"lldp": "none"}', '{"Neighbors": {"rail0": 1}}', {}),
    ],
)
def test_neighbours(lldpd: str | None, networkd: str | None, expected: dict[str, Neighbour]) -> None:
    assert parse(lldpd, networkd) == expected


def test_texts_are_cut() -> None:
    long = NETWORKD.replace('"leaf1"', json.dumps("l" * 300))
    assert parse(None, long)["rail0"].system == "l" * 64


def test_as_facts() -> None:
    assert FROM_NETWORKD["rail1"].to_dict() == {"system": "", "chassis": "48:b0:2d:11:22:44", "port": "swp12"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                [
                    "lldp",
                    "interface",
                    "name",
                    "chassis",
                    "id",
                    "type",
                    "value",
                    "port",
                    "capability",
                    "Neighbors",
                    "InterfaceName",
                    "EnabledCapabilities",
                    "ChassisID",
                ]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_form_raises(value: Any) -> None:
    text = json.dumps(value)
    parse(text, text)
