# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU memory behind a PCIe switch: which links bind with ACS on and off, and what the plan warns of."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan


def host(number: int, redirects: bool, ats: bool) -> dict[str, Any]:
    """Return a host whose 800 Gb/s NIC and GPU are behind a switch with a 32 GT/s link to the processor."""
    link = {"speed": 32.0, "width": 16, "max_speed": 32.0, "max_width": 16, "redirects": False}
    down = {**link, "pci": "0000:17:00.0", "speed": 64.0, "max_speed": 64.0, "redirects": redirects}
    above = [{**link, "pci": "0000:15:01.0"}, {**link, "pci": "0000:16:00.0"}, down]
    path = ["pci0000:15", *(one["pci"] for one in above)]
    own = {"speed": 64.0, "width": 16, "max_speed": 64.0, "max_width": 16, "max_payload": 256}
    port = rail_port(0, speed=800.0, max_speed=800.0, pcie=own, uplinks=above, ats=ats)
    port["path"] = [*path, port["pci"]]
    gpu = {"pci": "0000:1b:00.0", "path": [*path[:-1], "0000:17:01.0", "0000:1b:00.0"], "numa_node": 0}
    return {"facts": host_facts(number, ports=[port], gpus=[gpu]), "rdma_host": {}}


@pytest.mark.parametrize(
    ("redirects", "ats", "memory", "slowest", "told"),
    [
        (False, False, "cuda:dmabuf", None, False),
        (True, False, "cuda:dmabuf", 32.0, True),
        (True, True, "cuda:dmabuf", None, False),
        # Host memory is behind the processor in any case.
        (True, False, "host", 32.0, False),
    ],
)
def test_links_above_the_switch_bind_if_acs_redirects(
    redirects: bool, ats: bool, memory: str, slowest: float | None, told: bool
) -> None:
    hosts = {f"gpu-{number:04d}": host(number, redirects, ats) for number in (1, 2)}
    made = plan({"supernet": "192.168.0.0/16", "tests": {"memory": memory}}, hosts)
    for side in made["expectations"]["rail0"].values():
        assert min((link["speed"] for link in side.get("uplinks", ())), default=None) == slowest
        assert side.get("redirected", False) is told
        # Tests from host memory beside them cross the link to the processor in any case.
        beside = side.get("host_uplinks", side.get("uplinks", ()))
        assert min(link["speed"] for link in beside) == 32.0 and ("host_uplinks" in side) is (slowest is None)
    found = [text for text in made["warnings"] if "PCIe ACS redirects" in text]
    assert len(found) == told
    if told:
        assert "on gpu-0001 rail0, gpu-0002 rail0, although both are behind the same PCIe switch" in found[0]


@pytest.mark.parametrize(("memory", "keys"), [("cuda:dmabuf", {"host_sharing"}), ("host", {"sharing"})])
def test_rails_that_share_the_link_to_the_processor_share_it_from_host_memory_alone(
    memory: str, keys: set[str]
) -> None:
    hosts = {}
    for number in (1, 2):
        made = host(number, False, ats=False)
        first = next(port for port in made["facts"]["ports"] if "uplinks" in port)
        down = {**first["uplinks"][2], "pci": "0000:17:02.0"}
        second = {**rail_port(1), **{key: first[key] for key in ("speed", "max_speed", "pcie", "ats")}}
        second["uplinks"] = [*first["uplinks"][:2], down]
        second["path"] = [*first["path"][:3], down["pci"], second["pci"]]
        made["facts"]["ports"].append(second)
        made["facts"]["gpus"].append({**made["facts"]["gpus"][0], "pci": "0000:1c:00.0"})
        made["facts"]["gpus"][1]["path"] = [*first["path"][:3], "0000:17:03.0", "0000:1c:00.0"]
        hosts[f"gpu-{number:04d}"] = made
    made = plan({"supernet": "192.168.0.0/16", "tests": {"memory": memory}}, hosts)
    shared = {key: made["tests"][key] for key in ("sharing", "host_sharing") if key in made["tests"]}
    assert shared == dict.fromkeys(keys, [["rail0", "rail1"]])


@pytest.mark.parametrize(("redirects", "memory", "slowest"), [(False, "host", None), (True, "host", 32.0)])
def test_collectives_know_the_links_to_the_gpu_also_with_tests_from_host_memory(
    redirects: bool, memory: str, slowest: float | None
) -> None:
    hosts = {f"gpu-{number:04d}": host(number, redirects, ats=False) for number in (1, 2)}
    made = plan({"supernet": "192.168.0.0/16", "tests": {"memory": memory, "nccl": {"enabled": True}}}, hosts)
    assert "gpus" not in made
    for gpu in made["nccl_gpus"]["rail0"].values():
        assert (gpu["path"], gpu["near"]) == ("PIX", 1)
        assert min((link["speed"] for link in gpu["uplinks"]), default=None) == slowest


def test_collectives_have_gpus_of_their_own_beside_tests_from_gpu_memory() -> None:
    hosts = {f"gpu-{number:04d}": host(number, False, ats=False) for number in (1, 2)}
    tests = {"memory": "cuda:dmabuf", "nccl": {"enabled": True}}
    made = plan({"supernet": "192.168.0.0/16", "tests": tests}, hosts)
    assert set(made["gpus"]["rail0"]["gpu-0001"]) == {"bdf", "path"}
    assert set(made["nccl_gpus"]["rail0"]["gpu-0001"]) == {"bdf", "path", "near", "uplinks"}
