"""The tester script with stand-ins for perftest, on a made-up /sys and /proc with a clock that sleep moves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.evidence import (
    parse_batch,
    parse_describe,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.perftest import parse_bandwidth, reading

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "roles" / "rdma_validate" / "files" / "tester.sh"
SAMPLES = json.loads((ROOT / "tests" / "fixtures" / "perftest" / "25.01.json").read_text())["cases"]
ARGS = "-F --report_gbits -c RC -q 1 -s 65536 -t 16 -D 6 -f 1"
# The address of the peer, which tells the frames of a rail apart.
PEER = "192.168.0.9"
SHELLS = [pytest.param(name.split(), id=name.split()[0], marks=pytest.mark.skipif(
    shutil.which(name.split()[0]) is None, reason=f"no {name}")) for name in ("dash", "bash --posix", "busybox sh")]

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
cat "$STUB_OUT.$side.stdout"
cat "$STUB_OUT.$side.stderr" >&2
read -r rc <"$STUB_OUT.$side.rc"
exit "$rc"
"""
# Moves the clock by what is slept; whole seconds and tenths.
SLEEP = """#!/bin/sh
read -r up idle <"$GPUFABRIC_PROC/uptime"
cs=$((${up%.*} * 100 + 1${up#*.} - 100))
case $1 in 0.*) cs=$((cs + 10)) ;; *) cs=$((cs + $1 * 100)) ;; esac
printf '%d.%02d %s\\n' $((cs / 100)) $((cs % 100)) "$idle" >"$GPUFABRIC_PROC/uptime.$$"
mv "$GPUFABRIC_PROC/uptime.$$" "$GPUFABRIC_PROC/uptime"
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


class Bench:
    """A folder with stand-in tools, sysfs, proc, and the script to run there."""

    def __init__(self, folder: Path, shell: list[str]) -> None:
        self.folder, self.shell = folder, shell
        self.sys, self.proc, self.calls = folder / "sys", folder / "proc", folder / "calls"
        for name in ("ib_write_bw", "ib_read_bw"):
            write(folder / "bin" / name, STUB, 0o755)
        write(folder / "bin" / "slumber", SLEEP, 0o755)
        write(self.proc / "uptime", "1000.05 2000.00\n")
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

    def plays(self, case: str) -> None:
        """Let perftest print and end as in a recorded case."""
        for side in ("client", "server"):
            run = SAMPLES[case].get(side) or {"stdout": "", "stderr": "", "rc": 143}
            for part in ("stdout", "stderr", "rc"):
                write(self.folder / f"out.{side}.{part}", str(run[part]) + ("\n" if part == "rc" else ""))

    def uptime(self) -> float:
        return float((self.proc / "uptime").read_text().split()[0])

    def run(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        folder = str(self.folder)
        env = {
            "PATH": f"{folder}/bin:{os.environ['PATH']}", "TMPDIR": folder, "GPUFABRIC_SYS": str(self.sys),
            "GPUFABRIC_PROC": str(self.proc), "GPUFABRIC_ETC": f"{folder}/etc",
            "GPUFABRIC_SLEEP": f"{folder}/bin/slumber", "STUB_OUT": f"{folder}/out", "STUB_CALLS": str(self.calls),
        }
        return subprocess.run([*self.shell, str(SCRIPT), *args], input=stdin, env=env, text=True,
                              capture_output=True, timeout=60, start_new_session=True)

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
        "device": "mlx5_1", "port": "1", "netdev": "rail1", "gid": "2", "gid_type": "RoCE v2", "mtu": "4096",
        "address": "192.168.1.3", "rate": "100 Gb/sec (4X EDR)", "numa": "1", "cpus": "0",
    }
    assert {key: found.host[key] for key in ("perftest", "control", "clock", "machine_id")} == {
        "perftest": "6.24", "control": "10.0.2.15", "clock": "tsc", "machine_id": "0123"}


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
        ("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2", "IB/RoCE v1\n",
         "no RDMA device has a RoCE v2 GID for 192.168.0.3 of rail0"),
        ("proc/net/fib_trie", "Main:\n", "rail0 has no IPv4 address"),
        ("rails", "rail rail0 nic7\n", "there is no network device nic7"),
    ],
)
def test_describe_says_why_a_rail_cannot_be_used(bench: Bench, path: str, text: str, error: str) -> None:
    write(bench.folder / path, text)
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    assert found.error("rail0") == error


def test_infiniband_uses_gid_0(bench: Bench) -> None:
    write(bench.sys / "class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n")
    (bench.sys / "class/infiniband/mlx5_0/device/net/rail0").mkdir(parents=True)
    found = parse_describe(bench.run("describe", str(bench.folder / "rails")).stdout)
    assert (found.rails["rail0"]["gid"], found.rails["rail0"]["gid_type"]) == ("0", "IB")


def test_both_rails_of_a_round_are_played_and_framed(bench: Bench) -> None:
    out = bench.play(line(0), line(0, "rail1", "server", 18503))
    log = parse_batch(out, 1)
    assert log.done and "=== gpufabric batch 1 done 2 0" in out
    client, server = log.runs[0, "rail0", PEER], log.runs[0, "rail1", PEER]
    sample, reason = reading(client, server, 65536)
    assert reason == "" and sample is not None and sample.average == 0.63 and sample.mtu == 4096
    calls = bench.calls.read_text()
    assert f"ib_write_bw -d mlx5_0 -i 1 -x 2 -p 18500 {ARGS} {PEER}\n" in calls
    assert f"ib_write_bw -d mlx5_1 -i 1 -x 2 -p 18503 {ARGS}\n" in calls


def test_rounds_begin_on_the_clock(bench: Bench) -> None:
    out = bench.play(line(0, role="server", port=18503), line(3, role="server", port=18503), start_in="5")
    starts = [part.split()[0] for part in out.split(" start=")[1:]]
    assert starts == ["1005", str(1005 + 3 * 14)]


def test_a_late_tester_says_which_rounds_it_missed(bench: Bench) -> None:
    out = bench.play(line(0), line(1), line(2), start_in="-20")
    log = parse_batch(out, 1)
    assert "=== gpufabric batch 1 done 1 2" in out
    assert [log.runs[n, "rail0", PEER].text for n in (0, 1)] == [
        "gpufabric: missed the round, 20 s late", "gpufabric: missed the round, 6 s late"]
    assert log.runs[2, "rail0", PEER].rc == 0


@pytest.mark.parametrize("case", sorted(SAMPLES))
def test_every_recorded_ending_comes_through(case: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["sh"])
    bench.plays(case)
    out = bench.play(line(0), line(0, "rail1", "server", 18503))
    log = parse_batch(out, 1)
    for rail, side in (("rail0", "client"), ("rail1", "server")):
        run = SAMPLES[case].get(side)
        if run is None:
            continue
        assert log.runs[0, rail, PEER].rc == run["rc"]
        assert parse_bandwidth(log.runs[0, rail, PEER].text) == parse_bandwidth(run["stdout"])
        assert len(log.runs[0, rail, PEER].text) <= 2048
        for text in (run["stderr"] or "").strip().splitlines()[:1]:
            assert text.strip() in log.runs[0, rail, PEER].text


def test_the_client_tries_again_until_its_server_listens_but_not_too_late(bench: Bench) -> None:
    bench.plays("err_refused")
    log = parse_batch(bench.play(line(0), slot=20), 1)
    assert "Couldn't connect to" in log.runs[0, "rail0", PEER].text and log.runs[0, "rail0", PEER].rc == 1
    # The slot leaves 20 - 2 seconds, a run needs 6 + 2, the client begins in second 1: about ten tries.
    assert 8 <= bench.calls.read_text().count("ib_write_bw") <= 11
    assert bench.uptime() < 1000 + 5 + 20 - 1


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
        assert bench.run("deliver", box, str(number), stdin=batch).returncode == 0
    bench.run("finish", box)
    done = bench.run("serve", str(bench.folder / "rails"), box, "60")
    assert (done.returncode, done.stderr) == (0, "")
    assert parse_describe(done.stdout).rails["rail0"]["gid"] == "2"
    assert parse_batch(done.stdout, 1).runs[0, "rail0", PEER].rc == 0
    # By then the second batch's slot had passed: T0 was noted at delivery.
    assert parse_batch(done.stdout, 2).runs[0, "rail0", PEER].rc in (0, 125)


def test_serve_ends_when_it_waits_in_vain(bench: Bench) -> None:
    done = bench.run("serve", str(bench.folder / "rails"), str(bench.folder / "box"), "30")
    assert done.returncode == 0 and "=== gpufabric idle for 30 s" in done.stdout


def test_deliver_refuses_what_arrived_in_part(bench: Bench) -> None:
    box = bench.folder / "box"
    done = bench.run("deliver", str(box), "1", stdin="BATCH 1 5 14\n" + line(0) + "\n")
    assert (done.returncode, done.stderr) == (2, "tester.sh: the batch did not arrive complete\n")
    assert not (box / "batch-1").exists()


def test_usage(bench: Bench) -> None:
    done = bench.run("frobnicate")
    assert done.returncode == 2 and "usage: tester.sh describe RAILS" in done.stderr
