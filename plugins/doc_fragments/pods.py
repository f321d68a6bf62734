# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation shared by modules that measure in pods."""

from __future__ import annotations


class ModuleDocFragment:
    """Where and how pods that measure run."""

    DOCUMENTATION = r"""
options:
  namespace:
    description: Namespace of the pods. It is created with the required Pod Security labels, and removed if this collection created it.
    type: str
    default: gpufabric-validate
  image_pull_policy:
    description: When to pull the image.
    type: str
    choices: [Always, IfNotPresent, Never]
    default: IfNotPresent
  image_pull_secret:
    description: Name of an existing image pull secret in O(namespace).
    type: str
  tolerations:
    description: Tolerations of the pods.
    type: list
    elements: dict
    default: []
  runtime_class:
    description: RuntimeClass of the pods.
    type: str
"""
