"""Numbers and addresses: kept ones stay, the rest follows the whole group, and nothing is given twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import (
    ConflictError,
    FabricError,
    InputError,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.addresses import Claim, Seat, assign

RAILS = ("rail0", "rail1")


def claims(*items: Any) -> list[Claim]:
    return [Claim("abcdefgh"[index], number, kept) for index, (number, kept) in enumerate(items)]


def test_first_free_in_group_order() -> None:
    found = assign(claims((None, (None, None)), (None, (None, None))), RAILS, 5)
    assert found == {"a": Seat(1, (1, 1)), "b": Seat(2, (2, 2))}


def test_kept_addresses_and_numbers_come_first() -> None:
    found = assign(claims((None, (None, None)), (1, (None, None)), (None, (2, 4))), RAILS, 9)
    assert found == {"a": Seat(3, (3, 3)), "b": Seat(1, (1, 1)), "c": Seat(2, (2, 4))}


def test_a_number_that_is_taken_on_one_rail_only() -> None:
    # c keeps 3 on rail1 and 1 on rail0; no number is free on both rails for b.
    found = assign(claims((2, (None, None)), (None, (None, None)), (None, (1, 3))), RAILS, 3)
    assert found == {"a": Seat(2, (2, 2)), "b": Seat(3, (3, 1)), "c": Seat(1, (1, 3))}


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        (
            [(None, (4, None)), (None, (4, None))],
            ConflictError,
            "the same address is in use on two hosts: a and b both have address number 4 of rail0. Remove it "
            "from one of "
            "them",
        ),
        ([(3, (None, None)), (3, (None, None))], InputError, "rdma_host.number: a and b both have 3"),
        ([(300, (None, None))], InputError, "rdma_host.number: a: 300 is above 9, the end of the host block"),
        (
            [(3, (None, None)), (None, (None, 3))],
            ConflictError,
            "rdma_host.number: addresses are in use: a wants 3 on rail1, which b has",
        ),
    ],
)
def test_conflicts(items: Any, error: type[FabricError], message: str) -> None:
    with pytest.raises(error) as caught:
        assign(claims(*items), RAILS, 9)
    assert str(caught.value) == message


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[Claim], int]:
    count = draw(st.integers(1, 12))
    size = draw(st.integers(count, 20))
    columns = []
    for _rail in range(draw(st.integers(1, 3))):
        numbers = draw(st.permutations(range(1, size + 1)))[:count]
        mask = draw(st.lists(st.booleans(), min_size=count, max_size=count))
        columns.append([number if keep else None for number, keep in zip(numbers, mask)])
    return [Claim(f"h{i}", None, tuple(column[i] for column in columns)) for i in range(count)], size


@given(fleets())
def test_every_address_is_unique_in_range_and_kept(fleet: tuple[list[Claim], int]) -> None:
    found, size = fleet
    rails = [f"rail{index}" for index in range(len(found[0].kept))]
    seats = assign(found, rails, size)
    assert len({seat.number for seat in seats.values()}) == len(found)
    for rail in range(len(rails)):
        numbers = [seat.rails[rail] for seat in seats.values()]
        assert len(set(numbers)) == len(found)
        assert all(1 <= number <= size for number in numbers)
    for claim in found:
        kept = zip(claim.kept, seats[claim.host].rails)
        assert all(own in (None, given_) for own, given_ in kept)


@given(fleets())
def test_a_second_plan_after_the_first_changes_nothing(fleet: tuple[list[Claim], int]) -> None:
    found, size = fleet
    rails = [f"rail{index}" for index in range(len(found[0].kept))]
    first = assign(found, rails, size)
    again = assign([Claim(claim.host, None, first[claim.host].rails) for claim in found], rails, size)
    assert {host: seat.rails for host, seat in again.items()} == {host: seat.rails for host, seat in first.items()}
