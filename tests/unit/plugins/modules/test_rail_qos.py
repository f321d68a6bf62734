"""rail_qos through main() on a machine whose programs and files take what they are told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import qos_host, sysfs_tree
from tests.unit.support.module_run import warned
from tests.unit.support.qos_host import FIRST, FIXTURES, QOS, SECOND, UNIT, call, obey, put, rail, snapshot
from tests.unit.support.sysfs_tree import Host

WANTS = "sys-subsystem-net-devices-rail0.device.wants"


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return qos_host.make(tmp_path, monkeypatch)


def test_lossless_roce_now_and_at_every_boot(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys)
    assert (result["changed"], result["reboot_required"], result["reasons"]) == (True, False, [])
    assert result["diff"]["before"]["rails"] == {
        FIRST: {
            "pause": {"rx": True, "tx": True},
            "trust": "pcp",
            "pfc": [],
            "ecn": [0, 1, 2, 3, 4, 5, 6, 7],
            "cnp_dscp": 48,
            "traffic_class": -1,
            "rdma_cm": {"roce": None, "tos": None},
        }
    }
    assert [argv for argv in host.ran if argv[0] in ("mlnx_qos", "ethtool") and len(argv) > 3] == [
        ["ethtool", "-A", "enp24s0np0", "rx", "off", "tx", "off"],
        ["mlnx_qos", "-i", "enp24s0np0", "--trust", "dscp"],
        ["mlnx_qos", "-i", "enp24s0np0", "--pfc", "0,0,0,1,0,0,0,0"],
    ]
    assert (host.root / "sys/class/net/enp24s0np0/ecn/roce_rp/enable/3").read_text() == "1"
    assert (host.root / "sys/class/net/enp24s0np0/ecn/roce_rp/enable/0").read_text() == "0"
    assert (host.root / "sys/class/infiniband/mlx5_0/tc/1/traffic_class").read_text() == "Global tclass=106\n"
    assert (host.root / "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos").read_text() == "106"
    unit = (host.root / "etc/systemd/system" / UNIT).read_text().splitlines()
    # The unit has the rail's final name and all settings, whatever had to change now.
    assert "ExecStart=mlnx_qos -i rail0 --pfc 0,0,0,1,0,0,0,0" in unit
    assert "ExecStart=/bin/sh -c 'echo \"48\" > /sys/class/net/rail0/ecn/roce_np/cnp_dscp'" in unit
    assert "ExecStart=mkdir -p /sys/kernel/config/rdma_cm/mlx5_0" in unit
    assert host.ran[-2:] != [] and ["systemctl", "enable", UNIT] in host.ran
    assert (host.root / "etc/systemd/system" / WANTS / UNIT).exists()


def test_a_second_run_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    before = snapshot(host)
    host.ran.clear()
    assert call(host, capsys)["changed"] is False
    assert snapshot(host) == before
    # One call of each program shows everything.
    assert sorted(" ".join(argv) for argv in host.ran if argv[0] in ("mlnx_qos", "ethtool")) == [
        "ethtool -a enp24s0np0",
        "mlnx_qos -i enp24s0np0",
    ]


def test_check_mode_says_the_same_and_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(host)
    checked = call(host, capsys, check=True)
    assert snapshot(host) == before
    assert call(host, capsys)["diff"] == checked["diff"] and checked["changed"]


@pytest.mark.parametrize("end", [{"state": "absent", "rails": []}, {"settings": {}}])
def test_everything_comes_back(host: Host, capsys: pytest.CaptureFixture[str], end: dict[str, Any]) -> None:
    before = snapshot(host)
    call(host, capsys)
    host.ran.clear()
    assert call(host, capsys, **end)["changed"] is True
    # A port has one of the two: what came last goes first.
    pfc, pause = (next(i for i, argv in enumerate(host.ran) if word in argv) for word in ("--pfc", "-A"))
    assert pfc < pause
    after = snapshot(host)
    assert {key: after[key] for key in after if not key.startswith("ethtool -a")} == {
        key: before[key] for key in before if not key.startswith("ethtool -a")
    }
    assert call(host, capsys, **end)["changed"] is False


def test_a_setting_that_is_not_asked_for_any_more_comes_back_alone(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys)
    result = call(host, capsys, settings={key: QOS[key] for key in QOS if key != "pfc"})
    assert result["diff"]["before"]["rails"][FIRST]["pfc"] == [3]
    assert result["diff"]["after"]["rails"][FIRST]["pfc"] == []
    assert "--pfc" not in (host.root / "etc/systemd/system" / UNIT).read_text()
    record = json.loads((host.root / "var/lib/gpufabric/rail_qos.json").read_text())
    assert (record[FIRST]["before"]["trust"], "pfc" in record[FIRST]["before"]) == ("pcp", False)


def test_a_port_that_has_another_owner_now_keeps_its_settings(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, rails=[rail("rail0", FIRST), rail("rail1", SECOND)])
    record = json.loads((host.root / "var/lib/gpufabric/rail_qos.json").read_text())
    address = [{"local": "203.0.113.7", "prefixlen": 24, "scope": "global"}]
    links = host.links()
    host.set_links([{**one, "addr_info": address} if one["ifname"] == "enp64s0np0" else one for one in links])
    before = host.prints["mlnx_qos -i enp64s0np0"]
    result = call(host, capsys)
    assert warned(result) == [
        "0000:40:00.0 (enp64s0np0) is now used by another owner: address 203.0.113.7/24. Its QoS "
        "settings are not restored; the record is kept, and a run without this owner restores them"
    ]
    assert host.prints["mlnx_qos -i enp64s0np0"] == before
    assert json.loads((host.root / "var/lib/gpufabric/rail_qos.json").read_text()) == record
    host.set_links(links)
    assert call(host, capsys)["changed"] is True
    assert host.prints["mlnx_qos -i enp64s0np0"] != before


def test_what_rail_links_restores_is_no_other_owner(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = host.prints["mlnx_qos -i enp64s0np0"]
    record = host.root / "var/lib/gpufabric/rail_links.json"
    entry = {"set": {"addresses": []}, "owners": ["address 203.0.113.7/24"]}
    put(record, json.dumps({SECOND: entry}))
    call(host, capsys, rails=[rail("rail1", SECOND)])
    record.unlink()
    address = [{"local": "203.0.113.7", "prefixlen": 24, "scope": "global"}]
    host.set_links([{**one, "addr_info": address} if one["ifname"] == "enp64s0np0" else one for one in host.links()])
    assert warned(call(host, capsys, state="absent", rails=[])) == []
    assert host.prints["mlnx_qos -i enp64s0np0"] == before


def test_qos_of_a_port_in_use_is_not_changed_without_consent(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.prints[sysfs_tree.QUEUE_PAIRS] = json.dumps([{"ifname": "mlx5_0", "pid": 4711, "comm": "python3"}])
    assert call(host, capsys)["msg"] == (
        "rail_qos: 0000:18:00.0 (enp24s0np0): a change of its QoS settings would disturb its users: 1 RDMA queue "
        "pair of python3[4711]. Stop these users and retry, or set rdma_disrupt_users: true"
    )
    assert call(host, capsys, disrupt_users=True)["changed"] is True
    assert call(host, capsys)["changed"] is False


def test_nothing_asked_runs_no_tool(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(host, capsys, settings={})["changed"] is False
    assert [argv for argv in host.ran if argv[0] not in ("ip", "rdma") and "ib_write_bw" not in argv[0]] == []


def test_the_hardware_that_does_not_take_it_is_named(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.reacts = lambda argv: None if "--pfc" in argv else obey(host, argv)
    assert call(host, capsys)["msg"] == (
        f"rail_qos: after the change rails {FIRST} pfc is [], expected [3]. Check the kernel log and the system journal"
    )


def test_a_command_that_fails_is_shown(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.reacts = lambda argv: "Netlink error: Bad value" if "--pfc" in argv else obey(host, argv)
    assert call(host, capsys)["msg"] == (
        "rail_qos: 'mlnx_qos -i enp24s0np0 --pfc 0,0,0,1,0,0,0,0' failed with status 2: Netlink error: Bad value"
    )


def test_all_problems_of_all_rails_come_before_the_first_write(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(host.root / "sys/class/net/enp64s0np0/ecn")
    before = snapshot(host)
    both = [rail("rail0", FIRST), rail("rail1", SECOND)]
    refused = call(host, capsys, rails=both, settings={**QOS, "rings": {"rx": 9000}})
    assert refused["msg"] == (
        "rail_qos: gpu-11 rail0 (mlx5_core) supports at most 8192 rx descriptors, 9000 requested in rings.rx; gpu-11 "
        "rail1 (mlx5_core) has no ECN settings in sysfs; use the driver of DOCA-OFED, which provides them, or omit "
        "ecn, cnp_dscp for this host; gpu-11 rail1 (mlx5_core) supports at most 8192 rx descriptors, 9000 requested in "
        "rings.rx"
    )
    assert snapshot(host) == before


def test_the_inbox_driver_has_no_traffic_class_but_rdma_cm_has(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    for path in host.root.glob("sys/class/infiniband/*/tc"):
        shutil.rmtree(path)
    result = call(host, capsys, settings={"dscp": 26})
    assert result["diff"]["after"]["rails"] == {FIRST: {"rdma_cm": {"tos": 106}}}


class Dcb:
    """dcb of iproute2 and ethtool's rings on one port: they keep what they are told and print it."""

    def __init__(self, host: Host, netdev: str) -> None:
        self.host, self.netdev = host, netdev
        kinds = ("pfc", "ets", "buffer")
        self.shown = {name: json.loads((FIXTURES / f"dcb-{name}.json").read_text()) for name in kinds}
        self.shown["app"] = {}
        for key in [key for key in host.prints if "mlnx_qos" in key]:
            host.prints.pop(key)
        host.prints["/usr/sbin/dcb"] = ""
        host.reacts = self.react
        self.show()

    def show(self) -> None:
        for name, value in self.shown.items():
            self.host.prints[f"dcb -j {name} show dev {self.netdev}"] = json.dumps(value)

    def react(self, argv: list[str]) -> str | None:
        if argv[:2] == ["ethtool", "-G"]:
            rings = dict(zip(argv[3::2], argv[4::2]))
            text = (FIXTURES / "ethtool-g-mlx5.txt").read_text()
            head, mark, now = text.partition("Current hardware settings")
            now = now.replace("RX:\t\t1024", f"RX:\t\t{rings['rx']}").replace("TX:\t\t1024", f"TX:\t\t{rings['tx']}")
            self.host.prints[f"ethtool -g {self.netdev}"] = head + mark + now
        if argv[0] != "dcb" or "show" in argv:
            return obey(self.host, argv)
        keys = {"tc-tsa": "tc_tsa", "tc-bw": "tc_bw", "prio-tc": "prio_tc", "prio-pfc": "prio_pfc",
                "prio-buffer": "prio_buffer", "buffer-size": "buffer_size"}  # fmt: skip
        key = ""
        for word in argv[5:]:
            if word in keys:
                key = keys[word]
            elif argv[1] != "app":
                index, value = word.split(":")
                parsed = {"on": True, "off": False}.get(value, int(value) if value.isdigit() else value)
                for place in range(8) if index == "all" else [int(index)]:
                    self.shown[argv[1]][key][place] = parsed
        if argv[1] == "app":
            pairs = [[int(part) for part in word.split(":")] for word in argv[6:]]
            self.shown["app"] = {"dscp_prio": pairs} if pairs else {}
        self.show()
        return None


WHOLE: dict[str, Any] = {
    "trust": "dscp",
    "pfc": [4],
    "ets": {
        "tsa": ["ets"] * 4 + ["strict"] * 4,
        "bandwidth": [25] * 4 + [0] * 4,
        "priorities": [0, 0, 1, 1, 2, 2, 3, 3],
    },
    "buffer": {"size": [65472] * 4 + [0] * 4, "priorities": [0, 0, 0, 0, 1, 0, 0, 0]},
    "rings": {"rx": 8192, "tx": 4096},
}


def test_inbox_tools_set_classes_buffers_and_rings(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    dcb = Dcb(host, "enp24s0np0")
    before = json.dumps(dcb.shown)
    result = call(host, capsys, settings=WHOLE)
    assert result["changed"] is True and result["diff"]["after"]["rails"][FIRST] == WHOLE
    assert dcb.shown["ets"]["tc_bw"] == [25] * 4 + [0] * 4 and dcb.shown["ets"]["prio_tc"] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert dcb.shown["buffer"]["prio_buffer"] == [0, 0, 0, 0, 1, 0, 0, 0]
    assert [index for index, on in enumerate(dcb.shown["pfc"]["prio_pfc"]) if on] == [4]
    unit = (host.root / "etc/systemd/system" / UNIT).read_text()
    assert "ExecStart=dcb pfc set dev rail0 prio-pfc all:off 4:on\n" in unit
    assert "ExecStart=ethtool -G rail0 rx 8192 tx 4096\n" in unit
    # Buffers are there before the classes that fill them.
    assert unit.index("dcb buffer set") < unit.index("dcb ets set") < unit.index("dcb pfc set")
    assert call(host, capsys, settings=WHOLE)["changed"] is False
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    assert json.dumps(dcb.shown) == before


def igb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Host, dict[str, Any]]:
    made = sysfs_tree.materialise("lab-igb-host", tmp_path, monkeypatch)
    port = next(port for port in made.inventory().ports if port.driver == "igb" and port.netdev)
    return made, {**rail("rail0", port.pci), "driver": "igb"}


def test_a_nic_without_dcb_is_a_clear_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, first = igb(tmp_path, monkeypatch)
    made.prints["/usr/sbin/dcb"] = ""
    refusal = (FIXTURES / "dcb-refused.txt").read_text()
    made.reacts = lambda argv: refusal if argv[0] == "dcb" else None
    result = call(made, capsys, rails=[first], settings={"pfc": [3], "trust": "dscp"})
    assert result["msg"] == (
        "rail_qos: lab-3 rail0 (igb) has no DCB (dcb printed: Attribute read: Operation not supported); use a NIC "
        "and a driver that support it, or omit trust, pfc for this host"
    )


def test_a_host_without_tools_is_a_clear_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, first = igb(tmp_path, monkeypatch)
    result = call(made, capsys, rails=[first], settings={"pfc": [3], "pause": False, "roce": "v2"})
    assert result["msg"] == (
        "rail_qos: lab-3 rail0 (igb) cannot be read: ethtool is not installed; install it, or omit pause for this "
        "host; lab-3 rail0 (igb) cannot be read: neither mlnx_qos nor dcb (iproute2) is installed; install one of "
        "them, or omit pfc for this host; lab-3 rail0 (igb) has no RDMA device; bring it up first (role rdma_stack) "
        "and rerun the playbook, or omit roce, dscp, traffic_class for this host"
    )


def test_check_mode_expects_an_rdma_device_that_comes_with_the_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, first = igb(tmp_path, monkeypatch)
    wish = {"rails": [first], "settings": {"roce": "v2", "dscp": 26}}
    predicted = call(made, capsys, check=True, **wish)
    assert predicted["changed"] and predicted["diff"]["before"]["rails"][first["pci"]] == dict.fromkeys(
        ("traffic_class", "rdma_cm")
    )
    assert ("lab-3 rail0 (igb) has no RDMA device yet. Role rdma_stack is expected to create it") in str(
        predicted["warnings"]
    )
    assert call(made, capsys, **wish)["msg"].endswith("or omit traffic_class, roce, dscp for this host")


CHANGED = "Another tool changed it, so it is not restored, and its record is removed. Before the first change it was {}"


@pytest.mark.parametrize("end", [{"state": "absent", "rails": []}, {"settings": {"dscp": 26}}], ids=["absent", "less"])
def test_a_setting_that_another_tool_changed_since_stays(
    host: Host, capsys: pytest.CaptureFixture[str], end: dict[str, Any]
) -> None:
    call(host, capsys)
    obey(host, ["mlnx_qos", "-i", "enp24s0np0", "--pfc", "0,0,0,0,0,1,0,0"])
    put(host.root / "sys/class/net/enp24s0np0/ecn/roce_np/cnp_dscp", "40")
    host.ran.clear()
    checked = call(host, capsys, check=True, **end)
    result = call(host, capsys, **end)
    title = "gpu-11 rail0 (mlx5_core)" if "settings" in end else "gpu-11 enp24s0np0 (mlx5_core)"
    changed = f"{title}: pfc: found [5], expected [3] as set by this collection. {CHANGED.format([])}"
    # The other one was 48 before, so it is not restored to that either.
    other = f"{title}: cnp_dscp: found 40, expected 48 as set by this collection. {CHANGED.format(48)}"
    pause = f"{title}: pause is not restored to {{'rx': True, 'tx': True}}, because it conflicts with pfc, which "
    assert warned(result) == warned(checked) == [other, changed, f"{pause}another tool changed"]
    # It would turn off the priorities that are enabled now.
    assert [argv for argv in host.ran if argv[:2] == ["ethtool", "-A"]] == []
    assert [argv for argv in host.ran if "--pfc" in argv] == []
    assert ["mlnx_qos", "-i", "enp24s0np0", "--trust", "pcp"] in host.ran
    assert (host.root / "sys/class/net/enp24s0np0/ecn/roce_np/cnp_dscp").read_text() == "40"
    again = call(host, capsys, **end)
    assert (again["changed"], warned(again)) == (False, [])


@pytest.mark.parametrize("cut", ["--trust", "--pfc"])
def test_what_a_run_that_was_cut_off_left_is_restored(host: Host, capsys: pytest.CaptureFixture[str], cut: str) -> None:
    before = snapshot(host)
    call(host, capsys, settings={**QOS, "pfc": [4], "trust": "pcp"})
    host.reacts = lambda argv: "power" if cut in argv else obey(host, argv)
    assert "power" in call(host, capsys)["msg"]
    # What the setting is then is neither that of before nor one of either run.
    obey(host, ["mlnx_qos", "-i", "enp24s0np0", "--pfc", "0,0,0,1,1,0,0,0"])
    host.reacts = lambda argv: obey(host, argv)
    assert warned(call(host, capsys, state="absent", rails=[])) == []
    after = snapshot(host)
    assert {key: after[key] for key in after if not key.startswith("ethtool -a")} == {
        key: before[key] for key in before if not key.startswith("ethtool -a")
    }


@pytest.mark.parametrize(
    ("value", "settings", "expected"),
    [
        ("08,08", QOS, None),
        (None, QOS, None),
        ("08,10", {"trust": "dscp"}, None),
        ("08,10", QOS, "pfc is 3, and leaf1 port swp1 has flow control for 4"),
        ("08,00", {"pfc": [4, 3], "pause": False}, "pfc is 3, 4, and leaf1 port swp1 has flow control for no priority"),
        ("08,08", {"pfc": []}, "pfc is no priority, and leaf1 port swp1 has flow control for 3"),
    ],
)
def test_flow_control_of_the_switch_port_is_compared(
    value: str | None,
    settings: dict[str, Any],
    expected: str | None,
    host: Host,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also in check mode, and it stops nothing."""
    tlv = {"oui": "00,80,C2", "subtype": "11", "len": "2", "value": value}
    chassis = {"id": [{"type": "mac", "value": "aa"}], "name": [{"value": "leaf1"}]}
    port = {"id": [{"type": "ifname", "value": "swp1"}]}
    told = {"name": "enp24s0np0", "chassis": [chassis], "port": [port], "unknown-tlvs": [{"unknown-tlv": [tlv]}]}
    host.prints["/usr/sbin/lldpctl"] = ""
    host.prints["lldpctl -f json0"] = json.dumps({"lldp": [{"interface": [told]}]})
    wanted = f"gpu-11 rail0: {expected} (DCBX by LLDP). Set the same priorities on both sides"
    for check in (True, False):
        result = call(host, capsys, check, settings=settings)
        assert not result.get("failed"), result["msg"]
        assert [text for text in warned(result) if "LLDP" in text] == ([wanted] if expected else [])
