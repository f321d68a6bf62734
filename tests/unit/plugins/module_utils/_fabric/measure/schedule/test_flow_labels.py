"""Flow labels of tests. Milliseconds."""

from __future__ import annotations

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.flow_labels import (
    LARGEST,
    labels,
    number_of,
    source_port,
)

TEST = ("rail0", "gpu-1", "gpu-2", "write_bw")


def test_labels_of_a_test_differ_and_are_valid() -> None:
    for number in (0, 1, LARGEST - 1, 2**64 - 1):
        found = labels(number, 1024)
        assert len(set(found)) == 1024 and min(found) >= 1 and max(found) <= LARGEST
    assert len(set(labels(5, LARGEST))) == LARGEST
    assert len({source_port(label) for label in labels(5, LARGEST)}) == LARGEST


def test_labels_follow_from_seed_test_pass_and_round_alone() -> None:
    usual = number_of(1, TEST, (1, 0))
    assert usual == number_of(1, TEST, (1, 0))
    others = [number_of(2, TEST, (1, 0)), number_of(1, TEST, (2, 0)), number_of(1, TEST, (1, 1))]
    others.append(number_of(1, ("rail1", *TEST[1:]), (1, 0)))
    assert len({usual, *others}) == 5


def test_repeats_are_spread_evenly() -> None:
    # Over eight paths by a plain hash: none has half or twice its share.
    counts = [0] * 8
    for at in range(4000):
        for label in labels(number_of(1, TEST, (1, at)), 4):
            counts[source_port(label) % 8] += 1
    assert max(counts) < 2200 and min(counts) > 1800
