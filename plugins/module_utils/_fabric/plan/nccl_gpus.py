# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU of each rail for collectives, with the PCIe links between both, which tests from host memory do not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .capabilities import links_above
from .gpu_affinity import BELOW_SWITCHES, gpus_of_plan, path_class
from .hosts import Host
from .rails import RailMap


def gpus_and_links(tests: Mapping[str, Any], rails: RailMap, hosts: Sequence[Host]) -> dict[str, Any]:
    """Return ``gpus`` of a plan, and with tests.nccl ``nccl_gpus``: rail -> host -> {bdf, path, near, uplinks}.

    ``near``: how many GPUs of the host have a rail below the same PCIe switches; ``uplinks`` as in uplinks.py.
    """
    found = gpus_of_plan(tests, rails, hosts)
    own = found.get("nccl_gpus", {})
    for host in hosts if own else ():
        if not host.facts:
            continue
        ports = [port for port in rails.ports[host.name] if port]
        near = sum(any(path_class(port, gpu) in BELOW_SWITCHES for port in ports) for gpu in host.facts["gpus"])
        links, _redirected = links_above(host, rails, own)
        for rail, above in zip(rails.names, links):
            if host.name in own[rail]:
                own[rail][host.name].update(near=near, uplinks=above)
    return found
