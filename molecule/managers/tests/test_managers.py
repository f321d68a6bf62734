"""Rails under every network manager at once: NetworkManager, netplan, and systemd-networkd beside NetworkManager.

Each test goes on where the last one ended.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.scenario import HOSTS, TRACEBACK, Run, extra, host, playbook
from tests.scenario.state import host_state

NETWORKMANAGER, NETPLAN, BESIDE = HOSTS
WISHES = {
    "rail_links_manager": f"{{{{ {{'{NETWORKMANAGER}': 'networkmanager', '{BESIDE}': 'networkd'}}"
    "[inventory_hostname] | default('auto') }}",
    "rail_links_source_routing": "always",
}
# How an installer leaves a host: the port that ssh comes by is netplan's.
NETPLAN_FILE = "network: {version: 2, ethernets: {mgmt: {match: {driver: virtio_net}, dhcp4: true}}}"
LINKS = "/etc/systemd/network/10-gpufabric-"
# As images of clouds have it: the port that ssh comes by is not NetworkManager's.
LEFT_ALONE = "[keyfile]\\nunmanaged-devices=driver:virtio_net\\n"


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    for name in (NETWORKMANAGER, BESIDE):
        host(name).check_output(f"printf '{LEFT_ALONE}' > /etc/NetworkManager/conf.d/10-lab.conf")
        host(name).check_output("systemctl enable --now NetworkManager")
        # It begins with connections that it makes by itself, as on a host that nobody configured.
        until(name, "nmcli -t -f NAME connection show", "Wired connection 2")
    host(NETPLAN).check_output(f"echo '{NETPLAN_FILE}' | install -m 600 /dev/stdin /etc/netplan/50-mgmt.yaml")
    host(NETPLAN).check_output("rm /etc/systemd/network/10-mgmt.network && netplan apply")
    return {name: host_state(name) for name in HOSTS}


@pytest.fixture(scope="module")
def prepared(before: dict[str, Any]) -> Run:
    return prepare().must()


def prepare(**wishes: Any) -> Run:
    run = playbook("prepare", *extra(**{**WISHES, **wishes}))
    assert not TRACEBACK.search(run.output), run.output[-6000:]
    return run


def until(name: str, command: str, expected: str, seconds: float = 120) -> None:
    """Wait until a command prints what is expected; it may fail before that."""
    deadline = time.monotonic() + seconds
    while True:
        done = host(name).run(command)
        if done.rc == 0 and expected in done.stdout:
            return
        found = f"{done.stdout}{done.stderr}"
        assert time.monotonic() < deadline, f"{name}: {command}: {done.rc}, no '{expected}' in\n{found}"
        time.sleep(1)


def rails(name: str) -> list[tuple[str, str]]:
    """Name and address of each rail of a host, as inventories/lab has them planned."""
    number = HOSTS.index(name) + 1
    return [(f"rail{rail}", f"172.30.{rail}.{number}") for rail in (0, 1)]


def is_as_planned(name: str) -> None:
    """Addresses, MTU and source routing of the rails, waited for: managers work in their own time."""
    for netdev, local in rails(name):
        until(name, f"ip -4 -o addr show dev {netdev}", f" {local}/24 ")
        until(name, f"cat /sys/class/net/{netdev}/mtu", "9000\n")
        until(name, "ip rule show", f"from {local} lookup")
        until(name, f"ip route get {local.rsplit('.', 1)[0]}.200 from {local}", f"dev {netdev} ")


@pytest.mark.proves("rail_links", "Debian 13", by="lab")
@pytest.mark.parametrize("name", HOSTS)
def test_rails_are_as_planned(name: str, prepared: Run) -> None:
    is_as_planned(name)


def test_each_manager_knows_its_rails(prepared: Run) -> None:
    active = "nmcli -t -f NAME,DEVICE connection show --active"
    lines = host(NETWORKMANAGER).check_output(active).split("\n")
    assert {"gpufabric-rail0:rail0", "gpufabric-rail1:rail1"} <= set(lines)
    states = set(host(BESIDE).check_output("nmcli -t -f DEVICE,STATE device").split("\n"))
    assert {"rail0:unmanaged", "rail1:unmanaged", "enp0s4:unmanaged"} <= states
    for name, place in ((NETPLAN, "/run/systemd/network/10-netplan-gpufabric-"), (BESIDE, LINKS)):
        for rail in ("rail0", "rail1"):
            status = json.loads(host(name).check_output(f"networkctl --json=short status {rail}"))
            assert status["NetworkFile"].startswith(place), status["NetworkFile"]


def test_second_run_changes_nothing(prepared: Run) -> None:
    assert prepare().must().changed == []


@pytest.mark.parametrize("name", HOSTS)
def test_rails_come_back_when_their_manager_starts_anew(name: str, prepared: Run) -> None:
    # Without its socket too: the kernel's news of the links would start networkd while they are still being taken down.
    units = "NetworkManager" if name == NETWORKMANAGER else "systemd-networkd.socket systemd-networkd.service"
    down = [f"ip addr flush dev {netdev} && ip link set {netdev} mtu 1500 down" for netdev, _local in rails(name)]
    # One command: ssh comes by a port of networkd's, and stands still until that has its address again.
    away = " && ".join([f"systemctl stop {units}", *down])
    host(name).check_output(f"{away}; done=$?; systemctl start {units}; exit $done")
    is_as_planned(name)


def test_with_two_services_somebody_must_say_who(prepared: Run) -> None:
    run = prepare(rail_links_manager="auto")
    assert run.rc != 0
    assert "Set manager to networkd or networkmanager" in run.output
    assert run.changed == []


@pytest.fixture(scope="module")
def torn_down(prepared: Run) -> Run:
    return playbook("teardown", *extra(**WISHES), "--tags", "teardown_hosts").must()


@pytest.mark.parametrize("name", HOSTS)
def test_teardown_brings_everything_back(name: str, before: dict[str, Any], torn_down: Run) -> None:
    assert host_state(name) == before[name]
