# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The argument specification of ``rdma_fabric``.

Written by python -m tests.tools.fabric_options from the tables of docs/inventory.md.
"""

from __future__ import annotations

from typing import Any

FABRIC: dict[str, Any] = {
    "profile": {"type": "str"},
    "rails": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str"},
            "pci": {"type": "list", "elements": "str"},
            "subnet": {"type": "str"},
            "vlan": {"type": "int"},
            "gateway": {"type": "str"},
        },
    },
    "select": {
        "type": "dict",
        "options": {
            "vendors": {"type": "list", "elements": "str"},
            "drivers": {"type": "list", "elements": "str"},
            "min_speed": {"type": "float"},
        },
    },
    "rail_count": {"type": "int"},
    "rename": {"type": "bool"},
    "supernet": {"type": "str"},
    "rail_prefix": {"type": "int"},
    "capacity": {
        "type": "dict",
        "options": {
            "hosts": {"type": "int"},
            "pods_per_host": {"type": "int"},
        },
    },
    "gateway": {"type": "str", "choices": ["none", "last"]},
    "host_prefix": {"type": "int"},
    "reserved": {"type": "list", "elements": "str"},
    "pools": {
        "type": "dict",
        "options": {
            "ipam": {"type": "str", "choices": ["nv-ipam", "whereabouts", "dhcp", "static", "none"]},
            "routes": {"type": "list", "elements": "str"},
            "per_node_exclusions": {"type": "list", "elements": "str"},
        },
    },
    "addresses": {"type": "str", "choices": ["plan", "keep"]},
    "mtu": {"type": "int"},
    "vlan": {"type": "int"},
    "pkey": {"type": "str", "no_log": False},
    "link_speed": {"type": "float"},
    "routing": {"type": "str", "choices": ["none", "between_rails"]},
    "operator": {
        "type": "dict",
        "options": {
            "release": {"type": "str"},
            "platform": {"type": "str", "choices": ["kubernetes", "openshift"]},
            "machine_pool": {"type": "str"},
            "namespace": {"type": "str"},
            "image_repository": {"type": "str"},
            "component_version": {"type": "str"},
            "nfd": {"type": "bool"},
            "existing": {"type": "str", "choices": ["refuse", "use", "adopt"]},
            "multus": {"type": "bool"},
            "cni_plugins": {"type": "bool"},
            "image_pull_secrets": {"type": "list", "elements": "str", "no_log": False},
            "tolerations": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "key": {"type": "str", "no_log": False},
                    "operator": {"type": "str", "choices": ["Exists", "Equal"]},
                    "value": {"type": "str"},
                    "effect": {"type": "str", "choices": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                    "tolerationSeconds": {"type": "int"},
                },
            },
            "policy_overrides": {"type": "dict"},
            "components": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "name": {"type": "str"},
                    "repository": {"type": "str"},
                    "version": {"type": "str"},
                    "resources": {
                        "type": "list",
                        "elements": "dict",
                        "options": {
                            "container": {"type": "str"},
                            "requests": {"type": "dict"},
                            "limits": {"type": "dict"},
                        },
                    },
                },
            },
            "deployment_node_selector": {"type": "dict"},
            "deployment_tolerations": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "key": {"type": "str", "no_log": False},
                    "operator": {"type": "str", "choices": ["Exists", "Equal"]},
                    "value": {"type": "str"},
                    "effect": {"type": "str", "choices": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                    "tolerationSeconds": {"type": "int"},
                },
            },
            "nic_feature_discovery": {"type": "bool"},
            "telemetry": {
                "type": "dict",
                "options": {
                    "enabled": {"type": "bool"},
                    "config_map": {"type": "str"},
                },
            },
            "nic_configuration": {
                "type": "dict",
                "options": {
                    "enabled": {"type": "bool"},
                    "maintenance_operator": {"type": "bool"},
                    "log_level": {"type": "str", "choices": ["info", "debug"]},
                    "env": {"type": "dict"},
                    "templates": {
                        "type": "list",
                        "elements": "dict",
                        "options": {
                            "name": {"type": "str"},
                            "nic_type": {"type": "str"},
                            "pci_addresses": {"type": "list", "elements": "str"},
                            "serial_numbers": {"type": "list", "elements": "str"},
                            "settings": {"type": "dict"},
                            "reset": {"type": "bool"},
                        },
                    },
                    "firmware": {
                        "type": "list",
                        "elements": "dict",
                        "options": {
                            "name": {"type": "str"},
                            "nic_type": {"type": "str"},
                            "pci_addresses": {"type": "list", "elements": "str"},
                            "serial_numbers": {"type": "list", "elements": "str"},
                            "urls": {"type": "list", "elements": "str"},
                            "bundle_url": {"type": "str"},
                            "update": {"type": "bool"},
                        },
                    },
                    "storage": {
                        "type": "dict",
                        "options": {
                            "claim": {"type": "str"},
                            "create": {"type": "bool"},
                            "storage_class": {"type": "str"},
                            "size": {"type": "str"},
                        },
                    },
                },
            },
            "driver": {
                "type": "dict",
                "options": {
                    "enabled": {"type": "bool"},
                    "version": {"type": "str"},
                    "precompiled": {"type": "bool"},
                    "env": {"type": "dict"},
                    "cert_config": {"type": "str"},
                    "repo_config": {"type": "str"},
                    "startup_minutes": {"type": "int"},
                    "upgrade": {
                        "type": "dict",
                        "options": {
                            "auto": {"type": "bool"},
                            "max_parallel": {"type": "int"},
                            "safe_load": {"type": "bool"},
                            "drain": {"type": "bool"},
                            "drain_force": {"type": "bool"},
                            "drain_empty_dir": {"type": "bool"},
                            "drain_timeout": {"type": "int"},
                            "wait_selector": {"type": "str"},
                            "wait_timeout": {"type": "int"},
                        },
                    },
                },
            },
        },
    },
    "network_namespace": {"type": "str"},
    "shared_devices_max": {"type": "int"},
    "node_labels": {"type": "dict"},
    "node_selector": {"type": "dict"},
    "networks": {
        "type": "dict",
        "options": {
            "name": {"type": "str"},
            "pool": {"type": "str"},
            "resource": {"type": "str"},
            "source_routing": {"type": "bool"},
            "vrf": {"type": "str"},
            "mtu": {"type": "str", "choices": ["plan", "inherit"]},
            "sysctls": {"type": "dict"},
        },
    },
    "sriov": {
        "type": "dict",
        "options": {
            "vfs": {"type": "int"},
            "assigned_by": {"type": "str", "choices": ["operator", "device_plugin"]},
            "externally_managed": {"type": "bool"},
            "eswitch_mode": {"type": "str", "choices": ["legacy", "switchdev"]},
            "device_type": {"type": "str", "choices": ["netdevice", "vfio-pci"]},
            "rdma": {"type": "bool"},
            "rdma_mode": {"type": "str", "choices": ["shared", "exclusive"]},
            "max_unavailable": {"type": "int"},
            "vlan": {"type": "int"},
            "link_state": {"type": "str", "choices": ["auto", "enable", "disable"]},
            "trust": {"type": "bool"},
            "spoof_check": {"type": "bool"},
            "pkey": {"type": "str", "no_log": False},
            "ib_kubernetes": {
                "type": "dict",
                "options": {
                    "ufm_secret": {"type": "str", "no_log": False},
                    "first_guid": {"type": "str"},
                    "last_guid": {"type": "str"},
                    "period": {"type": "int"},
                },
            },
        },
    },
    "thresholds": {
        "type": "dict",
        "options": {
            "tolerance": {"type": "float"},
            "bidirectional": {"type": "float"},
            "floor": {"type": "float"},
            "latency_us": {"type": "float"},
            "overrides": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "rails": {"type": "list", "elements": "str"},
                    "hosts": {"type": "list", "elements": "str"},
                    "kinds": {"type": "list", "elements": "str"},
                    "tolerance": {"type": "float"},
                    "bidirectional": {"type": "float"},
                    "floor": {"type": "float"},
                    "latency_us": {"type": "float"},
                },
            },
            "gpu_paths": {
                "type": "dict",
                "options": {
                    "PIX": {"type": "float"},
                    "PXB": {"type": "float"},
                    "PHB": {"type": "float"},
                    "NODE": {"type": "float"},
                    "SYS": {"type": "float"},
                },
            },
            "unsteady": {
                "type": "dict",
                "options": {
                    "severity": {"type": "str", "choices": ["warning", "failure"]},
                    "background": {"type": "float"},
                },
            },
            "outliers": {
                "type": "dict",
                "options": {
                    "severity": {"type": "str", "choices": ["warning", "failure"]},
                    "deviations": {"type": "float"},
                    "margin": {"type": "float"},
                    "latency_margin": {"type": "float"},
                },
            },
        },
    },
    "tests": {
        "type": "dict",
        "options": {
            "mode": {"type": "str"},
            "rounds": {"type": "int"},
            "seed": {"type": "int"},
            "groups": {"type": "dict"},
            "fan": {"type": "int"},
            "directions": {"type": "str", "choices": ["swap", "together", "one"]},
            "rails_at_once": {"type": "bool"},
            "cross_rail": {"type": "bool"},
            "only": {
                "type": "dict",
                "options": {
                    "hosts": {"type": "list", "elements": "str"},
                    "rails": {"type": "list", "elements": "str"},
                    "pairs": {"type": "list", "elements": "list"},
                },
            },
            "kinds": {"type": "list", "elements": "str"},
            "duration": {"type": "int"},
            "size": {"type": "int"},
            "sizes": {"type": "list", "elements": "int"},
            "queue_pairs": {"type": "int"},
            "tx_depth": {"type": "int"},
            "mtu": {"type": "int", "choices": [256, 512, 1024, 2048, 4096]},
            "latency_size": {"type": "int"},
            "latency_iterations": {"type": "int"},
            "memory": {"type": "str", "choices": ["host", "cuda:dmabuf", "cuda:peermem"]},
            "hugepages": {"type": "bool"},
            "inline": {"type": "int"},
            "traffic_class": {"type": "int"},
            "rdma_cm": {"type": "bool"},
            "control": {"type": "str", "choices": ["rail", "management"]},
            "port_base": {"type": "int"},
            "repeats": {"type": "int"},
            "retries": {"type": "int"},
            "isolation": {"type": "int"},
        },
    },
    "absent_hosts": {"type": "str", "choices": ["stop", "report"]},
}
