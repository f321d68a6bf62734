# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nccl.sh: settings of a host, and collectives of two pods through the real hydra, without GPUs.

Takes about eight seconds with hydra (package mpich), and is skipped in part without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.nccl.output import parse

SCRIPT = Path(__file__).resolve().parents[3] / "roles/nccl_validate/files/nccl.sh"
RAIL = 'rail {0} device=mlx5_{1} port=1 netdev=net1 gid={2} gid_type="RoCE v2" address=10.0.0.1'
IP = """#!/bin/sh
case "$*" in
*route*) echo "default via 10.0.0.1 dev eth0 proto dhcp" ;;
*) echo "2: eth0    inet 127.0.0.1/8 brd 127.255.255.255 scope global eth0" ;;
esac
"""
PROGRAM = """#!/bin/sh
echo "#  Rank $PMI_RANK Group 0 Pid 1 on h device $MPI_LOCALRANKID [0000:1b:00] NVIDIA H100"
[ "$PMI_RANK" != 0 ] || echo "  42  1  float  sum  -1  1.0  46.80  46.80  0  1.0  46.80  46.80  0"
log=$(echo "$NCCL_DEBUG_FILE" | sed s/%p/$$/)
echo "NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA $NCCL_IB_HCA" >"$log"
[ "$PMI_RANK" != "${FAILING:-none}" ] || exit 7
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the script beside a tester, programs in ``bin``, and ``work`` for each pod."""
    shutil.copy(SCRIPT, tmp_path / "nccl.sh")
    rails(tmp_path, RAIL.format("rail0", 0, 3), RAIL.format("rail1", 1, 3))
    for name, text in (("ip", IP), ("all_reduce_perf", PROGRAM)):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "work").mkdir()
    (tmp_path / "rails").write_text("")
    (tmp_path / "tests").write_text("")
    return tmp_path


def rails(folder: Path, *lines: str) -> None:
    text = "\n".join(["=== gpufabric describe v1", *lines, "=== gpufabric described 2"])
    (folder / "tester.sh").write_text(f"cat <<'EOT'\n{text}\nEOT\n")


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "TMPDIR": f"{folder}/work",
        "GPUFABRIC_NCCL_PORT": "28400",
    }


def serve(folder: Path, index: int) -> list[str]:
    return [
        "sh",
        f"{folder}/nccl.sh",
        "serve",
        f"{folder}/rails",
        f"{folder}/tests",
        "127.0.0.1",
        str(index),
        "2",
        "2",
        "20",
    ]


@pytest.mark.parametrize(
    ("lines", "settings"),
    [
        ((("rail0", 4, 3), ("rail1", 1, 3)), ["NCCL_IB_HCA==mlx5_4:1,mlx5_1:1", "NCCL_IB_GID_INDEX=3"]),
        (
            (("rail0", 4, 3), ("rail1", 1, 5)),
            ["NCCL_IB_HCA==mlx5_4:1,mlx5_1:1", "NCCL_IB_ROCE_VERSION_NUM=2", "NCCL_IB_ADDR_FAMILY=AF_INET"],
        ),
    ],
)
def test_settings_of_a_host(folder: Path, lines: tuple[tuple[object, ...], ...], settings: list[str]) -> None:
    rails(folder, *(RAIL.format(*line) for line in lines))
    done = subprocess.run(serve(folder, 0), env=environment(folder), capture_output=True, text=True, check=True)
    found = [f"{name}={value}" for name, value in parse(done.stdout).environment.items()]
    assert found == [*settings, "NCCL_SOCKET_IFNAME==eth0", "MPICH_INTERFACE_HOSTNAME=127.0.0.1"]


def test_a_rail_that_cannot_be_used_ends_the_pod_with_the_reason(folder: Path) -> None:
    rails(folder, 'rail rail1 error="no address on net1"')
    done = subprocess.run(serve(folder, 0), env=environment(folder), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "no address on net1" in done.stdout
    assert not parse(done.stdout).done


def test_a_rank_runs_the_programs_of_nccl_tests_only(folder: Path) -> None:
    (folder / "work/environment").write_text("NCCL_IB_HCA==mlx5_4:1\n")
    command = ["sh", f"{folder}/nccl.sh", "rank", "A=1", "--", "cat", "/etc/passwd"]
    done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "cat is not a program of nccl-tests\n")


HYDRA = """#!/bin/sh
echo "HYDRA_LAUNCH: sh {0}/first --proxy-id 0 "
echo "HYDRA_LAUNCH: sh {0}/forged --proxy-id 1 "
echo "HYDRA_LAUNCH: sh {0}/forged --proxy-id 0 "
echo HYDRA_LAUNCH_END
echo "HYDRA_LAUNCH: sh {0}/forged --proxy-id 0 "
echo HYDRA_LAUNCH_END
"""


def test_text_that_looks_like_a_command_of_the_launcher_is_not_executed(folder: Path) -> None:
    (folder / "bin/mpiexec.hydra").write_text(HYDRA.format(folder))
    (folder / "bin/mpiexec.hydra").chmod(0o755)
    for name in ("first", "forged"):
        (folder / name).write_text(f"echo {name} >>{folder}/ran\n")
    (folder / "tests").write_text("1 20 all_reduce_perf NCCL_ALGO=RING -- -b 42\n")
    done = subprocess.run(serve(folder, 0), env=environment(folder), capture_output=True, text=True, check=True)
    assert parse(done.stdout).runs[1].rc == 0
    assert (folder / "ran").read_text() == "first\n"
    # The other pods take the first command of their index alone.
    (folder / "ran").unlink()
    forged = (
        HYDRA.format(folder)
        .replace("forged --proxy-id 1", "first --proxy-id 1")
        .replace("--proxy-id 0", "--proxy-id 1")
    )
    (folder / "bin/mpiexec.hydra").write_text(forged)
    subprocess.run(serve(folder, 1), env=environment(folder), capture_output=True, text=True, check=True)
    assert (folder / "ran").read_text() == "first\n"


def test_connections_are_counted_in_the_pod_so_that_large_groups_are_not_cut(folder: Path) -> None:
    channel = "h:1:2 [0] NCCL INFO Channel 00/0 : $at[0] -> 1[0] [send] via NET/IB/0($at)/GDRDMA"
    log = f'for at in $(seq 20000); do echo "{channel}"; done'
    using = "h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]"
    per_connection = "h:1:2 [0] NCCL INFO NET/IB: mlx5_0 qpn 7"
    more = "\n".join(f'echo "{line}"' for line in (using, per_connection, "h:1:2 [0] misc/x.cc:1 NCCL WARN odd"))
    (folder / "bin/mpiexec.hydra").write_text(
        f"#!/bin/sh\necho HYDRA_LAUNCH_END\n({log}\n{more}) >$TMPDIR/nccl.log.1\n"
    )
    (folder / "bin/mpiexec.hydra").chmod(0o755)
    (folder / "tests").write_text("1 20 all_reduce_perf NCCL_ALGO=RING -- -b 42\n")
    done = subprocess.run(serve(folder, 0), env=environment(folder), capture_output=True, text=True, check=True)
    run = parse(done.stdout).runs[1]
    assert (run.cut, run.transports, run.used) == (False, {"NET/IB/GDRDMA": 20000}, {0})
    assert (run.devices, run.warnings) == ({"mlx5_0:1"}, ["odd"])
    assert "qpn" not in done.stdout


MOUNTS = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not (shutil.which("mpiexec.hydra") and MOUNTS), reason="needs mpiexec.hydra (mpich) and root")
def test_two_pods_start_each_collective_through_hydra(folder: Path) -> None:
    lines = ["1 20 all_reduce_perf NCCL_ALGO=RING -- -b 42", "2 20 all_reduce_perf FAILING=3 -- -b 42"]
    (folder / "tests").write_text("\n".join(lines) + "\n")
    # In pods, each host has files of its own at the same path.
    apart = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs "$TMPDIR" && exec "$@"', "sh"]
    pods = [
        subprocess.Popen([*apart, *serve(folder, index)], env=environment(folder), stdout=subprocess.PIPE, text=True)
        for index in (1, 0)
    ]
    second, first = (parse(pod.communicate(timeout=60)[0]) for pod in pods)
    assert (first.done, second.done) == (True, True)
    assert (first.runs[1].rc, first.runs[1].value, sum(first.runs[1].ranks.values())) == (0, 46.8, 4)
    assert (second.runs[1].rc, second.runs[1].value) == (0, None)
    assert first.runs[1].transports == second.runs[1].transports == {"NET/IB/GDRDMA": 2}
    assert first.runs[2].rc == 7
