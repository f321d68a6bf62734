"""rail_links through main() on a machine whose links take what ip and networkd tell them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sysfs_tree
from module_run import run
from sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.modules import rail_links

FIRST, SECOND, STORE = "0000:18:00.0", "0000:40:00.0", "0000:29:00.0"
RULES = {"arp_announce": "0", "arp_ignore": "0", "rp_filter": "1"}
NETWORK = """\
# Written by gpufabric.rdma.rail_links, which removes it with state: absent.
[Match]
Path=pci-0000:18:00.0
Driver=mlx5_core

[Link]
MTUBytes=9000
RequiredForOnline=no

[Network]
Address=192.168.0.11/24
ConfigureWithoutCarrier=yes
IPv6AcceptRA=no
LLDP=yes
"""
SYSCTL = """\
# Written by gpufabric.rdma.rail_links, which removes it with state: absent.
net.ipv4.conf.rail0.arp_announce = 2
net.ipv4.conf.rail0.arp_ignore = 1
net.ipv4.conf.rail0.rp_filter = 2
"""


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.reacts = lambda argv: obey(made, argv)
    for link in made.links():
        for key, value in RULES.items():
            path = tmp_path / "proc/sys/net/ipv4/conf" / link["ifname"] / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value)
    monkeypatch.setattr(rail_links.time, "sleep", lambda seconds: None)
    return made


def obey(host: Host, argv: list[str]) -> str | None:
    """Do what the kernel does for MTU and addresses; it never has to bring a link up here."""
    links = host.links()
    link = next((link for link in links if link["ifname"] in argv), None)
    if link is None or "show" in argv:
        return None
    if "mtu" in argv:
        link["mtu"] = int(argv[-1])
        for path in host.root.glob(f"sys/bus/pci/devices/*/net/{link['ifname']}/mtu"):
            path.write_text(argv[-1])
    elif argv[2] == "replace":
        local, prefix = argv[3].split("/")
        link["addr_info"].append({"family": "inet", "local": local, "prefixlen": int(prefix), "scope": "global"})
    elif argv[2] == "del":
        link["addr_info"] = [one for one in link["addr_info"] if f"{one['local']}/{one['prefixlen']}" != argv[3]]
    host.set_links(links)
    return None


def rail(name: str, pci: str, address: str | None, mtu: int = 9000) -> dict[str, Any]:
    return {"rail": name, "netdev": name, "pci": pci, "driver": "mlx5_core", "address": address, "mtu": mtu}


RAILS = [rail("rail0", FIRST, "192.168.0.11/24")]


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**host.options(), "lib_root": str(host.root / "usr/lib"), "state_root": str(host.root / "var")}
    return run("rail_links", capsys, check, **{"rails": RAILS, **options, **params})


def snapshot(host: Host) -> tuple[dict[str, str], str]:
    paths = [path for top in ("etc", "var", "run", "proc") for path in (host.root / top).rglob("*") if path.is_file()]
    return {str(path): path.read_text() for path in paths}, host.prints[sysfs_tree.IP]


def test_rails_are_configured_now_and_for_boots(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys)
    assert (result["changed"], result["reboot_required"], result["reasons"]) == (True, False, [])
    assert result["diff"]["before"]["links"] == {FIRST: {"mtu": 4200, "up": True, "addresses": [], "sysctl": RULES}}
    assert (host.root / "etc/systemd/network/10-gpufabric-rail0.network").read_text() == NETWORK
    assert (host.root / "etc/sysctl.d/90-gpufabric-rails.conf").read_text() == SYSCTL
    link = host.inventory().port(FIRST).netdev
    assert link is not None and (link.mtu, link.addresses) == (9000, ("192.168.0.11/24",))
    # The port has not its final name yet; what counts is where it is.
    assert (host.root / "proc/sys/net/ipv4/conf/enp24s0np0/arp_ignore").read_text() == "1"
    assert ["networkctl", "reload"] in host.ran


def test_a_second_run_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    before = snapshot(host)
    host.ran.clear()
    assert call(host, capsys)["changed"] is False
    assert snapshot(host) == before
    assert ["networkctl", "reload"] not in host.ran


def test_check_mode_says_the_same_and_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(host)
    checked = call(host, capsys, check=True)
    assert snapshot(host) == before
    done = call(host, capsys)
    assert checked["diff"] == done["diff"] and checked["changed"]


def test_absent_gives_the_state_before_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(host)
    call(host, capsys, rails=[rail("store", STORE, "10.1.9.11/24", 4000)])
    assert call(host, capsys, state="absent", rails=[])["changed"] is True
    after = snapshot(host)
    assert after[0] == before[0]
    assert json.loads(after[1]) == json.loads(before[1])
    assert call(host, capsys, state="absent", rails=[])["changed"] is False


def test_the_state_before_is_recorded_once(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    call(host, capsys, rails=[rail("rail0", FIRST, "192.168.0.12/24", 8000)])
    record = json.loads((host.root / "var/rail_links.json").read_text())
    assert record == {FIRST: {"mtu": 4200, "up": True, "addresses": [], "sysctl": RULES}}


def test_kept_addresses_keep_their_file(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    folder = host.root / "etc/systemd/network"
    folder.mkdir(parents=True)
    (folder / "50-mine.network").write_text("[Match]\nName=enp41s0np0\n[Network]\nAddress=10.1.1.11/24\n")
    result = call(host, capsys, rails=[rail("store", STORE, None)])
    assert list(result["diff"]["after"]["files"]) == [f"{host.root}/etc/sysctl.d/90-gpufabric-rails.conf"]
    refused = call(host, capsys, rails=[rail("store", STORE, None, 4000)])
    assert refused["msg"] == (
        f"rail_links: rail store: 0000:29:00.0 (enp41s0np0) keeps its addresses and so its file "
        f"{folder}/50-mine.network, "
        "but has MTU 9000; set MTUBytes=4000 there"
    )


@pytest.mark.parametrize(
    ("rails", "message"),
    [
        (
            [rail("rail0", FIRST, "192.168.0.11/24", 9999), rail("rail1", SECOND, None, 20)],
            "rail rail0: 0000:18:00.0 (enp24s0np0) takes an MTU from 68 to 9978, 9999 requested; change the MTU of the "
            "fabric; rail rail1: 0000:40:00.0 (enp64s0np0) takes an MTU from 68 to 9978, 20 requested; "
            "change the MTU of "
            "the fabric",
        ),
        (
            [rail("rail0", "0000:19:00.0", None), rail("rail1", "0000:82:00.0", None)],
            "rail rail0: no network port at 0000:19:00.0 on gpu-11; its ports: 0000:18:00.0 (enp24s0np0), 0000:29:00.0 "
            "(enp41s0np0), 0000:40:00.0 (enp64s0np0), 0000:4f:00.0 (enp79s0np0), 0000:5e:00.0 (enp94s0np0), "
            "0000:82:00.0 "
            "(eno1), 0000:82:00.1 (eno2), 0000:9a:00.0 (enp154s0np0), 0000:aa:00.0 (enp170s0np0), 0000:c0:00.0 "
            "(enp192s0np0), 0000:ce:00.0 (enp206s0np0), 0000:dc:00.0 (enp220s0np0); rail rail1: "
            "0000:82:00.0 (eno1) is a "
            "member of bond0; a rail must stand alone",
        ),
        (
            [rail("rail0", FIRST, "192.168.0.256/24")],
            "rail rail0: '192.168.0.256/24' is not an address with prefix: '192.168.0.256/24' does not "
            "appear to be an IPv4 "
            "or IPv6 interface",
        ),
        (
            [rail("rail0", FIRST, "10.9.0.1/24"), rail("rail1", SECOND, "10.9.0.1/24")],
            "rails rail0 and rail1 have the same address: 10.9.0.1/24",
        ),
    ],
)
def test_all_problems_come_before_the_first_write(
    host: Host, capsys: pytest.CaptureFixture[str], rails: list[dict[str, Any]], message: str
) -> None:
    before = snapshot(host)
    assert call(host, capsys, rails=rails)["msg"] == f"rail_links: {message}"
    assert snapshot(host) == before


def test_a_file_that_comes_first_is_named(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = host.root / "etc/systemd/network/05-all.network"
    path.parent.mkdir(parents=True)
    path.write_text("[Match]\nName=en*\n[Network]\nDHCP=yes\n")
    assert call(host, capsys)["msg"] == (
        f"rail_links: rail rail0: {path} configures 0000:18:00.0 (enp24s0np0) first; remove or narrow it"
    )


def test_another_network_manager_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = sysfs_tree.materialise("odd-host", tmp_path, monkeypatch)
    result = call(host, capsys, rails=[rail("rail0", "0000:01:00.0", "192.168.0.1/24")])
    assert result["msg"] == (
        "rail_links: the network of odd-1 is managed by NetworkManager; supported is systemd-networkd "
        "alone: enable it for "
        "the rails, or leave the host out"
    )


def test_the_port_of_the_default_route_is_never_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = sysfs_tree.materialise("odd-host", tmp_path, monkeypatch)
    result = call(host, capsys, rails=[rail("rail0", "0000:61:00.0", None), rail("rail1", "0000:41:00.0", None)])
    assert result["msg"] == (
        "rail_links: rail rail0: 0000:61:00.0: eno1 carries the default route; it can never be a rail; rail rail1: "
        "0000:41:00.0 has no network device (driver: vfio-pci); bind its network driver"
    )


def test_what_the_kernel_does_not_take_fails(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.reacts = lambda argv: None if "mtu" in argv else obey(host, argv)
    result = call(host, capsys, timeout=0)
    assert result["msg"] == (
        "rail_links: 0000:18:00.0 (enp24s0np0): mtu is 4200, expected 9000; 0000:18:00.0 (enp24s0np0): "
        "addresses is [], "
        "expected ['192.168.0.11/24']; 0000:18:00.0 (enp24s0np0): sysctl is {'arp_announce': '0', 'arp_ignore': '0', "
        "'rp_filter': '1'}, expected {'arp_announce': '2', 'arp_ignore': '1', 'rp_filter': '2'}"
    )
