"""What the kernel does about names, on a machine of ``sysfs_tree``: renames, and VFs and representors that come.

Made by hand after net/core/dev.c (a name that is taken is refused), drivers/pci/iov.c (virtfnN, physfn) and the mlx5
driver (representors stand on the PF and have phys_port_name and phys_switch_id).
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.unit.support.sysfs_tree import Host

MLX5_OFFSET, MLX5_STRIDE = 2, 1
FRESH = {"address": "02:00:00:00:00:01", "mtu": "1500", "flags": "0x1002", "type": "1", "dev_id": "0x0"}


def rename_netdev(host: Host, argv: list[str]) -> str | None:
    """Do ``ip link set dev OLD name NEW``; a text is what it says when it refuses."""
    if argv[:4] != ["ip", "link", "set", "dev"] or argv[5] != "name":
        return None
    old, new = argv[4], argv[6]
    links = host.links()
    if any(link["ifname"] == new for link in links):
        return "RTNETLINK answers: File exists"
    for link in links:
        link["ifname"] = new if link["ifname"] == old else link["ifname"]
    host.set_links(links)
    for folder in host.root.glob(f"sys/devices/**/net/{old}"):
        os.rename(folder, folder.parent / new)
    return None


def rename_rdma(host: Host, argv: list[str]) -> str | None:
    """Do ``rdma dev set OLD name NEW``; a text is what it says when it refuses."""
    if argv[:3] != ["rdma", "dev", "set"]:
        return None
    old, new = argv[3], argv[5]
    folder = host.root / "sys/class/infiniband"
    if (folder / new).exists():
        return "error: File exists"
    target = Path(os.readlink(folder / old))
    real = (folder / old).resolve()
    real.rename(real.parent / new)
    (folder / old).unlink()
    (folder / new).symlink_to(target.parent / new)
    return None


def device(host: Host, pf: str) -> Path:
    return (host.root / "sys/bus/pci/devices" / pf).resolve()


def tell_addresses(host: Host, pf: str) -> None:
    """Let a PF say where its VFs are, as PFs with SR-IOV do."""
    (device(host, pf) / "sriov_offset").write_text(f"{MLX5_OFFSET}\n")
    (device(host, pf) / "sriov_stride").write_text(f"{MLX5_STRIDE}\n")


def add_vf(host: Host, pf: str, index: int, netdev: str = "", rdma: str = "", driver: str = "mlx5_core") -> Path:
    """Make the next VF of a PF; without ``netdev`` it has none here, as with vfio-pci or in a pod."""
    home = device(host, pf)
    # Bus 18, offset 2: the slot and function of the VF.
    number = int(pf[-4:-2], 16) * 8 + int(pf[-1]) + MLX5_OFFSET + MLX5_STRIDE * index
    folder = home.parent / f"{pf[:-4]}{number // 8:02x}.{number % 8}"
    folder.mkdir()
    (folder / "class").write_text("0x020000\n")
    os.symlink(f"/drivers/{driver}", folder / "driver")
    os.symlink(home, folder / "physfn")
    os.symlink(folder, host.root / "sys/bus/pci/devices" / folder.name)
    os.symlink(folder, home / f"virtfn{index}")
    (home / "sriov_numvfs").write_text(f"{index + 1}\n")
    if netdev:
        add_netdev(host, folder, netdev)
    if rdma:
        (folder / "infiniband" / rdma / "ports/1").mkdir(parents=True)
        (folder / "infiniband" / rdma / "ports/1/link_layer").write_text("Ethernet\n")
        os.symlink(folder / "infiniband" / rdma, host.root / "sys/class/infiniband" / rdma)
    return folder


def add_representor(host: Host, pf: str, port_name: str, netdev: str) -> Path:
    folder = add_netdev(host, device(host, pf), netdev)
    (folder / "phys_port_name").write_text(f"{port_name}\n")
    (folder / "phys_switch_id").write_text("b83fd20300001800\n")
    return folder


def add_netdev(host: Host, function: Path, name: str) -> Path:
    folder = function / "net" / name
    folder.mkdir(parents=True)
    for file, text in FRESH.items():
        (folder / file).write_text(f"{text}\n")
    host.set_links([*host.links(), {"ifname": name, "address": FRESH["address"], "mtu": 1500}])
    return folder
