"""From the facts of GPU servers to their report, through main() of each module. Cost: two seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree, tester_logs
from tests.unit.support.module_run import run
from tests.unit.support.tester_logs import ROW, frame

HOSTS = ("gpu-11", "gpu-12")
PROOF = (
    "using DMA-BUF for GPU buffer address at 0x7f2e aligned at 0x7f2e with aligned size 131072\n"
    "allocated GPU buffer of a 131072 address at 0x7ffd1 for type CUDA_MEM_DEVICE\n"
)


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Two servers alike, but for their names, machines and MAC addresses."""
    host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path / "host", monkeypatch)
    host.idle()
    first = run("rdma_facts", capsys, False, **host.options())["ansible_facts"]["rdma"]
    second = json.loads(json.dumps(first))
    second.update(machine_id=first["machine_id"][::-1], hostname=HOSTS[1])
    for port in second["ports"]:
        port["mac"] = f"02:00:00:00:{port['pci'][5:7]}:{port['pci'][-1]}1"
    return dict(zip(HOSTS, (first, second)))


def planned(facts: dict[str, Any], capsys: pytest.CaptureFixture[str], **tests: Any) -> dict[str, Any]:
    fabric = {"supernet": "192.168.0.0/16", "tests": {"memory": "cuda:dmabuf", "budget": "quick", **tests}}
    found = run("fabric_plan", capsys, check=True, fabric=fabric, facts=facts, group=list(facts), limit=list(facts))
    assert "plan" in found, found.get("msg")
    return dict(found["plan"])


def described(plan: dict[str, Any], name: str) -> str:
    """What the tester of a host describes of the rails of the plan."""
    lines = [
        f'{rail["rail"]} device=mlx5_{at} port=1 netdev={rail["netdev"]} gid=3 gid_type="RoCE v2"'
        f' address={rail["address"].partition("/")[0]} mtu=4096 rate="400 Gb/sec (4X NDR)" numa=0 cpus=0'
        for at, rail in enumerate(plan["hosts"][name]["rails"])
    ]
    return tester_logs.described(lines, "memlock=unlimited perftest=6.26 control=192.0.2.1 cuda=dmabuf machine_id=1")


def words_of(line: str, name: str) -> list[str]:
    return [word.partition("=")[2] for word in line.split() if word.startswith(name)]


def test_each_end_uses_the_gpu_behind_the_switch_of_its_nic(
    facts: dict[str, Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plan = planned(facts, capsys, mesh=False)
    rails = [rail["name"] for rail in plan["rails"]]
    assert len(rails) == 8 and {gpu["path"] for own in plan["gpus"].values() for gpu in own.values()} == {"PIX"}
    near = {gpu["pci"]: gpu["path"][:3] for gpu in facts[HOSTS[0]]["gpus"]}
    ports = {port["pci"]: port["path"][:3] for port in facts[HOSTS[0]]["ports"]}
    for name in HOSTS:
        own = {rail["rail"]: rail["pci"] for rail in plan["hosts"][name]["rails"]}
        assert {near[plan["gpus"][rail][name]["bdf"]] == ports[own[rail]] for rail in rails} == {True}
        assert len({plan["gpus"][rail][name]["bdf"] for rail in rails}) == 8
    (tmp_path / "describe").mkdir()
    for name in HOSTS:
        (tmp_path / "describe" / f"{name}.log").write_text(described(plan, name))
    judge = {"plan": plan, "where": "host", "evidence": str(tmp_path)}
    step = run("fabric_judge", capsys, False, **judge)
    # CUDA has 12 s to start; all of it is announced.
    assert (step["slot"], step["seconds"]) == (28, 28 * step["rounds"])
    played = 0
    while not step["done"]:
        played += 1
        folder = tmp_path / f"pass-{step['pass']}"
        folder.mkdir()
        for name, lines in step["lines"].items():
            tests = [line for line in lines[:-1] if " mesh " not in line]
            for line in tests:
                gpu = words_of(line, "--use_cuda_bus_id")
                assert gpu in ([], [plan["gpus"][line.split()[1]][name]["bdf"]])
            frames = [frame(line, 0, *answer(line)) for line in lines[:-1]]
            (folder / f"{name}.log").write_text(tester_logs.log(step["pass"], lines, frames))
        step = run("fabric_judge", capsys, False, **judge)
    assert played and step["summary"]["verdict"] == "pass", step["summary"]["diagnoses"]
    parts = {"results": step["results"], "schedule": [step["schedule"]], "diagnoses": step["summary"]["diagnoses"]}
    run("fabric_report", capsys, plan=plan, path=str(tmp_path / "report"), **parts)
    made = json.loads((tmp_path / "report/report.json").read_text())
    assert [(row["rail"], row["gpu"], row["host"], row["low"]) for row in made["gpu_memory"]] == [
        (rail, 380.0, 385.0, 0) for rail in sorted(rails)
    ]
    used = [result["gpu"] for result in made["results"] if "gpu" in result]
    assert used and all({"client", "server"} == set(gpu) for gpu in used)
    assert "tests from GPU memory needed up to 8.5 s besides their duration" in made["schedule"][0]["text"]


def answer(line: str) -> tuple[str, str]:
    """What perftest printed, and the words of its frame: CUDA needs some seconds to start."""
    if "--use_cuda_bus_id" in line:
        return PROOF + ROW % "380.0", "seconds=18.5 late=0.00 ran=17.4 exchange=plain memory=cuda:dmabuf"
    return ROW % "385.0", "seconds=12.5 late=0.00 ran=11.4 exchange=plain memory=host"


def test_collectives_get_the_same_gpus(facts: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(facts, capsys, nccl={"enabled": True})
    for rail, own in plan["nccl_gpus"].items():
        for name, gpu in own.items():
            assert (gpu["bdf"], gpu["near"]) == (plan["gpus"][rail][name]["bdf"], 8)
