"""Kernel command lines: repeats, order and quotes are kept, and what is added can be taken back."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError, ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.kernel import cmdline
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.kernel.cmdline import (
    Wanted,
    format_line,
    merge,
    parse,
)

LIVE = "BOOT_IMAGE=/boot/vmlinuz-6.12 root=UUID=39d3 ro console=tty0 console=ttyS0,115200 quiet iommu=soft"
NAMES = ["iommu", "quiet", "console", "hugepagesz", "hugepages", "systemd.mask", "pci", "foo-bar", "foo_bar"]
VALUES = ["pt", "on", "1G", "16", "", '"a b"', "tty0"]
words = st.one_of(st.sampled_from(NAMES), st.builds("{}={}".format, st.sampled_from(NAMES), st.sampled_from(VALUES)))
lines = st.lists(words, max_size=8).map(" ".join)
groups = st.lists(words, min_size=1, max_size=2).map(" ".join)


@st.composite
def wishes(draw: st.DrawFn) -> Wanted:
    present = draw(st.lists(groups, max_size=4))
    taken = {argument for text in present for argument in parse(text)}
    absent = [text for text in draw(st.lists(words, max_size=3)) if parse(text)[0] not in taken]
    return Wanted.from_texts(present, absent)


@pytest.mark.parametrize(
    ("line", "present", "absent", "expected"),
    [
        ("ro quiet", ["iommu=pt"], [], "ro quiet iommu=pt"),
        ("ro iommu=pt quiet", ["iommu=pt"], [], "ro iommu=pt quiet"),
        ("ro iommu=soft quiet", ["iommu=pt"], [], "ro quiet iommu=pt"),
        ("ro quiet splash", [], ["quiet"], "ro splash"),
        ("ro quiet", [], ["quiet=1"], "ro quiet"),
        ("console=tty0 ro", ["console=ttyS0,115200"], [], "console=tty0 ro console=ttyS0,115200"),
        ("console=tty0 ro", ["console=ttyS1"], ["console"], "ro console=ttyS1"),
        ("a", ["hugepagesz=1G hugepages=16"], [], "a hugepagesz=1G hugepages=16"),
        (
            "hugepagesz=2M hugepages=16",
            ["hugepagesz=1G hugepages=16"],
            [],
            "hugepagesz=2M hugepages=16 hugepagesz=1G hugepages=16",
        ),
        ("hugepagesz=1G hugepages=16 a", ["hugepagesz=1G hugepages=16"], [], "hugepagesz=1G hugepages=16 a"),
        ('a dyndbg="file x +p" b', ["c"], [], 'a dyndbg="file x +p" b c'),
        ('a "dyndbg=file x +p" b', ['dyndbg="file x +p"'], [], 'a "dyndbg=file x +p" b'),
        ('a dyndbg="file x +p" b', [], ["dyndbg"], "a b"),
        ("pci=noaer", ["pci=realloc"], [], "pci=noaer pci=realloc"),
        ("intel-iommu=on", ["intel_iommu=on"], [], "intel-iommu=on"),
        ("", ["foo=1", "foo=2"], [], "foo=1 foo=2"),
    ],
)
def test_merge(line: str, present: list[str], absent: list[str], expected: str) -> None:
    assert format_line(merge(parse(line), Wanted.from_texts(present, absent))) == expected


@pytest.mark.parametrize(
    ("present", "absent", "expected"),
    [
        (["root=/dev/sda1"], [], "kernel argument 'root=/dev/sda1' can prevent the host from booting. Set it manually"),
        ([], ["ro"], "kernel argument 'ro' can prevent the host from booting. Set it manually"),
        (["memmap=1G$4G"], [], "kernel argument 'memmap=1G$4G' has '$', which boot loaders interpret. Remove it"),
        ([" "], [], "a kernel argument is empty. Remove it from the list"),
        (["quiet"], ["quiet"], "kernel argument 'quiet' is requested both as present and as absent. List it once"),
    ],
)
def test_what_cannot_be_accepted(present: list[str], absent: list[str], expected: str) -> None:
    with pytest.raises(InputError) as error:
        Wanted.from_texts(present, absent)
    assert str(error.value) == expected


def test_a_quote_that_does_not_end() -> None:
    with pytest.raises(ParseError) as error:
        parse('ro dyndbg="file x')
    assert str(error.value) == "unbalanced double quote in the kernel command line 'ro dyndbg=\"file x'"


def test_reasons_to_reboot() -> None:
    wanted = Wanted.from_texts(["iommu=pt", "console=tty0"], ["quiet", "splash"])
    live = wanted.state(parse(LIVE))
    assert live == {"iommu=pt": False, "console=tty0": True, "quiet": True, "splash": False}
    assert cmdline.waits(live, wanted.goal()) == [
        "iommu=pt takes effect at the next boot",
        "quiet is removed at the next boot",
    ]


@given(lines)
def test_format_is_the_reverse_of_parse(text: str) -> None:
    assert parse(format_line(parse(text))) == parse(text)
    assert format_line(parse(text)).split() == text.split()


@given(st.text(alphabet=' "=ab-_.,\n\t', max_size=30))
def test_parse_raises_nothing_else(text: str) -> None:
    try:
        line = parse(text)
    except ParseError:
        return
    assert [word.text for word in parse(format_line(line))] == [word.text for word in line]


@given(lines, wishes())
def test_a_second_merge_changes_nothing(text: str, wanted: Wanted) -> None:
    once = merge(parse(text), wanted)
    assert merge(once, wanted) == once
    assert wanted.state(once) == wanted.goal()


@given(lines, wishes())
def test_undo_gives_the_line_before(text: str, wanted: Wanted) -> None:
    before = parse(text)
    after = merge(before, wanted)
    assert format_line(cmdline.undo(after, before, after)) == format_line(before)


@given(lines, wishes(), st.sampled_from(["extra=1", "other"]))
def test_undo_keeps_what_others_did_since(text: str, wanted: Wanted, extra: str) -> None:
    before = parse(text)
    after = merge(before, wanted)
    back = cmdline.undo((*after, *parse(extra)), before, after)
    assert Counter(back) == Counter((*before, *parse(extra)))


@given(lines, wishes(), wishes())
def test_other_wishes_start_from_the_line_before(text: str, first: Wanted, second: Wanted) -> None:
    before = parse(text)
    after = merge(before, first)
    assert merge(cmdline.undo(after, before, after), second) == merge(before, second)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("iommu=pt", True),
        ("iommu=nopt iommu=pt", True),
        ("iommu=pt iommu=nopt", False),
        ("iommu=pt iommu=pt", True),
        ("iommu=pt hugepages=4", True),
        ("quiet", False),
    ],
)
def test_the_last_value_of_an_argument_is_in_force(line: str, expected: bool) -> None:
    wanted = Wanted.from_texts(["iommu=pt"], [])
    assert wanted.state(parse(line)) == {"iommu=pt": expected}
    assert format_line(merge(parse(line), wanted)).split().count("iommu=nopt") == 0
