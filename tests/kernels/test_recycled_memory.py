"""Memory is used again when, and only when, nobody refers to the array that had it."""

import numpy as np
import pytest

from asyncfed.kernels import recycled_memory
from asyncfed.kernels.recycled_memory import LARGE, empty, empty_like, renew

F4 = np.dtype(np.float32)
SIZE = LARGE // 4 + 123  # of no other test


@pytest.fixture(autouse=True)
def nothing_spare(monkeypatch):
    monkeypatch.setattr(recycled_memory._system, "spare", {})


def address(array):
    return array.ctypes.data


class Owner:
    """The only one that refers to its array, unless a test does."""

    def __init__(self, array):
        self.array = array


def test_memory_comes_back_when_the_array_is_gone():
    first = empty(SIZE, F4)
    where = address(first)
    assert address(empty(SIZE, F4)) != where
    del first
    assert where in [address(empty(SIZE, F4)), *(address(array) for array in [empty(SIZE, F4), empty(SIZE, F4)])]


@pytest.mark.parametrize(
    "use",
    [
        lambda array: array[5:9],
        lambda array: array[5:][3:].reshape(1, -1),
        lambda array: array.view(np.uint8)[1:],
        lambda array: array.data.cast("B")[7:],
        lambda array: np.frombuffer(array.data, np.uint8),
    ],
)
def test_whoever_uses_any_part_of_it_keeps_all_of_it(use):
    array = empty(SIZE, F4)
    where, used = address(array), use(array)
    owner = Owner(array)
    del array
    assert renew(owner, "array") is None
    del owner
    others = [empty(SIZE, F4) for _ in range(4)]
    assert where not in map(address, others)
    del used
    assert address(empty(SIZE, F4)) == where


def test_an_array_that_nobody_else_holds_is_renewed_with_its_numbers():
    owner = Owner(empty(SIZE, F4))
    owner.array[:] = 3.0
    where, number = address(owner.array), id(owner.array)
    again = renew(owner, "array")
    assert owner.array is again
    assert (address(again), again.min(), again.max()) == (where, 3.0, 3.0)
    assert id(again) != number
    assert renew(owner, "array") is None  # this test holds it, too
    assert owner.array is again
    del again
    assert renew(owner, "array") is not None


def held_by_a_running_call(owner, array):
    return renew(owner, "array")


def test_an_array_that_a_running_call_was_given_is_not_renewed():
    owner = Owner(empty(SIZE, F4))
    assert held_by_a_running_call(owner, owner.array) is None
    array = owner.array
    assert held_by_a_running_call(owner, array) is None


def test_renewed_memory_is_nobody_elses_when_the_new_array_is_forgotten():
    owner = Owner(empty(SIZE, F4))
    where = address(owner.array)
    renew(owner, "array")
    assert where not in [address(array) for array in [empty(SIZE, F4) for _ in range(3)]]


def test_arrays_from_elsewhere_are_never_renewed_and_small_ones_are_ordinary():
    assert renew(Owner(np.empty(SIZE, F4)), "array") is None
    assert empty(10, F4).flags.owndata
    assert empty_like(np.zeros((3, LARGE), F4)).shape == (3, LARGE)


def test_little_memory_waits():
    arrays = [empty(SIZE, F4) for _ in range(30)]
    arrays.clear()
    assert len(recycled_memory._system.spare[4 * SIZE]) == recycled_memory.MOST_SPARE


class Shelf:
    """A source with so many pieces."""

    def __init__(self, pieces):
        self.pieces = [np.zeros(4 * SIZE, np.uint8).data for _ in range(pieces)]
        self.addresses = {np.frombuffer(piece, np.uint8).ctypes.data for piece in self.pieces}

    def take(self, length):
        return self.pieces.pop() if self.pieces and length == 4 * SIZE else None

    def give_back(self, memory):
        self.pieces.append(memory)


def test_the_next_version_has_its_memory_from_where_the_last_one_has_it():
    shelf = Shelf(3)
    first = empty(SIZE, F4, shelf)
    second, elsewhere = empty_like(first), empty_like(np.zeros(SIZE, F4))
    assert {address(first), address(second)} < shelf.addresses
    assert address(elsewhere) not in shelf.addresses
    owner = Owner(second)
    del second
    renew(owner, "array")
    assert address(empty_like(owner.array)) in shelf.addresses
    assert len(shelf.pieces) == 1
    del first, owner
    assert len(shelf.pieces) == 3


def test_a_source_that_has_nothing_left_is_not_waited_for():
    shelf = Shelf(1)
    first, second = empty(SIZE, F4, shelf), empty(SIZE, F4, shelf)
    assert address(first) in shelf.addresses
    assert address(second) not in shelf.addresses
    assert address(empty(SIZE + 1, F4, shelf)) not in shelf.addresses
    del second
    assert not shelf.pieces


def test_what_was_used_last_is_used_next():
    one, other = empty(SIZE, F4), empty(SIZE, F4)
    last = address(one)
    del other
    del one
    assert address(empty(SIZE, F4)) == last
