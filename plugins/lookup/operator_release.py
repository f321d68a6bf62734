# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: operator_release
short_description: Return the release of the network operator
version_added: "0.1.0"
description:
  - Returns each given release, and for an empty one the default release of this collection.
    The default release is defined in one place, so that variables of roles and inventories can leave it empty.
author:
  - Contributors to gpufabric.rdma (@gpufabric)
options:
  _terms:
    description:
      - Releases such as C(26.7.1). An empty string stands for the default release.
      - If omitted, one empty string.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Show the default release
  ansible.builtin.debug:
    msg: "{{ lookup('gpufabric.rdma.operator_release') }}"

- name: Show the requested release, or the default
  ansible.builtin.debug:
    msg: "{{ lookup('gpufabric.rdma.operator_release', network_operator_release) }}"
"""

RETURN = r"""
_raw:
  description: The releases.
  type: list
  elements: str
  sample: ["26.7.1"]
"""

from typing import Any

from ansible.plugins.lookup import LookupBase

from ..module_utils._fabric.intent.releases import DEFAULT


class LookupModule(LookupBase):
    """Roles cannot read the registry of releases by themselves."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        return [str(term) if term else DEFAULT for term in terms or [""]]
