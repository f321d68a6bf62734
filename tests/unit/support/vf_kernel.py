"""What the kernel does about VFs, on a machine of ``sysfs_tree``: sriov_numvfs, drivers_probe and ``ip link set vf``.

Made by hand after drivers/pci/iov.c: a number of VFs that is not 0 can only become 0, new VFs have no driver while
sriov_drivers_autoprobe is 0, and a VF keeps the MAC address that it had when its driver bound.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import files

LINK = "ip -d -j link show"


class VfKernel:
    """The VFs of ``host``; ``wrote`` lists what was written to the kernel, ``refuses`` maps a value to an error."""

    def __init__(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = host
        self.wrote: list[tuple[str, str]] = []
        self.refuses: dict[str, str] = {}
        self.vfs: dict[str, list[dict[str, Any]]] = {}
        self.devices = host.root / "sys/bus/pci/devices"
        (host.root / "sys/bus/pci/drivers_probe").touch()
        for address in sorted(os.listdir(self.devices)):
            if (self.devices / address / "sriov_numvfs").exists():
                (self.devices / address / "sriov_drivers_autoprobe").write_text("1\n")
        monkeypatch.setattr(files, "tell_kernel", self.tell)
        host.reacts = self.react
        host.prints[LINK] = "[]"

    def device(self, pf: str) -> Path:
        return (self.devices / pf).resolve()

    def vf(self, pf: str, index: int) -> Path:
        return (self.device(pf) / f"virtfn{index}").resolve()

    def tell(self, path: str, value: str) -> None:
        name, pf = os.path.basename(path), Path(path).parent.name
        self.wrote.append((name, value))
        if value in self.refuses and name == "sriov_numvfs":
            raise FabricError(f"the kernel refused '{value}' for {path}: {self.refuses[value]}")
        if name == "drivers_probe":
            self.bind(value)
            return
        if name == "sriov_numvfs":
            self.resize(pf, int(Path(path).read_text()), int(value))
        Path(path).write_text(value + "\n")

    def resize(self, pf: str, now: int, wish: int) -> None:
        if now and wish:
            raise FabricError("Device or resource busy")
        device = self.device(pf)
        for index in range(now):
            shutil.rmtree(self.vf(pf, index))
            os.unlink(self.devices / self.address(pf, index))
            os.unlink(device / f"virtfn{index}")
        fresh = {"address": "00:00:00:00:00:00", "spoofchk": True, "trust": False}
        self.vfs[pf] = [{"vf": index, **fresh} for index in range(wish)]
        for index in range(wish):
            folder = device.parent / self.address(pf, index)
            folder.mkdir()
            (folder / "class").write_text("0x020000\n")
            os.symlink(device, folder / "physfn")
            os.symlink(folder, self.devices / folder.name)
            os.symlink(f"../{folder.name}", device / f"virtfn{index}")
            if (device / "sriov_drivers_autoprobe").read_text().strip() == "1":
                self.bind(folder.name)
        self.show()

    def address(self, pf: str, index: int) -> str:
        return f"{pf[:-4]}{0x10 + index // 8:02x}.{index % 8}"

    def bind(self, address: str) -> None:
        folder = self.devices / address
        os.symlink("/drivers/igbvf", folder / "driver")
        netdev = folder / "net" / f"v{address[5:7]}{address[-4:-2]}{address[-1]}"
        netdev.mkdir(parents=True)
        (netdev / "mtu").write_text("1500\n")

    def show(self) -> None:
        shown = []
        for pf, vfs in self.vfs.items():
            for name in os.listdir(self.device(pf) / "net"):
                shown.append({"ifname": name, "vfinfo_list": vfs})
        self.host.prints[LINK] = json.dumps(shown)

    def react(self, argv: list[str]) -> str | None:
        """Do ``ip link set``; a text is what it says when it refuses."""
        if argv[:4] != ["ip", "link", "set", "dev"]:
            return None
        netdev, words = argv[4], argv[5:]
        if words[0] == "mtu":
            next(self.host.root.glob(f"sys/devices/**/net/{netdev}/mtu")).write_text(words[1] + "\n")
            return None
        if words in (["up"], ["down"]):
            flags = next(self.host.root.glob(f"sys/devices/**/net/{netdev}/flags"))
            flags.write_text("0x1003\n" if words == ["up"] else "0x1002\n")
            return None
        pf = next(pf for pf in self.vfs if (self.device(pf) / "net" / netdev).exists())
        vf = self.vfs[pf][int(words[1])]
        if " ".join(words[2:]) in self.refuses:
            return self.refuses[" ".join(words[2:])]
        key, value = words[2:]
        vf.update(
            {
                "mac": {"address": value},
                "trust": {"trust": value == "on"},
                "spoofchk": {"spoofchk": value == "on"},
                "state": {"link_state": value},
                "max_tx_rate": {"rate": {"max_tx": int(value) if value.isdigit() else 0, "min_tx": 0}},
                "node_guid": {"node guid": value},
                "port_guid": {"port guid": value},
            }[key]
        )
        self.show()
        return None
