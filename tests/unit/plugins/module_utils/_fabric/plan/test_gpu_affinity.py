"""The GPU nearest to a port: every class of way, and a real shape of server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.gpu_affinity import (
    gpus_of_rails,
    nearest_gpu,
    path_class,
)

NIC = ["pci0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:18:00.0"]


def device(*path: str, numa: int | None = 0) -> dict[str, Any]:
    return {"pci": path[-1], "path": list(path), "numa_node": numa}


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        # One switch: its upstream port 16:00.0 is common, each has a downstream port of its own.
        (device(*NIC[:3], "0000:17:01.0", "0000:1b:00.0"), "PIX"),
        # A further switch below it.
        (device(*NIC[:3], "0000:17:01.0", "0000:1c:00.0", "0000:1d:00.0", "0000:1e:00.0"), "PXB"),
        # Another function of the same card.
        (device(*NIC[:4], "0000:18:00.1"), "PIX"),
        (device(NIC[0], "0000:15:02.0", "0000:20:00.0"), "PHB"),
        (device("pci0000:26", "0000:26:01.0", "0000:27:00.0"), "NODE"),
        (device("pci0000:26", "0000:26:01.0", "0000:27:00.0", numa=None), "NODE"),
        (device("pci0000:80", "0000:80:01.0", "0000:81:00.0", numa=1), "SYS"),
    ],
)
def test_path_class(gpu: dict[str, Any], expected: str) -> None:
    assert path_class(device(*NIC), gpu) == expected == path_class(gpu, device(*NIC))


def test_each_rail_of_an_eight_rail_server_has_the_gpu_behind_its_own_switch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch).inventory().to_dict()
    switches = {gpu["path"][2]: gpu["pci"] for gpu in facts["gpus"]}
    ports = [port for port in facts["ports"] if len(port["path"]) > 2 and port["path"][2] in switches]
    assert len(ports) == 8
    for port, gpu in zip(ports, gpus_of_rails(facts, ports)):
        assert gpu == nearest_gpu(facts, port)
        assert gpu is not None and (gpu.bdf, gpu.path) == (switches[port["path"][2]], "PIX")
    others = [port for port in facts["ports"] if port not in ports and port["vendor"] == "15b3"]
    assert others and {found.path for port in others if (found := nearest_gpu(facts, port))} <= {"PHB", "NODE", "SYS"}


def test_gpus_that_are_as_near_are_shared_out() -> None:
    facts = {"gpus": [device("pci0000:00", f"0000:00:0{n}.0") for n in (5, 6)]}
    ports = [device("pci0000:00", f"0000:00:1{n}.0") for n in range(3)]
    assert [gpu.bdf for gpu in gpus_of_rails(facts, ports) if gpu] == ["0000:00:05.0", "0000:00:06.0", "0000:00:05.0"]


def test_a_nearer_gpu_is_taken_twice_rather_than_a_far_one() -> None:
    facts = {"gpus": [device(*NIC[:3], "0000:17:01.0", "0000:1b:00.0"), device("pci0000:80", "0000:81:00.0", numa=1)]}
    assert [gpu.to_dict() for gpu in gpus_of_rails(facts, [device(*NIC)] * 2) if gpu] == [
        {"bdf": "0000:1b:00.0", "path": "PIX"}
    ] * 2


def test_without_a_gpu_a_port_or_facts_there_is_none() -> None:
    assert nearest_gpu({"gpus": []}, device(*NIC)) is None
    assert gpus_of_rails({"gpus": [device(*NIC)]}, [None]) == [None]
    assert gpus_of_rails(None, [device(*NIC)]) == [None]
