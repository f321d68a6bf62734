"""Problems that users of the operators report again and again, each with what finds it here.

`python -m tests.tools.lint_page` writes them into docs/lint.md; a test compares rules and tests with those that exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_UNIT = "tests/unit/plugins"
_MODULES = f"{_UNIT}/modules"
_FABRIC, _K8S = f"{_UNIT}/module_utils/_fabric", f"{_UNIT}/module_utils/_k8s"
_READINGS, _READINESS = f"{_FABRIC}/measure/readings", f"{_FABRIC}/operator/test_readiness.py"
_NETWORK, _SRIOV, _GPU = "network-operator", "sriov-network-operator", "gpu-operator"
_PLUGIN = "k8s-rdma-shared-dev-plugin"


class Problem(NamedTuple):
    """``threads``: where users report it. ``rules``: of the linter. ``place``: what else finds or prevents it, with the
    ``test`` of that.
    """

    text: str
    threads: str
    rules: Sequence[str] = ()
    place: str = ""
    test: str = ""


PROBLEMS: tuple[Problem, ...] = (
    Problem(
        "The policy is never ready: no node has the label of NICs",
        f"{_NETWORK} #211, #439",
        ["node-label"],
        "`deploy`",
        f"{_K8S}/checks/test_problems.py::test_problems",
    ),
    Problem(
        "Node Feature Discovery is installed twice",
        f"{_NETWORK} #833, #1212; {_GPU} #87, #149",
        ["nfd-twice"],
        "`deploy`",
        f"{_K8S}/checks/test_problems.py::test_problems",
    ),
    Problem(
        "Values that the chart no longer has are ignored, and the driver is gone after an upgrade",
        f"{_NETWORK} #1085",
        (),
        "`plan`, `deploy`",
        f"{_FABRIC}/intent/test_releases.py::test_values_that_the_chart_ignores",
    ),
    Problem(
        "A policy that is deleted and created again removes the driver",
        "aicr #2622",
        (),
        "`deploy` changes the policy, and never replaces it",
        f"{_K8S}/objects/test_apply.py::test_create_update_and_nothing",
    ),
    Problem(
        "The driver does not compile: headers, proxy, subscription, certificate",
        f"{_NETWORK} #720, #830, #888, #1639",
        (),
        "the wait of `deploy`, from the pod",
        f"{_READINESS}::test_one_thing_is_wrong",
    ),
    Problem("The driver does not compile for a kernel of a vendor", f"{_NETWORK} #1415", ["driver-kernel"]),
    Problem(
        "The driver container has no image for the system",
        f"{_NETWORK} #604",
        ["driver-system"],
        "`prepare`",
        f"{_MODULES}/test_preflight.py::test_systems",
    ),
    Problem(
        "The node is lost when the driver is loaded: its management network is on such a NIC",
        f"{_NETWORK} #2176",
        ["driver-primary"],
        "`prepare`",
        f"{_MODULES}/test_preflight.py::test_a_rail_that_serves_something_else_is_a_finding",
    ),
    Problem("Modules of storage keep the driver in use", f"{_NETWORK} #1084", ["driver-modules"]),
    Problem(
        "Ports have other names after the driver was replaced",
        f"{_NETWORK} #303",
        (),
        "role `rail_names` sets names by PCI address",
        f"{_UNIT}/module_utils/_host/naming/test_model.py::test_a_real_udev_names_by_these_rules",
    ),
    Problem(
        "Pods of the GPU driver wait for a driver container",
        f"{_GPU} #448, #588",
        ["gpu-driver"],
        "`deploy`",
        f"{_FABRIC}/operator/test_gpu_operator.py::test_only_what_is_stated_counts",
    ),
    Problem(
        "nvidia-peermem is not loaded after the driver was restarted",
        f"{_GPU} #609, #1696, #2619, #2844, #2868",
        (),
        "role `peer_memory`",
        f"{_MODULES}/test_peer_memory.py::test_a_stack_that_was_loaded_again_gets_it_back",
    ),
    Problem(
        "GPUDirect RDMA is not used, without an error",
        "perftest #269, #280, #336, #346",
        (),
        "`validate` with GPU memory",
        f"{_READINGS}/test_perftest.py::test_gpu_memory_is_proven_or_it_is_no_result",
    ),
    Problem(
        "Connections fail: no GID, or the GID of another address",
        f"{_PLUGIN} #72, #86, #101, #112",
        (),
        "`validate`",
        "tests/unit/roles/test_tester.py::test_a_gid_that_perftest_refuses_is_named",
    ),
    Problem(
        "Memory cannot be registered",
        "sriov-network-device-plugin #271; nvidia-container-toolkit #2037",
        (),
        "`validate`",
        f"{_READINGS}/test_perftest.py::test_causes",
    ),
    Problem("macvlan on an InfiniBand port", f"{_NETWORK} #1017; {_PLUGIN} #95", ["macvlan-infiniband"]),
    Problem(
        "One resource stands for several ports, and pods get any of them",
        f"{_NETWORK} #738; {_PLUGIN} #44, #92, #93, #117",
        ["resource-ports", "port-twice"],
    ),
    Problem(
        "VFs of an InfiniBand port have no link or no GUID",
        f"{_NETWORK} #249; {_SRIOV} #307, #382",
        ["network-link-state", "guid-range"],
        "role `sriov`",
        f"{_MODULES}/test_sriov_vfs.py::test_infiniband_gets_guids_and_a_state",
    ),
    Problem("The operator reboots a node again and again", f"{_SRIOV} #359, #1016", ["sriov-reboot"]),
    Problem(
        "A drain does not end, because a disruption budget permits nothing", f"{_SRIOV} #306, #718", ["drain-budget"]
    ),
    Problem("The only node of a cluster cannot be drained", f"{_SRIOV} #968", ["sriov-one-node"]),
    Problem(
        "VFs are missing after a reboot, although the state is Succeeded",
        f"{_SRIOV} #784, #786, #1124",
        ["sriov-missing-vfs"],
        "the wait of `deploy`",
        f"{_FABRIC}/operator/profiles/test_sriov_ready.py::test_a_node_that_is_not_in_force",
    ),
    Problem(
        "More VFs than the firmware permits; a NIC that is not supported", f"{_SRIOV} #492", ["sriov-vfs", "sriov-port"]
    ),
    Problem(
        "The device plugin is not registered any more",
        f"{_SRIOV} #1046",
        ["sriov-not-offered"],
        "the wait of `deploy`",
        f"{_READINESS}::test_one_thing_is_wrong",
    ),
    Problem("A VF is not released when its pod ends", "sriov-cni #126, #219, #349", (), "not found"),
    Problem(
        "Pods on different nodes get the same address",
        "sriov-network-device-plugin #338; multus-cni #1442; whereabouts #70",
        ["host-local"],
    ),
    Problem(
        "No pod starts, since the token of Multus has expired",
        f"{_NETWORK} #1363; multus-cni #852, #1094",
        (),
        "`validate`, from the tester pods",
        f"{_K8S}/testers/test_steps.py::test_one_that_cannot_start_leaves_the_others",
    ),
    Problem(
        "Device plugins start before the driver of the node is ready",
        f"{_NETWORK} #2954",
        (),
        "the wait of `deploy`",
        f"{_READINESS}::test_drivers_must_be_done",
    ),
    Problem(
        "PCIe access control makes GPUDirect RDMA slow",
        "nccl #304, #489, #523, #606, #928; nccl-tests #29, #252",
        (),
        "`plan`, role `pcie_acs`, `validate`",
        f"{_FABRIC}/plan/test_gpu_acs.py::test_links_above_the_switch_bind_if_acs_redirects",
    ),
    Problem(
        "GPU and NIC are on different sockets",
        f"{_SRIOV} #736",
        (),
        "`plan`",
        f"{_FABRIC}/plan/test_gpu_affinity.py::test_path_class",
    ),
    Problem("A second policy of another name is ignored", f"{_NETWORK} #73, #99", ["policy-name"]),
    Problem(
        "The pull secret of the chart does not reach all images",
        "NVIDIA's known issues",
        ["pull-secrets"],
        "`deploy`",
        f"{_FABRIC}/operator/test_conformance.py::test_options_of_the_policy_follow_the_schema",
    ),
    Problem("The NIC configuration daemon does not start", "NVIDIA's known issues", ["nic-maintenance"]),
    Problem("The driver is killed while it compiles", f"{_NETWORK} #318, #720", ["driver-probe"]),
    Problem(
        "Rails reach each other with ping, but not with RDMA",
        "k8s-launch-kit #124",
        (),
        "`validate` with `cross_rail`",
        f"{_FABRIC}/measure/diagnosis/test_wording.py::test_what_crosses_from_rail_to_rail",
    ),
    Problem(
        "A peak of perftest is taken for the average",
        "AKS #5975",
        (),
        "`validate` judges averages",
        f"{_READINGS}/test_perftest.py::test_average",
    ),
    Problem(
        "Creating VFs takes very long",
        "NVIDIA's known issues",
        (),
        "role `sriov` creates them without drivers",
        f"{_MODULES}/test_sriov_vfs.py::test_vfs_are_made_set_and_bound_in_this_order",
    ),
)
