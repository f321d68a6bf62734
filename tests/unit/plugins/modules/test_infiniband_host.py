"""A host with InfiniBand rails through main() of the modules that prepare it: facts, names, links, VFs, all absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.plugins.modules.test_rail_links import RULES, obey
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run, warned
from tests.unit.support.name_kernel import rename_netdev, rename_rdma
from tests.unit.support.sysfs_tree import Host
from tests.unit.support.vf_kernel import VfKernel

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import io as links_io

FIRST, SECOND = "0000:18:00.0", "0000:40:00.0"


def infiniband(host: Host) -> None:
    """Make all ports of the card's driver what they are on InfiniBand."""
    for pci in (FIRST, SECOND):
        device = host.root / "sys/bus/pci/devices" / pci
        (device / "class").write_text("0x020700\n")
        (net,) = (device / "net").iterdir()
        (net / "type").write_text("32\n")
        (net / "mtu").write_text("2044\n")
        (net / "pkey").write_text("0x8001\n")
        (rdma,) = (device / "infiniband").iterdir()
        (rdma / "ports/1/link_layer").write_text("InfiniBand\n")


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.idle()
    infiniband(made)
    for link in made.links():
        for name in (link["ifname"], "rail0", "rail1"):
            for key, value in RULES.items():
                path = tmp_path / "proc/sys/net/ipv4/conf" / name / key
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(value)
    made.reacts = lambda argv: rename_netdev(made, argv) or rename_rdma(made, argv) or obey(made, argv)
    monkeypatch.setattr(links_io.time, "sleep", lambda seconds: None)
    return made


def rails(mtu: int = 4092) -> list[dict[str, Any]]:
    ports = {"rail0": (FIRST, "192.168.0.11/24"), "rail1": (SECOND, "192.168.1.11/24")}
    common = {"driver": "mlx5_core", "mtu": mtu}
    return [{"rail": name, "netdev": name, "pci": pci, "address": own, **common} for name, (pci, own) in ports.items()]


def facts(host: Host) -> dict[str, Any]:
    return {port["pci"]: port for port in host.inventory().to_dict()["ports"]}


def test_names_and_links(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    own = facts(host)[FIRST]
    assert (own["link_layer"], own["pkey"], own["mtu"]) == ("infiniband", "0x8001", 2044)
    options = {"rails": rails(), **host.options()}
    for module, more in (("netdev_names", {"apply": "now"}), ("rail_links", {})):
        checked = run(module, capsys, True, **options, **more)
        result = run(module, capsys, False, **options, **more)
        assert result["diff"] == checked["diff"] and result["changed"], result.get("msg")
        assert warned(result) == []
        assert run(module, capsys, False, **options, **more)["changed"] is False
    own = facts(host)[FIRST]
    assert (own["netdev"], own["mtu"], own["addresses"]) == ("rail0", 4092, ["192.168.0.11/24"])
    folder = host.root / "etc/systemd/network"
    for name in ("10-gpufabric-rail0.link", "10-gpufabric-rail0.network"):
        # Which driver a link names depends on how the kernel was built.
        text = (folder / name).read_text()
        assert "[Match]\nPath=pci-0000:18:00.0\nType=infiniband\n\n" in text and "Driver=" not in text
    for module, more in (("rail_links", {}), ("netdev_names", {"apply": "now"})):
        assert run(module, capsys, False, **{**options, **more, "state": "absent", "rails": []})["changed"] is True
    own = facts(host)[FIRST]
    assert (own["netdev"], own["mtu"], own["addresses"]) == ("enp24s0np0", 2044, [])
    assert list(folder.iterdir()) == []


def test_vfs_have_guids_now_and_after_each_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = VfKernel(sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch), monkeypatch)
    kernel.host.idle()
    infiniband(kernel.host)
    options = {"rails": rails()[:1], "vfs": 2, **kernel.host.options()}
    checked = run("sriov_vfs", capsys, True, **options)
    result = run("sriov_vfs", capsys, False, **options)
    assert result["diff"] == checked["diff"] and result["changed"], result.get("msg")
    guids = ["ba:3f:d2:00:03:00:18:00", "ba:3f:d2:01:03:00:18:00"]
    found = [kernel.vfs[FIRST][index] for index in range(2)]
    assert [(vf["node guid"], vf["port guid"], vf["link_state"]) for vf in found] == [(g, g, "auto") for g in guids]
    (script,) = (tmp_path / "etc/gpufabric").iterdir()
    for index, guid in enumerate(guids):
        for word in (f"node_guid {guid}", f"port_guid {guid}", "state auto"):
            assert f"set_vf {index} {word}\n" in script.read_text()
    assert run("sriov_vfs", capsys, False, **options)["changed"] is False
