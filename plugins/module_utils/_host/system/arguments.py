# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument specifications that the modules on hosts share; documented in doc_fragments/host.py."""

from __future__ import annotations

from typing import Any

ROOT: dict[str, Any] = {
    "root": {"type": "path", "default": "/"},
}
RAILS: dict[str, Any] = {
    "rails": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "rail": {"type": "str", "required": True},
            "pci": {"type": "str", "required": True},
            "driver": {"type": "str"},
            "mac": {"type": "str"},
            "current": {"type": "str"},
            "netdev": {"type": "str", "required": True},
            "address": {"type": "str"},
            "mtu": {"type": "int", "required": True},
            "doubt": {"type": "str"},
            "gateway": {"type": "str"},
            "routes": {"type": "list", "elements": "str"},
            "beyond": {"type": "str"},
            "vlan": {"type": "int"},
            "members": {"type": "list", "elements": "str"},
            "ipv6": {
                "type": "dict",
                "options": {
                    "address": {"type": "str"},
                    "gateway": {"type": "str"},
                    "routes": {"type": "list", "elements": "str"},
                    "beyond": {"type": "str"},
                },
            },
        },
    }
}
STATE: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
CONSENT: dict[str, Any] = {
    "disrupt_users": {"type": "bool", "default": False},
}
HUGEPAGES: dict[str, Any] = {
    "hugepages": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "size": {"type": "str", "required": True},
            "count": {"type": "int", "required": True},
            "numa_node": {"type": "int"},
            "at": {"type": "str", "choices": ["now", "boot"], "default": "now"},
        },
    }
}
