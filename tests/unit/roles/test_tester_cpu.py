"""What the tester reads of its CPUs and its CPU limit, and whose an address of a /32 is without ip. Cost: 4 s."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.roles.test_tester import CALICO, PEER, SCRIPT, SHELLS, Bench, add_device, in_network, line, write

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import (
    Endpoint,
    parse_batch,
    parse_describe,
)

POD = "kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope"
# As the kernels 6.1 (version 2) and 4.18 (version 1) print them; the path of a container's own namespace is "/".
V2, V2_HOST, V1 = "0::/\n", f"0::/{POD}\n", "4:memory:/pod\n3:cpu,cpuacct:/pod\n1:name=systemd:/pod\n"


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, request.param)


def limited(bench: Bench, cgroup: str, folder: str, **files: str) -> None:
    write(bench.proc / "self/cgroup", cgroup)
    for name, text in files.items():
        write(bench.sys / "fs/cgroup" / folder / name.replace("__", "."), f"{text}\n")


def described(bench: Bench) -> Endpoint:
    done = bench.run("describe", str(bench.folder / "rails"))
    assert (done.returncode, done.stderr) == (0, "")
    return parse_describe(done.stdout)


STAT = "usage_usec 5\nnr_periods 100\nnr_throttled 7\nthrottled_usec 900"


@pytest.mark.parametrize(
    ("cgroup", "folder", "files", "quota"),
    [
        (V2, ".", {"cpu__max": "400000 100000"}, "4.00"),
        (V2, ".", {"cpu__max": "max 100000"}, "-"),
        (V2_HOST, POD, {"cpu__max": "50000 100000"}, "0.50"),
        # The path of a host leads to nothing in a container.
        (V2_HOST, ".", {"cpu__max": "200000 100000"}, "2.00"),
        (V1, "cpu/pod", {"cpu__cfs_quota_us": "150000", "cpu__cfs_period_us": "100000"}, "1.50"),
        (V1, "cpu", {"cpu__cfs_quota_us": "150000", "cpu__cfs_period_us": "100000"}, "1.50"),
        (V1, "cpu", {"cpu__cfs_quota_us": "-1", "cpu__cfs_period_us": "100000"}, "-"),
        ("", ".", {"cpu__max": "400000 100000"}, "-"),
    ],
)
def test_the_limit_of_a_tester(bench: Bench, cgroup: str, folder: str, files: dict[str, str], quota: str) -> None:
    limited(bench, cgroup, folder, **files)
    write(bench.sys / "devices/system/cpu/online", "0-7\n")
    host = described(bench).host
    assert (host["quota"], host["online"], host["allowed"]) == (quota, "0-7", "0-3")


def test_without_such_files_nothing_is_known(bench: Bench) -> None:
    host = described(bench).host
    assert (host["quota"], host["online"], host["allowed"]) == ("-", "-", "-")


@pytest.mark.parametrize("quota", ["400000 100000", "max 100000"])
def test_how_often_the_limit_stopped_a_test(bench: Bench, quota: str) -> None:
    limited(bench, V2, ".", cpu__max=quota, cpu__stat=STAT)
    stat = bench.sys / "fs/cgroup/cpu.stat"
    bench.hook(f'printf "nr_periods 160\\nnr_throttled 37\\n" >"{stat}"\n')
    run = parse_batch(bench.play(line(0)), 1).runs[0, "rail0", PEER]
    grown = {name: run.amounts.get(name) for name in ("nr_periods", "nr_throttled")}
    assert grown == ({"nr_periods": 60, "nr_throttled": 30} if quota[0] == "4" else dict.fromkeys(grown))
    # It is no counter of the port.
    assert not run.counters and run.rc == 0


def lone(*addresses: str) -> str:
    return "".join(f"     |-- {address}\n        /32 host LOCAL\n" for address in addresses)


def without_ip(bench: Bench) -> Endpoint:
    for name in ("timeout", "taskset", "cat"):
        (bench.folder / "bin" / name).symlink_to(str(shutil.which(name)))
    shell = [str(shutil.which(bench.shell[0])), *bench.shell[1:]]
    done = subprocess.run(
        [*shell, str(SCRIPT), "describe", str(bench.folder / "rails")],
        env={**bench.env(), "PATH": f"{bench.folder}/bin"},
        text=True,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return parse_describe(done.stdout)


def test_without_ip_the_address_of_a_pod_is_not_that_of_a_rail(bench: Bench) -> None:
    """rail1 has no address; the /32 of eth0 has no GID, and was taken for it."""
    in_network(bench, (CALICO[0] + lone("10.9.0.1"), CALICO[1]))
    add_device(bench.sys, "mlx5_0", "rail0", "10.9.0.1")
    found = without_ip(bench)
    assert found.rails["rail0"]["address"] == "10.9.0.1"
    assert found.error("rail1") == "rail1 has no IPv4 address"
    assert found.host["control"] == "10.244.3.17"


def test_without_ip_several_rails_and_the_pod_have_addresses_of_a_32(bench: Bench) -> None:
    in_network(bench, (CALICO[0] + lone("10.9.0.1", "10.9.1.1"), CALICO[1]))
    for number in (0, 1):
        add_device(bench.sys, f"mlx5_{number}", f"rail{number}", f"10.9.{number}.1")
    found = without_ip(bench)
    assert [found.rails[rail]["address"] for rail in ("rail0", "rail1")] == ["10.9.0.1", "10.9.1.1"]
    assert found.host["control"] == "10.244.3.17"


def test_without_ip_a_gid_of_another_name_counts_if_it_is_the_only_one(bench: Bench) -> None:
    """Pods see the names of network devices of other namespaces."""
    in_network(bench, (CALICO[0] + lone("10.9.0.1"), CALICO[1]))
    add_device(bench.sys, "mlx5_0", "elsewhere", "10.9.0.1")
    shutil.rmtree(bench.sys / "class/net/elsewhere", ignore_errors=True)
    write(bench.folder / "rails", "rail rail0 rail0\n")
    assert without_ip(bench).rails["rail0"]["address"] == "10.9.0.1"
