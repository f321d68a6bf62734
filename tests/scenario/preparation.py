"""A preparation with everything that the lab's hosts can have, and power cuts in the middle of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from tests.scenario import TRACEBACK, Run, extra, host, lab, playbook

WISHES: dict[str, Any] = {
    "host_kernel_arguments": ["transparent_hugepage=madvise"],
    "host_kernel_arguments_absent": ["quiet"],
    "host_kernel_hugepages": [{"size": "2M", "count": 16}],
    "host_kernel_sysctl": {"net.core.rmem_max": "16777216"},
    "rail_names_apply": "boot",
    "sriov_vfs": 4,
    "rail_links_qos": {"roce": "v2", "dscp": 26, "rings": {"rx": 512}},
    "host_reboot_batch": 2,
}
# What the product writes anew while it works: what was there before it, and why a host waits for a reboot.
RECORDS = "/var/lib/gpufabric/"


def prepare(*args: str, check: bool = False, **wishes: Any) -> Run:
    """Run prepare with WISHES, and others in their place."""
    run = playbook("prepare", *extra(**{**WISHES, **wishes}), *args, *(["--check", "--diff"] if check else []))
    assert not TRACEBACK.search(run.output), run.output[-6000:]
    return run


def cut_in(name: str, seconds: float, **wishes: Any) -> None:
    """Cut a host's power `seconds` after a preparation of it alone began."""
    # The point of the cut is what is chosen here; nothing waits for a condition by it.
    cut = threading.Timer(seconds, lab, ("fault", "cut", name))
    cut.start()
    playbook("prepare", *extra(**{**WISHES, **wishes}), "--limit", name)
    cut.join()


def unfinished(found: Mapping[str, str], whole: Iterable[Mapping[str, str]]) -> list[str]:
    """Files that are in none of the `whole` states; records and drafts, whose suffix nothing reads, aside."""
    known = {item for state in whole for item in state.items()}
    aside = [path for path in found if path.startswith(RECORDS) or path.endswith(".gpufabric-new")]
    return sorted(path for path, digest in found.items() if (path, digest) not in known and path not in aside)


def damaged_records(name: str) -> str:
    """What cannot be read of a host's records, in the words of a JSON parser; "" when all can."""
    parse = f"find {RECORDS} -name '*.json' -exec python3 -m json.tool {{}} /dev/null ';'"
    return str(host(name).run(f"test ! -d {RECORDS} || {parse}").stderr)
