"""What testers need of their nodes beyond the rails: asked for, refused before they start, explained in use."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers.resources import Needs, needs, refusals

GPU = "nvidia.com/gpu"
HUGE: dict[str, Any] = {"hugepages": True}
CUDA: dict[str, Any] = {"memory": "cuda:dmabuf"}
EIGHT = {GPU: "8"}


def plan(tests: dict[str, Any]) -> dict[str, Any]:
    return {"rails": [{"name": "rail0"}, {"name": "rail1"}], "endpoints": {"pod": ["h0", "h1"]}, "tests": tests}


def nodes(*allocatable: dict[str, str]) -> list[dict[str, Any]]:
    return [{"metadata": {"name": f"n{i}"}, "status": {"allocatable": one}} for i, one in enumerate(allocatable)]


def needed(tests: dict[str, Any], resource: str, *allocatable: dict[str, str]) -> Needs:
    return needs(plan(tests), resource, nodes(*allocatable))


@pytest.mark.parametrize(
    ("tests", "resource", "allocatable", "expected"),
    [
        ({}, GPU, [EIGHT], Needs()),
        # Two rails, a page of 2 MiB each.
        (HUGE, GPU, [{"hugepages-2Mi": "1Gi"}], Needs({"hugepages-2Mi": 4 << 20})),
        # All of the node, and as many as most nodes have; of equally many the larger number.
        (CUDA, GPU, [EIGHT, {GPU: "4"}, EIGHT], Needs({GPU: 8})),
        (CUDA, GPU, [EIGHT, {GPU: "4"}], Needs({GPU: 8})),
        (CUDA, GPU, [{}, {GPU: "0"}, {GPU: "4"}], Needs({GPU: 4})),
        (CUDA, "example.com/gpu", [{"example.com/gpu": "2", **EIGHT}], Needs({"example.com/gpu": 2})),
        # Nobody has one: one is asked for, so that each node is refused for it.
        (CUDA, GPU, [{}, {}], Needs({GPU: 1})),
        # Without a resource the runtime class shows them.
        (CUDA, "", [EIGHT], Needs(show_gpus=True)),
    ],
)
def test_needs(tests: dict[str, Any], resource: str, allocatable: list[dict[str, str]], expected: Needs) -> None:
    assert needed(tests, resource, *allocatable) == expected


@pytest.mark.parametrize(
    ("tests", "allocatable", "expected"),
    [
        ({}, {}, None),
        (HUGE, {"hugepages-2Mi": "4Mi"}, None),
        (HUGE, {"hugepages-2Mi": "4096Ki"}, None),
        (HUGE, {"hugepages-2Mi": "4194304"}, None),
        (HUGE, {"hugepages-2Mi": "1G"}, None),
        (HUGE, {"hugepages-2Mi": "2Mi"},
         "no tester on node n0: it offers 2 Mi of hugepages-2Mi, a tester needs 4 Mi (rdma_fabric.tests.hugepages). "
         "Reserve more (host_kernel_hugepages) and restart its kubelet, which counts them when it starts, or set "
         "hugepages: false"),
        (HUGE, {"hugepages-1Gi": "8Gi"},
         "no tester on node n0: it offers 0 Mi of hugepages-2Mi, a tester needs 4 Mi (rdma_fabric.tests.hugepages). "
         "Reserve more (host_kernel_hugepages) and restart its kubelet, which counts them when it starts, or set "
         "hugepages: false"),
        (CUDA, {},
         "no tester on node n0: it offers 0 nvidia.com/gpu, a tester needs 8, as many as most nodes have "
         "(rdma_fabric.tests.memory). Check its device plugin, measure nodes with another number in a separate "
         "run (--limit), or set gpu_resource: \"\" if a runtime class exposes all GPUs"),
        # With 16, the 8 that the device plugin picks need not be those next to the rails.
        (CUDA, {GPU: "16"},
         "no tester on node n0: it offers 16 nvidia.com/gpu, a tester needs 8, as many as most nodes have "
         "(rdma_fabric.tests.memory). Check its device plugin, measure nodes with another number in a separate "
         "run (--limit), or set gpu_resource: \"\" if a runtime class exposes all GPUs"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_refused_for_the_node(
    tests: dict[str, Any], allocatable: dict[str, str], expected: str | None
) -> None:
    (own,) = nodes(allocatable)
    wanted = needs(plan(tests), GPU, nodes(EIGHT, EIGHT))
    assert refusals(wanted, {"h0": own}) == ({"h0": expected} if expected else {})


def test_what_is_in_use_is_explained() -> None:
    wanted = Needs({GPU: 8, "hugepages-2Mi": 4 << 20})
    said = "no tester on node n0: pod p cannot be scheduled: 0/3 nodes are available: "
    assert wanted.explained(said + "3 Insufficient nvidia.com/gpu.") == (
        said + "3 Insufficient nvidia.com/gpu. A tester requests all 8 of its node, so that those next to its rails "
        'are among them. Wait for the pods that use them, or set gpu_resource: "" if a runtime class '
        "exposes all GPUs"
    )
    assert wanted.explained(said + "3 Insufficient hugepages-2Mi.") == (
        said + "3 Insufficient hugepages-2Mi. A tester requests 4 Mi. Wait for the pods that use them, or reserve more "
        "(host_kernel_hugepages)"
    )
    assert wanted.explained(said + "3 Insufficient rdma/rdma_rail0.") == said + "3 Insufficient rdma/rdma_rail0."
    assert Needs().explained(said + "3 Insufficient nvidia.com/gpu.") == said + "3 Insufficient nvidia.com/gpu."
