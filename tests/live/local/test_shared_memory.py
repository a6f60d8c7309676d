"""Memory that server and clients share: who may do what with it, and that nothing is left of it."""

import mmap
import os

import numpy as np
import pytest

from asyncfed.kernels.recycled_memory import LARGE, empty
from asyncfed.live.local import shared_memory
from asyncfed.live.local.shared_memory import SPARE_MODELS, SharedFile, SharedModels, create_result_slot

F4 = np.dtype(np.float32)
SIZE = LARGE // 4 + 1001
pytestmark = pytest.mark.skipif(SharedModels.create(4 * SIZE, 1) is None, reason="the system has no such memory")


@pytest.fixture
def models():
    models = SharedModels.create(4 * SIZE, 2)
    yield models
    models.close()


def model_in(models, value):
    array = empty(SIZE, F4, models)
    array[:] = value
    return array


def as_clients_see_it(models, place):
    return models.file.map(write=False)[place : place + 4 * SIZE].view(F4)


def test_clients_read_a_version_where_the_server_has_it(models):
    version = model_in(models, 3.0)
    seen = as_clients_see_it(models, models.place(version))
    assert set(seen) == {3.0}
    version[5] = 4.0
    assert seen[5] == 4.0  # it is the same memory
    assert not seen.flags.writeable


def test_nobody_but_the_server_can_write_to_models_or_change_their_length(models):
    with pytest.raises(PermissionError):
        models.file.map(write=True)
    with pytest.raises(PermissionError):
        os.pwrite(models.file.descriptor, b"x", 0)
    again = os.open(f"/proc/self/fd/{models.file.descriptor}", os.O_RDWR)
    try:
        with pytest.raises(PermissionError):
            SharedFile(again, models.file.length).map(write=True)
        with pytest.raises(PermissionError):
            mmap.mmap(again, models.file.length)
    finally:
        os.close(again)
    for length in (0, 2 * models.file.length):
        with pytest.raises(PermissionError):
            os.ftruncate(models.file.descriptor, length)


def test_the_length_of_a_slot_cannot_be_changed_by_who_writes_to_it():
    file, seen = create_result_slot(10_000)
    written = file.map(write=True)
    for length in (0, 20_000):
        with pytest.raises(PermissionError):
            os.ftruncate(file.descriptor, length)
    file.close()
    written[7] = 5
    assert seen[7] == 5
    assert not seen.flags.writeable


def test_mapped_memory_has_no_descriptor_that_others_could_open():
    before = len(os.listdir("/proc/self/fd"))
    file, seen = create_result_slot(10_000)
    file.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert seen.size == 10_000


def test_memory_is_unmapped_when_nobody_uses_it():
    def mapped():
        with open("/proc/self/maps") as maps:
            return sum("asyncfed result" in line for line in maps)

    before = mapped()
    file, seen = create_result_slot(10_000)
    file.close()
    part = seen[5:9]
    del seen
    assert mapped() == before + 1
    del part
    assert mapped() == before


def test_a_version_from_elsewhere_is_copied_once_and_keeps_its_place(models):
    version = np.full(SIZE, 2.0, F4)
    place = models.place(version)
    assert models.place(version) == place
    others = [models.place(np.full(SIZE, 5.0, F4)) for _ in range(20)]
    assert place not in others
    assert set(as_clients_see_it(models, place)) == {2.0}


def test_without_room_a_version_has_no_place(models):
    kept = [model_in(models, 1.0) for _ in range(2 + SPARE_MODELS)]
    assert len({models.place(version) for version in kept}) == 2 + SPARE_MODELS
    elsewhere = model_in(models, 1.0)
    assert models.place(elsewhere) is None
    kept.pop()
    assert models.place(elsewhere) is not None
    assert models.place(np.zeros(SIZE + 1, F4)) is None


def test_not_more_than_a_limit_is_shared(monkeypatch):
    monkeypatch.setattr(shared_memory, "MOST_BYTES", 3 * (4 * SIZE + mmap.PAGESIZE))
    models = SharedModels.create(4 * SIZE, 50)
    assert models.file.length <= shared_memory.MOST_BYTES
    models.close()
    monkeypatch.setattr(shared_memory, "MOST_BYTES", 1000)
    assert SharedModels.create(4 * SIZE, 50) is None


def refuse(*how):
    raise OSError


@pytest.mark.parametrize("lacking", ["memfd_create", "ftruncate"])
def test_where_the_system_has_no_such_memory_nothing_is_shared(monkeypatch, lacking):
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, lacking, refuse)
    assert SharedModels.create(4 * SIZE, 2) is None
    assert create_result_slot(100) is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_system_that_cannot_seal_it_shares_no_models(monkeypatch):
    seal = SharedFile.seal
    monkeypatch.setattr(SharedFile, "seal", lambda file, seals: refuse() if seals & 0x10 else seal(file, seals))
    assert SharedModels.create(4 * SIZE, 2) is None
