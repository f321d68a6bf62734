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
    facts = {"system": "", "chassis": "48:b0:2d:11:22:44", "port": "swp12", "max_frame": None, "pfc": None}
    assert FROM_NETWORKD["rail1"].to_dict() == facts
    assert Neighbour("", "aa\x1b[2J", "swp\n1").title == "aa?[2J port swp?1"
    assert Neighbour("leaf1", "a", "1", 9216, (3, 4)).to_dict()["pfc"] == [3, 4]


def told(mfs: Any = None, *tlvs: dict[str, Any]) -> Neighbour:
    """What is known of rail0 when the switch tells its largest frame and has TLVs that lldpd does not know."""
    data = json.loads(LLDPD)
    own = data["lldp"][0]["interface"][0]
    own["port"][0].update({"mfs": [{"value": mfs}]} if mfs is not None else {})
    own["unknown-tlvs"] = [{"unknown-tlv": list(tlvs)}]
    return parse(json.dumps(data), None)["rail0"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("9216", 9216),
        ("0", 0),
        ("-1", None),
        ("1e4", None),
        ("\u0661", None),
        ("9" * 64, None),
        (9216, None),
        (None, None),
    ],
)
def test_the_largest_frame_of_a_switch_port(value: Any, expected: int | None) -> None:
    assert told(value).max_frame == expected


ETS = {"oui": "00,80,C2", "subtype": "9", "len": "21", "value": ",".join(["01"] * 21)}


@pytest.mark.parametrize(
    ("tlvs", "expected"),
    [
        # Willing bit, capability of 8 classes, then a bit per priority.
        ([ETS, {"oui": "00,80,C2", "subtype": "11", "len": "2", "value": "08,08"}], (3,)),
        ([{"oui": "00,80,C2", "subtype": "11", "len": "2", "value": "88,18"}], (3, 4)),
        ([{"oui": "00,80,C2", "subtype": "11", "len": "2", "value": "08,00"}], ()),
        ([{"oui": "00,80,C2", "subtype": "11", "len": "2", "value": "08,FF"}], tuple(range(8))),
        # Another TLV, another organization (DCBX before the standard), and damaged ones.
        ([ETS], None),
        ([{"oui": "00,1B,21", "subtype": "11", "len": "2", "value": "08,08"}], None),
        ([{"oui": "00,80,C2", "subtype": "11", "len": "1", "value": "08"}], None),
        ([{"oui": "00,80,C2", "subtype": "11", "len": "2", "value": "08,0x"}], None),
        ([{"oui": "00,80,C2", "subtype": "11", "len": "3", "value": "08,08,08"}], None),
        ([{"oui": ["00"], "subtype": {}, "value": 8}], None),
    ],
)
def test_priorities_with_flow_control_on_the_switch(tlvs: list[Any], expected: tuple[int, ...] | None) -> None:
    assert told(None, *tlvs).pfc == expected


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
                    "mfs",
                    "unknown-tlvs",
                    "unknown-tlv",
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
