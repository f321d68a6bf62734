"""kernel_cmdline through main() on file trees of hosts; a stand-in plays grub-mkconfig with a real shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.module_run import run
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import command

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "boot"
#: What the real program does with the settings, and no more.
MKCONFIG = """set -e
. "$1/default/grub"
if [ "$2" = folder ]; then for x in "$1"/default/grub.d/*.cfg; do if [ -e "$x" ]; then . "$x"; fi; done; fi
printf '%s\\n%s\\n' "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT"
"""
#: What entries for rescue begin with: Debian and SUSE, Ubuntu.
RESCUE = ("single", "recovery nomodeset dis_ucode_ldr")
DROPIN = "etc/default/grub.d/zz-gpufabric.cfg"
MACHINE = "0123456789abcdef0123456789abcdef"
Make = Callable[[str], Host]


@pytest.fixture()
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    def build(name: str) -> Host:
        host = Host(tmp_path / "host", {})
        shutil.copytree(FIXTURES / name, host.root)
        for program in ("grub-mkconfig", "grub2-mkconfig"):
            if (host.root / "usr/sbin" / program).exists():
                host.prints[str(host.root / "usr/sbin" / program)] = ""
        host.reacts = lambda argv: mkconfig(host, argv)
        monkeypatch.setattr(command, "run", host.run)
        monkeypatch.setattr(command, "find", host.find)
        return host

    return build


def mkconfig(host: Host, argv: list[str]) -> str | None:
    """Make a grub.cfg of the settings: each line of Linux gets what the shell says."""
    reads = "grub.d" in Path(argv[0]).read_text()
    done = subprocess.run(
        ["sh", "-c", MKCONFIG, "sh", str(host.root / "etc"), "folder" if reads else ""],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return done.stderr
    always, normal = done.stdout.splitlines()
    (old,) = host.root.glob("boot/grub*/grub.cfg")
    # Ubuntu's 10_linux adds it behind "splash".
    handoff = " $vt_handoff" if "set vt_handoff" in old.read_text() and "splash" in normal.split() else ""

    def line(match: re.Match[str]) -> str:
        rescue = next((words for words in RESCUE if f" {words}" in match.group()), None)
        return f"{match.group(1)} ro {f'{rescue} {always}' if rescue else f'{always} {normal}{handoff}'}"

    Path(argv[2]).write_text(re.sub(r"(linux\t\S+ root=UUID=\w+) ro.*", line, old.read_text()))
    return None


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    return run("kernel_cmdline", capsys, check, **{"iommu": "none", **host.options(), **params})


def files(host: Host) -> dict[str, bytes]:
    return {str(path.relative_to(host.root)): path.read_bytes() for path in host.root.rglob("*") if path.is_file()}


def menu(host: Host) -> list[str]:
    """The command lines of grub.cfg."""
    (path,) = host.root.glob("boot/grub*/grub.cfg")
    return [
        " ".join(words)
        for words in re.findall(r"linux\s+\S+ root=UUID=\w+ ro ?(.*)", path.read_text())
        for words in [words.split()]
    ]


def reboot(host: Host) -> None:
    """The running kernel gets the first command line of the boot loader."""
    (host.root / "proc/cmdline").write_text(f"BOOT_IMAGE=/vmlinuz {menu(host)[0]}\n")
    shutil.rmtree(host.root / "run", ignore_errors=True)


def test_grub_gets_a_dropin_and_a_new_menu(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    result = call(host, capsys, arguments=["iommu=pt", "console=ttyS1"], arguments_absent=["quiet"])
    assert (result["changed"], result["loader"]) == (True, "GRUB")
    assert result["arguments"] == {
        "iommu=pt": {"live": False, "found": False, "next_boot": True},
        "console=ttyS1": {"live": False, "found": False, "next_boot": True},
        "quiet": {"live": True, "found": True, "next_boot": False},
    }
    assert result["reasons"] == [
        "iommu=pt takes effect at the next boot",
        "console=ttyS1 takes effect at the next boot",
        "quiet is removed at the next boot",
    ]
    assert (host.root / "run/gpufabric/reboot.d/kernel_cmdline").read_text().splitlines() == result["reasons"]
    normal = "console=tty0 console=ttyS0,115200 iommu=pt console=ttyS1"
    assert menu(host) == [normal, normal, "single console=tty0 console=ttyS0,115200"]
    assert [argv[1] for argv in host.ran] == ["-o"]
    assert [path.name for path in (host.root / "boot/grub").iterdir()] == ["grub.cfg"]


def test_a_second_run_changes_nothing_and_a_boot_takes_the_reasons(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    host = make("debian-13")
    wish: dict[str, Any] = {"arguments": ["iommu=pt"], "arguments_absent": ["quiet"]}
    call(host, capsys, **wish)
    before = files(host)
    again = call(host, capsys, **wish)
    assert (again["changed"], len(again["reasons"]), files(host)) == (False, 2, before)
    reboot(host)
    booted = call(host, capsys, **wish)
    assert (booted["changed"], booted["reboot_required"], booted["reasons"]) == (False, False, [])
    assert [path for path in (host.root / "run").rglob("*") if path.is_file()] == []


TREES = ["debian-13", "ubuntu-24.04", "sles-15", "rocky-9", "systemd-boot"]


@pytest.mark.proves("host_kernel", "Debian 13", "Ubuntu 24.04", "RHEL 9", "Rocky 9", "SLES 15", by="fixture")
@pytest.mark.parametrize("tree", TREES)
def test_absent_gives_back_what_was_there(make: Make, tree: str, capsys: pytest.CaptureFixture[str]) -> None:
    host = make(tree)
    before = files(host)
    pages = [{"size": "1G", "count": 4, "at": "boot"}]
    wish: dict[str, Any] = {"arguments": ["pci=realloc", "console=ttyS1"], "arguments_absent": ["quiet"]}
    assert call(host, capsys, hugepages=pages, **wish)["changed"] is True
    assert call(host, capsys, hugepages=pages, **wish)["changed"] is False
    result = call(host, capsys, state="absent")
    assert (result["changed"], result["reasons"]) == (True, [])
    after = files(host)
    if tree == "debian-13":
        # The stand-in puts the arguments in its own order.
        assert menu(host)[0] == "console=tty0 console=ttyS0,115200 quiet iommu=soft"
    assert {k: v for k, v in after.items() if not k.endswith("grub.cfg")} == {
        k: v for k, v in before.items() if not k.endswith("grub.cfg")
    }
    assert call(host, capsys, state="absent")["changed"] is False


def test_absent_after_the_boot_waits_for_one_more(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    call(host, capsys, arguments=["iommu=pt"], arguments_absent=["quiet"])
    reboot(host)
    expected = ["iommu=pt is removed at the next boot", "quiet takes effect at the next boot"]
    assert call(host, capsys, state="absent")["reasons"] == expected
    again = call(host, capsys, state="absent")
    assert (again["changed"], again["reasons"]) == (False, expected)
    reboot(host)
    assert call(host, capsys, state="absent")["reasons"] == []
    assert not (host.root / "var/lib/gpufabric").exists()


@pytest.mark.parametrize("tree", TREES)
def test_check_mode_predicts_and_changes_nothing(make: Make, tree: str, capsys: pytest.CaptureFixture[str]) -> None:
    host = make(tree)
    before = files(host)
    predicted = call(host, capsys, check=True, arguments=["iommu=pt"], arguments_absent=["quiet"])
    assert files(host) == before
    real = call(host, capsys, arguments=["iommu=pt"], arguments_absent=["quiet"])
    del predicted["invocation"], real["invocation"]
    assert predicted == real


def test_a_menu_that_was_not_made_is_noticed(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    host.reacts = lambda argv: "no space left on device"
    result = call(host, capsys, arguments=["iommu=pt"])
    assert result["msg"] == (
        f"kernel_cmdline: '{host.root}/usr/sbin/grub-mkconfig -o {host.root}/boot/grub/grub.cfg.gpufabric' failed with "
        "status 2: no space left on device"
    )
    # As before, or the next update of a kernel would bring what this run reported as failed.
    assert not (host.root / DROPIN).exists() and "iommu=pt" not in menu(host)[0]
    host.reacts = lambda argv: mkconfig(host, argv)
    assert call(host, capsys, arguments=["iommu=pt"])["changed"] is True
    assert "iommu=pt" in menu(host)[0]


def test_a_way_back_that_was_cut_is_noticed(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    call(host, capsys, arguments=["iommu=pt"])
    host.reacts = lambda argv: "killed"
    assert "killed" in call(host, capsys, state="absent")["msg"]
    assert (host.root / DROPIN).exists() and "iommu=pt" in menu(host)[0]
    host.reacts = lambda argv: mkconfig(host, argv)
    assert call(host, capsys, state="absent")["changed"] is True
    assert "iommu=pt" not in menu(host)[0]


def test_fewer_arguments_leave_the_menu_too(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    call(host, capsys, arguments=["iommu=pt", "pci=realloc"])
    reboot(host)
    result = call(host, capsys, arguments=["iommu=pt"])
    assert (result["changed"], result["reasons"]) == (True, ["pci=realloc is removed at the next boot"])
    assert "pci=realloc" not in menu(host)[0]


def test_an_argument_of_somebody_else_is_not_repeated_and_stays(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    call(host, capsys, arguments=["iommu=soft", "console=tty0"])
    assert menu(host)[0] == "console=tty0 console=ttyS0,115200 quiet iommu=soft"
    call(host, capsys, state="absent")
    assert menu(host)[0] == "console=tty0 console=ttyS0,115200 quiet iommu=soft"


def test_who_overrides_the_dropin_is_named_and_the_old_menu_stays(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    host = make("debian-13")
    later = host.root / "etc/default/grub.d/zzz-site.cfg"
    later.write_text('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    before = (host.root / "boot/grub/grub.cfg").read_text()
    result = call(host, capsys, arguments=["iommu=pt"])
    assert result["msg"] == (
        "kernel_cmdline: the menu generated by grub-mkconfig is not as requested for iommu=pt: found 'root=UUID=39d3 "
        "ro console=tty0 console=ttyS0,115200 quiet'. It was not installed. Check what else sets the command line: "
        f"{later}"
    )
    assert (host.root / "boot/grub/grub.cfg").read_text() == before
    # Nothing is left that the next update of a kernel would make a menu of.
    assert not (host.root / DROPIN).exists()


def test_quotes_and_pairs_reach_grub(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    wish = ['dyndbg="file drivers/x.c +p"', "hugepagesz=2M hugepages=64"]
    pages = [{"size": "1048576kB", "count": 4, "at": "boot"}]
    assert call(host, capsys, arguments=wish, hugepages=pages)["changed"] is True
    assert menu(host)[0].endswith('dyndbg="file drivers/x.c +p" hugepagesz=2M hugepages=64 hugepagesz=1G hugepages=4')
    # GRUB puts the quotes elsewhere when it hands the line to the kernel.
    live = menu(host)[0].replace('dyndbg="file', '"dyndbg=file')
    (host.root / "proc/cmdline").write_text(f"BOOT_IMAGE=/vmlinuz {live}\n")
    result = call(host, capsys, arguments=wish, hugepages=pages)
    assert (result["changed"], result["reasons"]) == (False, [])


def test_the_menu_of_ubuntu(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("ubuntu-24.04")
    (host.root / "proc/sys/kernel").mkdir(parents=True)
    (host.root / "proc/sys/kernel/arch").write_text("x86_64\n")
    crash = "crashkernel=2G-4G:320M,4G-32G:512M,32G-64G:1024M,64G-128G:2048M,128G-:4096M"
    wish: dict[str, Any] = {"iommu": "passthrough", "arguments": ["pci=realloc"], "arguments_absent": ["splash"]}
    result = call(host, capsys, **wish)
    assert (result["changed"], result["loader"]) == (True, "GRUB")
    normal = f"quiet {crash} amd_iommu=on iommu=pt pci=realloc"
    rescue = "recovery nomodeset dis_ucode_ldr"
    assert menu(host) == [normal, normal, rescue, normal, rescue]
    (host.root / "proc/cmdline").write_text(f"BOOT_IMAGE=/boot/vmlinuz root=UUID=7c1e ro {normal}\n")
    booted = call(host, capsys, **wish)
    assert (booted["changed"], booted["reasons"]) == (False, [])


def test_suse_reads_the_dropin_by_one_line(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("sles-15")
    before = (host.root / "etc/default/grub").read_text()
    call(host, capsys, arguments=["iommu=pt"], arguments_absent=["security"])
    added = (host.root / "etc/default/grub").read_text().replace(before, "")
    assert added == (
        f"# Written by gpufabric.rdma.kernel_cmdline, which removes it with state: absent.\n. {host.root}/{DROPIN}\n"
    )
    assert menu(host)[0] == "console=tty0 console=ttyS0,115200 quiet iommu=pt"


NINE = ("5.14.0-503.el9.x86_64", "5.14.0-427.el9.x86_64")
TEN = ("6.12.0-124.8.1.el10_1.x86_64", "6.12.0-55.9.1.el10_0.x86_64")


def entry(host: Host, kernel: str = NINE[0]) -> Path:
    return host.root / f"boot/loader/entries/{MACHINE}-{kernel}.conf"


@pytest.mark.proves("host_kernel", "RHEL 10", "Rocky 10", by="unit")
@pytest.mark.parametrize("kernels", [NINE, TEN])
def test_entries_of_the_rhel_family(make: Make, capsys: pytest.CaptureFixture[str], kernels: tuple[str, ...]) -> None:
    """Releases 9 and 10 write the same entries, of other kernels."""
    host = make("rocky-9")
    for nine, kernel in zip(NINE, kernels):
        text = entry(host, nine).read_text()
        entry(host, nine).unlink()
        entry(host, kernel).write_text(text.replace(nine, kernel))
    rescue = entry(host, f"0-rescue-{MACHINE}").read_text()
    result = call(host, capsys, arguments=["iommu=pt", "console=ttyS1"], arguments_absent=["quiet"])
    assert (result["changed"], result["loader"]) == (True, "GRUB with entries")
    for kernel in kernels:
        assert (
            entry(host, kernel)
            .read_text()
            .splitlines()[4]
            .endswith("console=tty0 console=ttyS0,115200 $tuned_params iommu=pt console=ttyS1")
        )
    assert (host.root / "etc/kernel/cmdline").read_text().endswith("console=ttyS0,115200 iommu=pt console=ttyS1\n")
    assert entry(host, f"0-rescue-{MACHINE}").read_text() == rescue
    assert host.ran == []


def test_a_kernel_that_came_after_us_is_taken_back_too(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("rocky-9")
    call(host, capsys, arguments=["iommu=pt"], arguments_absent=["quiet"])
    line = (host.root / "etc/kernel/cmdline").read_text().strip()
    newer = entry(host, "5.14.0-570.el9.x86_64")
    newer.write_text(f"version 5.14.0-570\nlinux /vmlinuz-5.14.0-570\noptions {line}\n")
    assert call(host, capsys, arguments=["iommu=pt"], arguments_absent=["quiet"])["changed"] is False
    call(host, capsys, state="absent")
    assert "iommu=pt" not in newer.read_text() and newer.read_text().endswith(" quiet\n")


def test_an_entry_that_was_right_already_stays_so(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("rocky-9")
    entry(host).write_text(entry(host).read_text().replace(" quiet", " iommu=pt quiet"))
    before = files(host)
    call(host, capsys, arguments=["iommu=pt"])
    assert entry(host).read_bytes() == before[str(entry(host).relative_to(host.root))]
    assert call(host, capsys, arguments=["iommu=pt"])["changed"] is False
    call(host, capsys, state="absent")
    assert files(host) == before


def test_an_entry_without_options_stays_so(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("rocky-9")
    entry(host).write_text("linux /vmlinuz\n")
    call(host, capsys, arguments_absent=["quiet"])
    assert entry(host).read_text() == "linux /vmlinuz\n"
    call(host, capsys, arguments=["a"])
    assert entry(host).read_text() == "linux /vmlinuz\noptions a\n"


def test_blanks_of_others_come_back(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("rocky-9")
    entry(host).write_text(entry(host).read_text().replace(" quiet", "  quiet ") + "\n")
    (host.root / "etc/kernel/cmdline").write_text("root=/dev/mapper/rl-root\nro  quiet")
    before = files(host)
    for wish in ({"arguments": ["iommu=pt"]}, {"arguments_absent": ["quiet"]}, {"arguments": ["a"]}):
        call(host, capsys, **wish)
        assert call(host, capsys, **wish)["changed"] is False
    assert (host.root / "etc/kernel/cmdline").read_text() == "root=/dev/mapper/rl-root ro quiet a"
    call(host, capsys, state="absent")
    assert files(host) == before


def test_a_file_for_new_kernels_that_was_made_goes(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("systemd-boot")
    (host.root / "proc/cmdline").write_text("root=UUID=39d3 ro quiet iommu=pt\n")
    before = files(host)
    call(host, capsys, arguments=["iommu=pt"])
    assert (host.root / "etc/kernel/cmdline").read_text() == "root=UUID=39d3 ro quiet iommu=pt\n"
    (host.root / "proc/cmdline").write_text("root=UUID=39d3 ro quiet\n")
    call(host, capsys, state="absent")
    (host.root / "proc/cmdline").write_text("root=UUID=39d3 ro quiet iommu=pt\n")
    assert files(host) == before


def test_what_others_add_to_an_entry_stays(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("rocky-9")
    call(host, capsys, arguments=["iommu=pt"], arguments_absent=["quiet"])
    entry(host).write_text(entry(host).read_text().replace("iommu=pt", "iommu=pt fips=1"))
    call(host, capsys, state="absent")
    assert entry(host).read_text().splitlines()[4].endswith("$tuned_params fips=1 quiet")


def test_a_cut_between_entries_is_repaired(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("rocky-9")
    before = files(host)
    call(host, capsys, arguments=["iommu=pt"])
    old = before[str(entry(host).relative_to(host.root))]
    entry(host).write_bytes(old)
    assert call(host, capsys, arguments=["iommu=pt"])["changed"] is True
    assert "iommu=pt" in entry(host).read_text()
    call(host, capsys, state="absent")
    assert files(host) == before


def test_systemd_boot_gets_entries_and_a_file_for_new_kernels(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("systemd-boot")
    other = {path: text for path, text in files(host).items() if "ffff" in path or "tool" in path}
    result = call(host, capsys, arguments=["iommu=pt"])
    assert (result["changed"], result["loader"]) == (True, "systemd-boot")
    path = host.root / f"efi/loader/entries/{MACHINE}-6.12.107+deb13-amd64.conf"
    assert f"options    root=UUID=39d3 ro quiet systemd.machine_id={MACHINE} iommu=pt\n" in path.read_text()
    assert (host.root / "etc/kernel/cmdline").read_text() == "root=UUID=39d3 ro quiet iommu=pt\n"
    assert {path: text for path, text in files(host).items() if path in other} == other


def test_a_boot_for_rescue_does_not_become_that_of_new_kernels(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("systemd-boot")
    (host.root / "proc/cmdline").write_text("root=UUID=39d3 ro systemd.unit=rescue.target enforcing=0\n")
    call(host, capsys, arguments=["iommu=pt"])
    assert (host.root / "etc/kernel/cmdline").read_text() == "root=UUID=39d3 ro quiet iommu=pt\n"
    for path in (host.root / "efi/loader/entries").glob(f"{MACHINE}-*"):
        path.write_text(path.read_text().replace(" quiet", " quiet single emergency"))
    (host.root / "etc/kernel/cmdline").unlink()
    call(host, capsys, arguments=["iommu=pt", "a"])
    assert (host.root / "etc/kernel/cmdline").read_text() == "root=UUID=39d3 ro quiet iommu=pt a\n"


@pytest.mark.parametrize("text", ["rd.luks.uuid=1", "rootflags=ro", "systemd.unit=rescue.target", "single", "rd.break"])
def test_what_decides_the_boot_is_refused(make: Make, capsys: pytest.CaptureFixture[str], text: str) -> None:
    message = f"kernel_cmdline: kernel argument '{text}' can prevent the host from booting. Set it manually"
    host = make("debian-13")
    for wish in ({"arguments": [text]}, {"arguments_absent": [text]}):
        assert call(host, capsys, **wish)["msg"] == message


def test_a_host_without_wishes_is_not_looked_at(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    (host.root / "boot/grub/grub.cfg").unlink()
    for state in ("present", "absent"):
        result = call(host, capsys, state=state)
        assert (result["changed"], result["loader"], result["reasons"]) == (False, "", [])


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (
            lambda root: (root / "proc/cmdline").write_text("ro quiet\n"),
            "the boot loader of this host is not supported: expected GRUB with one grub.cfg, or systemd-boot; found "
            "LoaderInfo 'none', BOOT_IMAGE= not in the running command line, {root}/boot/grub2/grub.cfg. Set the "
            "kernel arguments manually, and request none: iommu: none, no arguments, no hugepages at: boot",
        ),
        (
            lambda root: shutil.rmtree(root / "boot/loader"),
            "this host boots with GRUB with entries, but loader/entries has no entry of this machine (found: none). "
            "Kernel arguments can be changed only in entries of the Boot Loader Specification (type 1)",
        ),
        (
            lambda root: (root / f"boot/loader/entries/{MACHINE}-5.14.0-503.el9.x86_64.conf").write_text(
                "linux /vmlinuz\noptions $kernelopts\n"
            ),
            "the options of {root}/boot/loader/entries/0123456789abcdef0123456789abcdef-5.14.0-503.el9.x86_64.conf "
            "are in the environment of GRUB (kernelopts). Move them into the entries first: grubby --update-kernel=ALL "
            "--args=ro",
        ),
    ],
)
def test_refusals(make: Make, spoil: Callable[[Path], Any], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("rocky-9")
    spoil(host.root)
    before = files(host)
    result = call(host, capsys, arguments=["iommu=pt"])
    assert result["msg"] == f"kernel_cmdline: {expected.format(root=host.root)}"
    assert files(host) == before


def groups(host: Host, *types: str) -> None:
    for number, kind in enumerate(types):
        folder = host.root / f"sys/kernel/iommu_groups/{number}"
        folder.mkdir(parents=True)
        (folder / "type").write_text(f"{kind}\n")


def test_iommu_auto_asks_for_passthrough_where_dma_is_translated(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    host = make("debian-13")
    assert call(host, capsys, iommu="auto")["changed"] is False
    groups(host, "DMA-FQ", "identity")
    assert list(call(host, capsys, iommu="auto")["arguments"]) == ["iommu=pt"]
    reboot(host)
    shutil.rmtree(host.root / "sys/kernel")
    groups(host, "identity", "identity")
    assert call(host, capsys, iommu="auto")["changed"] is False
    (host.root / "var/lib/gpufabric/kernel_cmdline.json").unlink()
    call(host, capsys, iommu="auto")
    assert "iommu=pt" in menu(host)[0]


def test_iommu_auto_leaves_what_others_gave_the_kernel_to_them(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    (host.root / "proc/cmdline").write_text("ro iommu=pt\n")
    (host.root / "boot/grub/grub.cfg").unlink()
    groups(host, "identity")
    assert call(host, capsys, iommu="auto")["loader"] == ""


def test_iommu_auto_leaves_a_virtual_machine_alone(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    groups(host, "DMA-FQ")
    (host.root / "proc/cpuinfo").write_text("vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor\n")
    assert call(host, capsys, iommu="auto")["arguments"] == {}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ("debian-13", ["intel_iommu=on", "iommu=pt"]),
        ("rocky-9", ["amd_iommu=on", "iommu=pt"]),
    ],
)
def test_iommu_passthrough_by_vendor(
    make: Make, tree: str, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    host = make(tree)
    (host.root / "proc/sys/kernel").mkdir(parents=True)
    (host.root / "proc/sys/kernel/arch").write_text("x86_64\n")
    assert list(call(host, capsys, iommu="passthrough")["arguments"]) == expected
    assert list(call(host, capsys, iommu="passthrough", arguments_absent=["iommu"])["arguments"])[0] == expected[0]


def test_the_record_says_what_it_was(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    host = make("debian-13")
    call(host, capsys, arguments=["iommu=pt"], arguments_absent=["quiet"])
    record = json.loads((host.root / "var/lib/gpufabric/kernel_cmdline.json").read_text())
    assert record["before"] == {"iommu=pt": False, "quiet": True}


def cut(monkeypatch: pytest.MonkeyPatch, host: Host, step: int) -> None:
    """The power goes before the given one of all changes to the disk."""
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
    host.reacts = counted(lambda argv: mkconfig(host, argv))


def settled(host: Host) -> dict[str, bytes]:
    """The files of a host, without drafts and what the stand-in of GRUB puts in an order of its own."""
    found = {path: text for path, text in files(host).items() if ".gpufabric" not in path}
    return {path: b"" if path.endswith("grub.cfg") else text for path, text in found.items()}


@pytest.mark.parametrize("first", ["present", "absent"])
@pytest.mark.parametrize("tree", TREES)
def test_a_power_cut_at_any_step_is_repaired_by_the_next_run(
    make: Make, tree: str, first: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wish: dict[str, Any] = {"arguments": ["pci=realloc"], "arguments_absent": ["quiet"]}
    for step in range(20):
        host = make(tree)
        before, state = settled(host), {"state": "absent"} if first == "absent" else wish
        if first == "absent":
            call(host, capsys, **wish)
        with monkeypatch.context() as patch:
            cut(patch, host, step)
            try:
                call(host, capsys, **state)
                break
            except KeyboardInterrupt:
                host.reacts = lambda argv: mkconfig(host, argv)  # noqa: B023
        call(host, capsys, **wish)
        again = call(host, capsys, **wish)
        assert (again["changed"], set(v["next_boot"] for v in again["arguments"].values())) == (False, {True, False})
        call(host, capsys, state="absent")
        assert settled(host) == before, step
        shutil.rmtree(host.root)
    assert 2 < step < 19


@pytest.mark.parametrize("tree", TREES)
def test_check_mode_predicts_the_way_back(make: Make, tree: str, capsys: pytest.CaptureFixture[str]) -> None:
    host = make(tree)
    call(host, capsys, arguments=["iommu=pt"], arguments_absent=["quiet"])
    predicted = call(host, capsys, check=True, state="absent")
    real = call(host, capsys, state="absent")
    del predicted["invocation"], real["invocation"]
    assert predicted == real
