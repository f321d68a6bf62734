"""kernel_settings through main() on a tree that plays the kernel: sysctl, hugepages, modules."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support.module_run import run, warned
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.kernel import settings as kernel_settings
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.kernel.requirements import Hugepages
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import command, files

BIG = "kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
SMALL = "kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
NODE = "devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
TITLE = "# Written by gpufabric.rdma.kernel_settings, which removes it with state: absent.\n"
WISH: dict[str, Any] = {
    "modules": ["nvme-rdma"],
    "module_options": {"mlx5_core": "prof_sel=3"},
    "sysctl": {"kernel.numa_balancing": False, "net.ipv4.tcp_rmem": "4096 87380  6291456"},
    "hugepages": [{"size": "2M", "count": 512}, {"size": "1G", "count": 4, "at": "boot"}],
}


def put(host: Host, path: str, text: str) -> None:
    (host.root / path).parent.mkdir(parents=True, exist_ok=True)
    (host.root / path).write_text(text)


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path / "host", {})
    put(made, "proc/sys/kernel/numa_balancing", "1\n")
    put(made, "proc/sys/kernel/osrelease", "6.12.1\n")
    put(made, "proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
    put(made, "proc/meminfo", "MemTotal:       16000000 kB\n")
    put(made, "sys/module/mlx5_core/parameters/prof_sel", "2\n")
    for path in (SMALL, BIG, NODE):
        put(made, f"sys/{path}", "0\n")
    made.reacts = lambda argv: modprobe(made, argv)
    monkeypatch.setattr(command, "run", made.run)
    # A file of the kernel takes each write as a whole value.
    monkeypatch.setattr(os, "O_WRONLY", os.O_WRONLY | os.O_TRUNC)
    return made


def modprobe(host: Host, argv: list[str]) -> str | None:
    folder = host.root / "sys/module" / argv[-1]
    if argv[1] == "--remove":
        folder.rmdir()
    elif argv[1] == "nf_conntrack":
        folder.mkdir()
        put(host, "proc/sys/net/netfilter/nf_conntrack_max", "262144\n")
    elif argv[1].startswith("no"):
        return f"FATAL: Module {argv[1]} not found"
    else:
        folder.mkdir()
    return None


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**host.options()}
    return run("kernel_settings", capsys, check, **{**options, **params})


def files_of(host: Host) -> dict[str, str]:
    return {str(p.relative_to(host.root)): p.read_text() for p in host.root.rglob("*") if p.is_file()}


def test_nothing_asked_is_memlock_alone(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_of(host)
    result = call(host, capsys)
    assert (result["changed"], result["reboot_required"]) == (True, False)
    path = "etc/security/limits.d/90-gpufabric-memlock.conf"
    assert {k: v for k, v in files_of(host).items() if k not in before} == {
        path: f"{TITLE}* - memlock unlimited\nroot - memlock unlimited\n"
    }
    assert call(host, capsys)["changed"] is False
    assert call(host, capsys, memlock="")["changed"] is True
    assert files_of(host) == before


def test_everything_is_set_now_and_kept(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys, **WISH)
    assert (result["changed"], result["reasons"]) == (True, ["mlx5_core prof_sel=3 takes effect at the next boot"])
    now = files_of(host)
    assert now["proc/sys/kernel/numa_balancing"] == "0"
    assert now["proc/sys/net/ipv4/tcp_rmem"] == "4096 87380 6291456"
    assert (now[f"sys/{SMALL}"], now[f"sys/{BIG}"]) == ("512", "0\n")
    assert host.ran == [["modprobe", "nvme_rdma"]]
    assert {k: v.replace(TITLE, "") for k, v in now.items() if k.startswith("etc/")} == {
        "etc/modules-load.d/gpufabric-kernel.conf": "nvme_rdma\n",
        "etc/modprobe.d/gpufabric-kernel.conf": "options mlx5_core prof_sel=3\n",
        "etc/sysctl.d/90-gpufabric-kernel.conf": "kernel/numa_balancing = 0\nnet/ipv4/tcp_rmem = 4096 87380 6291456\n",
        "etc/security/limits.d/90-gpufabric-memlock.conf": "* - memlock unlimited\nroot - memlock unlimited\n",
        "etc/tmpfiles.d/gpufabric-hugepages.conf": f"w /sys/{SMALL} - - - - 512\n",
    }


def test_a_second_run_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, **WISH)
    before = files_of(host)
    host.ran.clear()
    assert call(host, capsys, **WISH)["changed"] is False
    assert (files_of(host), host.ran) == (before, [])


def test_what_others_changed_since_is_not_undone(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, **WISH)
    put(host, "proc/sys/kernel/numa_balancing", "2\n")
    put(host, f"sys/{SMALL}", "100\n")
    changed = (
        "Another tool changed it, so it is not restored, and its record is removed. Before the first change it was"
    )
    assert warned(call(host, capsys, state="absent")) == [
        f"kernel/numa_balancing: found 2, expected 0 as set by this collection. {changed} 1",
        f"{SMALL}: found 100, expected 512 as set by this collection. {changed} 0",
    ]
    now = files_of(host)
    assert (now["proc/sys/kernel/numa_balancing"], now[f"sys/{SMALL}"]) == ("2\n", "100\n")
    assert now["proc/sys/net/ipv4/tcp_rmem"] == "4096 131072 6291456"
    assert call(host, capsys, state="absent")["changed"] is False


def test_check_mode_predicts_and_changes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_of(host)
    predicted = call(host, capsys, check=True, **WISH)
    assert (files_of(host), host.ran) == (before, [])
    real = call(host, capsys, **WISH)
    del predicted["invocation"], real["invocation"]
    assert predicted == real


def test_absent_gives_back_what_was_there(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: " ".join(text.split()) for path, text in files_of(host).items()}
    call(host, capsys, **WISH)
    call(host, capsys, **{**WISH, "sysctl": {"kernel.numa_balancing": 2}})
    assert files_of(host)["proc/sys/net/ipv4/tcp_rmem"] == "4096 131072 6291456"
    result = call(host, capsys, state="absent")
    assert (result["changed"], result["reasons"]) == (True, [])
    assert {path: " ".join(text.split()) for path, text in files_of(host).items()} == before
    assert not (host.root / "sys/module/nvme_rdma").exists()
    assert call(host, capsys, state="absent")["changed"] is False


def test_module_options_leave_with_a_boot_too(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, module_options={"mlx5_core": "prof_sel=3"})
    put(host, "sys/module/mlx5_core/parameters/prof_sel", "3\n")
    assert call(host, capsys, module_options={"mlx5_core": "prof_sel=3"})["reasons"] == []
    expected = ["mlx5_core prof_sel=2 takes effect at the next boot"]
    assert call(host, capsys, state="absent")["reasons"] == expected
    again = call(host, capsys, state="absent")
    assert (again["changed"], again["reasons"]) == (False, expected)
    put(host, "sys/module/mlx5_core/parameters/prof_sel", "2\n")
    assert call(host, capsys, state="absent")["reasons"] == []
    assert not (host.root / "var/lib/gpufabric").exists()


def test_a_module_that_was_there_stays(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / "sys/module/nvme_rdma").mkdir()
    call(host, capsys, modules=["nvme_rdma"])
    call(host, capsys, state="absent")
    assert host.ran == []


def test_a_part_of_the_kernel_is_loaded(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    put(host, "usr/lib/modules/6.12.1/modules.builtin", "kernel/drivers/nvme/nvme-rdma.ko\n")
    assert call(host, capsys, modules=["nvme_rdma"])["diff"]["before"]["modules"] == ["nvme_rdma"]


def test_a_module_brings_its_keys(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    wish: dict[str, Any] = {"modules": ["nf_conntrack"], "sysctl": {"net.netfilter.nf_conntrack_max": 524288}}
    assert call(host, capsys, **wish)["changed"] is True
    assert files_of(host)["proc/sys/net/netfilter/nf_conntrack_max"] == "524288"
    assert call(host, capsys, **wish)["changed"] is False


def test_a_module_that_does_not_bring_the_key(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    result = call(host, capsys, modules=["nvme_rdma"], sysctl={"net.absent": 1})
    assert result["msg"] == (
        "kernel_settings: this kernel has no sysctl net.absent (no /proc/sys/net/absent); correct the name, or load "
        "the module that provides it (option modules)"
    )
    assert not (host.root / "etc").exists()


def test_an_interrupted_run_still_knows_the_values_before(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cut(path: str, value: str) -> None:
        raise KeyboardInterrupt

    before = {path: " ".join(text.split()) for path, text in files_of(host).items()}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files, "set_kernel", cut)
        call(host, capsys, **WISH)
    assert (host.root / "etc/sysctl.d").exists()
    call(host, capsys, **WISH)
    call(host, capsys, state="absent")
    assert {path: " ".join(text.split()) for path, text in files_of(host).items()} == before


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (
            {"sysctl": {"vm.absent": 1}},
            "this kernel has no sysctl vm.absent (no /proc/sys/vm/absent); correct the name, or load the module that "
            "provides it (option modules)",
        ),
        ({"sysctl": {"swappiness": 1}}, "'swappiness' is not a valid sysctl key; expected one such as vm.swappiness"),
        ({"sysctl": {"a/../../etc": 1}}, "'a/../../etc' is not a valid sysctl key; expected one such as vm.swappiness"),
        ({"memlock": "all"}, "memlock is 'all'; expected unlimited, a number of KiB, or an empty string"),
        ({"modules": ["a b"]}, "'a b' is not a valid kernel module name; expected letters, digits, '_' and '-'"),
        ({"module_options": {"a": "b\nc"}}, "the value of 'a' has more than one line; write it as one"),
        (
            {"hugepages": [{"size": "64k", "count": 1}]},
            "hugepages of 64 kB are not supported (no /sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages). Request "
            "another size",
        ),
        (
            {"hugepages": [{"size": "2M", "count": 1, "numa_node": 7}]},
            "hugepages of 2048 kB are not supported on NUMA node 7 (no "
            "/sys/devices/system/node/node7/hugepages/hugepages-2048kB/nr_hugepages). Request another size",
        ),
        (
            {"hugepages": [{"size": "1G", "count": 99}]},
            "hugepages: 103809024 kB requested, but the host has 16000000 kB of memory. Reduce the number of pages",
        ),
        ({"modules": ["nosuch"]}, "'modprobe nosuch' failed with status 2: FATAL: Module nosuch not found"),
    ],
)
def test_refusals_write_nothing(
    host: Host, wish: dict[str, Any], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(host, capsys, **wish)["msg"] == f"kernel_settings: {expected}"
    assert not (host.root / "etc").exists()


@pytest.mark.parametrize(
    ("name", "text", "conflict"),
    [
        ("99-site.conf", "kernel.numa_balancing = 1\n", True),
        ("99-site.conf", "-kernel/numa_balancing=1\n", True),
        ("99-site.conf", "kernel.numa_balancing = 0\n", False),
        ("99-site.conf", "# kernel.numa_balancing = 1\n", False),
        ("99-site.conf", "kernel.numa_* = 1\n", False),
        ("10-site.conf", "kernel.numa_balancing = 1\n", False),
    ],
)
def test_a_later_file_is_named(
    host: Host, name: str, text: str, conflict: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    put(host, f"etc/sysctl.d/{name}", text)
    result = call(host, capsys, sysctl={"kernel.numa_balancing": 0})
    assert ("msg" in result) == conflict
    if conflict:
        assert result["msg"] == (
            f"kernel_settings: sysctl kernel.numa_balancing: {host.root}/etc/sysctl.d/{name} is "
            f"applied after the file of this "
            "module and sets '1', but '0' is requested. Change that file, or request the same value"
        )


def fragmented(most: int, real: Callable[[str, str], None]) -> Callable[[str, str], None]:
    """A kernel that finds only ``most`` pages."""

    def set_kernel(path: str, value: str) -> None:
        if path.endswith("nr_hugepages") and int(value) > most:
            Path(path).write_text(f"{most}\n")
            raise FabricError("not taken")
        real(path, value)

    return set_kernel


def test_memory_that_is_fragmented(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "set_kernel", fragmented(130, files.set_kernel))
    put(host, f"sys/{SMALL}", "16\n")
    result = call(host, capsys, hugepages=[{"size": "2M", "count": 512}])
    assert result["msg"] == (
        "kernel_settings: hugepages: 512 of 2048 kB requested, 130 allocated: memory is fragmented. The former "
        "number, 16, was restored. Allocate them at boot (at: boot)"
    )
    assert files_of(host)[f"sys/{SMALL}"].strip() == "16"


def test_a_number_that_the_kernel_refused_does_not_stop_the_way_back(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys, hugepages=[{"size": "2M", "count": 16}], sysctl={"kernel.numa_balancing": 0})
    monkeypatch.setattr(files, "set_kernel", fragmented(130, files.set_kernel))
    assert call(host, capsys, hugepages=[{"size": "2M", "count": 512}])["failed"]
    assert files_of(host)[f"sys/{SMALL}"].strip() == "16"
    assert warned(call(host, capsys, state="absent")) == []
    assert files_of(host)[f"sys/{SMALL}"].strip() == "0"
    assert files_of(host)["proc/sys/kernel/numa_balancing"].strip() == "1"


def test_pages_of_a_node(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys, hugepages=[{"size": "2M", "count": 8, "numa_node": 1}])
    assert (files_of(host)[f"sys/{NODE}"], files_of(host)[f"sys/{SMALL}"]) == ("8", "0\n")
    assert json.loads((host.root / "var/lib/gpufabric/kernel_settings.json").read_text()) == {"pages": {NODE: 0}}


def test_sysctl_keys_of_both_forms() -> None:
    assert kernel_settings.sysctl_path("net.ipv4.conf.eth0/1.forwarding") == "net/ipv4/conf/eth0.1/forwarding"
    assert kernel_settings.sysctl_path("net/ipv4/conf/eth0.1/forwarding") == "net/ipv4/conf/eth0.1/forwarding"
    assert kernel_settings.pages_path(Hugepages(2048, 1, 1, False)) == NODE


@given(st.text(alphabet="ab./=-#* \n", max_size=40))
def test_files_of_others_raise_nothing_else(text: str) -> None:
    want = kernel_settings.Want(sysctl={"a/b": "1"})
    have = kernel_settings.Have({}, (), {"a/b": "1"}, {}, {}, {"/etc/sysctl.d/99.conf": text}, 1)
    try:
        plan = kernel_settings.plan_settings(want, have, {}, etc="/etc")
    except FabricError:
        return
    assert plan.change.after["sysctl"] == {"a/b": "1"}


def cut(monkeypatch: pytest.MonkeyPatch, host: Host, step: int) -> None:
    """The power goes before the given one of all changes to disk and kernel."""
    done = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def act(*args: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done > step:
                raise KeyboardInterrupt
            return real(*args, **named)

        return act

    for name in ("replace", "unlink"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    monkeypatch.setattr(files, "set_kernel", counted(files.set_kernel))
    host.reacts = counted(lambda argv: modprobe(host, argv))


def boot(host: Host) -> None:
    """After a power cut: a fresh kernel that reads the files which it finds."""
    values = {"kernel/numa_balancing": "1", "net/ipv4/tcp_rmem": "4096 131072 6291456"}
    pages = {SMALL: "0"}
    etc = host.root / "etc"
    for line in read_lines(etc / "sysctl.d/90-gpufabric-kernel.conf"):
        key, _equals, value = line.partition(" = ")
        values[key] = value
    for line in read_lines(etc / "tmpfiles.d/gpufabric-hugepages.conf"):
        pages[line.split()[1].replace("/sys/", "")] = line.split()[-1]
    for key, value in values.items():
        put(host, f"proc/sys/{key}", value)
    for path, count in pages.items():
        put(host, f"sys/{path}", count)
    loaded = read_lines(etc / "modules-load.d/gpufabric-kernel.conf")
    folder = host.root / "sys/module/nvme_rdma"
    if folder.exists() and "nvme_rdma" not in loaded:
        folder.rmdir()
    elif "nvme_rdma" in loaded:
        folder.mkdir(exist_ok=True)


def read_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("#")] if path.exists() else []


@pytest.mark.parametrize("first", ["present", "absent"])
@pytest.mark.parametrize("booted", [True, False])
def test_a_cut_at_any_step_is_repaired_by_the_next_run(
    host: Host, first: str, booted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def settled() -> dict[str, str]:
        return {path: " ".join(text.split()) for path, text in files_of(host).items()}

    before = settled()
    for step in range(30):
        if first == "absent":
            call(host, capsys, **WISH)
        with monkeypatch.context() as patch:
            cut(patch, host, step)
            try:
                call(host, capsys, **({"state": "absent"} if first == "absent" else WISH))
                break
            except KeyboardInterrupt:
                host.reacts = lambda argv: modprobe(host, argv)
        if booted:
            boot(host)
        call(host, capsys, **WISH)
        assert call(host, capsys, **WISH)["changed"] is False
        assert call(host, capsys, state="absent")["reasons"] == []
        assert settled() == before, step
    assert 8 < step < 29
