"""Parsers against damaged text, with a fixed budget: python -m tests.tools.fuzz [--seconds N] [--seed N] [--only NAME].

Whatever a host, a tool or a file says, a parser returns something or raises an error of the product, in time that does
not run away. A step of `make soak`; a crash that it finds becomes a unit test. Text is recorded output, damaged: bytes
changed, lines repeated, cut and mixed with another one's, numbers and quotes that nobody expects.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from tests.tools.environment import COLLECTIONS

if str(COLLECTIONS) not in sys.path:
    sys.path.insert(0, str(COLLECTIONS))

from ansible_collections.gpufabric.rdma.plugins.module_utils._common import units
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings import (
    contact,
    perftest,
    tester_log,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import topology_file
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import lldp, network, next_kernel
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.firmware import mlxconfig
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.kernel import boot_loader, cmdline
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.links import network_manager, routing
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.naming import systemd_files
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos import programs
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.qos import settings as qos_settings
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack import openpgp
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.sriov import vf

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
#: No parser may take longer for one text, of 20 KB at most before it is repeated.
SLOWEST = 2.0
TOKENS = (
    "Infinity",
    "-1",
    "9" * 5000,
    "1e999",
    "NaN",
    "\x00",
    "\udcff",
    '"',
    "'",
    "{",
    "[",
    "=",
    ":",
    "\\",
    "%s",
    "\x1b[31m",
    "null",
    "true",
    " ",
    "\n",
    "\t",
    "::",
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n",
    "/" * 300,
)
IP_ADDR = (
    '[{"ifindex":2,"ifname":"rail0","flags":["UP","LOWER_UP"],"mtu":9000,"operstate":"UP","link_type":"ether","address":'
    '"52:54:00:00:00:01","addr_info":[{"family":"inet","local":"172.30.0.1","prefixlen":24,"scope":"global"}],'
    '"linkinfo":{"info_kind":"vlan"},"link":"eth0","master":"br0","parentbus":"pci","parentdev":"0000:01:00.0"}]'
)
IP_ROUTE = (
    '[{"dst":"default","gateway":"10.0.2.2","dev":"eth0","table":"10101"},'
    '{"dst":"10.0.2.0/24","dev":"eth0","prefsrc":"10.0.2.15","table":"10101","src":"10.0.2.15","priority":10101}]'
)
KEYFILE = (
    "[connection]\nid=a\ntype=ethernet\ninterface-name=rail0\nautoconnect-priority=5\n\n[ipv4]\nmethod=auto\n"
    "key\n more\n"
)
LINK = "[Match]\nPath=pci-0000:01:00.0\nDriver=mlx5_core\n[Link]\nName=rail0\nMTUBytes=9000\n"
LINE = 'BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet dyndbg="file a.c +p" hugepagesz=1G hugepages=4\n'
VFS = "vf 0     link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff, spoof checking on, link-state auto, trust off\n"
CONF = "SwitchName=leaf1 Nodes=gpu-[001-032],x1\nSwitchName=spine Switches=leaf[1-4]\n"
DESCRIBE = (
    '=== gpufabric describe v1\nhost machine_id=abc kernel=6.12 perftest="6.25"\n'
    "rail rail0 netdev=rail0 device=mlx5_0 port=1 gid=3 address=172.30.0.1 mtu=9000 cpus=0-7,16\n"
    'rail rail1 error="rail1 has no link"\n=== gpufabric described 2\n'
)
LOG = (
    "=== gpufabric batch 1 begin 1\n=== gpufabric test 0 rail0 client p rc=1 start=1005 seconds=9 late=0.07 ran=7.31 "
    "exchange=cm memory=cuda:dmabuf\nMtu : 4096[B]\ncounters out_of_sequence=+3\n"
    'link rate="25 Gb/sec (1X EDR)" mtu=9000\n'
    "=== gpufabric end\n=== gpufabric batch 1 done 1 0\n"
)


@dataclass(frozen=True)
class Parser:
    """A function of one text, and texts that it reads well."""

    name: str
    parse: Callable[[str], Any]
    texts: Sequence[str]


def fixture(*names: str) -> list[str]:
    return [(FIXTURES / name).read_text() for name in names]


def parsers() -> list[Parser]:
    firmware = sorted(f"firmware/{path.name}" for path in (FIXTURES / "firmware").glob("*.txt"))
    qos = {
        tool: fixture(*names)
        for tool, names in {
            programs.MLNX_QOS: ("qos/mlnx_qos-4.2.txt", "qos/mlnx_qos-roce.txt"),
            programs.ETHTOOL: ("qos/ethtool-g.txt",),
        }.items()
    }
    samples = fixture("perftest/25.01.json", "perftest/4.5.json")
    cases = json.loads((FIXTURES / "mesh/netns.json").read_text())["cases"]
    contacts = [text for case in cases.values() for text in case.values()]
    return [
        Parser("cmdline.parse", cmdline.parse, [LINE]),
        Parser("bootloader.menu_lines", boot_loader.menu_lines, fixture("boot/debian-12-grub.cfg")),
        Parser(
            "nextkernel.next_kernel",
            lambda text: next_kernel.next_kernel(
                {"grub_cfg": text, "grubenv": text, "entries": {"a.conf": text}, "kernels": [text]}
            ),
            fixture("boot/debian-12-grub.cfg"),
        ),
        Parser("units.version_numbers", units.version_numbers, ["6.8.0-51-generic", "24.10"]),
        Parser("openpgp.fingerprints", openpgp.fingerprints, fixture("openpgp/both.asc", "openpgp/ed25519.asc")),
        Parser("network.parse_interfaces", network.parse_interfaces, [IP_ADDR]),
        Parser("network.parse_routes", lambda text: network.parse_routes(text, text), [IP_ROUTE]),
        Parser("routing.parse", lambda text: routing.parse(text, text), [IP_ROUTE]),
        Parser("networkmanager._keyfile", network_manager._keyfile, [KEYFILE]),
        Parser("networkmanager._ifcfg", network_manager._ifcfg, ['DEVICE="rail0"\nTYPE=Ethernet\nONBOOT=yes\n']),
        Parser("linkfile.parse", systemd_files.parse, [LINK]),
        Parser("lldp._load", lldp._load, fixture("lldp/lldpd-1.0.16.json", "lldp/networkd.json")),
        Parser("nvconfig.parse_query", mlxconfig.parse_query, fixture(*firmware)),
        Parser("vf.parse_vfs", vf.parse_vfs, [VFS, f"5: rail0: <UP> mtu 9000\n    {VFS}"]),
        Parser("dcb.ring_limits", programs.ring_limits, qos[programs.ETHTOOL]),
        *(
            Parser(
                f"dcb.parse {tool.name} {name}",
                lambda text, t=tool, s=name: programs.parse(t, s, text),  # type: ignore[misc]
                qos[tool.name],
            )
            for name in ("trust", "pfc", "rings")
            for tool in qos_settings.find(name).programs
            if tool.name in qos
        ),
        Parser("topology.parse_conf", topology_file.parse_conf, [CONF]),
        Parser("evidence.parse_describe", tester_log.parse_describe, [DESCRIBE]),
        Parser("evidence.parse_batch", lambda text: tester_log.parse_batch(text, 1), [LOG]),
        Parser("perftest.parse_rows", perftest.parse_rows, samples),
        Parser("contact.parse", lambda text: contact.parse(perftest.Run(0, text)), contacts),
    ]


def damaged(text: str, other: str, chance: random.Random) -> str:
    """Return the text with one to eight damages; the same for the same chance."""
    for _number in range(chance.randint(1, 8)):
        place = chance.randrange(len(text) + 1)
        end = min(len(text), place + chance.choice((1, 3, 20, 200)))
        text = chance.choice(
            (
                lambda t=text, p=place, e=end: t[:p] + t[e:],
                lambda t=text, p=place: t[:p],
                lambda t=text, p=place: t[:p] + chance.choice(TOKENS) + t[p:],
                lambda t=text, p=place, e=end: t[:p] + chance.choice(TOKENS) + t[e:],
                lambda t=text, p=place, e=end: t[:e] + t[p:e] * chance.choice((1, 10, 200)) + t[e:],
                lambda t=text, p=place: t[:p] + other[chance.randrange(len(other) + 1) :],
                lambda t=text, p=place: t[:p] + chr(chance.randrange(1, 0x2FF)) + t[p + 1 :],
            )
        )()
        text = text[:200_000]
    return text


class TooSlow(Exception):
    """A parser took longer than SLOWEST."""


def run(parser: Parser, seconds: float, seed: int) -> tuple[int, str]:
    """Return how many texts were tried, and what went wrong, "" when nothing did."""
    chance = random.Random(f"{seed} {parser.name}")
    deadline = time.monotonic() + seconds
    count = 0
    while time.monotonic() < deadline:
        text = damaged(chance.choice(parser.texts), chance.choice(parser.texts), chance)
        count += 1
        signal.setitimer(signal.ITIMER_REAL, SLOWEST)
        try:
            parser.parse(text)
        except FabricError:
            pass
        except TooSlow:
            return count, f"{parser.name}: more than {SLOWEST:.0f} s for {len(text)} characters: {text[:300]!r}"
        except Exception:
            return count, f"{parser.name}: {traceback.format_exc(limit=-2)}of {text[:300]!r}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return count, ""


def too_slow(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlow


def fuzz(seconds: float, seed: int, only: str = "") -> list[str]:
    """Share the seconds among the parsers; return the problems."""
    signal.signal(signal.SIGALRM, too_slow)
    chosen = [parser for parser in parsers() if only in parser.name]
    problems = []
    for parser in chosen:
        count, problem = run(parser, seconds / len(chosen), seed)
        print(f"{parser.name}: {count} texts{', FAILED' if problem else ''}", flush=True)
        problems += [problem] if problem else []
    return problems


def main() -> int:
    options = argparse.ArgumentParser(prog="tests.tools.fuzz", description=__doc__)
    options.add_argument("--seconds", type=float, default=120)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="")
    given = options.parse_args()
    problems = fuzz(given.seconds, given.seed, given.only)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
