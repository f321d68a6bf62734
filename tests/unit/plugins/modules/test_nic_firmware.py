"""nic_firmware through main() on a server with eight cards that answer a tool."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic
from tests.unit.support import sysfs_tree
from tests.unit.support.firmware_cards import Cards
from tests.unit.support.module_run import run
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import command

FIRST, SECOND, STORAGE = "0000:18:00.0", "0000:40:00.0", "0000:29:00.0"
WANT = {"SRIOV_EN": True, "NUM_OF_VFS": 16}


def make_card() -> dict[str, list[str]]:
    return {
        "SRIOV_EN": ["0", "0", "0"],
        "NUM_OF_VFS": ["0", "6", "6"],
        "LINK_TYPE_P1": ["ETH(2)"] * 3,
        "ADVANCED_PCI_SETTINGS": ["0", "0", "0"],
        "MAX_ACC_OUT_READ": ["0", "0", "0"],
        "AB_C[0]": ["128"] * 3,
        "AB_C[1]": ["128"] * 3,
        "RO_ONE": ["1", "1", "1"],
    }


def build(root: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Cards:
    cards = Cards(sysfs_tree.materialise("gpu-server-8-rails", root, monkeypatch), monkeypatch, **options)
    cards.cards = {FIRST: make_card(), SECOND: make_card(), STORAGE: make_card()}
    return cards


@pytest.fixture(autouse=True)
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the module warns of; Ansible's own list lives as long as the process."""
    found: list[str] = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda _self, text: found.append(text))
    return found


@pytest.fixture()
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cards:
    return build(tmp_path, monkeypatch)


def rails(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"rail": name, "netdev": name, "pci": pci, "mtu": 9000} for name, pci in pairs]


RAILS = rails(("rail0", FIRST), ("rail1", SECOND))


def call(cards: Cards, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**cards.host.options()}
    return run("nic_firmware", capsys, check, **{"rails": RAILS, "settings": WANT, **options, **params})


def everything(host: Host) -> dict[str, str]:
    tops = [path for top in ("var", "run") for path in (host.root / top).rglob("*")]
    return {str(path): path.read_text() for path in tops if path.is_file()}


def next_values(cards: Cards, pci: str) -> dict[str, str]:
    return {name: values[2] for name, values in cards.cards[pci].items()}


@pytest.mark.proves("nic_firmware", "Debian 13", "RHEL 9", "Ubuntu 24.04", by="unit")
@pytest.mark.parametrize(("tool", "json"), [("mlxconfig", True), ("mlxconfig", False), ("mstconfig", False)])
def test_what_differs_is_set_for_the_next_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tool: str, json: bool
) -> None:
    cards = build(tmp_path, monkeypatch, tool=tool, json=json)
    cards.cards[SECOND]["SRIOV_EN"] = ["0", "1", "1"]
    result = call(cards, capsys)
    assert (result["changed"], result["reboot_required"]) == (True, True)
    assert result["diff"]["before"] == {
        FIRST: {"SRIOV_EN": "False(0)", "NUM_OF_VFS": "6"},
        SECOND: {"SRIOV_EN": "True(1)", "NUM_OF_VFS": "6"},
    }
    assert [words for words in cards.ran if "set" in words] == [
        ["-y", "-d", FIRST, "set", "SRIOV_EN=1", "NUM_OF_VFS=16"],
        ["-y", "-d", SECOND, "set", "NUM_OF_VFS=16"],
    ]
    assert result["reasons"] == [
        "0000:18:00.0 (rail0): SRIOV_EN is False(0) until a reboot loads 1",
        "0000:18:00.0 (rail0): NUM_OF_VFS is 6 until a reboot loads 16",
        "0000:40:00.0 (rail1): NUM_OF_VFS is 6 until a reboot loads 16",
    ]
    assert cards.host.inventory().reboot == tuple(result["reasons"])


#: What GPUDirect hosts set, by the names of mlxconfig (nvconfig), and the text that the tool gets for each.
EVERYTHING: dict[str, tuple[Any, str]] = {
    "SRIOV_EN": (True, "1"),
    "NUM_OF_VFS": (16, "16"),
    "LINK_TYPE_P1": ("IB", "IB"),
    "LINK_TYPE_P2": ("ETH(2)", "2"),
    "ADVANCED_PCI_SETTINGS": ("True(1)", "1"),
    "PCI_WR_ORDERING": ("force_relax(1)", "1"),
    "MAX_ACC_OUT_READ": (44, "44"),
    "ATS_ENABLED": (False, "0"),
    "ROCE_CC_PRIO_MASK_P1": ("0xff", "255"),
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_parameters_of_gpudirect_hosts(cards: Cards, capsys: pytest.CaptureFixture[str], name: str) -> None:
    value, text = EVERYTHING[name]
    other = {"LINK_TYPE_P2": "IB(1)", "ATS_ENABLED": "True(1)", "LINK_TYPE_P1": "ETH(2)"}.get(name, "5")
    cards.labels.clear()
    cards.cards[FIRST][name] = ["7", "6", other]
    result = call(cards, capsys, rails=RAILS[:1], settings={name: value})
    assert [words[4:] for words in cards.ran if "set" in words] == [[f"{name}={text}"]]
    assert result["cards"][0]["settings"] == {name: {"default": "7", "current": "6", "next_boot": text}}
    assert call(cards, capsys, rails=RAILS[:1], settings={name: value})["changed"] is False


def test_six_is_not_sixteen(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    cards.cards[FIRST]["NUM_OF_VFS"] = ["0", "16", "16"]
    call(cards, capsys, settings={"NUM_OF_VFS": 6}, rails=RAILS[:1])
    assert next_values(cards, FIRST)["NUM_OF_VFS"] == "6"


def test_a_second_run_sets_nothing_and_still_waits(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    first = call(cards, capsys)
    before = everything(cards.host)
    cards.ran.clear()
    again = call(cards, capsys)
    assert (again["changed"], again["reasons"]) == (False, first["reasons"])
    assert everything(cards.host) == before
    assert [words[3] for words in cards.ran] == ["query", "query"]


def test_after_the_reboot_nothing_waits(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    call(cards, capsys)
    cards.reboot()
    result = call(cards, capsys)
    assert (result["changed"], result["reboot_required"], result["power_cycle"]) == (False, False, [])
    assert not (cards.host.root / "run/gpufabric/reboot.d/nic_firmware").exists()


def test_what_a_reboot_did_not_load_needs_a_power_cycle(
    cards: Cards, capsys: pytest.CaptureFixture[str], warned: list[str]
) -> None:
    call(cards, capsys, rails=RAILS[:1], settings={"NUM_OF_VFS": 16})
    cards.reboot(loads=False)
    result = call(cards, capsys, rails=RAILS[:1], settings={"NUM_OF_VFS": 16})
    text = "0000:18:00.0 (rail0): NUM_OF_VFS is 6 until a power cycle loads 16"
    assert (result["reboot_required"], result["power_cycle"]) == (False, [text])
    assert warned == [f"nic_firmware: {text}, or a reset by the vendor's tool"]


def test_the_tool_can_ask_for_a_power_cycle(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    cards.load = "power cycle"
    result = call(cards, capsys)
    assert (result["changed"], result["reboot_required"], len(result["power_cycle"])) == (True, False, 4)
    assert "is 6 until a power cycle loads 16" in result["power_cycle"][1]
    cards.reboot()
    assert call(cards, capsys)["power_cycle"] == []


def test_a_card_that_tells_no_current_values_waits_for_the_boot_after(
    cards: Cards, capsys: pytest.CaptureFixture[str]
) -> None:
    cards.cards[FIRST]["NUM_OF_VFS"] = ["N/A", "N/A", "6"]
    result = call(cards, capsys, rails=RAILS[:1], settings={"NUM_OF_VFS": 16})
    assert result["reasons"] == ["0000:18:00.0 (rail0): NUM_OF_VFS is 16 after a reboot"]
    assert call(cards, capsys, rails=RAILS[:1], settings={"NUM_OF_VFS": 16})["reboot_required"] is True
    cards.reboot(loads=False)
    result = call(cards, capsys, rails=RAILS[:1], settings={"NUM_OF_VFS": 16})
    assert (result["reboot_required"], result["power_cycle"]) == (False, [])


def test_check_mode_says_the_same_and_sets_nothing(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything(cards.host)
    checked = call(cards, capsys, check=True)
    assert everything(cards.host) == before and not any("set" in words for words in cards.ran)
    done = call(cards, capsys)
    same = ("changed", "reasons", "reboot_required")
    assert {key: checked[key] for key in same} == {key: done[key] for key in same}
    assert checked["diff"]["before"] == done["diff"]["before"]
    assert checked["diff"]["after"][FIRST] == {"SRIOV_EN": "1", "NUM_OF_VFS": "16"}


def test_absent_gives_the_values_back(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    before = {pci: next_values(cards, pci) for pci in cards.cards}
    call(cards, capsys)
    cards.reboot()
    call(cards, capsys, settings={"NUM_OF_VFS": 8, "AB_C[0..1]": 7})
    result = call(cards, capsys, state="absent", rails=[], settings={})
    assert {pci: next_values(cards, pci) for pci in cards.cards} == before
    assert (result["changed"], result["reboot_required"]) == (True, True)
    cards.reboot()
    again = call(cards, capsys, state="absent", rails=[], settings={})
    assert (again["changed"], again["reboot_required"]) == (False, False)
    assert everything(cards.host) == {}
    cards.ran.clear()
    assert call(cards, capsys, state="absent")["changed"] is False and cards.ran == []


def test_what_others_changed_since_is_not_undone(
    cards: Cards, capsys: pytest.CaptureFixture[str], warned: list[str]
) -> None:
    call(cards, capsys)
    cards.reboot()
    cards.cards[FIRST]["NUM_OF_VFS"][2] = "32"
    warned.clear()
    call(cards, capsys, state="absent")
    assert warned == [
        "nic_firmware: 0000:18:00.0 (enp24s0np0): NUM_OF_VFS: found 32, expected 16 as set by this collection. Another "
        "tool changed it, so it is not restored, and its record is removed. Before the first change it was 6"
    ]
    assert [next_values(cards, FIRST)[name] for name in WANT] == ["0", "32"]
    cards.reboot()
    assert (call(cards, capsys, state="absent")["reasons"], everything(cards.host)) == ([], {})


def test_a_card_with_another_owner_is_left_alone(
    cards: Cards, capsys: pytest.CaptureFixture[str], warned: list[str]
) -> None:
    call(cards, capsys)
    entry = {"set": {"addresses": []}, "owners": []}
    (cards.host.root / "var/lib/gpufabric/rail_links.json").write_text(json.dumps({FIRST: entry, SECOND: entry}))
    links = cards.host.links()
    address = [{"local": "203.0.113.7", "prefixlen": 24, "scope": "global"}]
    cards.host.set_links([{**one, "addr_info": address} if one["ifname"] == "enp24s0np0" else one for one in links])
    record = json.loads((cards.host.root / "var/lib/gpufabric/nic_firmware.json").read_text())
    call(cards, capsys, state="absent")
    assert warned == [
        "nic_firmware: 0000:18:00.0 (enp24s0np0) is now used by another owner: address 203.0.113.7/24. "
        "Firmware settings of its card are not restored; the record is kept, and a run without this owner restores them"
    ]
    assert [next_values(cards, pci)["NUM_OF_VFS"] for pci in (FIRST, SECOND)] == ["16", "6"]
    assert json.loads((cards.host.root / "var/lib/gpufabric/nic_firmware.json").read_text())[FIRST] == record[FIRST]


def test_nothing_wanted_is_nothing_read(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    cards.host.ran.clear()
    result = call(cards, capsys, settings={})
    assert (result["changed"], result["cards"]) == (False, []) and cards.ran == cards.host.ran == []


def test_two_ports_are_one_card(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    second_port(cards)
    result = call(cards, capsys, rails=rails(("rail0", FIRST), ("rail1", "0000:18:00.1")))
    assert [words[2] for words in cards.ran if "set" in words] == [FIRST]
    assert result["reasons"][0] == "0000:18:00.0 (rail0, rail1): SRIOV_EN is False(0) until a reboot loads 1"
    # One port alone is that card too.
    assert call(cards, capsys, rails=rails(("rail1", "0000:18:00.1")))["changed"] is False


def second_port(cards: Cards, netdev: str = "enp24s0np1") -> None:
    devices = cards.host.root / "sys/bus/pci/devices"
    first = (devices / FIRST).resolve()
    second = first.parent / "0000:18:00.1"
    shutil.copytree(first, second, symlinks=True)
    shutil.rmtree(second / "infiniband")
    (second / "net/enp24s0np0").rename(second / "net" / netdev)
    os.symlink(second, devices / second.name)


def below_the_default_route(cards: Cards) -> None:
    cards.host.set_links([*cards.host.links(), {"ifname": "enp24s0np1", "master": "bond0"}])


def below_a_vlan_with_the_ssh_connection(cards: Cards) -> None:
    address = {"local": "172.16.9.1", "prefixlen": 24, "scope": "global"}
    below, above = {"ifname": "enp24s0np1"}, {"ifname": "mgmt", "link": "enp24s0np1", "addr_info": [address]}
    cards.host.set_links([*cards.host.links(), below, above])
    (cards.host.root / "proc/self/environ").write_text("SSH_CONNECTION=172.16.9.8 50000 172.16.9.1 22\0")


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (below_the_default_route, "the default route (of bond0)"),
        (below_a_vlan_with_the_ssh_connection, "the ssh connection of this run (of mgmt)"),
    ],
)
def test_a_card_with_a_duty_is_left_alone(
    cards: Cards, capsys: pytest.CaptureFixture[str], use: Callable[[Cards], None], what: str
) -> None:
    second_port(cards)
    use(cards)
    result = call(cards, capsys)
    assert result["msg"] == (
        f"nic_firmware: 0000:18:00.0 (rail0): enp24s0np1 carries {what}, and the card reset that activates new "
        "settings would interrupt it. Set management_allowed: true to change the card anyway"
    )
    assert cards.ran == []
    assert call(cards, capsys, management_allowed=True)["changed"] is True


def test_what_the_gate_hides_is_set_when_it_is_open(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    cards.hidden = ("MAX_ACC_OUT_READ",)
    want = {"ADVANCED_PCI_SETTINGS": True, "MAX_ACC_OUT_READ": 44}
    result = call(cards, capsys, rails=RAILS[:1], settings=want)
    assert result["reasons"] == [
        "0000:18:00.0 (rail0): ADVANCED_PCI_SETTINGS is False(0) until a reboot loads 1",
        "0000:18:00.0 (rail0): MAX_ACC_OUT_READ can be set only after ADVANCED_PCI_SETTINGS has taken effect. Rerun "
        "the playbook then",
    ]
    assert next_values(cards, FIRST)["MAX_ACC_OUT_READ"] == "0"
    assert call(cards, capsys, rails=RAILS[:1], settings=want)["changed"] is False
    cards.reboot()
    assert call(cards, capsys, rails=RAILS[:1], settings=want)["changed"] is True
    assert next_values(cards, FIRST)["MAX_ACC_OUT_READ"] == "44"


def test_a_gate_that_opens_at_once_needs_one_run(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    cards.hidden, cards.gate = ("MAX_ACC_OUT_READ",), 2
    want = {"ADVANCED_PCI_SETTINGS": True, "MAX_ACC_OUT_READ": 44}
    result = call(cards, capsys, rails=RAILS[:1], settings=want)
    assert next_values(cards, FIRST)["MAX_ACC_OUT_READ"] == "44"
    assert result["diff"]["after"][FIRST] == {"ADVANCED_PCI_SETTINGS": "True(1)", "MAX_ACC_OUT_READ": "44"}
    record = json.loads((cards.host.root / "var/lib/gpufabric/nic_firmware.json").read_text())
    assert record[FIRST]["before"] == {"ADVANCED_PCI_SETTINGS": "False(0)", "MAX_ACC_OUT_READ": "0"}


def refused(cards: Cards, capsys: pytest.CaptureFixture[str], **params: Any) -> str:
    before = everything(cards.host)
    message = call(cards, capsys, **params)["msg"]
    assert everything(cards.host) == before and not any("set" in words for words in cards.ran)
    return message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"NUM_OF_VFS": 16, "NUM_OF_VFZ": 1, "LINK_TYPE_P2": "ETH"},
            "0000:18:00.0 (rail0) has no parameter NUM_OF_VFZ; 0000:18:00.0 (rail0) has no parameter LINK_TYPE_P2; "
            "0000:40:00.0 (rail1) has no parameter NUM_OF_VFZ; 0000:40:00.0 (rail1) has no parameter LINK_TYPE_P2",
        ),
        (
            {"ATS_ENABLED": False},
            "0000:18:00.0 (rail0) has no parameter ATS_ENABLED. It may be hidden while ADVANCED_PCI_SETTINGS is off: "
            "request ADVANCED_PCI_SETTINGS as well; 0000:40:00.0 (rail1) has no parameter ATS_ENABLED. It may be "
            "hidden while ADVANCED_PCI_SETTINGS is off: request ADVANCED_PCI_SETTINGS as well",
        ),
        ({"RO_ONE": 2}, "0000:18:00.0 (rail0): RO_ONE is read-only; 0000:40:00.0 (rail1): RO_ONE is read-only"),
        ({"AB_C[0..3]": [1]}, "AB_C[0..3] has 1 values; expected 4, or one for all"),
    ],
)
def test_settings_that_cannot_be(
    cards: Cards, capsys: pytest.CaptureFixture[str], settings: dict[str, Any], message: str
) -> None:
    assert refused(cards, capsys, settings=settings) == f"nic_firmware: {message}"


def test_no_card_is_set_when_one_does_not_know_a_parameter(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    del cards.cards[SECOND]["NUM_OF_VFS"]
    assert refused(cards, capsys) == "nic_firmware: 0000:40:00.0 (rail1) has no parameter NUM_OF_VFS"


def test_other_refusals(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    other = rails(("rail0", "0000:82:00.0"))
    assert refused(cards, capsys, rails=other) == (
        "nic_firmware: 0000:82:00.0 (rail0) is of vendor 8086, not an NVIDIA NIC (15b3)"
    )
    del cards.host.prints[cards.path]
    assert refused(cards, capsys) == (
        "nic_firmware: neither mlxconfig nor mstconfig is installed; "
        "install mstflint of the distribution, or MFT of DOCA"
    )


def test_what_a_card_does_not_take_is_said(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    cards.stubborn = ("NUM_OF_VFS",)
    assert call(cards, capsys, rails=RAILS[:1])["msg"] == (
        "nic_firmware: after the change 0000:18:00.0 NUM_OF_VFS is 6, expected 16. "
        "Check the kernel log and the system journal"
    )
    call(cards, capsys, state="absent")
    assert next_values(cards, FIRST) == {name: values[2] for name, values in make_card().items()}


def test_a_value_that_a_card_does_not_take_does_not_stop_the_way_back(
    cards: Cards, capsys: pytest.CaptureFixture[str]
) -> None:
    call(cards, capsys)
    cards.stubborn = ("NUM_OF_VFS",)
    assert call(cards, capsys, settings={**WANT, "NUM_OF_VFS": 8})["failed"]
    cards.stubborn = ()
    call(cards, capsys, state="absent")
    assert next_values(cards, FIRST) == {name: values[2] for name, values in make_card().items()}


def test_a_card_that_does_not_answer(cards: Cards, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(cards, "query", lambda pci, words: command.Result(3, "-E- Failed to open the device\n", ""))
    assert refused(cards, capsys) == (
        "nic_firmware: /usr/bin/mstconfig could not read 0000:18:00.0 (status 3): -E- Failed to open the device"
    )


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"minimum": ["28.39.1002"]}, None),
        ({"minimum": ["28.40.0"]}, "has firmware 28.39.1002, expected 28.40.0 or newer"),
        ({"minimum": ["28.4.1"]}, None),
        ({"minimum": ["20.99.1", "28.39.1003"]}, "has firmware 28.39.1002, expected 28.39.1003 or newer"),
        ({"minimum": ["20.99.1"]}, None),
        ({"exact": ["28.39.1002"]}, None),
        ({"exact": ["28.38.1"]}, "has firmware 28.39.1002, expected exactly 28.38.1"),
    ],
)
def test_versions(
    cards: Cards,
    capsys: pytest.CaptureFixture[str],
    warned: list[str],
    params: dict[str, Any],
    problem: str | None,
) -> None:
    result = call(cards, capsys, settings={}, rails=RAILS[:1], **params)
    told = [f"nic_firmware: 0000:18:00.0 (rail0) {problem}"] if problem else []
    assert (result["changed"], warned) == (False, told)
    assert result["cards"] == [{"pci": FIRST, "firmware": "28.39.1002", "psid": None, "settings": {}}]
    assert cards.ran == []
    result = call(cards, capsys, rails=RAILS[:1], version_policy="fail", **params)
    if problem:
        tail = "Update it with the vendor's tools: this collection does not flash firmware"
        assert result["msg"] == f"{told[0]}. {tail}" and cards.ran == []
    else:
        assert result["changed"] is True


def test_the_board_of_a_card_is_told(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    (cards.host.root / "sys/class/infiniband/mlx5_0/board_id").write_text("MT_0000000838\n")
    assert call(cards, capsys)["cards"][0]["psid"] == "MT_0000000838"


def test_a_version_that_is_none(cards: Cards, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(cards, capsys, minimum=["latest"])["msg"] == (
        "nic_firmware: 'latest' is not a firmware version; expected one such as 28.43.1014"
    )
