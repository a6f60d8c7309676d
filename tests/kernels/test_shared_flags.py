"""Flags that threads share: no change of one is lost, and nobody gets what another has taken."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.shared_flags import add_to_flag, numbers_at, read_flag, swap_flag


@compiled
def count_up(flags, times):
    for _ in range(times):
        add_to_flag(flags, 1, 2)
    return read_flag(flags, 1)


@compiled
def take_all(flags, who, owners):
    for line in range(flags.shape[0]):
        if swap_flag(flags, line, 1) == 0:
            owners[line] += who


@compiled
def double(address, size, like):
    numbers = numbers_at(address, size, like)
    for i in range(numbers.shape[0]):
        numbers[i] *= 2


def test_no_addition_of_several_threads_is_lost():
    flags = np.zeros(3, np.int64)
    count_up(flags, 0)  # compiles it
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: count_up(flags, 50_000), range(4)))
    assert flags.tolist() == [0, 400_000, 0]


def test_every_flag_is_taken_by_exactly_one_thread():
    flags, owners = np.zeros(200_000, np.int64), np.zeros(200_000, np.int64)
    take_all(flags[:0], 1, owners[:0])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda who: take_all(flags, who, owners), (1, 10, 100, 1000)))
    assert set(np.unique(owners)) <= {1, 10, 100, 1000}
    assert flags.all()


def test_an_address_is_an_array_of_the_same_precision():
    for dtype in (np.float32, np.float64):
        numbers = np.arange(6, dtype=dtype)
        double(np.uint64(numbers[1:].ctypes.data), 4, numbers)
        assert numbers.tolist() == [0, 2, 4, 6, 8, 5]
