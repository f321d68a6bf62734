"""`python -m tests.tools.gallery`: writes docs/gallery/, what each network model becomes on each release line.

Each page shows an intent and the objects that follow from it for two servers of a preset, then what differs on the
other release lines.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from . import importable  # noqa: F401  (makes the collection importable)

# isort: split
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import presets
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

FOLDER = importable.ROOT / "docs" / "gallery"
PRESET, HOSTS = "dell_xe9680_h200", 2
NOTE = "<!-- from tests/tools/gallery.py by python -m tests.tools.gallery -->"
# Files that say nothing about the network model: the same for all, or summaries of others.
OTHERS = (
    "plan.txt",
    "images.txt",
    "operator/namespace.yaml",
    "operator/namespace-nvidia-network-operator.yaml",
    "operator/gpu-operator-values.yaml",
)
# A file of a rail other than the first, which is like that of the first.
OF_OTHER_RAIL = re.compile(r"-rail[1-9]\d*(-ipv6)?\.yaml")


@dataclass(frozen=True)
class Entry:
    """A page: its intent as a user writes it, below the keys that all pages have."""

    title: str
    text: str
    intent: str


ENTRIES: dict[str, Entry] = {
    "macvlan": Entry(
        "macvlan over shared RDMA devices",
        "Pods share the port of a rail. Each pod has a macvlan interface on it and its own address.",
        "profile: macvlan",
    ),
    "routed": Entry(
        "macvlan with routers between the rails",
        "The last address of each subnet is that of a router, through which hosts and pods reach all other rails.",
        "profile: macvlan\ngateway: last\nrouting: between_rails\nreserved: [192.168.0.1]\n"
        "networks: {source_routing: true}",
    ),
    "vlan": Entry(
        "macvlan on a VLAN of the rails",
        "The role `rail_links` creates a VLAN interface on each port. Pods have their macvlan interfaces on it.",
        "profile: macvlan\nvlan: 100",
    ),
    "dual_stack": Entry(
        "macvlan with IPv4, IPv6 and exclusions per node",
        "Hosts and pods have an address of each version on a rail. The network of a rail names two pools.",
        "profile: macvlan\nipv6: {supernet: 'fd00:10::/48'}\ncapacity: {hosts: 8}\npools: {per_node_exclusions: ['0']}",
    ),
    "driver": Entry(
        "macvlan with the driver container",
        "The operator compiles and loads the driver on the nodes. The hosts have `rdma_stack_provider: container`.",
        "profile: macvlan\noperator:\n  driver:\n    enabled: true\n    version: doca3.5.0-26.07-0.7.7.0-1\n"
        "    upgrade: {auto: true}",
    ),
    "host_device": Entry(
        "A whole port for one pod",
        "One pod per node gets the port of a rail. While the pod has it, the host does not.",
        "profile: host_device",
    ),
    "nested_vm": Entry(
        "A passed-through port or virtual function for one pod",
        "Hosts are virtual machines. One pod of each gets the PF or VF of a rail that the hypervisor passed through.",
        "profile: nested_vm",
    ),
    "sriov": Entry(
        "Virtual functions made by the SR-IOV operator",
        "Each pod gets a virtual function of a rail with its own RDMA device.",
        "profile: sriov\nsriov: {vfs: 8, rdma_mode: exclusive, max_unavailable: 2}",
    ),
    "sriov_external": Entry(
        "Virtual functions made on the hosts",
        "The role `sriov` creates the virtual functions. The SR-IOV operator only assigns them to pods.",
        "profile: sriov\nsriov: {vfs: 8, externally_managed: true}",
    ),
    "sriov_device_plugin": Entry(
        "Virtual functions without the SR-IOV operator",
        "The role `sriov` creates the virtual functions, and the SR-IOV device plugin of the policy assigns them.",
        "profile: sriov\nsriov: {vfs: 8, assigned_by: device_plugin}",
    ),
    "ipoib": Entry(
        "IPoIB over shared RDMA devices",
        "Rails of InfiniBand. Pods share the port of a rail, and each has an IPoIB interface and its own address.",
        "profile: ipoib",
    ),
    "sriov_ib": Entry(
        "Virtual functions of InfiniBand rails in a partition",
        "Each pod gets a virtual function of a rail. ib-kubernetes adds it to the partition through UFM.",
        "profile: sriov_ib\nsriov:\n  vfs: 8\n  pkey: '0x8001'\n  ib_kubernetes:\n    ufm_secret: ufm\n"
        "    first_guid: '02:00:00:00:00:00:00:00'\n    last_guid: '02:FF:FF:FF:FF:FF:FF:FF'",
    ),
    "sriov_ib_opensm": Entry(
        "Virtual functions of InfiniBand rails with OpenSM",
        "The role `sriov` creates the virtual functions. `partitions.conf` lists them for the subnet manager.",
        "profile: sriov_ib\nmtu: 4092\nsriov: {vfs: 2, externally_managed: true, pkey: '0x8001'}",
    ),
    "nic_configuration": Entry(
        "Firmware settings from the cluster",
        "The NIC configuration operator sets the firmware of NICs. The hosts have no `nic_firmware_settings`.",
        "profile: macvlan\noperator:\n  nic_feature_discovery: true\n"
        "  nic_configuration:\n    enabled: true\n    templates:\n      - name: bluefield-3\n        nic_type: a2dc\n"
        "        settings:\n          numVfs: 0\n          linkType: Ethernet\n"
        "          pciPerformanceOptimized: {enabled: true, maxReadRequest: 4096}\n"
        "          gpuDirectOptimized: {enabled: true, env: Baremetal}\n"
        "          roceOptimized: {enabled: true, qos: {trust: dscp, pfc: '0,0,0,1,0,0,0,0'}}",
    ),
    "openshift": Entry(
        "Virtual functions on OpenShift",
        "OLM installs the operator, Red Hat's SR-IOV operator makes the virtual functions, and objects of the cluster"
        " configure the hosts. Validated against schemas, not run on OpenShift.",
        "profile: sriov\ngateway: last\nrouting: between_rails\nnetworks: {source_routing: true}\noperator:\n"
        "  platform: openshift",
    ),
    "raw": Entry(
        "macvlan without the operator's networks",
        "As macvlan, with NetworkAttachmentDefinitions that the collection writes, in the namespace of the pods.",
        "profile: raw\nnetwork_namespace: training\nnetworks:\n  name: gpu-{rail}\n  source_routing: true\n"
        "  sysctls: {net.ipv4.conf.IFNAME.arp_ignore: 1}",
    ),
    "classes": Entry(
        "Two classes of hosts",
        "Host `gpu-2` has other rails and another network model. Each class has its own device plugins and networks.",
        "profile: macvlan\nclasses:\n  - name: storage\n    hosts: [gpu-2]\n    match: {device: a2dc, ports: 10}\n"
        "    profile: host_device\n    supernet: 10.20.0.0/16",
    ),
}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for path in FOLDER.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text)
    return 0


def pages() -> dict[str, str]:
    """File name -> text of all pages."""
    return {"README.md": index(), **{f"{name}.md": page(entry) for name, entry in ENTRIES.items()}}


def index() -> str:
    rows = [f"| [{entry.title}]({name}.md) | {entry.text} |" for name, entry in ENTRIES.items()]
    return "\n".join(
        [
            NOTE,
            "",
            "# Gallery of network models",
            "",
            "Each page shows `rdma_fabric` and the manifests that the playbook `plan` writes for it, with",
            f"{HOSTS} servers of the preset `{PRESET}`. To write such manifests, see [manifests.md](../manifests.md).",
            "",
            "| page | network model |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )  # fmt: skip


def page(entry: Entry) -> str:
    shown = releases.line_of(releases.DEFAULT)
    assert shown is not None
    parts = [NOTE, f"# {entry.title}", entry.text, fenced("yaml", "rdma_fabric:\n" + indented(intent_text(entry)))]
    parts.append(f"## Manifests for release {releases.DEFAULT}")
    for path, text in files(entry, releases.DEFAULT).items():
        parts += [f"`{path}`", fenced("yaml" if path.endswith(".yaml") else "text", text)]
    parts.append("The files of the other rails differ from those of `rail0` only in names and addresses.")
    parts.append("## Other release lines")
    for line in releases.LINES.values():
        if line != shown:
            parts += [f"### {line.name}", *difference(entry, list(line.releases)[-1])]
    return "\n\n".join(parts) + "\n"


def difference(entry: Entry, release: str) -> Iterator[str]:
    """Yield what differs on a release, but for its number: the parts of a page."""
    refused = refusal(entry, release)
    if refused:
        yield "This line is refused:"
        yield fenced("text", refused)
        return
    default, other = files(entry, releases.DEFAULT), files(entry, release)
    found = False
    for path in dict.fromkeys((*default, *other)):
        before = default.get(path, "").replace(releases.DEFAULT, release)
        lines = difflib.unified_diff(before.splitlines(), other.get(path, "").splitlines(), n=1, lineterm="")
        text = "\n".join("..." if line.startswith("@@") else line for line in list(lines)[2:])
        if text:
            found = True
            yield f"`{path}`"
            yield fenced("diff", text)
    yield f"Apart from the release number ({release}), {'the other manifests' if found else 'all manifests'} are equal."


def files(entry: Entry, release: str) -> dict[str, str]:
    """Path -> text of the manifests that the network model determines."""
    made = planned(entry, release)
    found = manifests(made, Chart())
    return {
        path: content if isinstance(content, str) else documents(content)
        for path, content in found.items()
        if path not in OTHERS and not path.endswith("kustomization.yaml") and not OF_OTHER_RAIL.search(path)
    }


def refusal(entry: Entry, release: str) -> str:
    """Why a release cannot have a page's intent; empty when it can."""
    try:
        planned(entry, release)
    except InputError as error:
        return str(error)
    return ""


def planned(entry: Entry, release: str) -> dict[str, Any]:
    fabric = yaml.safe_load(intent_text(entry))
    fabric["operator"] = {**fabric.get("operator", {}), "release": release}
    made: dict[str, Any] = plan(fabric, hosts(fabric))
    return made


def hosts(fabric: dict[str, Any]) -> dict[str, Any]:
    """The servers of a page, with the link layer of its network model."""
    found: dict[str, Any] = presets.hosts(PRESET, HOSTS, registry.get(fabric["profile"]).link_layer)
    if "classes" in fabric:
        # A preset names its rails for all hosts alike.
        found = {name: {**host, "rdma_host": {}} for name, host in found.items()}
    return found


def intent_text(entry: Entry) -> str:
    return f"{entry.intent}\nsupernet: 192.168.0.0/16\n"


def documents(objects: list[Any]) -> str:
    return "---\n".join(yaml.safe_dump(item, sort_keys=False, default_flow_style=False) for item in objects)


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


if __name__ == "__main__":
    sys.exit(main())
