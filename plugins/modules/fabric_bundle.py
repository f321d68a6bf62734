#!/usr/bin/python
# Copyright: Contributors to the gpufabric.rdma collection
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_bundle
short_description: Write a support bundle
version_added: "0.1.0"
description:
  - Writes one archive with what M(gpufabric.rdma.host_bundle) read on the hosts, with the objects, events and logs of the operators and the
    testers in the cluster, and with the latest report.
  - C(index.json) in the archive lists every file, and everything that is missing with the reason. A part that cannot be read is not an
    error. The module fails if there is nothing to write.
  - Passwords, tokens, private keys and credentials of kubeconfigs are removed. Secrets of the cluster are never read.
  - Changes nothing on the hosts. On OpenShift, O(must_gather) lets C(oc) create a temporary namespace with a pod.
extends_documentation_fragment:
  - gpufabric.rdma.cluster
options:
  path:
    description: Folder for the archive. It is created if it does not exist.
    type: path
    required: true
  hosts:
    description: Host -> result of M(gpufabric.rdma.host_bundle), also of a host that failed or was unreachable.
    type: dict
    default: {}
  namespaces:
    description: Namespaces whose workloads, events and logs are read, beside those of the operators and testers that are found.
    type: list
    elements: str
    default: []
  report_dir:
    description: Folder of the report.
    type: path
  redact:
    description:
      - Values that are replaced by pseudonyms. A value has the same pseudonym in the whole bundle.
      - Secrets are always removed.
    type: list
    elements: str
    choices: [addresses, serials, hosts]
    default: [addresses, serials]
  must_gather:
    description: On OpenShift, run C(oc adm must-gather) and add its text files, if C(oc) is installed and a kubeconfig is used.
    type: bool
    default: true
attributes:
  check_mode:
    details: Reads everything and writes no archive. C(must_gather) is not run.
  diff_mode:
    description: The archive is new each time.
    support: none
  idempotent:
    description: Each run writes a new archive.
    support: none
seealso:
  - module: gpufabric.rdma.host_bundle
  - module: gpufabric.rdma.cluster_info
author:
  - Contributors to gpufabric.rdma (@gpufabric)
"""

EXAMPLES = r"""
- name: Write a bundle of a cluster
  gpufabric.rdma.fabric_bundle:
    kubeconfig: ~/.kube/config
    path: /srv/support
    namespaces: [nvidia-network-operator]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
path:
  description: Path of the archive; empty in check mode.
  returned: success
  type: str
  sample: /srv/support/support-bundle-20260102T030405Z.tar.gz
files:
  description: Number of files in the archive.
  returned: success
  type: int
  sample: 214
missing:
  description: Missing parts, with C(what) and C(why).
  returned: always
  type: list
  elements: dict
  sample: [{what: cluster, why: the API server does not answer}]
summary:
  description: The same for people, one line per part.
  returned: success
  type: list
  elements: str
"""

import tempfile
import time
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.errors import FabricError, InputError
from ..module_utils._controller import bundle_files
from ..module_utils._fabric.report import bundle_hosts, redact, runs
from ..module_utils._fabric.report.bundle import Bundle
from ..module_utils._k8s.bundle import must_gather
from ..module_utils._k8s.bundle.collect import Reader
from ..module_utils._k8s.client.connection import AUTH_SPEC, IMPORT_ERROR, connect

SPEC: dict[str, Any] = {
    "path": {"type": "path", "required": True},
    "hosts": {"type": "dict", "default": {}},
    "namespaces": {"type": "list", "elements": "str", "default": []},
    "report_dir": {"type": "path"},
    "redact": {
        "type": "list",
        "elements": "str",
        "choices": list(redact.KINDS),
        "default": list(redact.DEFAULT),
    },
    "must_gather": {"type": "bool", "default": True},
}


def read_cluster(module: AnsibleModule, bundle: Bundle) -> list[str]:
    """Read the cluster, as far as it can be reached; return the names of its Nodes."""
    if IMPORT_ERROR:
        bundle.miss("cluster", "the Python package kubernetes is not installed on the controller")
        return []
    try:
        reader = Reader(connect(module), bundle)
    except FabricError as error:
        bundle.miss("cluster", str(error))
        return []
    reader.read(module.params["namespaces"])
    if reader.openshift:
        gather(module, bundle)
    return reader.nodes


def gather(module: AnsibleModule, bundle: Bundle) -> None:
    """Add what OpenShift's own tool collects; it writes to a private folder that is removed."""
    why = "check mode" if module.check_mode else "must_gather is false" if not module.params["must_gather"] else ""
    with tempfile.TemporaryDirectory(prefix="gpufabric-") as folder:
        why = why or must_gather.run(module.run_command, module.params, folder)
        bundle_files.add_tree(bundle, "must-gather", folder)
    if why:
        bundle.miss("must-gather", why)


def collect(module: AnsibleModule, now: float) -> dict[str, Any]:
    """Read all parts, write the archive and return the module's result."""
    params, bundle = module.params, Bundle()
    if not module.check_mode:
        bundle_files.check_folder(params["path"])
    bundle_hosts.add(bundle, params["hosts"])
    if params["report_dir"]:
        bundle_files.add_report(bundle, params["report_dir"])
    nodes = read_cluster(module, bundle)
    if not len(bundle):
        raise InputError("nothing could be collected: " + "; ".join(f"{m['what']}: {m['why']}" for m in bundle.missing))
    name = time.strftime("support-bundle-%Y%m%dT%H%M%SZ", time.gmtime(now))
    head = {"version": runs.VERSION, "collected": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))}
    files = bundle.files(head, params["redact"], {*params["hosts"], *nodes})
    path = "" if module.check_mode else bundle_files.write(params["path"], name, files, time=now)
    return {"path": path, "files": len(files), "missing": bundle.missing, "summary": bundle.summary()}


def invocation(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a result shows of the options: not what the hosts returned."""
    shown = ("path", "namespaces", "report_dir", "redact", "must_gather")
    return {"module_args": {key: params[key] for key in shown}}


def main() -> None:
    """Collect and write."""
    module = AnsibleModule(argument_spec={**AUTH_SPEC, **SPEC}, supports_check_mode=True)
    try:
        result = collect(module, time.time())
    except FabricError as error:
        module.fail_json(msg=f"fabric_bundle: {error}", invocation=invocation(module.params))
    module.exit_json(changed=True, invocation=invocation(module.params), **result)


if __name__ == "__main__":
    main()
