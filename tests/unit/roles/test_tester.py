"""The tester script with stand-ins for perftest, on a made-up /sys and /proc with a clock that sleep moves."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.kinds import KINDS
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings import ib_port
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.contact import (
    CONNECTED,
    SILENT,
    UNCHECKED,
    Ping,
    Side,
    parse,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import (
    Run,
    memory_missing,
    parse_rows,
    reading,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.port_state import (
    parse as parse_ports,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.port_state import shown
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import (
    parse_batch,
    parse_describe,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.tester_input import perftest_args
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.timing import Timing, margin_of

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "roles" / "rdma_validate" / "files" / "tester.sh"
FIXTURES = sorted((ROOT / "tests" / "fixtures" / "perftest").glob("*.json"))
VERSIONS = {path.stem: json.loads(path.read_text())["cases"] for path in FIXTURES}
SAMPLES = VERSIONS["25.01"]
ARGS = "-F --report_gbits -c RC -q 1 -s 65536 -t 16 -D 6 -f 1"
# The address of the peer, which tells the frames of a rail apart.
PEER = "192.168.0.9"
SHELLS = [
    pytest.param(
        name.split(),
        id=name.split()[0],
        marks=pytest.mark.skipif(shutil.which(name.split()[0]) is None, reason=f"no {name}"),
    )
    for name in ("dash", "bash --posix", "busybox sh")
]

FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.0.2.0/24 2 0 2
        |-- 10.0.2.15
           /32 host LOCAL
     |-- 192.168.0.3
        /32 host LOCAL
     |-- 192.168.1.3
        /32 host LOCAL
"""
ROUTE = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
mgmt0\t00000000\t0202000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
mgmt0\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
rail0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
rail1\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""
# Host byte order of 127.0.0.1:18501 (0x4845) listening, and a connection that uses 18502 as its own port.
TCP = """  sl  local_address rem_address   st
   0: 0100007F:4845 00000000:0000 0A
   1: 0100007F:4846 0100007F:9999 01
"""
STUB = """#!/bin/sh
[ "$1" = --version ] && { echo "Version: 6.24"; exit 1; }
echo "$0 $*" >>"$STUB_CALLS"
for last; do :; done
case $last in [0-9]*.*.*.*) side=client ;; *) side=server ;; esac
command -p cat "$STUB_OUT.$side.stdout"
command -p cat "$STUB_OUT.$side.stderr" >&2
read -r rc <"$STUB_OUT.$side.rc"
[ ! -e "$STUB_OUT.hook" ] || . "$STUB_OUT.hook"
exit "$rc"
"""
# Moves the clock by what is slept; whole seconds and tenths.
SLEEP = """#!/bin/sh
read -r up idle <"$GPUFABRIC_PROC/uptime"
cs=$((${up%.*} * 100 + 1${up#*.} - 100))
case $1 in 0.*) cs=$((cs + ${1#0.} * 10)) ;; *) cs=$((cs + $1 * 100)) ;; esac
printf '%d.%02d %s\\n' $((cs / 100)) $((cs % 100)) "$idle" >"$GPUFABRIC_PROC/uptime.$$"
command -p mv "$GPUFABRIC_PROC/uptime.$$" "$GPUFABRIC_PROC/uptime"
"""


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def add_device(sys: Path, device: str, netdev: str, address: str, state: str = "4: ACTIVE") -> None:
    port = sys / "class/infiniband" / device / "ports" / "1"
    a, b, c, d = (int(part) for part in address.split("."))
    gids = {
        0: ("fe80:0000:0000:0000:0200:00ff:fe00:0001", "RoCE v2"),
        1: (f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}", "IB/RoCE v1"),
        2: (f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}", "RoCE v2"),
    }
    for index, (gid, kind) in gids.items():
        write(port / f"gids/{index}", gid + "\n")
        write(port / f"gid_attrs/types/{index}", kind + "\n")
        write(port / f"gid_attrs/ndevs/{index}", netdev + "\n")
    write(port / "state", state + "\n")
    write(port / "rate", "100 Gb/sec (4X EDR)\n")
    write(port / "link_layer", "Ethernet\n")
    write(sys / "class/infiniband" / device / "device/numa_node", "1\n")
    write(sys / "class/infiniband" / device / "device/local_cpulist", "0\n")
    write(sys / "class/infiniband" / device / "device/current_link_speed", "16.0 GT/s PCIe\n")
    write(sys / "class/infiniband" / device / "device/current_link_width", "16\n")
    for name in (
        "counters/link_downed",
        "counters/port_xmit_data",
        "hw_counters/out_of_sequence",
        "hw_counters/lifespan",
        "hw_counters/np_cnp_sent",
    ):
        write(port / name, "100\n")
    for name in ("rx_dropped", "rx_bytes", "tx_packets"):
        write(sys / "class/net" / netdev / "statistics" / name, "18446744073709551615\n" if "b" in name else "7\n")


class Bench:
    """A folder with stand-in tools, sysfs, proc, and the script to run there."""

    def __init__(self, folder: Path, shell: list[str]) -> None:
        self.folder, self.shell = folder, shell
        self.sys, self.proc, self.calls = folder / "sys", folder / "proc", folder / "calls"
        # Where programs are beside the stand-ins.
        self.path = os.environ["PATH"]
        for name in ("ib_write_bw", "ib_read_bw", "ib_write_lat"):
            write(folder / "bin" / name, STUB, 0o755)
        write(folder / "bin" / "slumber", SLEEP, 0o755)
        write(self.proc / "uptime", "1000.05 2000.00\n")
        write(self.proc / "self/status", "Cpus_allowed:\tf\nCpus_allowed_list:\t0-3\n")
        write(self.proc / "net/fib_trie", FIB_TRIE)
        write(self.proc / "net/route", ROUTE)
        write(self.proc / "net/tcp", TCP)
        write(folder / "etc/machine-id", "0123\n")
        write(self.sys / "devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
        for rail, name in enumerate(("rail0", "rail1")):
            write(self.sys / "class/net" / name / "mtu", "9000\n")
            write(self.sys / "class/net" / name / "carrier", "1\n")
            write(self.sys / "class/net" / name / "operstate", "up\n")
            add_device(self.sys, f"mlx5_{rail}", name, f"192.168.{rail}.3")
        write(folder / "rails", "rail rail0 rail0\nrail rail1 rail1 -\n")
        write(self.calls, "")
        self.plays("bw_duration")

    def plays(self, case: str, version: str = "25.01") -> None:
        """Let perftest print and end as in a recorded case."""
        for side in ("client", "server"):
            run = VERSIONS[version][case].get(side) or {"stdout": "", "stderr": "", "rc": 143}
            self.prints(side, run["stdout"], run["stderr"], run["rc"])

    def prints(self, side: str, stdout: str, stderr: str = "", rc: int = 0) -> None:
        """Let one side of perftest print and end like this."""
        for part, text in (("stdout", stdout), ("stderr", stderr), ("rc", f"{rc}\n")):
            write(self.folder / f"out.{side}.{part}", text)

    def hook(self, text: str) -> None:
        """Let perftest do this, in the shell, before it ends."""
        write(self.folder / "out.hook", text)

    def uptime(self) -> float:
        return float((self.proc / "uptime").read_text().split()[0])

    def env(self) -> dict[str, str]:
        folder = str(self.folder)
        return {
            "PATH": f"{folder}/bin:{self.path}".rstrip(":"),
            "TMPDIR": folder,
            "GPUFABRIC_SYS": str(self.sys),
            "GPUFABRIC_PROC": str(self.proc),
            "GPUFABRIC_ETC": f"{folder}/etc",
            "GPUFABRIC_SLEEP": f"{folder}/bin/slumber",
            "STUB_OUT": f"{folder}/out",
            "STUB_CALLS": str(self.calls),
        }

    def run(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(shutil.which(self.shell[0])), *self.shell[1:], str(SCRIPT), *args],
            input=stdin,
            env=self.env(),
            text=True,
            capture_output=True,
            timeout=60,
            start_new_session=True,
        )

    def start(self, *lines: str, **options: object) -> subprocess.Popen[str]:
        """Start to play a batch, with its output in the file log."""
        write(self.folder / "batch", self.batch(*lines, **options))  # type: ignore[arg-type]
        with (self.folder / "batch").open() as batch, (self.folder / "log").open("w") as log:
            return subprocess.Popen(
                [*self.shell, str(SCRIPT), "run", str(self.folder / "rails")],
                stdin=batch,
                stdout=log,
                stderr=log,
                env=self.env(),
                text=True,
                start_new_session=True,
            )

    def batch(self, *lines: str, start_in: str = "5", slot: int = 14) -> str:
        return "\n".join([f"BATCH 1 {start_in} {slot}", *lines, f"END {len(lines)}"]) + "\n"

    def play(self, *lines: str, **options: object) -> str:
        done = self.run("run", str(self.folder / "rails"), stdin=self.batch(*lines, **options))  # type: ignore[arg-type]
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, request.param)


def line(number: int, rail: str = "rail0", role: str = "client", port: int = 18500, kind: str = "write_bw") -> str:
    return f"{number} {rail} {role} {PEER} {port} {kind} {ARGS}"


def test_describe(bench: Bench) -> None:
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    assert dict(found.rails["rail1"]) == {
        "device": "mlx5_1",
        "port": "1",
        "netdev": "rail1",
        "gid": "2",
        "gid_type": "RoCE v2",
        "mtu": "4096",
        "address": "192.168.1.3",
        "rate": "100 Gb/sec (4X EDR)",
        "numa": "1",
        "cpus": "0",
        "local_cpus": "0",
        "addresses": "192.168.1.3",
    }
    assert {key: found.host[key] for key in ("perftest", "control", "clock", "machine_id")} == {
        "perftest": "6.24",
        "control": "10.0.2.15",
        "clock": "tsc",
        "machine_id": "0123",
    }


def test_a_perftest_that_hangs_delays_describing_by_seconds(bench: Bench) -> None:
    if bench.shell[0] == "busybox":
        (bench.folder / "bin/timeout").symlink_to(str(shutil.which("busybox")))
    write(bench.folder / "bin/ib_write_bw", "#!/bin/sh\nexec sleep 300\n", 0o755)
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    assert (found.host["perftest"], set(found.rails)) == ("?", {"rail0", "rail1"})


def test_an_address_that_is_given_is_taken(bench: Bench) -> None:
    write(bench.folder / "rails", "rail rail0 net1 192.168.0.3\n")
    for name, text in (("mtu", "1500\n"), ("carrier", "1\n")):
        write(bench.sys / "class/net/net1" / name, text)
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    # The netdev's name of another namespace does not matter, its address does.
    assert (found.rails["rail0"]["gid"], found.rails["rail0"]["mtu"]) == ("2", "1024")


@pytest.mark.parametrize(
    ("path", "text", "error"),
    [
        ("sys/class/net/rail0/carrier", "0\n", "rail0 has no link: cable, transceiver or switch port"),
        ("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n", "port 1 of mlx5_0 (rail0) is DOWN"),
        (
            "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2",
            "IB/RoCE v1\n",
            "no RDMA device has a RoCE v2 GID for 192.168.0.3 of rail0",
        ),
        ("proc/net/fib_trie", "Main:\n", "rail0 has no IPv4 address"),
        ("rails", "rail rail0 nic7\n", "there is no network device nic7"),
    ],
)
def test_describe_says_why_a_rail_cannot_be_used(bench: Bench, path: str, text: str, error: str) -> None:
    write(bench.folder / path, text)
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    assert found.error("rail0") == error


# As the kernel 6.1 prints them: a host with an address of a /31 on a rail, a pod of Calico.
POINT_TO_POINT = (
    """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 10.9.0.4
        /31 link UNICAST
        /32 host LOCAL
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
""",
    "Iface\tDestination\tGateway\nrail0\t0400090A\t00000000\t0001\t0\t0\t0\tFEFFFFFF\t0\t0\t0\n",
)
CALICO = (
    """Main:
  +-- 0.0.0.0/0 3 0 4
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 10.244.3.17
        /32 host LOCAL
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
     |-- 169.254.1.1
        /32 link UNICAST
""",
    """Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0101FEA9\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0101FEA9\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0
""",
)


def in_network(bench: Bench, tables: tuple[str, str], ip: str = "") -> None:
    """Let the tester find these tables of the kernel, and an ``ip`` that prints this, or none."""
    for name, text in zip(("fib_trie", "route"), tables):
        write(bench.proc / "net" / name, text)
    if ip:
        write(bench.folder / "bin/ip", f"#!/bin/sh\necho '{ip}'\n", 0o755)


def test_an_address_of_a_network_of_two(bench: Bench) -> None:
    in_network(bench, POINT_TO_POINT)
    add_device(bench.sys, "mlx5_0", "rail0", "10.9.0.4")
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    assert found.rails["rail0"]["address"] == "10.9.0.4"


# As the kernel 6.1 prints them: a link-local address, one that another machine has, one in use.
IF_INET6 = """fe800000000000000a002bfffe000001 02 40 20 80    rail0
fd000010000000010000000000000009 02 40 00 c8    rail0
fd000010000000010000000000000003 02 40 00 80    rail0
fd000010000000010000000000000004 03 40 00 80    rail1
"""


@pytest.mark.parametrize("known", [True, False])
def test_a_rail_with_ipv6_alone_is_found_by_the_gid_of_its_address(bench: Bench, known: bool) -> None:
    write(bench.proc / "net/route", "Iface\tDestination\n")
    write(bench.proc / "net/if_inet6", IF_INET6)
    address = "fd00:0010:0000:0001:0000:0000:0000:0003"
    if known:
        write(bench.sys / "class/infiniband/mlx5_0/ports/1/gids/2", f"{address}\n")
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    if known:
        rail = found.rails["rail0"]
        assert (rail["address"], rail["addresses"], rail["address6"], rail["gid"]) == ("-", "", address, "2")
    else:
        assert found.error("rail0") == f"no RDMA device has a RoCE v2 GID for {address} of rail0"


def only(bench: Bench, *programs: str) -> None:
    """Leave these programs of the machine to the tester, and its stand-ins."""
    for name in programs:
        (bench.folder / "bin" / name).symlink_to(str(shutil.which(name)))
    bench.path = ""


ONE = "2: eth0    inet 10.244.3.17/32 scope global eth0\\       valid_lft forever preferred_lft forever"


@pytest.mark.parametrize(
    ("more", "ip", "address"),
    [
        # Without ip the only address of a /32 is that of the default route.
        ("", None, "10.244.3.17"),
        ("     |-- 10.244.9.9\n        /32 host LOCAL\n", None, "-"),
        ("     |-- 10.244.9.9\n        /32 host LOCAL\n", ONE, "10.244.3.17"),
    ],
)
def test_the_control_address_of_a_pod_is_of_a_32(bench: Bench, more: str, ip: str | None, address: str) -> None:
    in_network(bench, (CALICO[0] + more, CALICO[1]), ip or "")
    if not ip:
        only(bench, "timeout", "taskset", "cat")
    done = bench.run("describe", str(bench.folder / "rails"))
    assert parse_describe(done.stdout).host["control"] == address


BINDS = (
    "      --bind_source_ip  Source IP of the interface used for connection establishment. By default taken from ..."
)
ONE = "      --flow_label=<value>  Set the flow_label in GRH (if GRH is in use)"
# What perftest 25.01 of Debian 13 prints.
SEVERAL = (
    "      --flow_label=<fl0,fl1,fl2,...>  Set the flow_label in GRH for each qp in roundrobin method(if GRH is in use)"
)
RAW = "      --flow_label  IPv6 flow label"


@pytest.mark.parametrize(
    ("text", "version", "binds", "labels"),
    [
        (VERSIONS["4.5"]["err_cuda"]["client"]["stdout"], "6.06", "no", "none"),
        (BINDS, "6.16", "yes", "none"),
        (f"{BINDS}\n{ONE}\n      --use_hugepages  Use Hugepages, instead of others", "6.23", "yes", "one"),
        (f"{BINDS}\n{SEVERAL}\n", "6.24", "yes", "list"),
        (f"{BINDS}\n{SEVERAL}\n", "", "yes", "list"),
        # Of raw Ethernet.
        (RAW, "6.06", "no", "none"),
    ],
)
def test_options_of_perftest_are_probed(bench: Bench, text: str, version: str, binds: str, labels: str) -> None:
    write(bench.folder / "help", text)
    write(
        bench.folder / "bin/ib_write_bw",
        f'#!/bin/sh\n[ "$1" != --help ] || command -p cat "{bench.folder}/help"\n'
        f'[ "$1" != --version ] || echo "{version and f"Version: {version}"}"\nexit 1\n',
        0o755,
    )
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    assert (found.host["perftest"], found.host["binds"], found.host["labels"]) == (version or "?", binds, labels)


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        # Recorded of a build without CUDA, which prints its options when it refuses one.
        (VERSIONS["4.5"]["err_cuda"]["client"]["stdout"], "none"),
        ("", "-"),
        (
            "      --report_gbits\n      --use_cuda=<cuda device id>\n      --use_cuda_bus_id=<cuda full BUS id>",
            "peermem",
        ),
        ("      --report_gbits\n      --use_cuda_bus_id=<cuda full BUS id>\n      --use_cuda_dmabuf", "dmabuf"),
        ("  --report_gbits\n  --use_cuda_bus_id=<B>\n  --use_cuda_dmabuf\n  --use_data_direct", "data_direct"),
    ],
)
def test_whether_perftest_can_use_gpu_memory_is_probed(bench: Bench, text: str, cuda: str) -> None:
    write(bench.folder / "help", text)
    script = f'#!/bin/sh\n[ "$1" != --help ] || command -p cat "{bench.folder}/help"\nexit 1\n'
    write(bench.folder / "bin/ib_write_bw", script, 0o755)
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    assert found.host.get("cuda") == cuda


def test_a_gid_that_perftest_refuses_is_named(bench: Bench) -> None:
    port = bench.sys / "class/infiniband/mlx5_0/ports/1"
    for part in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        (port / part / "2").rename(port / part / "65")
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    assert found.error("rail0") == (
        "the GID index of 192.168.0.3 of rail0 is 65, and perftest accepts 0 to 64: remove unused addresses of the port"
    )


HOSTILE = [
    f"0 rail0 client 10.0.0.3 18500 write_bw --payload_file_path=/etc/shadow --out_json 18500 write_bw {ARGS}",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} --out_json_file=/etc/ld.so.preload",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} -d mlx5_1",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} 10.0.0.4",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} *",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} -q",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} -q 1x",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} --pkey_index=1,2",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} --bind_source_ip=gpu-1",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} --flow_label=1,,2",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} --flow_label=1,$(id)",
    f"0 rail0 client 10.0.0.3 18500 write_bw {ARGS} --dlid=0x10",
    f"0 rail0 client 10.0.0.3 18500 ../../bin/sh {ARGS}",
    f"0 rail0 client 10.0.0.3 18500 atomic_bw {ARGS}",
    f"0 rail0 client 10.0.0 18500 write_bw {ARGS}",
    f"0 rail0 client --help 18500 write_bw {ARGS}",
    f"0 rail0 client host.test 18500 write_bw {ARGS}",
    f"0 rail0 both 10.0.0.3 18500 write_bw {ARGS}",
    f"0 ../rail0 client 10.0.0.3 18500 write_bw {ARGS}",
    f"0 rail0 client 10.0.0.3 $(id) write_bw {ARGS}",
    f"a[$(touch$IFS'x')] rail0 client 10.0.0.3 18500 write_bw {ARGS}",
    f"08 rail0 client 10.0.0.3 18500 write_bw {ARGS}",
    f"0 rail0 client 10.0.0.3 018500 write_bw {ARGS}",
    "",
    "BATCH 2 0 5",
    "END 7",
]
# First lines, and what starts of them the shell would calculate with.
HOSTILE_HEADS = ["BATCH 08 0 9", "BATCH 1 0 09", "BATCH 1 08 9", "BATCH 1 1-2 9", "BATCH 1 @ 9", "BATCH 1 0 9 08", ""]


def test_only_known_tools_options_and_addresses_are_played(bench: Bench) -> None:
    for number, hostile in enumerate(HOSTILE):
        done = bench.run("run", str(bench.folder / "rails"), stdin=bench.batch(line(0), hostile))
        assert (done.returncode, done.stdout) == (2, ""), hostile
        assert done.stderr.startswith("tester.sh: the batch has a line that is not valid, in round "), (number, hostile)
    assert bench.calls.read_text() == ""
    done = bench.run("run", str(bench.folder / "rails"), stdin=bench.batch(line(0), slot="x[$(id)]"))  # type: ignore
    assert (done.returncode, bench.calls.read_text()) == (2, "")
    # Each start of a shell takes a tenth of a second.
    for head in HOSTILE_HEADS:
        done = bench.run("run", str(bench.folder / "rails"), stdin=f"{head}\n{line(0)}\nEND 1\n")
        assert (done.returncode, done.stdout, bench.calls.read_text()) == (2, "", ""), (head, done.stderr)
        assert done.stderr.startswith("tester.sh: the batch has a line that is not valid, in round "), head
    # Nothing follows the end, which the count before it must match.
    done = bench.run("run", str(bench.folder / "rails"), stdin=bench.batch(line(0)) + line(1) + "\n")
    assert (done.returncode, done.stdout, bench.calls.read_text()) == (2, "", "")


def test_the_controllers_options_are_known(bench: Bench) -> None:
    tests = {"mtu": 4096, "rdma_cm": True, "inline": 0, "traffic_class": 106, "directions": "together"}
    ib_options = ib_port.options({"gid": "0", "pkeys": "3:0x8001"}, 1, grh=True, level=15)
    more = ({}, {"hugepages": True, "rdma_cm": False}, {"memory": "cuda:dmabuf"}, {"memory": "cuda:peermem"})
    more += ({"memory": "cuda:data_direct"},)
    lines = [
        f"{number} rail0 client {PEER} 18500 {kind} {perftest_args({**tests, **one}, kind, 0, gpu=gpu)} {ib_options}"
        f" --bind_source_ip=10.0.0.1 {'--dlid=33' if number % 2 else '--flow_label=1,16383'}"
        for number, (kind, one) in enumerate((kind, one) for kind in KINDS for one in more)
        for gpu in (["0000:1B:00.0"] if "memory" in one else [""])
    ]
    # All of it lies so far back that nothing is played.
    assert f"batch 1 done 0 {len(lines)}" in bench.play(*lines, start_in="-9999")


def test_an_output_of_megabytes_costs_no_time_and_keeps_its_end(bench: Bench) -> None:
    recorded = SAMPLES["bw_duration"]["client"]["stdout"]
    bench.prints("client", "x" * 8_000_000 + "\n" + recorded, "y" * 3_000_000)
    begin = time.monotonic()
    run = parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER]
    assert time.monotonic() - begin < 20 and run.rc == 0
    assert parse_rows(run.text) == parse_rows(recorded)


def test_both_rails_of_a_round_are_played_and_framed(bench: Bench) -> None:
    out = bench.play(line(0), line(0, "rail1", "server", 18503))
    log = parse_batch(out, 1)
    assert log.done and "=== gpufabric batch 1 done 2 0" in out
    client, server = log.runs[0, "rail0", PEER], log.runs[0, "rail1", PEER]
    sample, reason = reading(client, server, 65536)
    assert reason == "" and sample is not None and sample.average == 0.63
    calls = bench.calls.read_text()
    assert f"ib_write_bw -d mlx5_0 -i 1 -x 2 -p 18500 {ARGS} {PEER}\n" in calls
    assert f"ib_write_bw -d mlx5_1 -i 1 -x 2 -p 18503 {ARGS}\n" in calls
    assert (client.exchange, client.memory, client.counters, client.link_before) == ("plain", "host", {}, {})
    assert client.link == {
        "rate": "100 Gb/sec (4X EDR)",
        "state": "up",
        "carrier": "1",
        "mtu": "9000",
        "pcie": "16.0 GT/s PCIe x16",
    }
    assert client.started == 1005 and client.late is not None and 0 <= client.late < 1


def test_one_port_serves_several_at_once(bench: Bench) -> None:
    """As in incast: two clients of one round on one rail, told apart by their addresses and TCP ports."""
    lines = [f"0 rail0 server {peer} {port} write_bw {ARGS}" for peer, port in (("192.168.0.8", 18500), (PEER, 18503))]
    out = bench.play(*lines)
    log = parse_batch(out, 1)
    assert set(log.runs) == {(0, "rail0", "192.168.0.8"), (0, "rail0", PEER)}
    assert {run.rc for run in log.runs.values()} == {0}


@pytest.mark.parametrize(
    ("near", "allowed", "cpus"),
    [
        ("0-15,32-47", "8-40", "8-15,32-40"),
        ("0,2,4", "1-2,4", "2,4"),
        ("16-31", "0-3", "-"),
        ("", "0-3", "-"),
        ("0-3", "", "-"),
    ],
)
def test_cpus_are_those_near_the_nic_that_the_tester_may_use(bench: Bench, near: str, allowed: str, cpus: str) -> None:
    write(bench.sys / "class/infiniband/mlx5_0/device/local_cpulist", near + "\n")
    write(bench.proc / "self/status", f"Name:\tsh\nCpus_allowed_list:\t{allowed}\nMems_allowed_list:\t0\n")
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout).rails["rail0"]
    assert (found["cpus"], found["local_cpus"]) == (cpus, near or "-")


def test_perftest_is_bound_to_cpus_near_the_nic(bench: Bench) -> None:
    bench.hook(
        'while read -r word list; do [ "$word" != Cpus_allowed_list: ] || echo "cpus $list" >>"$STUB_CALLS"\n'
        "done </proc/self/status\n"
    )
    bench.play(line(0))
    assert "cpus 0\n" in bench.calls.read_text()


def test_what_grew_and_changed_during_a_test_is_told(bench: Bench) -> None:
    port, net = "$GPUFABRIC_SYS/class/infiniband/mlx5_0/ports/1", "$GPUFABRIC_SYS/class/net/rail0"
    write(bench.sys / "class/net/rail0/carrier_down_count", "4\n")
    bench.hook(
        f"echo 103 >{port}/hw_counters/out_of_sequence; echo 999 >{port}/counters/port_xmit_data\n"
        f"echo 99 >{port}/hw_counters/np_cnp_sent; echo 8 >{net}/statistics/rx_dropped\n"
        f"echo 5 >{net}/carrier_down_count\n"
        f"rm {port}/counters/link_downed; echo 1500 >{net}/mtu; echo '25 Gb/sec (1X EDR)' >{port}/rate\n"
    )
    out = bench.play(line(0))
    run = parse_batch(out, 1).runs[0, "rail0", PEER]
    assert "\ncounters out_of_sequence=+3 netdev_rx_dropped=+1 netdev_carrier_down_count=+1\n" in out
    assert run.counters == {"out_of_sequence": 3, "netdev_rx_dropped": 1, "netdev_carrier_down_count": 1}
    assert (run.link["mtu"], run.link["rate"]) == ("1500", "25 Gb/sec (1X EDR)")
    assert (run.link_before["mtu"], run.link_before["rate"]) == ("9000", "100 Gb/sec (4X EDR)")
    assert "counters" not in run.text and "link" not in run.text.split("\n")[0]


# The line of all processors: user, nice, system, idle, waiting, interrupts; then the tester's own time in its cgroup.
@pytest.mark.parametrize(
    ("after", "own", "told"),
    [
        # 1000 hundredths of a second: 700 of other programs, 200 of the tester.
        ("1900 0 200 500 0 0 0 0", 2_000_000, "+70"),
        ("1000 900 200 500 0 0 0 0", 2_000_000, "+70"),
        # Only the tester, only kernel threads, time left, less than a third.
        ("1900 0 100 500 0 0 0 0", 9_000_000, None),
        ("1000 0 1000 500 0 0 0 0", 0, None),
        ("1500 0 100 600 300 0 0 0", 0, None),
        ("1200 0 800 500 0 0 0 0", 0, None),
    ],
)
def test_other_programs_that_took_the_processors_are_told(bench: Bench, after: str, own: int, told: str | None) -> None:
    group = bench.sys / "fs/cgroup/system.slice/tester.service"
    write(bench.proc / "self/cgroup", "1:name=systemd:/other\n0::/system.slice/tester.service\n")
    write(group / "cpu.stat", "usage_usec 9\nuser_usec 0\nsystem_usec 9\n")
    write(bench.proc / "stat", "cpu  1000 0 100 500 0 0 0 0 0 0\ncpu0 1 2 3\n")
    bench.hook(f'echo "cpu  {after} 0 0" >"$GPUFABRIC_PROC/stat"\necho "user_usec {own}" >{group}/cpu.stat\n')
    out = bench.play(line(0))
    expected = {} if told is None else {"cpu_percent_of_others": int(told[1:])}
    assert parse_batch(out, 1).runs[0, "rail0", PEER].counters == expected


@pytest.mark.parametrize("gone", ["proc/self/cgroup", "proc/stat", "sys/fs/cgroup/cpu.stat"])
def test_what_the_processors_did_is_not_guessed(bench: Bench, gone: str) -> None:
    write(bench.proc / "self/cgroup", "0::/\n")
    write(bench.sys / "fs/cgroup/cpu.stat", "user_usec 0\n")
    write(bench.proc / "stat", "cpu  1000 0 100 500 0 0 0 0 0 0\n")
    bench.hook('echo "cpu  1900 0 100 500 0 0 0 0 0 0" >"$GPUFABRIC_PROC/stat"\n')
    (bench.folder / gone).unlink()
    done = bench.play(line(0))
    # A file of the processors that appears in the middle is compared with nothing.
    assert "cpu_percent" not in done


ETHTOOL = """#!/bin/sh
read -r calls 2>/dev/null <"$STUB_OUT.ethtool"
echo $((${calls:-0} + 1)) >"$STUB_OUT.ethtool"
printf '%s\n' "NIC statistics:" "     rx_packets: 5$calls" "     rx_prio3_pause: 1$calls" "     tx_prio3_pause: 4"
"""


def test_pause_frames_of_mlx5_come_from_ethtool(bench: Bench) -> None:
    write(bench.folder / "bin/ethtool", ETHTOOL, 0o755)
    driver = bench.sys / "class/net/rail0/device/driver/module/drivers/pci:mlx5_core"
    assert parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER].counters == {}
    assert not (bench.folder / "out.ethtool").exists()
    driver.mkdir(parents=True)
    assert parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER].counters == {"rx_prio3_pause": 10}


# Written by hand after the names that the drivers mlx5_core and bnxt_en give their statistics.
STATISTICS = """#!/bin/sh
read -r calls 2>/dev/null <"$STUB_OUT.ethtool"
echo $((${calls:-0} + 1)) >"$STUB_OUT.ethtool"
echo "$*" >>"$STUB_OUT.asked"
calls=${calls:-0}
printf '     %s\n' "NIC statistics:" "rx_prio0_bytes: 7" "rx_prio3_packets: 9$calls" "tx_prio3_bytes: 5$calls" \
    "tx_prio3_pause_duration: 1${calls}0" "rx_bytes_pri3: 6$calls" "rx_corrected_bits_phy: 8$calls" \
    "rx_pcs_symbol_err_phy: $calls" "rx_prio3_buf_discard: $calls" "rx_vport_unicast_bytes: 1$calls"
"""
AMOUNTS = {"tx_prio3_bytes": 1, "tx_prio3_pause_duration": 10, "rx_bytes_pri3": 1, "rx_corrected_bits_phy": 1}


@pytest.mark.parametrize(
    ("netdev", "device", "asked"),
    [
        pytest.param("class/net/rail0/device/driver/module/drivers/pci:mlx5_core", "", "rail0", id="PF"),
        pytest.param(
            "", "class/infiniband/mlx5_0/device/net/p0/device/driver/module/drivers/pci:mlx5_core", "p0", id="macvlan"
        ),
        pytest.param(
            "class/net/rail0/device/physfn",
            "class/infiniband/mlx5_0/device/physfn/net/p1/device/driver/module/drivers/pci:bnxt_en",
            "p1",
            id="VF",
        ),
    ],
)
def test_priorities_are_counted_by_the_physical_port(bench: Bench, netdev: str, device: str, asked: str) -> None:
    write(bench.folder / "bin/ethtool", STATISTICS, 0o755)
    for path in filter(None, (netdev, device)):
        (bench.sys / path).mkdir(parents=True)
    # The representor of a VF is next to the port in switchdev mode.
    write(bench.sys / "class/infiniband/mlx5_0/device/net/rep0/phys_port_name", "pf0vf0\n")
    (bench.sys / "class/infiniband/mlx5_0/device/net/rep0/device/driver/module/drivers/pci:mlx5_core").mkdir(
        parents=True
    )
    run = parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER]
    assert (run.amounts, run.unread) == (AMOUNTS, "")
    assert run.counters == {"rx_pcs_symbol_err_phy": 1, "rx_prio3_buf_discard": 1}
    asked_first = (bench.folder / "out.asked").read_text().splitlines()[:2]
    assert asked_first == [f"-S {asked}"] * 2


def test_why_priorities_are_not_counted(bench: Bench) -> None:
    def unread() -> str:
        run = parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER]
        assert run.amounts == {}
        return run.unread

    write(bench.folder / "bin/ethtool", "#!/bin/sh\nexit 1\n", 0o755)
    assert unread() == "the port of rail0 is not visible to its tester"
    (bench.sys / "class/net/rail0/device/driver/module/drivers/pci:igb").mkdir(parents=True)
    assert unread() == "the driver igb has no counters by priority"
    (bench.sys / "class/net/rail0/device/driver/module/drivers/pci:mlx5_core").mkdir(parents=True)
    assert unread() == "ethtool printed no counters of rail0"


def test_counters_that_do_not_fit_are_counted(bench: Bench) -> None:
    grown(bench)
    counters = dict(parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER].counters)
    # 40 of those that grow, and out_of_sequence and np_cnp_sent.
    assert counters.pop("not_listed") == 42 - len(counters) > 20


def test_a_bond_counts_through_its_members(bench: Bench) -> None:
    write(bench.folder / "bin/ethtool", ETHTOOL, 0o755)
    net = bench.sys / "class/net"
    write(net / "rail0/bonding/slaves", "ens1f0 ens1f1\n")
    for name in ("ens1f0", "ens1f1"):
        write(net / name / "statistics/rx_crc_errors", "7\n")
        write(net / name / "carrier_down_count", "1\n")
        (net / name / "device/driver/module/drivers/pci:mlx5_core").mkdir(parents=True)
    there = "$GPUFABRIC_SYS/class/net"
    bench.hook(
        f"echo 9 >{there}/ens1f0/statistics/rx_crc_errors; echo 10 >{there}/ens1f1/statistics/rx_crc_errors\n"
        f"echo 2 >{there}/ens1f1/carrier_down_count; echo 99 >{there}/rail0/statistics/rx_dropped\n"
    )
    counters = parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER].counters
    # What ethtool printed of the members was 1 and 11 before the test, 12 and 13 after it.
    assert counters == {"netdev_rx_crc_errors": 5, "netdev_carrier_down_count": 1, "rx_prio3_pause": 13}


# Bytes of both members in two priorities. Each call after the first two has more.
BYTES = """#!/bin/sh
read -r calls 2>/dev/null <"$STUB_OUT.ethtool"
echo $((${calls:-0} + 1)) >"$STUB_OUT.ethtool"
case $2.${calls:-0} in ens1f0.0) bytes=1000 ;; ens1f1.1) bytes=2000 ;; ens1f0.*) bytes=1700 ;; *) bytes=2300 ;; esac
printf '     %s\n' "tx_prio3_bytes: $bytes" "tx_prio0_bytes: $bytes" "rx_prio3_bytes: 5"
"""


def test_the_bytes_of_each_member_of_a_bond(bench: Bench) -> None:
    write(bench.folder / "bin/ethtool", BYTES, 0o755)
    net = bench.sys / "class/net"
    write(net / "rail0/bonding/slaves", "ens1f0 ens1f1\n")
    for name in ("ens1f0", "ens1f1"):
        (net / name / "device/driver/module/drivers/pci:mlx5_core").mkdir(parents=True)
    amounts = parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER].amounts
    members = {"member_ens1f0_tx_bytes": 1400, "member_ens1f1_tx_bytes": 600}
    assert amounts == {"tx_prio3_bytes": 1000, "tx_prio0_bytes": 1000, **members}


# A member of a bond whose statistics cannot be read the second time, or end early then.
MEMBERS = """#!/bin/sh
read -r calls 2>/dev/null <"$STUB_OUT.ethtool"
calls=$((${calls:-0} + 1))
echo "$calls" >"$STUB_OUT.ethtool"
[ "$calls $2" != "3 ens1f0" ] || %s
[ "$2" = ens1f0 ] || down=2
printf '     %%s\n' "tx_prio3_bytes: $calls" "link_down_events_phy: $((1 + ${down:-0}))"
"""


@pytest.mark.parametrize("ends", ["exit 1", "{ echo '     tx_prio3_bytes: 9'; exit; }"])
def test_counters_of_different_members_are_not_compared(bench: Bench, ends: str) -> None:
    write(bench.folder / "bin/ethtool", MEMBERS % ends, 0o755)
    net = bench.sys / "class/net"
    write(net / "rail0/bonding/slaves", "ens1f0 ens1f1\n")
    for name in ("ens1f0", "ens1f1"):
        (net / name / "device/driver/module/drivers/pci:mlx5_core").mkdir(parents=True)
    run = parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER]
    assert (run.counters, run.amounts) == ({}, {})
    assert run.unread.startswith("ethtool did not print all counters of ens1f0")


EVERY = """#!/bin/sh
read -r calls 2>/dev/null <"$STUB_OUT.ethtool"
echo $((${calls:-0} + 1)) >"$STUB_OUT.ethtool"
for priority in 0 1 2 3 4 5 6 7; do
    for way in tx rx; do
        printf '     %s\n' "${way}_prio${priority}_bytes: $((${calls:-0} + 1))00000000000" \
            "${way}_prio${priority}_pause_duration: $((${calls:-0} + 1))00000000000"
    done
done
"""


def test_amounts_and_what_was_sent_again_always_fit(bench: Bench) -> None:
    write(bench.folder / "bin/ethtool", EVERY, 0o755)
    (bench.sys / "class/net/rail0/device/driver/module/drivers/pci:mlx5_core").mkdir(parents=True)
    for name in ("roce_adp_retrans", "roce_adp_retrans_to"):
        write(bench.sys / "class/infiniband/mlx5_0/ports/1/hw_counters" / name, "1\n")
    grown(bench)
    run = parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER]
    assert len(run.amounts) == 32 and set(run.amounts.values()) == {10**11} and run.unread == ""
    assert not set(run.amounts) & set(run.counters)
    assert run.counters["roce_adp_retrans"] == run.counters["roce_adp_retrans_to"] == 999
    assert run.counters["not_listed"] == 44 - (len(run.counters) - 1)


@pytest.mark.parametrize(
    ("args", "exchange", "memory"),
    [
        ("-R", "cm", "host"),
        ("--use_cuda_bus_id=0000:1b:00.0", "plain", "cuda:peermem"),
        ("--use_cuda=0 --use_cuda_dmabuf -R", "cm", "cuda:dmabuf"),
        ("--use_cuda_bus_id=0000:1b:00.0 --use_cuda_dmabuf --use_data_direct", "plain", "cuda:data_direct"),
    ],
)
def test_the_frame_says_what_was_asked(bench: Bench, args: str, exchange: str, memory: str) -> None:
    run = parse_batch(bench.play(f"{line(0)} {args}"), 1).runs[0, "rail0", PEER]
    assert (run.exchange, run.memory) == (exchange, memory)


# As perftest 25.01's source prints it, not recorded: no GPU was there.
GPUS = "".join(f"CUDA device {number}: PCIe address is {number:02X}:00\n" for number in range(8))
CUDA = f"""initializing CUDA
Listing all CUDA devices in system:
{GPUS}
Picking device No. 0
[pid = 7, dev = 0] device name = [NVIDIA H100]
creating CUDA Ctx
making it the current CUDA Ctx
CUDA device integrated: 0
using DMA-BUF for GPU buffer address at 0x7f2e00000000 aligned at 0x7f2e00000000 with aligned size 131072
allocated GPU buffer of a 131072 address at 0x7ffd1 for type CUDA_MEM_DEVICE
"""


def test_proof_of_gpu_memory_survives_a_long_output(bench: Bench) -> None:
    recorded = SAMPLES["bw_duration"]["client"]["stdout"]
    bench.prints("client", CUDA + "noise of some kind\n" * 200 + recorded + "deallocating GPU buffer 00007f2e0000\n")
    run = parse_batch(bench.play(line(0) + " --use_cuda=0 --use_cuda_dmabuf"), 1).runs[0, "rail0", PEER]
    assert memory_missing(run) == "" and parse_rows(run.text) and len(run.text) < 2048
    bench.prints("client", recorded)
    run = parse_batch(bench.play(line(0) + " --use_cuda=0"), 1).runs[0, "rail0", PEER]
    assert memory_missing(run) == "GPU memory was asked for, but perftest does not report that it used it"


def test_rounds_begin_on_the_clock(bench: Bench) -> None:
    out = bench.play(line(0, role="server", port=18503), line(3, role="server", port=18503), start_in="5")
    starts = [part.split()[0] for part in out.split(" start=")[1:]]
    assert starts == ["1005", str(1005 + 3 * 14)]


@pytest.mark.parametrize(
    ("start_in", "begin"), [("5", 100505), ("5.5", 100555), ("5.07", 100512), ("0.256", 100030), ("12", 101205)]
)
def test_the_begin_is_told_in_hundredths(bench: Bench, start_in: str, begin: int) -> None:
    box = bench.folder / "box"
    assert bench.run("deliver", str(box), "1", "1000.05", stdin=bench.batch(line(0), start_in=start_in)).returncode == 0
    assert (box / "batch-1").read_text().splitlines()[0] == f"BATCH 1 @{begin} 14 0"


# When the pod said that it is ready, by its clock that now shows 1000.05; the begin of round 0; how late it may be.
DELIVERED = [("999.50", 1004.78, 0.0), ("999.45", 1004.75, 0.3), ("992.05", 1001.05, 4.0)]


@pytest.mark.parametrize(("ready", "begin", "late"), DELIVERED)
def test_lines_that_were_long_under_way_show_by_how_much_the_start_may_be_wrong(
    bench: Bench, ready: str, begin: float, late: float
) -> None:
    box = str(bench.folder / "box")
    assert bench.run("deliver", box, "1", ready, stdin=bench.batch(line(0), slot=5)).returncode == 0
    bench.run("finish", box)
    log = parse_batch(bench.run("serve", str(bench.folder / "rails"), box, "60").stdout, 1)
    run = log.runs[0, "rail0", PEER]
    # It is measured all the same: the start may as well have been on time.
    assert log.done and run.rc == 0 and run.late == pytest.approx(late, abs=0.11)
    head = (bench.folder / "box" / "batch-1").read_text().split()
    assert head[2] == f"@{begin * 100:.0f}"


# What both clocks showed at deliveries; the start by the controller's; when round 0 began, how late; how many played.
CLOCKS = [
    # A last delivery of 4 s; one that came 6 s after the start.
    ("990.05 490.00\n1000.05 496.00\n", "501.5", 1001, 0.0, 2),
    ("980.05 480.00\n1000.05 480.00\n", "494.05", 0, 5.95, 1),
    # The first delivery was the slow one, from the clock of a Mac; a fast one of long ago counts no more.
    ("990.05 1732340470.123456\n1000.05 1732340500.123456\n", "1732340501.623456", 1001, 0.0, 2),
    ("100.05 500.00\n1000.05 496.00\n", "497.5", 1001, 0.0, 2),
]


@pytest.mark.parametrize(("clocks", "start", "began", "late", "count"), CLOCKS)
def test_a_schedule_that_comes_late_does_not_shift_the_start(
    bench: Bench, clocks: str, start: str, began: int, late: float, count: int
) -> None:
    (bench.folder / "clocks").write_text(clocks)
    log = bench.folder / "log"
    done = bench.run(
        "run",
        str(bench.folder / "rails"),
        str(log),
        str(bench.folder / "clocks"),
        start,
        stdin=bench.batch(line(0), line(1), slot=7),
    )
    assert (done.returncode, done.stderr) == (0, "")
    runs = parse_batch(log.read_text(), 1).runs
    assert sum(run.rc == 0 for run in runs.values()) == count
    first = runs[0, "rail0", PEER]
    assert first.late == pytest.approx(late, abs=0.11)
    assert f" start={began} " in log.read_text() and len(runs) == 2


def test_a_start_by_a_clock_that_is_not_known_is_refused(bench: Bench) -> None:
    (bench.folder / "clocks").write_text("100.05 500.00\n")
    done = bench.run(
        "run",
        str(bench.folder / "rails"),
        str(bench.folder / "log"),
        str(bench.folder / "clocks"),
        "515",
        stdin=bench.batch(line(0)),
    )
    assert done.returncode == 2 and "no line of the last ten minutes in " in done.stderr


def test_frames_tell_hundredths_of_a_second(bench: Bench) -> None:
    bench.hook('"$GPUFABRIC_SLEEP" 0.7\n')
    run = parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER]
    assert (run.ran, run.seconds) == (pytest.approx(0.7), pytest.approx(1.7))


def test_slots_follow_what_a_stand_in_of_cuda_needs_to_start(bench: Bench) -> None:
    """It starts CUDA for 9 s after it is connected, and measures for 6 s: the frames give the length of later slots."""
    bench.hook('case "$*" in *--use_cuda*) "$GPUFABRIC_SLEEP" 9 ;; esac\n"$GPUFABRIC_SLEEP" 6\n')
    tests, timing = {"memory": "cuda:dmabuf"}, Timing()
    slots = []
    for number in (1, 2):
        slots.append(timing.slot(6, margin_of(tests, 6), gpu=True))
        lines = line(0) + " --use_cuda=0 --use_cuda_dmabuf", line(1)
        found = parse_batch(bench.play(*lines, slot=slots[-1]), 1)
        runs = [found.runs[at, "rail0", PEER] for at in (0, 1)]
        # Whole seconds, as limits have them: what needs more of the slot is ended.
        assert [run.ran for run in runs] == [pytest.approx(15), pytest.approx(6)], number
        assert (runs[0].seconds or 0) + 1 <= slots[-1]
        timing.add({"a": found}, 2, slots[-1])
    assert slots == [24, 18]
    assert timing.starts(6) == (
        "tests from GPU memory needed up to 10.0 s besides their duration, tests from host memory 1.0 s"
    )


def test_a_test_has_its_slot_but_for_the_last_second(bench: Bench) -> None:
    write(bench.folder / "bin/timeout", '#!/bin/sh\necho "$3" >"$STUB_OUT.limit"\n', 0o755)
    for role, limit in (("server", "14"), ("client", "13")):
        bench.play(line(0, role=role, port=18503), slot=14)
        assert (bench.folder / "out.limit").read_text() == limit + "\n"


def test_a_late_tester_says_which_rounds_it_missed(bench: Bench) -> None:
    out = bench.play(line(0), line(1), line(2), start_in="-20")
    log = parse_batch(out, 1)
    assert "=== gpufabric batch 1 done 1 2" in out
    assert [log.runs[n, "rail0", PEER].text for n in (0, 1)] == [
        "gpufabric: missed the round, 20 s late",
        "gpufabric: missed the round, 6 s late",
    ]
    assert log.runs[2, "rail0", PEER].rc == 0


def grown(bench: Bench) -> None:
    """Let so many counters grow that the line of them is as long as it gets."""
    folder = bench.sys / "class/infiniband/mlx5_0/ports/1/hw_counters"
    for number in range(40):
        write(folder / f"req_transport_retries_exceeded_{number}", "1\n")
    bench.hook(f"for file in {folder}/*; do echo 1000 >$file; done\n")


def frames(out: str) -> list[str]:
    """The frames as they stand, with all that the tester adds."""
    return [
        "=== gpufabric test " + part.split("=== gpufabric batch")[0] for part in out.split("=== gpufabric test ")[1:]
    ]


@pytest.mark.parametrize(("version", "case"), [(v, case) for v, cases in VERSIONS.items() for case in sorted(cases)])
def test_every_recorded_ending_comes_through(version: str, case: str, tmp_path: Path) -> None:
    # Each shell gets its share of the cases: what differs between them is tested with all of them elsewhere.
    shells = [shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(shell[0])]
    bench = Bench(tmp_path, shells[(len(case) + len(version)) % len(shells)] if shells else ["sh"])
    bench.plays(case, version)
    grown(bench)
    recorded = VERSIONS[version][case]
    out = bench.play(line(0), line(0, "rail1", "server", 18503))
    log, raw = parse_batch(out, 1), frames(out)
    for at, (rail, side) in enumerate((("rail0", "client"), ("rail1", "server"))):
        run, expected = log.runs[0, rail, PEER], recorded.get(side)
        assert len(raw[at].encode()) <= 2560 and not run.text.startswith(("counters ", "link"))
        if expected is None:
            continue
        whole = Run(expected["rc"], expected["stdout"] + "\n" + (expected["stderr"] or ""))
        assert run.rc == expected["rc"]
        # All rows, or the last of so many that they do not fit; -a prints 23.
        rows = parse_rows(whole.text)
        assert parse_rows(run.text) == (rows if len(rows) < 9 else rows[-len(parse_rows(run.text)) :])
        # A judge that knows nothing of what the tester adds sees the same.
        body = raw[at].split("\n", 1)[1].replace("=== gpufabric end\n", "")
        for seen in (run, Run(run.rc, body.strip())):
            assert parse_rows(seen.text) == parse_rows(run.text)
            for size in (2, 65536):
                if len(rows) < 9:
                    assert reading(seen, Run(0, ""), size) == reading(whole, Run(0, ""), size)


def test_the_client_tries_again_until_its_server_listens_but_not_too_late(bench: Bench) -> None:
    bench.plays("err_refused")
    log = parse_batch(bench.play(line(0), slot=20), 1)
    assert "Couldn't connect to" in log.runs[0, "rail0", PEER].text and log.runs[0, "rail0", PEER].rc == 1
    # The client begins in second 1 and tries again every 0.2 s, from second 2.5 on every second, as long as the 20
    # seconds of the slot leave 6 + 1.5 for a run.
    assert 15 <= bench.calls.read_text().count("ib_write_bw") <= 19
    assert bench.uptime() < 1000 + 5 + 20 - 1


def test_a_client_that_rdma_cm_rejects_tries_again(bench: Bench) -> None:
    bench.prints("client", "", "Unexpected CM event bl blka 8\n", 1)
    bench.play(line(0) + " -R", slot=14)
    assert bench.calls.read_text().count("ib_write_bw") > 2
    write(bench.calls, "")
    bench.prints("client", "", "Unexpected CM event bl blka 7\n", 1)
    bench.play(line(0) + " -R", slot=14)
    assert bench.calls.read_text().count("ib_write_bw") == 1


def is_gone(path: Path) -> bool:
    """Whether the process whose number is in the file ended, be it that nobody asked for its status yet."""
    try:
        return Path(f"/proc/{path.read_text().strip()}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def wait_for(what: object) -> None:
    """Wait until ``what()`` holds, for 20 s at most."""
    end = time.monotonic() + 20
    while not what():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def of_session(number: int) -> list[str]:
    """The processes of a session that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, _group, session = path.read_text().rsplit(")", 1)[1].split()[:4]
            found += [str(path)] if session == str(number) and state not in "ZX" else []
    return found


HANGS = 'trap \'\' TERM INT HUP; echo $$ >"$STUB_OUT.self"; sleep 300 & echo $! >"$STUB_OUT.child"; wait; sleep 300\n'


def test_nothing_outlives_its_slot(bench: Bench) -> None:
    if bench.shell[0] == "busybox":
        # Its timeout makes no process group.
        (bench.folder / "bin/timeout").symlink_to(str(shutil.which("busybox")))
    bench.hook(HANGS)
    run = parse_batch(bench.play(line(0, role="server", port=18503), slot=3), 1).runs[0, "rail0", PEER]
    # It ignores TERM after two seconds and is killed after three.
    assert run.rc == 137 and "Waiting" not in run.text and run.ran is not None
    wait_for(lambda: is_gone(bench.folder / "out.self") and is_gone(bench.folder / "out.child"))


def test_what_runs_ends_with_the_tester(bench: Bench) -> None:
    bench.hook(HANGS)
    tester = bench.start(line(0, role="server", port=18503), line(0, "rail1"), slot=60)
    wait_for(lambda: (bench.folder / "out.child").exists() and (bench.folder / "out.child").read_text())
    tester.send_signal(signal.SIGTERM)
    assert tester.wait(20) == 143
    wait_for(lambda: is_gone(bench.folder / "out.self") and is_gone(bench.folder / "out.child"))
    assert list(bench.folder.glob("gpufabric.*")) == []


def test_a_client_that_tries_again_ends_with_the_tester(bench: Bench) -> None:
    bench.plays("err_refused")
    write(bench.folder / "bin" / "slumber", SLEEP + "exec sleep 0.05\n", 0o755)
    tester = bench.start(line(0), slot=600)
    wait_for(lambda: bench.calls.read_text().count("ib_write_bw") > 1)
    tester.send_signal(signal.SIGTERM)
    assert tester.wait(20) == 143
    wait_for(lambda: not of_session(tester.pid))


def test_a_killed_time_limit_leaves_nothing_and_costs_one_result(bench: Bench) -> None:
    # The parent of perftest is the time limit.
    bench.hook('case $side in server) echo $$ >"$STUB_OUT.self"; kill -KILL "$PPID"; sleep 300 ;; esac\n')
    out = bench.play(line(0, role="server", port=18503), line(0, "rail1"))
    log = parse_batch(out, 1)
    assert log.runs[0, "rail0", PEER].rc == 137 and log.runs[0, "rail1", PEER].rc == 0 and log.done
    wait_for(lambda: is_gone(bench.folder / "out.self"))


def test_a_frame_without_an_end_takes_no_other_with_it() -> None:
    whole = "=== gpufabric test 0 rail1 client h rc=0 start=1 seconds=2\nfine\n=== gpufabric end\n"
    cut = '=== gpufabric test 0 rail0 client h rc=0 start=1 seconds=2\nlink rate="100\n'
    log = parse_batch(f"=== gpufabric batch 1 begin 2\n{cut}{whole}=== gpufabric batch 1 done 2 0\n", 1)
    assert {rail: run.text for (_round, rail, _peer), run in log.runs.items()} == {"rail1": "fine"}


COUNTED = """#!/bin/sh
echo "program ${0##*/}" >>"$STUB_CALLS"
exec %s "$@"
"""


def test_few_programs_are_started_for_a_test(bench: Bench) -> None:
    names = ("cat", "tail", "rm", "mv", "sed", "grep", "cut", "tr", "awk", "taskset", "timeout", "stdbuf", "sleep")
    for name in names:
        write(bench.folder / "bin" / name, COUNTED % shutil.which(name), 0o755)
    grown(bench)
    counts = []
    for tests in ((line(0),), (line(0), line(0, "rail1"))):
        write(bench.calls, "")
        assert parse_batch(bench.play(*tests), 1).runs[0, "rail0", PEER].rc == 0
        counts.append(
            sorted(call.split()[1] for call in bench.calls.read_text().splitlines() if call.startswith("program "))
        )
    for program in counts[0]:
        counts[1].remove(program)
    # The time limit, the binding and the line buffer; perftest itself is not counted.
    assert counts[1] == ["stdbuf", "taskset", "timeout"]


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (line(0, role="server", port=18501), "gpufabric: TCP port 18501 is in use by another program"),
        (line(0, kind="send_bw"), "gpufabric: ib_send_bw is not installed"),
        (line(0, rail="rail7"), "gpufabric: there is no rail rail7 here"),
    ],
)
def test_refusals_are_told_apart_from_measurements(bench: Bench, test: str, reason: str) -> None:
    if shutil.which("ib_send_bw") and "send_bw" in test:
        pytest.skip("perftest is installed here")
    run = parse_batch(bench.play(test), 1).runs[0, test.split()[1], PEER]
    assert (run.rc, run.text) == (125, reason)


def test_a_port_on_which_something_listens_by_ipv6_is_in_use(bench: Bench) -> None:
    write(bench.proc / "net/tcp6", TCP.replace("0100007F:4845", f"{'0' * 32}:4847"))
    run = parse_batch(bench.play(line(0, role="server", port=18503)), 1).runs[0, "rail0", PEER]
    assert run.text == "gpufabric: TCP port 18503 is in use by another program"


def test_a_port_that_only_a_connection_uses_is_free(bench: Bench) -> None:
    assert parse_batch(bench.play(line(0, role="server", port=18502)), 1).runs[0, "rail0", PEER].rc == 0


def test_an_incomplete_batch_is_refused(bench: Bench) -> None:
    done = bench.run("run", str(bench.folder / "rails"), stdin="BATCH 1 5 14\n" + line(0) + "\n")
    assert (done.returncode, done.stderr) == (2, "tester.sh: the batch is not complete\n")
    assert bench.calls.read_text() == ""


def test_nothing_is_left_in_the_temporary_folder(bench: Bench) -> None:
    bench.play(line(0))
    assert list(bench.folder.glob("gpufabric.*")) == []


def test_run_writes_its_log_to_a_file(bench: Bench) -> None:
    log = bench.folder / "log"
    done = bench.run("run", str(bench.folder / "rails"), str(log), stdin=bench.batch(line(0)))
    assert done.stdout == "" and parse_batch(log.read_text(), 1).done


def test_serve_plays_what_is_delivered_until_the_last(bench: Bench) -> None:
    box = str(bench.folder / "box")
    for number in (1, 2):
        batch = bench.batch(line(0)).replace("BATCH 1", f"BATCH {number}")
        assert bench.run("deliver", box, str(number), "1000.05", stdin=batch).returncode == 0
    bench.run("finish", box)
    done = bench.run("serve", str(bench.folder / "rails"), box, "60")
    assert (done.returncode, done.stderr) == (0, "")
    assert parse_describe(done.stdout).rails["rail0"]["gid"] == "2"
    assert parse_batch(done.stdout, 1).runs[0, "rail0", PEER].rc == 0
    # By then the second batch's slot had passed: T0 was noted at delivery.
    assert parse_batch(done.stdout, 2).runs[0, "rail0", PEER].rc in (0, 125)


def test_a_long_pass_is_kept_in_a_file_since_logs_are_rotated(bench: Bench) -> None:
    script = bench.folder / "short.sh"
    script.write_text(SCRIPT.read_text().replace("LOGGED=1000\n", "LOGGED=3\n"))
    box = bench.folder / "box"
    for number in (1, 2):
        batch = bench.batch(line(0), line(1), start_in="-9999" if number == 1 else "5")
        batch = batch.replace("BATCH 1", f"BATCH {number}")
        assert bench.run("deliver", str(box), str(number), "1000.05", stdin=batch).returncode == 0
    bench.run("finish", str(box))
    done = subprocess.run(
        [*bench.shell, str(script), "serve", str(bench.folder / "rails"), str(box), "60"],
        env=bench.env(),
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    kept = (box / "kept-2").read_text()
    assert len(parse_batch(done.stdout, 1).runs) == 2 and not (box / "kept-1").exists()
    assert done.stdout.endswith(
        f"=== gpufabric batch 2 begin 2\n=== gpufabric batch 2 kept {len(kept)}\n=== gpufabric batch 2 done 2 0\n"
    )
    log = parse_batch(kept, 2)
    assert log.done and {key[0]: run.rc for key, run in log.runs.items()} == {0: 0, 1: 0}


def test_serve_ends_when_it_waits_in_vain(bench: Bench) -> None:
    done = bench.run("serve", str(bench.folder / "rails"), str(bench.folder / "box"), "30")
    assert done.returncode == 0 and "=== gpufabric idle for 30 s" in done.stdout


def test_deliver_refuses_what_arrived_in_part(bench: Bench) -> None:
    box = bench.folder / "box"
    done = bench.run("deliver", str(box), "1", "1000.05", stdin="BATCH 1 5 14\n" + line(0) + "\n")
    assert (done.returncode, done.stderr) == (2, "tester.sh: the batch did not arrive complete\n")
    assert not (box / "batch-1").exists()


def test_usage(bench: Bench) -> None:
    done = bench.run("frobnicate")
    assert done.returncode == 2 and "usage: tester.sh describe RAILS" in done.stderr


# ping of iputils answers for the sizes in a file; a hook may do more. Its calls are recorded as those of perftest.
PING = """#!/bin/sh
[ "$1" = -V ] && { echo "ping from iputils 20221126"; exit 0; }
echo "ping $*" >>"$STUB_CALLS"
while [ $# -gt 1 ]; do [ "$1" = -s ] && size=$2; shift; done
if [ "$size" -le "$(command -p cat "$STUB_OUT.ping")" ]; then
    echo "PING $1 ($1) $size($((size + 28))) bytes of data."
    echo "$((size + 8)) bytes from $1: icmp_seq=1 ttl=64 time=0.2 ms"
    printf '\\n--- %s ping statistics ---\\n3 packets transmitted, 3 received, 0%% packet loss, time 403ms\\n' "$1"
else
    printf '\\n--- %s ping statistics ---\\n3 packets transmitted, 0 received, 100%% packet loss, time 403ms\\n' "$1"
    exit 1
fi
"""
ARP = f"""IP address       HW type     Flags       HW address            Mask     Device
192.168.0.1      0x1         0x2         02:00:00:00:00:01     *        rail0
{PEER}      0x1         0x2         02:00:00:00:00:08     *        rail1
{PEER}      0x1         0x2         02:00:00:00:00:09     *        rail0
"""
# What the mesh starts beside its own programs.
NEEDED = ("cat", "head", "tail", "mkdir", "mktemp", "mv", "rm", "sh", "sleep", "timeout")
WELL = "163840 bytes in 0.00 seconds = 3000.51 Mbit/sec\n20 iters in 0.00 seconds = 21.84 usec/iter\n"


def mesh_line(role: str = "client", rail: str = "rail0", port: int = 18500) -> str:
    return f"0 {rail} {role} {PEER} {port} mesh -s 9000 -m 4096"


def meshes(bench: Bench, largest: int = 8972, arp: str = ARP) -> None:
    """Give the host the programs of the mesh, and let both sides connect."""
    write(bench.folder / "bin/ping", PING, 0o755)
    write(bench.folder / "bin/ibv_rc_pingpong", STUB, 0o755)
    write(bench.folder / "out.ping", f"{largest}\n")
    write(bench.proc / "net/arp", arp)
    write(bench.sys / "class/net/rail0/address", "02:00:00:00:00:03\n")
    write(bench.folder / "bin/ip", "#!/bin/sh\n", 0o755)
    for side in ("client", "server"):
        bench.prints(side, f"  local address:  LID 0x0000, QPN 0x000011, PSN 0x1, GID ::ffff:192.168.0.3\n{WELL}")


@pytest.mark.parametrize("role", ["client", "server"])
def test_both_sides_of_a_contact_ping_and_connect(bench: Bench, role: str) -> None:
    meshes(bench)
    run = parse_batch(bench.play(mesh_line(role)), 1).runs[0, "rail0", PEER]
    assert parse(run) == Side("02:00:00:00:00:03", "02:00:00:00:00:09", Ping(9000, 3, 3), None, CONNECTED, "")
    assert (run.rc, "QPN" in run.text, " from " in run.text) == (0, False, False)
    pings, connects = (
        [call for call in bench.calls.read_text().splitlines() if name in call] for name in ("ping -n", "ibv_rc")
    )
    assert pings == [f"ping -n -M do -s 8972 -c 3 -i 0.2 -W 1 -I 192.168.0.3 {PEER}"]
    tail = f" {PEER}" if role == "client" else ""
    assert [call.split(" ", 1)[1] for call in connects] == [f"-d mlx5_0 -i 1 -g 2 -p 18500 -m 4096 -s 4096 -n 20{tail}"]


def test_a_probe_is_bound_to_its_port_and_does_not_connect(bench: Bench) -> None:
    meshes(bench, largest=10, arp="")
    run = parse_batch(bench.play(mesh_line("probe", port=1)), 1).runs[0, "rail0", PEER]
    assert parse(run) == Side("02:00:00:00:00:03", "", Ping(9000, 3, 0))
    assert bench.calls.read_text() == f"ping -n -M do -s 8972 -c 3 -i 0.2 -W 1 -I rail0 -I 192.168.0.3 {PEER}\n"


def test_a_large_packet_that_is_lost_is_tried_again_smaller(bench: Bench) -> None:
    meshes(bench, largest=1472, arp=ARP.replace("0x2         02:00:00:00:00:09", "0x0         00:00:00:00:00:00"))
    side = parse(parse_batch(bench.play(mesh_line()), 1).runs[0, "rail0", PEER])
    assert side and (side.large, side.small) == (Ping(9000, 3, 0), Ping(84, 3, 3))
    assert (side.neighbour, side.too_large) == ("none", True)


# What ip and, where there is none, ping without an address say is recorded in tests/fixtures/mesh.
IP = """#!/bin/sh
echo "ip $*" >>"$STUB_CALLS"
echo "RTNETLINK answers: Network is unreachable" >&2
exit 2
"""


def test_the_route_of_packets_that_are_not_answered_is_looked_up(bench: Bench) -> None:
    meshes(bench, largest=10)
    write(bench.folder / "bin/ip", IP, 0o755)
    side = parse(parse_batch(bench.play(mesh_line()), 1).runs[0, "rail0", PEER])
    assert side and (side.large, side.small) == (Ping(9000, routed=False), Ping(84, 3, 0))
    assert [call for call in bench.calls.read_text().splitlines() if call.startswith("ip ")] == [
        f"ip -4 route get {PEER} from 192.168.0.3"
    ]


def test_the_route_of_a_port_in_a_vrf_is_not_looked_up_elsewhere(bench: Bench) -> None:
    meshes(bench, largest=10)
    write(bench.folder / "bin/ip", IP, 0o755)
    write(bench.sys / "class/net/rail0/master/ifindex", "7\n")
    side = parse(parse_batch(bench.play(mesh_line()), 1).runs[0, "rail0", PEER])
    assert side and side.large == Ping(9000, 3, 0)


@pytest.mark.parametrize(("tables", "routed"), [("", False), ("Id 100:\n", True)])
def test_without_ip_a_ping_without_the_address_shows_the_route(bench: Bench, tables: str, routed: bool) -> None:
    meshes(bench, largest=10)
    write(bench.proc / "net/fib_trie", tables + FIB_TRIE)
    (bench.folder / "bin/ip").unlink()
    refused = 'case $* in *" -I "* | -V) ;; *) echo "ping: connect: Network is unreachable" >&2; exit 2 ;; esac'
    write(bench.folder / "bin/ping", PING.replace("\n", f"\n{refused}\n", 1), 0o755)
    bare = bench.folder / "bare"
    for name in NEEDED:
        (bare / name).parent.mkdir(exist_ok=True)
        (bare / name).symlink_to(str(shutil.which(name)))
    run = subprocess.run(
        [str(shutil.which(bench.shell[0])), *bench.shell[1:], str(SCRIPT), "run", str(bench.folder / "rails")],
        input=bench.batch(mesh_line()),
        env={**bench.env(), "PATH": f"{bench.folder}/bin:{bare}"},
        text=True,
        capture_output=True,
        timeout=60,
    )
    side = parse(parse_batch(run.stdout, 1).runs[0, "rail0", PEER])
    assert side and side.large and side.large.routed == routed, run


def test_no_packet_is_larger_than_the_port_sends(bench: Bench) -> None:
    meshes(bench)
    write(bench.sys / "class/net/rail0/mtu", "1500\n")
    side = parse(parse_batch(bench.play(mesh_line()), 1).runs[0, "rail0", PEER])
    assert side and side.large == Ping(1500, 3, 3)


@pytest.mark.parametrize(
    ("missing", "ping", "connect"),
    [
        ("ping", "ping of iputils is not installed", ""),
        ("busybox", "ping of iputils is not installed", ""),
        ("capabilities", "ping is not permitted here", ""),
        ("ibv_rc_pingpong", "", "ibv_rc_pingpong is not installed"),
    ],
)
def test_programs_that_the_mesh_lacks_are_named(bench: Bench, missing: str, ping: str, connect: str) -> None:
    meshes(bench)
    if missing == "ibv_rc_pingpong":
        (bench.folder / "bin/ibv_rc_pingpong").unlink()
        if shutil.which("ibv_rc_pingpong"):
            pytest.skip("ibv_rc_pingpong is installed here")
    else:
        message = {
            "ping": "ping: not found",
            "busybox": "ping: invalid option -- 'V'",
            "capabilities": "timeout: failed to run command 'ping': Operation not permitted",
        }[missing]
        write(bench.folder / "bin/ping", f'#!/bin/sh\necho "{message}" >&2\nexit 127\n', 0o755)
    side = parse(parse_batch(bench.play(mesh_line()), 1).runs[0, "rail0", PEER])
    assert side and side.large and (side.large.why, side.why) == (ping, connect)
    assert side.connection == (UNCHECKED if connect else CONNECTED)


def test_a_server_of_the_mesh_ends_with_its_slot(bench: Bench) -> None:
    meshes(bench)
    bench.prints("server", "", rc=124)
    side = parse(parse_batch(bench.play(mesh_line("server")), 1).runs[0, "rail0", PEER])
    assert side and side.connection == SILENT


def test_a_port_of_the_mesh_that_is_in_use_is_named(bench: Bench) -> None:
    meshes(bench)
    side = parse(parse_batch(bench.play(mesh_line("server", port=18501)), 1).runs[0, "rail0", PEER])
    assert side and side.why == "TCP port 18501 is in use by another program"


def test_the_real_ping_of_iputils_knows_the_options(bench: Bench) -> None:
    program = shutil.which("ping")
    if not program or "iputils" not in subprocess.run([program, "-V"], text=True, capture_output=True).stdout:
        pytest.skip("no ping of iputils")
    meshes(bench)
    (bench.folder / "bin/ping").unlink()
    write(bench.folder / "rails", "rail rail0 rail0 127.0.0.1\n")
    add_device(bench.sys, "mlx5_0", "rail0", "127.0.0.1")
    line = "0 rail0 client 127.0.0.1 18500 mesh -s 9000 -m 4096"
    run = parse_batch(bench.play(line), 1).runs[0, "rail0", "127.0.0.1"]
    side = parse(run)
    assert side and side.large in (Ping(9000, 3, 3), Ping(9000, why="ping: Operation not permitted")), run.text


FOUND = ROOT / "tests/fixtures/ports"
# ethtool -m, -I --show-fec and -S, and mlxlink, with recorded output; a device of another driver knows no -I.
ETHTOOL_OF_PORTS = """#!/bin/sh
case "$1 $2" in
"-m rail0") command -p cat {0}/ethtool-qsfp-dd.txt ;;
"-I --show-fec") [ "$3" = rail0 ] && command -p cat {0}/ethtool-fec.txt || exit 1 ;;
"--show-fec rail1") echo "Active FEC encoding: BaseR" ;;
"-S rail0") printf '     rx_prio3_bytes: 7\\n     rx_csum_none: 5\\n' ;;
*) exit 1 ;;
esac
"""


def test_what_ports_show_before_and_after(bench: Bench) -> None:
    write(bench.folder / "bin/ethtool", ETHTOOL_OF_PORTS.format(FOUND), 0o755)
    write(
        bench.folder / "bin/mlxlink",
        f'#!/bin/sh\n[ "$*" = "-d mlx5_1 -m -c --json" ] && command -p cat {FOUND}/mlxlink-cx8.json\n',
        0o755,
    )
    for name in ("rail0", "rail1"):
        (bench.sys / "class/net" / name / "device").mkdir()
    # Rail 1 is a virtual function, next to whose port is its representor.
    functions = bench.sys / "class/net/vf1/device/physfn/net"
    for name in ("rail1", "rep1"):
        (functions / name).mkdir(parents=True)
    write(functions / "rep1/phys_port_name", "pf0vf0\n")
    device = bench.sys / "class/net/rail1/device"
    write(device / "vendor", "0x15b3\n")
    (device / "infiniband/mlx5_1").mkdir(parents=True)
    # Rail 0 is a VLAN on a bond.
    for upper, lower in (("vlan7", "bond0"), ("bond0", "rail0")):
        (bench.sys / "class/net" / upper / f"lower_{lower}").mkdir(parents=True)
    write(bench.folder / "rails", "rail rail0 vlan7 -\nrail rail1 vf1\n")
    found = parse_ports(bench.run("ports", str(bench.folder / "rails")).stdout)
    assert {rail: list(devices) for rail, devices in found.items()} == {"rail0": ["rail0"], "rail1": ["rail1"]}
    one, other = found["rail0"]["rail0"], found["rail1"]["rail1"]
    assert (one.values["temperature"], len(one.limits), one.fec) == ({0: 70.49}, 12, "RS")
    assert one.counters == {"uptime": 1000, "corrected_blocks": 0, "uncorrectable_blocks": 0, "rx_prio3_bytes": 7}
    assert (other.fec, other.values["received"][3], other.raw) == ("BaseR", -9, 2e-9)
    # After the tests too, and nothing of it disturbs the log.
    log = bench.play(line(0, rail="rail1"))
    later = parse_ports(log)
    assert later["rail0"]["rail0"].counters.pop("uptime") > 1000 == one.counters.pop("uptime")
    assert later["rail0"] == found["rail0"] and later["rail1"]["rail1"].values == other.values
    assert list(parse_batch(log, 1).runs) == [(0, "rail1", PEER)]
    assert parse_batch(log, 1).done and log.splitlines()[-1].startswith("=== gpufabric batch 1 done 1")
    # What the tester leaves out has no meaning here.
    assert shown((FOUND / "ethtool-qsfp-dd.txt").read_text()).values == one.values


def test_a_line_of_a_port_that_does_not_fit_shows_no_smaller_number(bench: Bench) -> None:
    (bench.sys / "class/net/rail0/device").mkdir()
    script = (
        '#!/bin/sh\n[ "$1" = -S ] && for one in $(command -p seq 100000 101000); do echo rx_prio1_bytes: $one; done\n'
    )
    write(bench.folder / "bin/ethtool", script, 0o755)
    printed = bench.run("ports", str(bench.folder / "rails")).stdout
    lines = [one for one in printed.splitlines() if one.startswith("rx_")]
    assert 300 < len(lines) < 370 and all(len(one) == len("rx_prio1_bytes: 100000") for one in lines)


def test_a_port_whose_tools_hang_is_given_up(tmp_path: Path) -> None:
    """The time of a port ends, whatever becomes of a program that a driver does not let go. Two seconds."""
    bench = Bench(tmp_path, SHELLS[0].values[0])
    for name in ("rail0", "rail1"):
        (bench.sys / "class/net" / name / "device").mkdir()
    cases = '"-m rail0") exec sleep 4 ;; "--show-fec rail1") echo "Active FEC encoding: RS" ;; *) exit 1 ;;'
    write(bench.folder / "bin/ethtool", f'#!/bin/sh\ncase "$1 $2" in {cases} esac\n', 0o755)
    shorter = f'#!/bin/sh\n[ "$3" != 25 ] || {{ shift 3; set -- -k 1 2 "$@"; }}\nexec {shutil.which("timeout")} "$@"\n'
    write(bench.folder / "bin/timeout", shorter, 0o755)
    found = parse_ports(bench.run("ports", str(bench.folder / "rails")).stdout)
    assert found["rail0"]["rail0"].unread == "its tools did not answer in time"
    assert (found["rail1"]["rail1"].fec, found["rail1"]["rail1"].unread) == ("RS", "")


def test_ports_without_ethtool_are_told(bench: Bench) -> None:
    (bench.sys / "class/net/rail0/device").mkdir()
    only(bench, "timeout", "mktemp", "rm", "mkdir", "cat", "tr", "head", "sh", "sed")
    found = parse_ports(bench.run("ports", str(bench.folder / "rails")).stdout)
    assert found["rail0"]["rail0"].unread == "ethtool is not installed" and "rail1" not in found
