"""Networks against what the operator makes of them, and states of nodes as the source of the operator writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import sriov_ready

CRDS = Path(__file__).parents[6] / "fixtures" / "crds"
STATES = "sriovnetwork.openshift.io_sriovnetworknodestates.yaml"
IPAM = {"type": "nv-ipam", "poolName": "rail0", "poolType": "ippool"}
SPEC: dict[str, Any] = {"networkNamespace": "team", "resourceName": "vf_rail0", "vlan": 0, "ipam": json.dumps(IPAM)}
CONFIG: dict[str, Any] = {"cniVersion": "1.0.0", "name": "rail0", "type": "sriov", "vlan": 0, "ipam": IPAM}
NAME = "SriovNetwork rail0: its NetworkAttachmentDefinition"
AGAIN = ". If this persists, delete it; the operator recreates it"


def network(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "rail0", "namespace": "op"}, "spec": {**SPEC, **spec}}


def nad(config: Any, namespace: str = "team", resource: str = "nvidia.com/vf_rail0") -> dict[str, Any]:
    meta = {"namespace": namespace, "annotations": {"k8s.v1.cni.cncf.io/resourceName": resource}}
    return {"metadata": meta, "spec": {"config": config if isinstance(config, str) else json.dumps(config)}}


def chain(*plugins: dict[str, Any]) -> dict[str, Any]:
    return {"cniVersion": "1.0.0", "name": "rail0", "plugins": list(plugins)}


@pytest.mark.parametrize(
    ("spec", "config"),
    [
        ({}, CONFIG),
        ({"trust": "on", "spoofChk": "off"}, {**CONFIG, "trust": "on", "spoofchk": "off"}),
        ({"linkState": "enable", "vlan": 5}, {**CONFIG, "link_state": "enable", "vlan": 5}),
        ({"metaPlugins": '{"type":"rdma"}'}, chain(CONFIG, {"type": "rdma"})),
        ({"metaPlugins": '{"type":"rdma"},{"type":"sbr"}'}, chain(CONFIG, {"type": "rdma"}, {"type": "sbr"})),
    ],
)
def test_a_network_in_force(spec: dict[str, Any], config: dict[str, Any]) -> None:
    assert sriov_ready.network_ready(network(**spec), nad(config)).ready


@pytest.mark.parametrize(
    ("spec", "found", "reasons"),
    [
        ({}, None, ["SriovNetwork rail0: no NetworkAttachmentDefinition in namespace team yet"]),
        ({}, nad(CONFIG, "old"), [f"{NAME} is in old, not team"]),
        ({"ipam": "{"}, nad(CONFIG), [f'{NAME} has ipam {json.dumps(IPAM)}, expected "{{"{AGAIN}']),
        ({}, nad("{"), ["SriovNetwork rail0: the config of its NetworkAttachmentDefinition is not valid JSON"]),
        ({"vlan": 5}, nad(CONFIG), [f"{NAME} has vlan 0, expected 5{AGAIN}"]),
        ({"trust": "on"}, nad(CONFIG), [f'{NAME} has trust null, expected "on"{AGAIN}']),
        ({"metaPlugins": '{"type":"rdma"}'}, nad(CONFIG), [f'{NAME} has type null, expected "rdma"{AGAIN}']),
        ({}, nad(chain(CONFIG, {"type": "rdma"})), [f'{NAME} has type "rdma", expected null{AGAIN}']),
        ({"metaPlugins": "{"}, nad(CONFIG), ["SriovNetwork rail0: its metaPlugins are not valid JSON"]),
        (
            {},
            nad(CONFIG, resource="openshift.io/vf_rail0"),
            [
                f"{NAME} has the resource openshift.io/vf_rail0, expected nvidia.com/vf_rail0; the operator's"
                " chart sets the prefix in sriov-network-operator.operator.resourcePrefix"
            ],
        ),
    ],
)
def test_a_network_that_is_not_in_force(spec: dict[str, Any], found: Any, reasons: list[str]) -> None:
    ready = sriov_ready.network_ready(network(**spec), found)
    assert (ready.ready, list(ready.reasons)) == (False, reasons)


PORT: dict[str, Any] = {"name": "rail0", "pciAddress": "0000:18:00.0", "numVfs": 8, "totalvfs": 8, "vendor": "15b3"}
IDLE = {f"sriovnetwork.openshift.io/{which}-state": "Idle" for which in ("current", "desired")}


def policy(**spec: Any) -> dict[str, Any]:
    own = {"nicSelector": {"pfNames": ["rail0"]}, "numVfs": 8, "externallyManaged": False}
    return {"metadata": {"name": "rail0"}, "spec": {**own, **spec}}


def state(
    port: dict[str, Any] | None = None, notes: dict[str, str] | None = None, copied: int | None = 8, **status: Any
) -> dict[str, Any]:
    spec = {"interfaces": [{"name": "rail0", "pciAddress": "0000:18:00.0", "numVfs": copied}]} if copied else {}
    found = {"syncStatus": "Succeeded", "lastSyncError": "", "interfaces": [{**PORT, **(port or {})}], **status}
    return {"metadata": {"name": "a", "annotations": notes or IDLE}, "spec": spec, "status": found}


@pytest.mark.parametrize("path", sorted(CRDS.glob(f"*/{STATES}")), ids=lambda path: path.parent.name)
def test_states_have_the_fields_of_the_schema(path: Path) -> None:
    version = yaml.load(path.read_text(), yaml.CSafeLoader)["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        known = schema[part]["properties"]
        assert set(state()[part]) <= set(known)
        assert set(state()[part]["interfaces"][0]) <= set(known["interfaces"]["items"]["properties"])


def reasons(found: Any, **spec: Any) -> tuple[bool, tuple[str, ...]]:
    ready = sriov_ready.node_ready([policy(**spec)], found, "a")
    assert ready.ready == (not ready.reasons)
    return ready.failed, ready.reasons


@pytest.mark.parametrize(
    ("found", "spec"),
    [
        (state(), {}),
        (
            state({"name": "enp24s0np0", "altNames": ["rail0"]})
            | {"spec": {"interfaces": [{**PORT, "name": "enp24s0np0"}]}},
            {},
        ),
        (state({"numVfs": 16, "totalvfs": 16}), {"externallyManaged": True}),
    ],
)
def test_a_node_in_force(found: dict[str, Any], spec: dict[str, Any]) -> None:
    assert reasons(found, **spec) == (False, ())


OF_A = "Node a: the SR-IOV operator"
RAIL = "Node a: port rail0"


@pytest.mark.parametrize(
    ("found", "failed", "reason"),
    [
        (None, False, f"{OF_A} has no state of it; check that its config daemon runs on the node"),
        (
            state(syncStatus="InProgress"),
            False,
            f"{OF_A} reports InProgress (current state Idle, desired state Idle). If that stays, read the log of its"
            " config daemon",
        ),
        (
            state(
                syncStatus="InProgress",
                notes={**IDLE, "sriovnetwork.openshift.io/desired-state": "Reboot_Required"},
                lastSyncError="drain: pod a/b is not evicted",
            ),
            False,
            f"{OF_A} reports InProgress (current state Idle, desired state Reboot_Required, error: drain: pod a/b is"
            " not evicted). If that stays, read the log of its config daemon",
        ),
        (state(syncStatus="Failed", lastSyncError="no mstconfig"), True, f"{OF_A} failed: no mstconfig"),
        (
            state(notes={**IDLE, "sriovnetwork.openshift.io/current-state": "Draining"}),
            False,
            f"{OF_A} is not done (current state Draining, desired Idle)",
        ),
        (state(interfaces=[]), False, f"{OF_A} reports no port rail0"),
        (
            state(copied=None),
            False,
            f"{RAIL}: the SR-IOV operator has not taken over the policy yet, which can take 5 minutes",
        ),
        (
            state(copied=4),
            False,
            f"{RAIL}: the SR-IOV operator has not taken over the policy yet, which can take 5 minutes",
        ),
        (state({"numVfs": 0}), False, f"{RAIL} has 0 VFs, expected 8"),
        (state({"numVfs": 9, "totalvfs": 9}), False, f"{RAIL} has 9 VFs, expected 8"),
        (state({"totalvfs": 7, "vendor": "8086"}, copied=None), True, f"{RAIL} supports 7 VFs, the policy asks for 8"),
        (state({"totalvfs": 4, "numVfs": 0}), False, f"{RAIL} has 0 VFs, expected 8"),
    ],
)
def test_a_node_that_is_not_in_force(found: Any, failed: bool, reason: str) -> None:
    assert reasons(found) == (failed, (reason,))


def test_a_port_that_the_node_does_not_have() -> None:
    ready = sriov_ready.node_ready([policy()], state({"name": "enp24s0np0"}), "a")
    reason = (
        f"{OF_A} reports no port rail0, but enp24s0np0. Check the name of the port on the node, and whether ConfigMap"
        " supported-nic-ids lists its model"
    )
    # The daemon tells of a port that was just renamed after a while.
    assert (ready.reasons, ready.failed, ready.after) == ((reason,), True, (90.0,))


@pytest.mark.parametrize(
    ("found", "lacks", "works", "boots"),
    [
        (None, True, False, False),
        ({"metadata": {}}, True, False, False),
        (state(interfaces=[]), True, False, False),
        (state(), False, False, False),
        (state(syncStatus="InProgress"), False, True, False),
        (state(notes={"sriovnetwork.openshift.io/desired-state": "Reboot_Required"}), False, False, True),
    ],
)
def test_what_the_daemon_of_a_node_does(found: Any, lacks: bool, works: bool, boots: bool) -> None:
    assert sriov_ready.lacks(found, "a") == ("Node a: no ports are reported" if lacks else "")
    assert (sriov_ready.works(found), sriov_ready.boots(found)) == (works, boots)


def test_vfs_that_others_make_are_never_more_than_the_port_supports() -> None:
    found = state({"totalvfs": 4, "numVfs": 4})
    assert reasons(found, externallyManaged=True) == (True, (f"{RAIL} supports 4 VFs, the policy asks for 8",))
