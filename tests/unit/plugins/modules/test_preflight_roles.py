"""preflight through main(): what each role of prepare.yml will refuse is known before the first change.

Each case runs the module of the role in check mode too: preflight reports what the module reports. Cost: about 5 s.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from tests.tools.environment import REPO
from tests.unit.support import package_fake, qos_host, sysfs_tree
from tests.unit.support.firmware_cards import Cards
from tests.unit.support.module_run import run
from tests.unit.support.sysfs_tree import Host
from tests.unit.support.vf_kernel import VfKernel

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ConflictError, InUseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.preflight import roles_io

GPU, LAB = "gpu-server-8-rails", "lab-igb-host"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n"
RAIL = {"rail": "rail0", "netdev": "rail0", "pci": "0000:18:00.0", "address": "192.168.0.1/24", "mtu": 9000}
PORT = {"rail": "rail0", "netdev": "rail0", "pci": "0000:01:00.0", "address": "192.168.0.1/24", "mtu": 9000}
DOCA = {
    "rdma_stack_provider": "doca_ofed",
    "rdma_stack_doca_release": "3.2.1",
    "rdma_stack_doca_version": "3.2.1-1",
    "rdma_stack_doca_key": (REPO / "tests/fixtures/openpgp/ed25519.asc").read_text(),
    "rdma_stack_doca_fingerprint": "04B5269410BCCA8EEB615B2E510A5488D02777A1",
}
Make = Callable[[Path, pytest.MonkeyPatch], Host]


def defaults(role: str) -> dict[str, Any]:
    """Return the inputs of a role as role_options returns them where a user sets nothing."""
    found: dict[str, Any] = yaml.safe_load((REPO / "roles" / role / "defaults" / "main.yml").read_text())
    return found


def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A GPU server with the packages of the inbox stack."""
    host = sysfs_tree.materialise(GPU, tmp_path, monkeypatch)
    host.idle()
    database = package_fake.install(host, monkeypatch, "apt")
    database.installed = dict.fromkeys(("rdma-core", "ibverbs-providers", "perftest"), "1")
    return host


def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = gpu(tmp_path, monkeypatch)
    database = package_fake.install(host, monkeypatch, "apt")
    database.installed = {**dict.fromkeys(("rdma-core", "ibverbs-providers", "perftest"), "1"), "doca-ofed": "3.1"}
    return host


def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    found = Cards(sysfs_tree.materialise(GPU, tmp_path, monkeypatch), monkeypatch)
    found.cards = {RAIL["pci"]: {"SRIOV_EN": ["0", "0", "0"]}}
    return found.host


def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return VfKernel(sysfs_tree.materialise(LAB, tmp_path, monkeypatch), monkeypatch).host


def by_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = lab(tmp_path, monkeypatch)
    put(host, "etc/sriov-operator/pci/0000:01:00.0", json.dumps({"pciAddress": "0000:01:00.0", "numVfs": 2}))
    return host


def with_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = gpu(tmp_path, monkeypatch)
    put(host, "etc/systemd/network/05-all.network", "[Match]\nName=*\n[Network]\nDHCP=yes\n")
    return host


def closed_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = gpu(tmp_path, monkeypatch)
    put(host, "proc/driver/nvidia/version", CLOSED)
    put(host, "proc/kallsyms", "0 T ib_umem_dmabuf_get\t[ib_uverbs]\n")
    return host


def legacy_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = gpu(tmp_path, monkeypatch)
    with (host.root / "proc/modules").open("a") as stream:
        stream.write("nv_peer_mem 16384 2 - Live 0x0\n")
    return host


def without_pfc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = qos_host.make(tmp_path, monkeypatch)
    host.reacts = lambda argv: "no DCB" if argv[0] == "mlnx_qos" else None
    return host


def put(host: Host, path: str, text: str) -> None:
    place = host.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def other_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = gpu(tmp_path, monkeypatch)
    for path in ("boot/vmlinuz-6.17.0-8-generic", "lib/modules/6.17.0-8-generic/modules.dep"):
        put(host, path, "")
    return host


class Case(NamedTuple):
    """A host, what the user sets, the rails, and a part of what the module reports."""

    module: str
    make: Make
    inputs: dict[str, Any]
    refusal: str
    rails: tuple[dict[str, Any], ...] = (RAIL,)


CASES = {
    "kernel argument": Case(
        "kernel_cmdline", gpu, {"host_kernel_arguments": ["init=/bin/sh"]}, "can prevent the host from booting"
    ),
    "boot loader": Case(
        "kernel_cmdline", gpu, {"host_kernel_arguments": ["quiet"]}, "the boot loader of this host is not supported"
    ),
    "sysctl": Case("kernel_settings", gpu, {"host_kernel_sysctl": {"vm.nothing": 1}}, "vm.nothing"),
    "huge pages": Case("kernel_settings", gpu, {"host_kernel_hugepages": [{"size": "3M", "count": 1}]}, "3072 kB"),
    "firmware tool": Case(
        "nic_firmware", gpu, {"nic_firmware_settings": {"SRIOV_EN": True}}, "neither mlxconfig nor mstconfig"
    ),
    "firmware parameter": Case("nic_firmware", cards, {"nic_firmware_settings": {"NO_SUCH": 1}}, "NO_SUCH"),
    "firmware version": Case(
        "nic_firmware",
        cards,
        {"nic_firmware_minimum": ["28.99.1000"], "nic_firmware_version_policy": "fail"},
        "expected 28.99.1000 or newer",
    ),
    "vendor packages": Case(
        "rdma_stack", vendor, {"rdma_stack_provider": "container"}, "gpu-11 has doca-ofed: drivers that are installed"
    ),
    "DOCA-OFED on another kernel": Case(
        "rdma_stack", other_kernel, DOCA, "DOCA-OFED 3.2.1 cannot be installed on gpu-11: kernel 6.17.0-8-generic"
    ),
    "DOCA-OFED without its inputs": Case(
        "rdma_stack",
        gpu,
        {"rdma_stack_provider": "doca_ofed"},
        "provider doca_ofed requires doca.release",
    ),
    "DOCA-OFED with another key": Case(
        "rdma_stack", gpu, {**DOCA, "rdma_stack_doca_fingerprint": "0" * 40}, "The package key has the fingerprint"
    ),
    "VFs of a rail": Case("sriov_vfs", lab, {"sriov_vfs_by_rail": {"rail0": 99}}, "99 requested", (PORT,)),
    "VFs of the operator": Case("sriov_vfs", by_operator, {"sriov_vfs": 2}, "the SR-IOV operator manages", (PORT,)),
    "rail without a name": Case("sriov_vfs", lab, {"sriov_vfs_by_rail": {"rail7": 1}}, "no rail is named", (PORT,)),
    "file of a network manager": Case("rail_links", with_network, {}, "also matches 0000:18:00.0"),
    "MTU": Case("rail_links", gpu, {}, "supports an MTU from", ({**RAIL, "mtu": 65000},)),
    "QoS": Case("rail_qos", without_pfc, {"rail_links_qos": {"pfc": [3]}}, "no DCB"),
    "peer memory": Case("peer_memory", closed_driver, {}, "GPU memory is not accessible to RDMA on gpu-11"),
    "peer memory in use": Case("peer_memory", legacy_in_use, {}, "nv_peer_mem is in use"),
}


def given(value: Any) -> Any:
    """Return options without those that nobody set, as a role passes them."""
    if isinstance(value, dict):
        return {key: given(one) for key, one in value.items() if one is not None}
    return [given(one) for one in value] if isinstance(value, list) else value


def topic_of(module: str) -> roles_io.Topic:
    return next(topic for topic in roles_io.TOPICS if topic.name == module)


def preflight(host: Host, capsys: pytest.CaptureFixture[str], roles: dict[str, Any], **params: Any) -> dict[str, Any]:
    before = sorted(host.root.rglob("*"))
    result = run("preflight", capsys, **{**host.options(), "rails": [RAIL], "roles": roles, **params})
    assert sorted(host.root.rglob("*")) == before
    return result


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_is_known_before_the_first_change(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = CASES[name]
    topic, host = topic_of(case.module), case.make(tmp_path, monkeypatch)
    roles = {**defaults(topic.role), **case.inputs}
    result = preflight(host, capsys, roles, rails=list(case.rails))
    own = [text for text in result["problems"] if text.startswith(f"role {topic.role}: ")]
    assert len(own) == 1 and case.refusal in own[0], result["problems"]
    params = roles_io.options_of(topic, roles_io.Run(roles, {**host.options(), "rails": list(case.rails)}))
    said = run(case.module, capsys, check=True, **given(params))["msg"]
    assert own[0].removeprefix(f"role {topic.role}: ") == said.removeprefix(f"{case.module}: ")


ALL = {key: value for topic in roles_io.TOPICS for key, value in defaults(topic.role).items()}


def test_a_host_that_can_be_prepared_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = gpu(tmp_path, monkeypatch)
    result = preflight(host, capsys, ALL, disrupt_users=True)
    assert (result["problems"], result["changed"]) == ([], False)
    assert host.ran.count(["ip", "-d", "-j", "addr", "show"]) == 1


def test_what_every_role_refuses_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = gpu(tmp_path, monkeypatch)
    missing = {**RAIL, "pci": "0000:99:00.0"}
    problems = preflight(host, capsys, {**ALL, "sriov_vfs": 2}, rails=[missing], disrupt_users=True)["problems"]
    assert len(problems) == 1 and problems[0].startswith("rail rail0: no network port at 0000:99:00.0"), problems


def test_users_of_a_port_are_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = gpu(tmp_path, monkeypatch)
    host.prints["rdma -j resource show qp"] = json.dumps([{"ifname": "mlx5_0", "port": 1, "pid": 7, "comm": "job"}])
    problems = preflight(host, capsys, {**ALL, "sriov_vfs": 2})["problems"]
    assert [problem for problem in problems if "a change of its link" in problem] == []
    assert [problem.count("a change of rail rail0 would disturb its users") for problem in problems].count(1) == 1


@pytest.mark.parametrize("case", ["QoS", "peer memory"])
def test_what_packages_of_this_run_may_bring_does_not_stop_it(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = CASES[case].make(tmp_path, monkeypatch)
    package_fake.install(host, monkeypatch, "apt").installed = {"rdma-core": "1", "ibverbs-providers": "1"}
    roles = {**defaults("rdma_stack"), **defaults(topic_of(CASES[case].module).role), **CASES[case].inputs}
    result = preflight(host, capsys, roles, disrupt_users=True, installs_packages=False)
    assert [text for text in result["problems"] if text.startswith("role ")] == []
    (found,) = [text for text in result["findings"] if CASES[case].refusal in text]
    why = "role rdma_stack installs, removes, loads or reloads perftest, ib_uverbs first"
    assert found.endswith(f". This does not stop the run, since {why}")


@pytest.mark.parametrize(("allowed", "stops"), [(True, False), (False, True)])
def test_users_that_a_reboot_of_this_run_ends_do_not_stop_it(
    allowed: bool, stops: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = legacy_in_use(tmp_path, monkeypatch)
    # The name waits for the next boot.
    roles = {**defaults("rail_names"), "rail_names_apply": "boot", **defaults("peer_memory")}
    result = preflight(host, capsys, {**roles, "host_reboot_allowed": allowed}, disrupt_users=True)
    found = [text for text in result["problems"] if text.startswith("role peer_memory: nv_peer_mem is in use")]
    assert bool(found) is stops
    assert any(text.endswith("since the host reboots first") for text in result["findings"]) is not stops


@pytest.mark.parametrize("options", [{"skipped_roles": ["sriov"]}, {"roles": {"sriov_state": "absent"}}, {"roles": {}}])
def test_a_role_that_does_not_run_refuses_nothing(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = lab(tmp_path, monkeypatch)
    roles = {**defaults("sriov"), "sriov_vfs": 99}
    given = {"rails": [PORT], "roles": {**roles, **options.get("roles", {})} if options.get("roles") != {} else {}}
    result = preflight(host, capsys, **{**given, **{key: options[key] for key in options if key != "roles"}})
    assert [text for text in result["problems"] if "99 requested" in text] == []


def test_vfs_are_checked_without_the_inputs_of_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The role preflight alone has their number only."""
    host = lab(tmp_path, monkeypatch)
    for roles, skipped, count in ({}, [], 1), ({"sriov_state": "absent"}, [], 0), ({}, ["sriov"], 0):
        result = preflight(host, capsys, roles, rails=[PORT], vfs=99, skipped_roles=skipped)
        found = [text for text in result["problems"] if text.startswith("role sriov: ") and "99 requested" in text]
        assert len(found) == count, result["problems"]


def test_an_option_that_a_module_does_not_accept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = lab(tmp_path, monkeypatch)
    roles = {**defaults("sriov"), "sriov_vfs": 1, "sriov_identity": "none"}
    problems = preflight(host, capsys, roles, rails=[PORT])["problems"]
    assert "role sriov: value of identity must be one of: derived, driver, got: none" in problems


@pytest.mark.parametrize("allowed", [True, False])
def test_vfs_that_the_firmware_of_this_run_brings_do_not_stop_it(
    allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = cards(tmp_path, monkeypatch)
    put(host, "sys/bus/pci/devices/0000:18:00.0/sriov_totalvfs", "0\n")
    roles = {
        **defaults("nic_firmware"),
        "nic_firmware_settings": {"SRIOV_EN": True},
        **defaults("sriov"),
        "sriov_vfs": 2,
    }
    result = preflight(host, capsys, {**roles, "host_reboot_allowed": allowed}, disrupt_users=True)
    found = [text for text in result["problems"] if text.startswith("role sriov: ")]
    assert bool(found) is not allowed, result["problems"]
    why = "since role nic_firmware changes the card and the host reboots first"
    assert any(text.startswith("role sriov: ") and text.endswith(why) for text in result["findings"]) is allowed


def test_a_name_that_this_run_replaces_does_not_stop_it() -> None:
    renamed = roles_io.Before(renamed=("eth2",))
    (links,) = [topic for topic in roles_io.TOPICS if topic.name == "rail_links"]
    host: Any = None
    assert links.waits(ConflictError("eth2 also matches"), host, renamed) == "role rail_names renames eth2 first"
    # Former names of other forms stay as alternative names, and uses stay uses.
    assert links.waits(ConflictError("also matches"), host, roles_io.Before(renamed=("enp24s0np0",))) == ""
    assert links.waits(InUseError("in use"), host, renamed) == ""
