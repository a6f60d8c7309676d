import pickle

import pytest

from asyncfed.core.errors import AsyncFedError, ConfigError, did_you_mean
from asyncfed.core.record import ValidationError, from_plain, replace, to_plain
from asyncfed.core.types import Budget, Dispatch, Merge, Work


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Work(epochs=0), r"work\.epochs is 0; a client must do at least 1 local epoch"),
        (lambda: Work(batch_size=0), r"work\.batch_size is 0; it must be at least 1"),
        (lambda: Work(learning_rate=0.0), r"work\.learning_rate is 0\.0; it must be a positive number"),
        (lambda: Work(learning_rate=float("nan")), r"work\.learning_rate is nan"),
        (lambda: Work(decay=-1.0), r"work\.decay is -1\.0"),
        (lambda: Work(proximal=float("inf")), r"work\.proximal is inf"),
        (lambda: Budget(rounds=0), r"budget\.rounds is 0; it must be positive, or left out for no limit"),
        (lambda: Budget(updates=-3), r"budget\.updates is -3"),
        (lambda: Budget(elapsed=float("nan")), r"budget\.elapsed is nan"),
        (lambda: replace(Work(), epochs=0), r"work\.epochs is 0"),
    ],
)
def test_impossible_values_are_refused(make, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make()
    assert isinstance(caught.value, AsyncFedError)
    assert isinstance(caught.value, ValueError)


def test_values_are_frozen_hashable_and_written_back_the_same():
    dispatch = Dispatch(3, 1, 2, Work(epochs=4))
    with pytest.raises(AttributeError):
        dispatch.ticket = 4
    assert hash(dispatch) == hash(Dispatch(3, 1, 2, Work(epochs=4)))
    assert from_plain(to_plain(dispatch), Dispatch) == dispatch
    assert pickle.loads(pickle.dumps(dispatch)) == dispatch
    merge = Merge((1, 2), (0.5, 0.25), 0.25, "model")
    assert from_plain(to_plain(merge), Merge) == merge


def test_what_is_read_is_checked_and_the_place_named():
    with pytest.raises(ValidationError, match=r"epoch_count"):
        from_plain({"epoch_count": 3}, Work)
    with pytest.raises(ValidationError, match=r"\$\.work\.epochs"):
        from_plain({"ticket": 0, "client": 0, "base_version": 0, "work": {"epochs": "many"}}, Dispatch)
    with pytest.raises(ValidationError, match=r"work\.epochs is 0"):
        from_plain({"epochs": 0}, Work)


def test_suggestions_name_the_nearest_word_or_all():
    assert did_you_mean("fedbuf", ["fedbuff", "fedavg"]) == 'Did you mean "fedbuff"?'
    assert did_you_mean("qqq", ["fedbuff", "fedavg"]) == "Known: fedavg, fedbuff."
