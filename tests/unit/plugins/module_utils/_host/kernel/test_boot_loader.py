"""Boot loaders: what a shell makes of the drop-in, and texts that nobody expects."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.kernel import boot_loader, requirements
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.kernel.boot_loader import Evidence
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.kernel.cmdline import Wanted, merge, parse
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.kernel.requirements import Cpu, Hugepages

FIXTURES = Path(__file__).resolve().parents[5] / "fixtures" / "boot"
NAMES = ["iommu", "quiet", "console", "hugepagesz", "pci", "foo_bar", "a.b"]
words = st.one_of(
    st.sampled_from(NAMES), st.builds("{}={}".format, st.sampled_from(NAMES), st.sampled_from(["pt", "on", "1G,2", ""]))
)
lines = st.lists(words, max_size=5).map(" ".join)
texts = st.text(alphabet=st.sampled_from('linux \t\n"=#ab{}$/optinsmeury-0'), max_size=80)


def shell(program: str, dropin: str, always: str, normal: str) -> str:
    """The command line that grub-mkconfig would write, in the strict mode in which it runs."""
    script = f'set -e\nGRUB_CMDLINE_LINUX="{always}"\nGRUB_CMDLINE_LINUX_DEFAULT="{normal}"\n{dropin}\n'
    script += 'printf "%s %s" "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT"\n'
    return subprocess.run([program, "-c", script], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("program", ["sh", "bash"])
@settings(max_examples=60)
@given(lines, lines, st.lists(words, max_size=3), st.lists(words, max_size=2))
def test_the_shell_does_what_merge_does(
    program: str, always: str, normal: str, present: list[str], absent: list[str]
) -> None:
    taken = {argument for text in present for argument in parse(text)}
    wanted = Wanted.from_texts(present, [text for text in absent if parse(text)[0] not in taken])
    found = parse(shell(program, boot_loader.dropin(wanted), always, normal))
    assert Counter(found) == Counter(merge(parse(f"{always} {normal}"), wanted))
    assert wanted.state(found) == wanted.goal()


def test_the_dropin_of_a_host() -> None:
    assert boot_loader.dropin(Wanted.from_texts(["hugepagesz=1G hugepages=16", 'x="a b"'], [])) == (
        "# Written by gpufabric.rdma.kernel_cmdline, which removes it with state: absent.\n"
        "gpufabric_filter() {\n"
        "  gpufabric_kept=\n"
        "  for gpufabric_word in $1; do\n"
        '    case "$gpufabric_word" in\n'
        '      "hugepagesz"="1G"|"hugepages"="16"|"x"="a b") ;;\n'
        '      "x"|"x"=*) continue ;;\n'
        "    esac\n"
        '    gpufabric_kept="$gpufabric_kept${gpufabric_kept:+ }$gpufabric_word"\n'
        "  done\n"
        "}\n"
        "set -f\n"
        'gpufabric_filter "$GRUB_CMDLINE_LINUX"\n'
        'GRUB_CMDLINE_LINUX="$gpufabric_kept"\n'
        'gpufabric_filter "$GRUB_CMDLINE_LINUX_DEFAULT"\n'
        'GRUB_CMDLINE_LINUX_DEFAULT="$gpufabric_kept"\n'
        "set +f\n"
        'case " $GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT " in\n'
        '  *" hugepagesz=1G hugepages=16 "*) ;;\n'
        '  *) GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT hugepagesz=1G hugepages=16" ;;\n'
        "esac\n"
        'case " $GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT " in\n'
        '  *" x=\\"a b\\" "*) ;;\n'
        '  *) GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT x=\\"a b\\"" ;;\n'
        "esac\n"
    )


@given(texts, lines)
def test_entries_and_menus_raise_nothing_else(text: str, line: str) -> None:
    try:
        boot_loader.menu_lines(text)
        boot_loader.is_own_entry("x.conf", text, "1")
        boot_loader.options_of("x.conf", text)
    except FabricError:
        return
    assert boot_loader.options_of("x.conf", boot_loader.with_options(text, line)) == line


@given(st.sampled_from(["", "GRUB 2.12", "systemd-boot 257", "rEFInd"]), lines, texts, st.booleans())
def test_detection_raises_nothing_else(info: str, live: str, menu: str, has_entry: bool) -> None:
    entries = {"/boot/loader/entries/a.conf": "linux /a"} if has_entry else {}
    try:
        found = boot_loader.detect(Evidence(info, parse(live), {"/boot/grub/grub.cfg": menu}, entries, ()))
    except FabricError:
        return
    assert found.menu or has_entry


@pytest.mark.parametrize(
    ("info", "live", "menu", "images", "expected"),
    [
        ("GRUB 2.12", "ro", "menuentry", (), "GRUB"),
        ("", "BOOT_IMAGE=/vmlinuz ro", "menuentry", (), "GRUB"),
        (
            "",
            "BOOT_IMAGE=/vmlinuz ostree=/ostree/boot.1",
            "menuentry",
            (),
            "this is an ostree system, which manages kernel arguments itself. Set them with rpm-ostree kargs",
        ),
        (
            "systemd-boot 257",
            "BOOT_IMAGE=/vmlinuz",
            "menuentry",
            ("/efi/EFI/Linux/a.efi",),
            "this host boots with systemd-boot, but loader/entries has no entry of this machine (found: unified "
            "kernel images (/efi/EFI/Linux/a.efi)). Kernel arguments can be changed only in entries of the Boot "
            "Loader Specification (type 1)",
        ),
    ],
)
def test_detection(info: str, live: str, menu: str, images: tuple[str, ...], expected: str) -> None:
    try:
        said = boot_loader.detect(Evidence(info, parse(live), {"/boot/grub/grub.cfg": menu}, {}, images)).name
    except FabricError as error:
        said = str(error)
    assert said == expected


@pytest.mark.proves("host_kernel", "Debian 12", by="fixture")
def test_a_menu_that_the_real_program_made_of_the_dropin() -> None:
    made = boot_loader.menu_lines((FIXTURES / "debian-12-grub.cfg").read_text())
    wanted = Wanted.from_texts(
        ["iommu=pt", 'dyndbg="file drivers/x.c +p"', "console=ttyS1", "hugepagesz=1G hugepages=4"], ["quiet"]
    )
    assert len(made) == 2
    assert [wanted.state(line) for line in made] == [wanted.goal()] * 2


def test_menus_of_ubuntu_on_zfs() -> None:
    text = "### BEGIN /etc/grub.d/10_linux_zfs ###\n linux /vmlinuz root=ZFS=rpool ro quiet $vt_handoff\n"
    assert boot_loader.menu_lines(text) == [parse("root=ZFS=rpool ro quiet $vt_handoff")]


def test_the_line_that_reads_the_dropin_comes_and_goes() -> None:
    for text in ("", "A=1\n", "A=1"):
        added = boot_loader.with_source(text, "/etc/default/grub.d", True)
        assert boot_loader.with_source(added, "/etc/default/grub.d", True) == added
        assert boot_loader.with_source(added, "/etc/default/grub.d", False).rstrip() == text.rstrip()


METAL = Cpu("GenuineIntel", "x86_64", False, 3)


@pytest.mark.parametrize(
    ("policy", "cpu", "live", "ours", "expected"),
    [
        ("none", METAL, [], [], []),
        ("auto", METAL, [], [], ["iommu=pt"]),
        ("auto", METAL._replace(translated=0), [], [], []),
        ("auto", METAL._replace(translated=0), ["iommu=pt"], ["iommu=pt"], ["iommu=pt"]),
        ("auto", METAL._replace(translated=0), ["iommu=pt"], [], []),
        ("auto", METAL, ["iommu=pt"], [], []),
        ("auto", METAL, [], ["iommu=pt"], ["iommu=pt"]),
        ("auto", METAL._replace(virtual=True), ["iommu=pt"], ["iommu=pt"], []),
        ("auto", METAL._replace(arch="aarch64", vendor=""), [], [], ["iommu.passthrough=1"]),
        ("passthrough", METAL._replace(virtual=True), [], [], ["intel_iommu=on", "iommu=pt"]),
        ("passthrough", METAL._replace(vendor="AuthenticAMD"), [], [], ["amd_iommu=on", "iommu=pt"]),
        ("passthrough", METAL._replace(arch="aarch64", vendor=""), [], [], ["iommu.passthrough=1"]),
    ],
)
def test_iommu(policy: str, cpu: Cpu, live: list[str], ours: list[str], expected: list[str]) -> None:
    assert requirements.iommu_arguments(policy, cpu, live, ours=ours) == expected


def test_iommu_of_an_unknown_cpu() -> None:
    with pytest.raises(InputError) as error:
        requirements.iommu_arguments("passthrough", METAL._replace(vendor="Other"), [], ours=[])
    assert str(error.value) == (
        "iommu: passthrough supports the CPU vendors AuthenticAMD, GenuineIntel and arm64; found 'Other' on x86_64. "
        "Set iommu: none and list the arguments explicitly"
    )


@pytest.mark.parametrize(
    ("item", "argument"),
    [
        ({"size": "2M", "count": 512}, "hugepagesz=2M hugepages=512"),
        ({"size": "1G", "count": 16}, "hugepagesz=1G hugepages=16"),
        ({"size": "2048 kB", "count": 0}, "hugepagesz=2M hugepages=0"),
        ({"size": "64k", "count": 1}, "hugepagesz=64K hugepages=1"),
        ({"size": "1GiB", "count": 1}, "hugepagesz=1G hugepages=1"),
    ],
)
def test_hugepages(item: dict[str, object], argument: str) -> None:
    assert requirements.parse_hugepages([item])[0].argument == argument


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (
            [{"size": "2", "count": 1}],
            "'2' is not a size of hugepages; expected a number with kB, M or G, such as 2M or 1G",
        ),
        (
            [{"size": "0M", "count": 1}],
            "'0M' is not a size of hugepages; expected a number with kB, M or G, such as 2M or 1G",
        ),
        ([{"size": "2M", "count": -1}], "hugepages of 2048 kB: -1 pages requested; expected 0 or more"),
        (
            [{"size": "2M", "count": 1, "numa_node": 0, "at": "boot"}],
            "hugepages of 2048 kB: numa_node requires at: now",
        ),
        (
            [{"size": "2M", "count": 1}, {"size": "2048k", "count": 1, "numa_node": 0}],
            "hugepages of 2048 kB are requested twice. Specify one total, or one count per NUMA node",
        ),
    ],
)
def test_hugepages_that_cannot_be(items: list[dict[str, object]], expected: str) -> None:
    with pytest.raises(InputError) as error:
        requirements.parse_hugepages(items)
    assert str(error.value) == expected


def test_hugepages_of_two_nodes() -> None:
    items = [{"size": "2M", "count": 4, "numa_node": node} for node in (0, 1)]
    assert requirements.parse_hugepages(items) == (Hugepages(2048, 4, 0, False), Hugepages(2048, 4, 1, False))
