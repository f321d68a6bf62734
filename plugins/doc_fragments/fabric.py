# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Written by python -m tests.tools.fabric_options from the tables of docs/inventory.md."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  fabric:
    description:
      - The intent, as C(rdma_fabric) in the inventory. A key without a value has its default.
    type: dict
    required: true
    suboptions:
      profile:
        description:
          - "How pods reach the rails. C(macvlan): pods share the ports through macvlan networks and the RDMA shared device plugin.
            C(host_device): a pod gets whole ports, through the SR-IOV device plugin. C(nested_vm): as C(host_device), for hosts that are virtual
            machines. C(sriov): a pod gets a virtual function of each rail. C(raw): as C(macvlan), without the operator's kinds of networks.
            C(ipoib): pods share InfiniBand ports through IPoIB networks and the RDMA shared device plugin. C(sriov_ib): a pod gets a virtual
            function of each InfiniBand rail; limits. Default: C(macvlan)."
        type: str
      rails:
        description:
          - The rails by name, in order. By default they are derived from the hosts' facts and named C(rail0), C(rail1), ... by PCI address.
        type: list
        elements: dict
        suboptions:
          name:
            description:
              - Name of the rail, and of its network interface, network, pool and resource. Lowercase letters, digits and C(-), at most 15
                characters, starting with a letter.
            type: str
          pci:
            description:
              - PCI addresses such as C(0000:18:00.0), one per class of host. The first one that exists on a host is its port. Listing a port is
                consent to use it even if it carries other traffic. A port with the default route or the SSH connection and a member of a bond or
                bridge are always rejected; a whole bond can be a rail.
            type: list
            elements: str
          bond:
            description:
              - Name of a bond of the hosts that is this rail, instead of C(pci).
            type: str
          subnet:
            description:
              - Subnet of this rail, instead of the one that C(supernet) gives it.
            type: str
          vlan:
            description:
              - "VLAN of this rail, instead of C(vlan); C(0): untagged."
            type: int
          gateway:
            description:
              - Address of the router of this rail, instead of C(gateway). Pods reach it only if it is in the second half of the subnet.
            type: str
          subnet_ipv6:
            description:
              - As C(subnet), for IPv6.
            type: str
          gateway_ipv6:
            description:
              - As C(gateway), for IPv6. Pods reach it only if it is in the last C(/96) of the subnet.
            type: str
      select:
        description:
          - Which ports can be rails when C(pci) is not set.
        type: dict
        suboptions:
          vendors:
            description:
              - "PCI vendors whose ports can be rails when C(pci) is not set. C(15b3) is NVIDIA (Mellanox). Default: C(['15b3'])."
            type: list
            elements: str
          drivers:
            description:
              - "Drivers whose ports can be rails; empty: any."
            type: list
            elements: str
          min_speed:
            description:
              - "Ports with a lower supported rate are not rails. The current speed of a link is never considered. Default: C(0.0)."
            type: float
      rail_count:
        description:
          - "Number of rails that every host must have. Default: the length of C(rails), otherwise the number found, which must be the same on all
            hosts."
        type: int
      rename:
        description:
          - "Whether ports are renamed to the rail's name. With C(false) the names must already be the same on all hosts. Default: C(true)."
        type: bool
      classes:
        description:
          - Groups of hosts with keys of their own. A host can be in one class only.
        type: list
        elements: dict
        suboptions:
          name:
            description:
              - Name of the class. Lowercase letters, digits and C(-), at most 8 characters, starting with a letter. Rails found automatically are
                named C(NAME-rail0), C(NAME-rail1), ...
            type: str
          hosts:
            description:
              - Hosts and groups of the inventory.
            type: list
            elements: str
          match:
            description:
              - Fingerprint of the hosts. Without C(hosts) it selects the hosts, with C(hosts) it is a check.
            type: dict
            suboptions:
              device:
                description:
                  - "Fingerprint: PCI device id of NIC ports that the hosts have, such as C('1021'). Without C(hosts), the fingerprint selects the
                    hosts. With C(hosts) it is a check, and a host that differs is rejected."
                type: str
              ports:
                description:
                  - "Fingerprint: number of ports with this id."
                type: int
              gpus:
                description:
                  - "Fingerprint: number of GPUs."
                type: int
              gpu_path:
                description:
                  - "Fingerprint: the longest of the paths from these ports to their nearest GPUs, such as C(PIX) where each port is below one
                    PCIe switch with a GPU (names)."
                type: str
                choices: ["PIX", "PXB", "PHB", "NODE", "SYS"]
          profile:
            description:
              - "Network model. Default: C(profile)."
            type: str
          rails:
            description:
              - Rails, as C(rails).
            type: list
            elements: dict
          select:
            description:
              - "As C(select). Default: C(select)."
            type: dict
          rail_count:
            description:
              - As C(rail_count).
            type: int
          supernet:
            description:
              - As C(supernet). Networks of classes must not overlap.
            type: str
          ipv6:
            description:
              - As C(ipv6). Networks of classes must not overlap.
            type: dict
          rail_prefix:
            description:
              - "As C(rail_prefix). Default: C(rail_prefix)."
            type: int
          capacity:
            description:
              - "As C(capacity). Default: C(capacity)."
            type: dict
          gateway:
            description:
              - "As C(gateway). Default: C(gateway)."
            type: str
          reserved:
            description:
              - As C(reserved).
            type: list
            elements: str
          mtu:
            description:
              - "As C(mtu). Default: C(mtu)."
            type: int
          vlan:
            description:
              - "As C(vlan). Default: C(vlan)."
            type: int
          pkey:
            description:
              - "As C(pkey). Default: C(pkey)."
            type: str
          link_speed:
            description:
              - "As C(link_speed). Default: C(link_speed)."
            type: float
          networks:
            description:
              - "As C(networks). Default: C(networks)."
            type: dict
          shared_devices_max:
            description:
              - "As C(shared_devices_max). Default: C(shared_devices_max)."
            type: int
          sriov:
            description:
              - "As C(sriov). Default: C(sriov)."
            type: dict
          driver_version:
            description:
              - "With C(operator.driver): tag of the driver container of the class, on release lines with NicNodePolicy. Set it before the first
                run: on a running cluster, the driver is removed from all nodes when the first class gets another version, and loaded again on
                those of the fabric. Then the run stops before, unless C(rdma_disrupt_users) consents. Default: C(operator.driver.version)."
            type: str
          node_labels:
            description:
              - "Labels to set on the nodes of the class, beside those of C(node_labels). Default: C(node_labels)."
            type: dict
          node_selector:
            description:
              - "Labels that the nodes of the class have, beside those of C(node_selector). Default: C(node_selector)."
            type: dict
      supernet:
        description:
          - The network that the rails' subnets are allocated from, in order. Required unless C(addresses) is C(keep), or the rails have IPv6
            addresses only. It must not overlap any other network of a host.
        type: str
      rail_prefix:
        description:
          - "Prefix length of a rail's subnet. The first half is the block of the hosts, the second half the pool of the pods. Default: C(24)."
        type: int
      capacity:
        description:
          - Size of the address blocks of each rail.
        type: dict
        suboptions:
          hosts:
            description:
              - "Number of hosts that the blocks are sized for. It is checked against the blocks. Set it larger than the current fleet: a later
                change can move the addresses of pods, and is rejected while pods use them. Default: C(32)."
            type: int
          pods_per_host:
            description:
              - "Number of pods per host that can use a rail. Default: C(2)."
            type: int
      gateway:
        description:
          - "C(last): the last address of each rail's subnet is that of its router, for hosts and pods. Default: C(none)."
        type: str
        choices: ["none", "last"]
      host_prefix:
        description:
          - "For fabrics that route each host: each host has its own subnet of this prefix length in the subnet of each rail. Its first address is
            that of the router, the second that of the host; the others are for the pods of the host."
        type: int
      ipv6:
        description:
          - IPv6 addresses of rails, alone or beside IPv4.
        type: dict
        suboptions:
          supernet:
            description:
              - The network that the IPv6 subnets of the rails are allocated from, in order, such as C(fd00:10::/48).
            type: str
          rail_prefix:
            description:
              - "As C(rail_prefix). A C(/64) is what routers and address plans expect of a link. Default: C(64)."
            type: int
          gateway:
            description:
              - "As C(gateway). Default: C(none)."
            type: str
            choices: ["none", "last"]
          host_prefix:
            description:
              - As C(host_prefix); a C(127) is for IPv6 what C(31) is for IPv4. With nv-ipam, set both or neither.
            type: int
      reserved:
        description:
          - Addresses, or ranges such as C(192.168.0.10-192.168.0.20), that neither hosts nor pods get. IPv6 addresses are in the same list.
        type: list
        elements: str
      pools:
        description:
          - Addresses of pods.
        type: dict
        suboptions:
          ipam:
            description:
              - "Who gives pods their addresses. All but C(nv-ipam) must be in the cluster already; the operator no longer ships C(whereabouts).
                C(static): each pod names its addresses in its annotation (C(ips)). With C(static) and C(none), measure with
                C(rdma_validate_where: [host]). Default: C(nv-ipam)."
            type: str
            choices: ["nv-ipam", "whereabouts", "dhcp", "static", "none"]
          routes:
            description:
              - Networks that pods reach through the router of each rail, in addition to the rails with C(routing). IPv6 networks are in the same
                list.
            type: list
            elements: str
          per_node_exclusions:
            description:
              - "Addresses of each node's block that pods do not get, by number from 0, such as C(0-3). With C(host_prefix) the first address of a
                host's subnet is 0. Requires nv-ipam, and a release line with C(spec.perNodeExclusions): 26.4 or newer."
            type: list
            elements: str
      addresses:
        description:
          - "C(plan): each host gets an address from the block of each rail. C(keep): the addresses of hosts are not changed. Default: C(plan)."
        type: str
        choices: ["plan", "keep"]
      mtu:
        description:
          - "MTU of every rail, on hosts and in pods. Default: 9000, and 2044 with profiles C(ipoib) and C(sriov_ib). InfiniBand carries 4092 at
            most (datagram mode; drivers of ConnectX-4 and newer have no connected mode, and it is not supported with older ones), and more than
            2044 only if the subnet manager gives the partition an MTU of 4096. The plan warns of switch ports that report a smaller frame by LLDP
            (lldpd)."
        type: int
      vlan:
        description:
          - "VLAN of all rails, with profiles C(macvlan) and C(raw); C(0): untagged. Role rail_links creates a VLAN interface on each port, such
            as C(rail0.100), which has the address of the host and is the master of the networks of pods. With the SR-IOV profiles, use
            C(sriov.vlan). Default: C(0)."
        type: int
      pkey:
        description:
          - "Only with profile C(ipoib): key of the partition of the rails, such as C('0x8001'). The administrator of the subnet manager makes it
            the first partition of each port: playbook C(plan) with C(rdma_manifests_dir) writes the lines for OpenSM to
            C(infiniband/partitions.conf). The plan warns of ports that are in another partition. With profile C(sriov_ib), use C(sriov.pkey)."
        type: str
      link_speed:
        description:
          - "From 0.001. The rate that links should have, if it is lower than the rate of their NICs (split ports, slower switches, rate limits on
            switch ports). Tests must reach it also where the port itself is faster, and a port that came up slower is a finding. Default: the
            rate that the NIC supports, or that most ports of the rail have."
        type: float
      routing:
        description:
          - "Whether each rail reaches every other rail. Set C(between_rails) if routers or one common network connect the rails. With C(gateway)
            or C(host_prefix), hosts and pods get the routes; without, the rails must be one network. C(tests.cross_rail) requires it. Default:
            C(none)."
        type: str
        choices: ["none", "between_rails"]
      operator:
        description:
          - The network operator.
        type: dict
        suboptions:
          release:
            description:
              - "Chart version. Lines: 25.10, 26.1, 26.4 and 26.7 (differences). The vendor supports 26.7, and 26.4 with critical fixes only.
                Default: C(26.7.1)."
            type: str
          platform:
            description:
              - "The kind of cluster. C(openshift): the operator is installed by OLM, and hosts with CoreOS are configured by MachineConfig:
                OpenShift. A cluster of the other kind is refused. Default: C(kubernetes)."
            type: str
            choices: ["kubernetes", "openshift"]
          machine_pool:
            description:
              - "With C(openshift): the MachineConfigPool of the hosts. Default: C(worker)."
            type: str
          namespace:
            description:
              - "Namespace of the operator and its components. Default: C(nvidia-network-operator)."
            type: str
          image_repository:
            description:
              - "Registry of the components' images. Default for prereleases: C(nvcr.io/nvstaging/mellanox). To use a mirror, set it here without
                C(https://), tag or digest. Its format is checked before any host is contacted. Its reachability is not checked, since the nodes
                pull the images, perhaps over another network. If the operator's namespace exists, the pull secrets named in
                C(network_operator_values) must exist in it. Default: C(nvcr.io/nvidia/mellanox)."
            type: str
          component_version:
            description:
              - "Tag of the components' images. Default: C(network-operator-v) and the release. Default: C(network-operator-v26.7.1)."
            type: str
          nfd:
            description:
              - "Whether the chart installs Node Feature Discovery. Set C(false) if it already runs in the cluster, or if C(node_labels) replaces
                it. Default with C(openshift): C(false). Default: C(true)."
            type: bool
          existing:
            description:
              - "What to do with a network operator or a policy that this collection does not manage. C(refuse): fail. C(use): install nothing and
                use it unchanged; its release line must be that of C(operator.release). C(adopt): manage it from now on, and remove it at
                teardown. Details. Default: C(refuse)."
            type: str
            choices: ["refuse", "use", "adopt"]
          multus:
            description:
              - "Whether the policy installs Multus. Set C(false) if the cluster already has it. Default with C(openshift): C(false). Default:
                C(true)."
            type: bool
          cni_plugins:
            description:
              - "Whether the policy installs the CNI plugins (macvlan, host-device, ...). Set C(false) if all nodes already have them. Default
                with C(openshift): C(false). Default: C(true)."
            type: bool
          image_pull_secrets:
            description:
              - Secrets in C(operator.namespace) with which nodes pull the components' images. Those of the chart are in
                C(network_operator_values).
            type: list
            elements: str
          tolerations:
            description:
              - Tolerations of the components, for nodes with taints.
            type: list
            elements: dict
            suboptions:
              key:
                description:
                  - Key of the taint. Required unless C(operator) is C(Exists).
                type: str
              operator:
                description:
                  - As in a pod; Kubernetes uses C(Equal) by default.
                type: str
                choices: ["Exists", "Equal"]
              value:
                description:
                  - Value of the taint.
                type: str
              effect:
                description:
                  - Effect of the taint. Without it, all effects.
                type: str
                choices: ["NoSchedule", "PreferNoSchedule", "NoExecute"]
              tolerationSeconds:
                description:
                  - "With C(NoExecute): how long the pod stays."
                type: int
          policy_overrides:
            description:
              - "Fields of the NicClusterPolicy's C(spec) that no other key sets. They are merged last: dicts are merged, other values replaced,
                and C(null) removes a field. They are checked against the definition of the release line, as all planned objects are, and shown by
                C(deploy --check --diff)."
            type: dict
          components:
            description:
              - What single components have of their own. A component that the policy does not have is an error.
            type: list
            elements: dict
            suboptions:
              name:
                description:
                  - "The component, as in the table of images, with C(_) for spaces: such as C(multus) or C(rdma_shared_device_plugin)."
                type: str
              repository:
                description:
                  - Registry of its image, instead of C(operator.image_repository).
                type: str
              version:
                description:
                  - Tag of its image, or its digest (C(sha256:...)), instead of C(operator.component_version).
                type: str
              resources:
                description:
                  - "Processor time and memory of its containers. Default: those of the operator."
                type: list
                elements: dict
                suboptions:
                  container:
                    description:
                      - Name of the container in its pods, such as C(rdma-shared-dp).
                    type: str
                  requests:
                    description:
                      - "What the container needs: C(cpu), C(memory)."
                    type: dict
                  limits:
                    description:
                      - "What the container gets at most: C(cpu), C(memory)."
                    type: dict
          deployment_node_selector:
            description:
              - Labels of the nodes that run what the operator runs once per cluster, such as the controller of nv-ipam. C(node_selector) is for
                what runs on every node.
            type: dict
          deployment_tolerations:
            description:
              - Tolerations of what the operator runs once per cluster, with the keys of C(operator.tolerations).
            type: list
            elements: dict
            suboptions:
              key:
                description:
                  - As C(operator.tolerations[].key).
                type: str
              operator:
                description:
                  - As C(operator.tolerations[].operator).
                type: str
                choices: ["Exists", "Equal"]
              value:
                description:
                  - As C(operator.tolerations[].value).
                type: str
              effect:
                description:
                  - As C(operator.tolerations[].effect).
                type: str
                choices: ["NoSchedule", "PreferNoSchedule", "NoExecute"]
              tolerationSeconds:
                description:
                  - As C(operator.tolerations[].tolerationSeconds).
                type: int
          nic_feature_discovery:
            description:
              - "Whether the policy installs NIC Feature Discovery, which labels nodes with the driver versions of their NICs. Default: C(false)."
            type: bool
          telemetry:
            description:
              - DOCA Telemetry Service.
            type: dict
            suboptions:
              enabled:
                description:
                  - "Whether the policy installs DOCA Telemetry Service, which exports counters of NICs to Prometheus. The tag of its image is
                    known for most releases; otherwise set it in C(components). Default: C(false)."
                type: bool
              config_map:
                description:
                  - "ConfigMap in C(operator.namespace) with its configuration. Default: that of the operator."
                type: str
          nic_configuration:
            description:
              - The NIC configuration operator.
            type: dict
            suboptions:
              enabled:
                description:
                  - "Whether the policy installs the NIC configuration operator, which changes firmware and firmware settings of NICs from the
                    cluster. Details. Default: C(false)."
                type: bool
              maintenance_operator:
                description:
                  - "Whether the chart installs the maintenance operator, with which nodes are drained before they reboot. Set C(false) if it
                    already runs in the cluster: the NIC configuration operator does not start without it. Default: C(true)."
                type: bool
              log_level:
                description:
                  - "Level of its logs. Default: C(info)."
                type: str
                choices: ["info", "debug"]
              env:
                description:
                  - "Variables of its pods, such as C(FW_RESET_AFTER_CONFIG_UPDATE: 'true') for servers whose NICs keep power during a reboot."
                type: dict
              templates:
                description:
                  - "Firmware settings. Lines: 26.4 and 26.7."
                type: list
                elements: dict
                suboptions:
                  name:
                    description:
                      - Name of the NicConfigurationTemplate.
                    type: str
                  nic_type:
                    description:
                      - PCI device ID of the NICs, such as C("1021") for ConnectX-7. Quote it.
                    type: str
                  pci_addresses:
                    description:
                      - Only the NICs at these PCI addresses. Two templates must not match the same NIC.
                    type: list
                    elements: str
                  serial_numbers:
                    description:
                      - Only the NICs with these serial numbers.
                    type: list
                    elements: str
                  settings:
                    description:
                      - "The field C(template) of the NicConfigurationTemplate: C(numVfs), C(linkType), C(pciPerformanceOptimized),
                        C(roceOptimized), C(gpuDirectOptimized), C(rawNvConfig) and others, checked against the definition of the release line."
                    type: dict
                  reset:
                    description:
                      - "Set the NICs back to their defaults instead. Default: C(false)."
                    type: bool
              firmware:
                description:
                  - "Firmware versions. Lines: 26.4 and 26.7."
                type: list
                elements: dict
                suboptions:
                  name:
                    description:
                      - Name of the NicFirmwareSource and the NicFirmwareTemplate.
                    type: str
                  nic_type:
                    description:
                      - As C(templates[].nic_type).
                    type: str
                  pci_addresses:
                    description:
                      - As C(templates[].pci_addresses).
                    type: list
                    elements: str
                  serial_numbers:
                    description:
                      - As C(templates[].serial_numbers).
                    type: list
                    elements: str
                  urls:
                    description:
                      - Archives with firmware of ConnectX, C(http) or C(https), without user and password.
                    type: list
                    elements: str
                  bundle_url:
                    description:
                      - Bundle with firmware of BlueField.
                    type: str
                  update:
                    description:
                      - "C(false): NICs with another version are reported only. C(true): the operator installs it, and drains and reboots nodes.
                        Default: C(false)."
                    type: bool
              storage:
                description:
                  - Where firmware files are.
                type: dict
                suboptions:
                  claim:
                    description:
                      - "Volume claim for firmware files, which all nodes read. Default: C(nic-fw-storage-pvc)."
                    type: str
                  create:
                    description:
                      - "Whether the operator creates the claim. Default: C(true)."
                    type: bool
                  storage_class:
                    description:
                      - Storage class of the claim, which must allow reading from many nodes. It cannot be changed later.
                    type: str
                  size:
                    description:
                      - "Size of the claim. It cannot be changed later. Default: C(1Gi)."
                    type: str
          driver:
            description:
              - The driver container of the operator.
            type: dict
            suboptions:
              enabled:
                description:
                  - "Whether the operator's driver container replaces the drivers of the nodes. All hosts then need C(rdma_stack_provider:
                    container). Details. Default: C(false)."
                type: bool
              version:
                description:
                  - "Tag of the driver, without operating system and architecture. Default: that of the release, if it is known."
                type: str
              precompiled:
                description:
                  - "Use only images with a driver for the exact kernel, instead of compiling it on the node. The vendor publishes them for some
                    kernels of Ubuntu, and not for every tag. Default: C(false)."
                type: bool
              env:
                description:
                  - "Variables of the driver container, such as C(UNLOAD_STORAGE_MODULES: 'true')."
                type: dict
              cert_config:
                description:
                  - ConfigMap with certificates for package sources, in C(operator.namespace).
                type: str
              repo_config:
                description:
                  - ConfigMap with package sources, in C(operator.namespace).
                type: str
              startup_minutes:
                description:
                  - "Time to compile and load the driver before the container is restarted. Default: C(30)."
                type: int
              upgrade:
                description:
                  - How the operator replaces the driver.
                type: dict
                suboptions:
                  auto:
                    description:
                      - "Whether the operator replaces the driver on the nodes after a change. C(false): a new version is loaded when the driver's
                        pod is deleted. Default: C(false)."
                    type: bool
                  max_parallel:
                    description:
                      - "Number of nodes to upgrade at the same time; C(0): all. Default: C(1)."
                    type: int
                  safe_load:
                    description:
                      - "Whether a node is drained before the driver is loaded for the first time. Requires C(auto). Default: C(false)."
                    type: bool
                  drain:
                    description:
                      - "Whether a node is drained before its driver is replaced. Default: C(true)."
                    type: bool
                  drain_force:
                    description:
                      - "Whether pods without a controller are deleted too. Default: C(false)."
                    type: bool
                  drain_empty_dir:
                    description:
                      - "Whether pods with C(emptyDir) volumes are deleted too. Default: C(false)."
                    type: bool
                  drain_timeout:
                    description:
                      - "Time for draining a node; C(0): no limit. Default: C(300)."
                    type: int
                  wait_selector:
                    description:
                      - Labels of pods, such as C(job=training), that must end before a node is upgraded.
                    type: str
                  wait_timeout:
                    description:
                      - "Time to wait for them; C(0): no limit. Default: C(0)."
                    type: int
      network_namespace:
        description:
          - "Namespace of the network attachment definitions. Default: C(default)."
        type: str
      shared_devices_max:
        description:
          - "Number of pods per node that can share one rail's RDMA device (C(rdmaHcaMax)). Default: C(63)."
        type: int
      node_labels:
        description:
          - Labels that are set on the fabric's nodes and removed at teardown, for clusters without Node Feature Discovery.
        type: dict
      node_selector:
        description:
          - Additional labels that a node must have to be served.
        type: dict
      networks:
        description:
          - Networks of pods, and what is set on their interfaces.
        type: dict
        suboptions:
          name:
            description:
              - "Name of each rail's network, with C({rail}) for the name of the rail, such as C(gpu-{rail}). Default: C({rail})."
            type: str
          pool:
            description:
              - "Name of each rail's address pool, in the same form. Default: C({rail})."
            type: str
          resource:
            description:
              - "Name of each rail's resource after the prefix of the profile, such as C(gpu_{rail}). Default: C({rail})."
            type: str
          source_routing:
            description:
              - "Whether packets leave a pod through the rail that has their source address (plugin C(sbr)). Default: C(false)."
            type: bool
          vrf:
            description:
              - Puts the interface of each rail in a VRF of this name in the pod, such as C(vrf-{rail}) (plugin C(vrf)). At most 15 characters.
                Not with C(source_routing).
            type: str
          mtu:
            description:
              - "C(plan): networks and the policies of VFs have the MTU of the rails. If the port of a node has a lower one, pods do not start
                there. C(inherit): they have none, so a pod gets the MTU of the port on its node, whatever it is. Profiles C(host_device),
                C(nested_vm) and C(ipoib) always inherit it. Default: C(plan)."
            type: str
            choices: ["plan", "inherit"]
          sysctls:
            description:
              - "Kernel settings of the interfaces in pods, such as C(net.ipv4.conf.IFNAME.arp_ignore: 1), where C(IFNAME) stands for the
                interface (plugin C(tuning))."
            type: dict
      sriov:
        description:
          - Virtual functions of profiles C(sriov) and C(sriov_ib).
        type: dict
        suboptions:
          vfs:
            description:
              - "Number of VFs of each rail on each node, and so of pods that can use it. Default: C(8)."
            type: int
          assigned_by:
            description:
              - "What gives VFs to pods. C(operator): the device plugin of the SR-IOV operator. C(dra): its DRA driver, by claims of the pods,
                with profile C(sriov) and release lines 26.4 and newer. C(device_plugin): the SR-IOV operator is not installed. Role sriov creates
                the VFs, the SR-IOV device plugin of the policy offers them, and a C(HostDeviceNetwork) moves one into the pod. Of this section,
                only C(vfs) is possible with it, and only with profile C(sriov). Default: C(operator)."
            type: str
            choices: ["operator", "device_plugin", "dra"]
          externally_managed:
            description:
              - "C(false): the SR-IOV operator creates the VFs. C(true): role sriov creates them, and the operator only gives them to pods. It
                creates C(sriov.vfs) of them unless C(sriov_vfs) is set, which must not be less. Default: C(false)."
            type: bool
          eswitch_mode:
            description:
              - "Mode of the NIC's embedded switch. With C(switchdev), another tool must connect the representors of the VFs. Default: C(legacy)."
            type: str
            choices: ["legacy", "switchdev"]
          device_type:
            description:
              - "Driver of the VFs. C(vfio-pci) is for programs with their own driver: such VFs have no RDMA, so measure with
                C(rdma_validate_where: [host]). It is rejected for ports of NVIDIA, which need their driver in any case. Default: C(netdevice)."
            type: str
            choices: ["netdevice", "vfio-pci"]
          rdma:
            description:
              - "Whether VFs with C(device_type: netdevice) have RDMA. C(false): for NICs without RDMA. Measure with C(rdma_validate_where:
                [host]) then: nothing can be measured in pods. Default: C(true)."
            type: bool
          rdma_mode:
            description:
              - Whether the RDMA devices of a node are visible in all network namespaces or each in one. With C(exclusive) the device of a VF is
                moved into its pod. A change reboots the nodes.
            type: str
            choices: ["shared", "exclusive"]
          max_unavailable:
            description:
              - "Number of nodes that the SR-IOV operator drains at the same time. Default: that of the operator, which is 1."
            type: int
          operator_config:
            description:
              - "Only with platform C(openshift): fields of C(spec) of the SriovOperatorConfig C(default), which must exist. Only these fields are
                changed, and they are removed at teardown. They are for the whole cluster: details."
            type: dict
          vlan:
            description:
              - "VLAN of the VFs in pods; C(0): untagged. Default: C(0)."
            type: int
          link_state:
            description:
              - "Link state of the VFs. C(auto) follows the link of the port. Default: not changed."
            type: str
            choices: ["auto", "enable", "disable"]
          trust:
            description:
              - "Whether pods may change the MAC address of a VF and use promiscuous mode. Default: not changed."
            type: bool
          spoof_check:
            description:
              - "Whether frames with another source address than that of the VF are dropped. Default: not changed."
            type: bool
          pkey:
            description:
              - "Only with C(sriov_ib): key of the partition of all rails in pods, such as C('0x8001')."
            type: str
          ib_kubernetes:
            description:
              - Partitions of InfiniBand through UFM.
            type: dict
            suboptions:
              ufm_secret:
                description:
                  - Secret in C(operator.namespace) with the keys UFM_USERNAME, UFM_PASSWORD and UFM_ADDRESS, and optionally UFM_HTTP_SCHEMA,
                    UFM_PORT and UFM_CERTIFICATE.
                type: str
              first_guid:
                description:
                  - First GUID for VFs, such as C("02:00:00:00:00:00:00:00"). Clusters of one fabric need different ranges.
                type: str
              last_guid:
                description:
                  - Last GUID for VFs.
                type: str
              reserved:
                description:
                  - GUIDs, or ranges such as C(02:00:00:00:00:00:00:00-02:00:00:00:00:00:FF:FF), of the VFs of other clusters of the fabric. A
                    range that overlaps them is rejected.
                type: list
                elements: str
              period:
                description:
                  - "Time between updates of UFM. Default: C(5)."
                type: int
      thresholds:
        description:
          - What results must reach.
        type: dict
        suboptions:
          tolerance:
            description:
              - "Share of the expected bandwidth that a result must reach. validation.md describes how the expectation is computed. Default:
                C(0.95)."
            type: float
          bidirectional:
            description:
              - "The same for tests in both directions at once, as a share of twice the bandwidth. Default: C(0.9)."
            type: float
          floor:
            description:
              - Replaces the computed expectation. For emulated or unusual links.
            type: float
          latency_us:
            description:
              - "Maximum latency. Without it, latency is only compared within the fleet: see outliers."
            type: float
          overrides:
            description:
              - Exceptions. Each has a scope (C(rails), C(hosts), C(kinds); an omitted key means all) and sets one or more values. If several
                match, the last one applies. An exception that matches nothing is rejected.
            type: list
            elements: dict
            suboptions:
              rails:
                description:
                  - Names of rails.
                type: list
                elements: str
              hosts:
                description:
                  - Hosts, or groups of the inventory. A pair is judged by its slower end.
                type: list
                elements: str
              kinds:
                description:
                  - Kinds of tests, from C(tests.kinds).
                type: list
                elements: str
              tolerance:
                description:
                  - Tolerance within this scope.
                type: float
              bidirectional:
                description:
                  - Share of twice the bandwidth within this scope.
                type: float
              floor:
                description:
                  - Floor within this scope.
                type: float
              latency_us:
                description:
                  - Maximum latency within this scope.
                type: float
          gpu_paths:
            description:
              - Share of the host's own rate that GPU memory reaches, by path from NIC to GPU.
            type: dict
            suboptions:
              PIX:
                description:
                  - "Share of the host's own rate that GPU memory reaches when NIC and GPU are behind one PCIe switch. Default: C(0.97)."
                type: float
              PXB:
                description:
                  - "The same behind several PCIe switches. Default: C(0.97)."
                type: float
              PHB:
                description:
                  - The same through a host bridge. The value depends on the processor, so there is no default; without it such tests are no_data.
                type: float
              NODE:
                description:
                  - The same across host bridges of one socket.
                type: float
              SYS:
                description:
                  - The same across sockets.
                type: float
          unsteady:
            description:
              - Low readings of what passes at other times.
            type: dict
            suboptions:
              severity:
                description:
                  - "Severity of more low readings than chance explains. Default: C(failure)."
                type: str
                choices: ["warning", "failure"]
              background:
                description:
                  - "Least share of readings that are low without a cause. If readings of a run are low more often everywhere alike, the share of
                    the run is used, up to 0.01; above, the run itself is unsteady. Default: C(0.001)."
                type: float
          outliers:
            description:
              - Values that are worse than those of the rest of the fleet.
            type: dict
            suboptions:
              severity:
                description:
                  - "Severity of an outlier. Default: C(warning)."
                type: str
                choices: ["warning", "failure"]
              deviations:
                description:
                  - "A value is an outlier when it is worse than its rail's median by this many deviations (1.4826 x MAD) ... Default: C(5.0)."
                type: float
              margin:
                description:
                  - "... and by this share of the median. Default: C(0.05)."
                type: float
              latency_margin:
                description:
                  - "The same share for latency, which varies more: an additional hop is not a fault. Default: C(0.25)."
                type: float
      tests:
        description:
          - What is measured.
        type: dict
        suboptions:
          mode:
            description:
              - "C(auto): C(all_pairs) up to 32 hosts, C(sampled) above. Default: C(auto)."
            type: str
          budget:
            description:
              - "How much is measured, and so which intermittent faults are found (budgets). C(quick): 6 slots, each test once. C(standard): 60
                slots. C(deep): 120 slots. C(auto): C(standard) up to 1024 hosts, C(quick) above. Sets C(rounds) and C(repeats) where these are
                not set. If C(rounds) is set, it only adds slots for suspects. Default: C(auto)."
            type: str
            choices: ["auto", "quick", "standard", "deep"]
          rounds:
            description:
              - "Modes C(sampled) and C(topology): number of other hosts that each host meets (in C(topology) inside its group, and number of
                other groups that each group meets). Default: as many as fit into the slots of the budget, at least 3. If it is set, in any mode,
                each test is measured once unless C(repeats) is set too."
            type: int
          seed:
            description:
              - "Seed of the sample. The same seed and hosts give the same schedule. Default: C(1)."
            type: int
          groups:
            description:
              - "Mode C(topology): name of a rack or leaf switch -> its hosts. A dict instead of a list adds a level; only the lists at the lowest
                level are used. Every host of the run must be in exactly one group. Alternatively the source of the groups, as described below."
            type: dict
          oversubscription:
            description:
              - "How many times the ports below the uplinks of a group exceed these uplinks: first between the groups of the lowest level, then
                between those of the level above, and so on; the last one also applies to all higher levels. A pair across groups must reach its
                share only (details). Applies in every mode; requires C(groups). Default: 1:1."
            type: list
            elements: float
          load_balancing:
            description:
              - "How switches spread packets over parallel paths. C(hash): all packets of a flow take one path; tests use different flow labels,
                and hosts that read low are tested on single paths (how). C(adaptive): adaptive routing or packet spraying, so that no flow label
                stands for a path; paths are then not tested one by one. Default: C(hash)."
            type: str
            choices: ["hash", "adaptive"]
          fan:
            description:
              - "Modes C(incast) and C(one_to_many): number of hosts that share one host's port. Default: C(8)."
            type: int
          directions:
            description:
              - "C(swap): each pair twice, with the roles swapped. C(together): both directions at once; the value is their sum. C(one): the first
                direction only. Default: C(swap)."
            type: str
            choices: ["swap", "together", "one"]
          rails_at_once:
            description:
              - "C(auto): all rails of a pair in one round, except for rails that share a PCIe link that cannot all of them: these are tested in
                opposite directions or in turns (how). C(true): always all of them, so that a shared link is divided. C(false): each rail in a
                separate round, which multiplies the time by the number of rails. Default: C(auto)."
            type: str
            choices: ["auto", "true", "false"]
          mesh:
            description:
              - "Before the measurement, try which ports reach each other, so that tests between others cost no time (how). Default: C(true)."
            type: bool
          cross_rail:
            description:
              - "Also test from each rail to every other rail. Rejected unless C(routing) is C(between_rails). If only hosts have the routes,
                measure with C(rdma_validate_where: [host]). Default: C(false)."
            type: bool
          only:
            description:
              - A part of the schedule.
            type: dict
            suboptions:
              hosts:
                description:
                  - Only tests that include one of these hosts. For a single run, set C(rdma_validate_only) instead.
                type: list
                elements: str
              rails:
                description:
                  - Only tests on these rails.
                type: list
                elements: str
              pairs:
                description:
                  - Only these pairs of hosts, such as C([[gpu-1, gpu-2]]), whatever the mode.
                type: list
                elements: list
          kinds:
            description:
              - "Kinds of tests: C(write_bw), C(read_bw), C(send_bw), C(write_lat), C(read_lat), C(send_lat). Default: C(['write_bw'])."
            type: list
            elements: str
          duration:
            description:
              - "Duration of each bandwidth test. Default: C(10)."
            type: int
          size:
            description:
              - "Message size. For links of 400 Gb/s with one queue pair, set 1 MiB or more. Default: C(65536)."
            type: int
          sizes:
            description:
              - Several sizes instead of C(size), each a separate test. Small messages cannot fill a link, so set a floor for such rails.
            type: list
            elements: int
          queue_pairs:
            description:
              - "Queue pairs per bandwidth test. Default: C(4)."
            type: int
          tx_depth:
            description:
              - "Depth of the send queue. Default: C(128)."
            type: int
          mtu:
            description:
              - "Requested RDMA MTU. Default: the MTU of the port."
            type: int
            choices: [256, 512, 1024, 2048, 4096]
          latency_size:
            description:
              - "Message size of latency tests. Default: 2, and 64 with GPU memory."
            type: int
          latency_iterations:
            description:
              - "Number of messages per latency test. Default: C(10000)."
            type: int
          memory:
            description:
              - "Memory that is sent. C(cuda) uses the GPU nearest to each rail's port, through DMA-BUF, the peer memory module, or DMA-BUF with
                the data direct function of the NIC; a rail without a GPU is no_data and never measured from host memory. For pods, see resources
                of testers. Default: C(host)."
            type: str
            choices: ["host", "cuda:dmabuf", "cuda:peermem", "cuda:data_direct"]
          compare_host_memory:
            description:
              - "With GPU memory: measure each port once more from host memory, as client and as server, for each kind. The report shows both side
                by side. With C(directions: swap), this adds 2 slots for each kind with an even number of hosts, up to 4 with an odd one; up to 5
                with other directions; more if rails take turns. Default: C(true)."
            type: bool
          hugepages:
            description:
              - "Places buffers in huge pages. The hosts must have them (C(host_kernel_hugepages)), and their Nodes must offer them as
                C(hugepages-2Mi): resources of testers. Default: C(false)."
            type: bool
          inline:
            description:
              - Messages up to this size are sent inline.
            type: int
          traffic_class:
            description:
              - "Traffic class of the packets: the DSCP times 4, plus 2 for packets that switches may mark (ECN). Default: that of the QoS
                settings."
            type: int
          service_level:
            description:
              - "Service level of the packets on InfiniBand rails. Default: 0. With C(rdma_cm), the subnet manager selects it."
            type: int
          rdma_cm:
            description:
              - "Connect through RDMA-CM instead of exchanged GIDs. Often impossible in pods. Default: C(false)."
            type: bool
          control:
            description:
              - "Network on which the two sides of a test connect to each other. Default: C(rail)."
            type: str
            choices: ["rail", "management"]
          port_base:
            description:
              - "First TCP port of the exchange between the two sides of a test. Eight times the number of rails are used from here (with
                C(incast) and C(one_to_many) times C(fan)); all of them must be below 30000. Default: C(18500)."
            type: int
          repeats:
            description:
              - "Number of measurements per test. A test fails if most of them fail; the report shows the spread. Default: as many as fit into the
                slots of the budget."
            type: int
          retries:
            description:
              - "Additional passes for results without data. Default: C(2)."
            type: int
          isolation:
            description:
              - "Additional short passes that locate the fault. C(0) also turns off the tests of suspects alone. Default: C(3)."
            type: int
          nccl:
            description:
              - Collectives of NCCL, run in pods after the measurement.
            type: dict
            suboptions:
              enabled:
                description:
                  - "Run the NCCL tests in pods, from GPU memory. Requires an image with nccl-tests and MPICH (tester-image.md). Default:
                    C(false)."
                type: bool
              collectives:
                description:
                  - "The collectives to run. Default: C(['all_reduce', 'alltoall'])."
                type: list
                elements: str
              scopes:
                description:
                  - "C(pairs): two hosts at a time, each host once. C(groups): all hosts of each group of C(tests.groups), or all hosts of the
                    run. Default: C(['pairs', 'groups'])."
                type: list
                elements: str
              paths:
                description:
                  - "C(network): communicators with one GPU of each host and the ring algorithm, so that all data crosses the network. C(all): one
                    communicator with all GPUs, as applications use them, which includes NVLink. Default: C(['network', 'all'])."
                type: list
                elements: str
              size:
                description:
                  - "Bytes of the message. GPUs need about three times as much memory. Default: C(4294967296)."
                type: int
              iterations:
                description:
                  - "Timed repetitions of a collective. Default: C(20)."
                type: int
              queue_pairs:
                description:
                  - C(NCCL_IB_QPS_PER_CONNECTION).
                type: int
              gdr_level:
                description:
                  - C(NCCL_NET_GDR_LEVEL).
                type: str
                choices: ["LOC", "PIX", "PXB", "PHB", "SYS"]
              service_level:
                description:
                  - "InfiniBand: C(NCCL_IB_SL)."
                type: int
              pkey_index:
                description:
                  - "InfiniBand: C(NCCL_IB_PKEY), an index of the port's table of partition keys."
                type: int
              network_share:
                description:
                  - "Share of the rails' rate that C(all_reduce) must reach on the path C(network). Default: C(0.9)."
                type: float
              minimum:
                description:
                  - Least bus bandwidths in GB/s.
                type: dict
                suboptions:
                  all_reduce_network:
                    description:
                      - Least bus bandwidth in GB/s of each GPU, path C(network). Replaces C(network_share).
                    type: float
                  alltoall_network:
                    description:
                      - The same for C(alltoall).
                    type: float
                  all_reduce:
                    description:
                      - "Least bus bandwidth in GB/s, path C(all). Default: by model"
                    type: float
                  alltoall:
                    description:
                      - The same for C(alltoall).
                    type: float
      absent_hosts:
        description:
          - "C(stop): a host that is unreachable or returns invalid facts fails the run by name. C(report): the other hosts are measured, and the
            report lists every pair of the absent host as no_data, in pods too unless C(rdma_validate_busy_hosts) is C(true), since it is unknown
            whether the host is in use. The same applies to ports that single hosts lack. Default: C(stop)."
        type: str
        choices: ["stop", "report"]
"""
