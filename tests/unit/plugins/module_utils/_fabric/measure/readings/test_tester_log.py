"""Frames of testers: what they add to perftest's output, and what they look like when something broke."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.exchange import exchange_failed
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import (
    Run,
    failure,
    reading,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import (
    Log,
    parse_batch,
    parse_describe,
)

PEER = "p"
OLD = "=== gpufabric test 0 rail0 client p rc=0 start=1005 seconds=9\nfine\n=== gpufabric end\n"
NEW = """=== gpufabric test 0 rail0 client p rc=1 start=1005 seconds=9 late=0.07 ran=7.31 exchange=cm memory=cuda:dmabuf
counters out_of_sequence=+3 np_cnp_sent=+12 broken=+x ...
link_before rate="100 Gb/sec (4X EDR)" mtu=9000
link rate="25 Gb/sec (1X EDR)" mtu=9000
 Mtu : 4096[B]
counters of something else
=== gpufabric end
"""


def batch(*frames: str, number: int = 1, done: bool = True) -> str:
    end = f"=== gpufabric batch {number} done {len(frames)} 0\n" if done else ""
    return f"=== gpufabric batch {number} begin {len(frames)}\n{''.join(frames)}{end}"


def test_a_frame_of_an_older_tester_has_nothing_added() -> None:
    assert parse_batch(batch(OLD), 1) == Log({(0, "rail0", PEER): Run(0, "fine", started=1005, seconds=9)}, True)


def test_what_the_tester_adds_is_not_perftests_output() -> None:
    assert parse_batch(batch(NEW), 1).runs[0, "rail0", PEER] == Run(
        1,
        "Mtu : 4096[B]\ncounters of something else",
        started=1005,
        seconds=9,
        late=0.07,
        ran=7.31,
        counters={"out_of_sequence": 3, "np_cnp_sent": 12},
        link={"rate": "25 Gb/sec (1X EDR)", "mtu": "9000"},
        link_before={"rate": "100 Gb/sec (4X EDR)", "mtu": "9000"},
        exchange="cm",
        memory="cuda:dmabuf",
    )


@pytest.mark.parametrize("cut", range(0, len(NEW), 7))
def test_half_a_log_gives_no_result_of_the_half_test(cut: int) -> None:
    log = parse_batch(batch(OLD.replace("rail0", "rail1"), NEW[:cut], done=False), 1)
    assert not log.done and set(log.runs) == {(0, "rail1", PEER)}
    # What follows a tester that was killed and started again is not taken for the rest of it.
    assert parse_batch(batch(NEW[:cut] + "\n", OLD), 1).runs[0, "rail0", PEER].rc == 0


def test_only_the_batch_that_was_asked_for_is_read() -> None:
    assert parse_batch(batch(OLD) + batch(NEW, number=2), 1).runs[0, "rail0", PEER].rc == 0
    assert parse_batch(batch(OLD) + batch(NEW, number=2), 2).runs[0, "rail0", PEER].rc == 1
    assert parse_batch(batch(OLD), 3) == Log({}, False)


def test_a_quotation_that_is_not_closed_costs_the_line_but_no_result() -> None:
    run = parse_batch(batch(NEW.replace('(4X EDR)"', "(4X EDR)")), 1).runs[0, "rail0", PEER]
    assert run.rc == 1 and run.link["mtu"] == "9000" and run.link_before["mtu"] == "9000"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'no line "=== gpufabric describe v1" in 0 lines'),
        ("=== gpufabric describe v1\nrail rail0 gid=3\n", "it ended before all rails were described"),
        ('=== gpufabric describe v1\nrail rail0 error="no\n', 'No closing quotation in: rail rail0 error="no'),
    ],
)
def test_a_description_that_is_not_whole_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_describe(text)
    assert str(caught.value) == message


PIECES = st.sampled_from(
    [
        "=== gpufabric describe v1",
        "=== gpufabric described 1",
        "rail rail0 gid=3",
        'host "',
        "rail",
        *NEW.splitlines(),
        "=== gpufabric batch 1 begin 1",
        "=== gpufabric batch 1 done 1 0",
        "=== gpufabric test 0 r client p rc=" + "9" * 5000,
        "counters a=+" + "9" * 5000,
        "=== gpufabric test 0 r client p rc=0 start=" + "9" * 5000 + " late=" + "9" * 5000,
    ]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=60)), max_size=25).map("\n".join)


@given(TEXTS)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        log = parse_batch(text, 1)
        assert all(run.counters == {k: v for k, v in run.counters.items() if v > 0} for run in log.runs.values())
        for run in log.runs.values():
            failure(run, None)
    except ParseError as exc:
        assert 0 < len(str(exc)) < 500
    try:
        parse_describe(text)
    except ParseError as exc:
        assert 0 < len(str(exc)) < 500


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("seconds=" + "9" * 400, "seconds=" + "9" * 40 + " is not a number of seconds"),
        ("late=inf", "late=inf is not a number of seconds"),
        ("ran=nan", "ran=nan is not a number of seconds"),
        ("start=0x7", "start=0x7 is not a number of seconds"),
        ("seconds=1e300", "seconds=1e300 is not a number of seconds"),
        ("memory=" + "x" * 2000, "the first line of a frame has 2034 characters; expected 1024 at most"),
    ],
)
def test_a_frame_that_no_tester_writes_is_refused_with_the_reason(field: str, reason: str) -> None:
    frame = f"=== gpufabric test 0 rail0 client p rc=0 {field}\nfine\n=== gpufabric end\n"
    with pytest.raises(ParseError) as caught:
        parse_batch(batch(frame), 1)
    assert str(caught.value) == reason


def test_a_batch_with_an_impossible_number_is_none_of_ours() -> None:
    assert parse_batch(f"=== gpufabric batch {'9' * 900} begin 1\n", 1) == Log({}, False)


def hostile(count: int) -> list[str]:
    """Texts of ``count`` characters or lines at which careless patterns take the square of the time."""
    frame = "=== gpufabric batch 1 begin 1\n=== gpufabric test 0 r client p rc=1 \n{}\n=== gpufabric end\n"
    assert (0, "r", "p") in parse_batch(frame.format(""), 1).runs
    bodies = [
        "link " + "a" * count,
        "link " + 'a="' * (count // 3),
        "counters " + "a=1 " * (count // 4),
        "a" * count,
        "Failed status" * (count // 13),
        "rdma_resolve_" * (count // 13),
        "BW average[" * (count // 11),
        "#bytes" + "BW average[" * (count // 11),
        " " * count,
        "\n" * count,
        "link\n" * count,
        "counters a=1\n" * count,
        "=== gpufabric \n" * count,
    ]
    return [frame.format(body) for body in bodies] + [
        "=== gpufabric test " * (count // 19),
        "\n=== gpufabric " * (count // 15),
        "=== gpufabric describe v1\nrail r " + 'a="b' * (count // 4),
        "=== gpufabric describe v1\nrail r " + "'" * count,
    ]


def judged(text: str) -> None:
    """Do with a log all that is done with one."""
    for parse in (lambda: parse_batch(text, 1), lambda: parse_describe(text)):
        with contextlib.suppress(ParseError):
            found = parse()
            for run in getattr(found, "runs", {}).values():
                reading(run, run, 65536)
                reading(Run(0, run.text), Run(0, run.text), 65536)
                exchange_failed(run._replace(exchange="cm"), run._replace(exchange="plain"))


@pytest.mark.parametrize("which", range(len(hostile(100))))
def test_the_time_grows_no_faster_than_the_log(which: int) -> None:
    """Takes about a second for all: the square of these sizes would be a hundred times the time."""

    def seconds(text: str) -> float:
        begin = time.process_time()
        judged(text)
        return time.process_time() - begin

    short, long = hostile(20_000)[which], hostile(200_000)[which]
    judged(short)
    once = min(seconds(short) for _try in range(3))
    assert seconds(long) < max(30 * once, 0.3)
