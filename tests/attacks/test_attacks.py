"""Each attack's equation, computed by hand."""

import numpy as np
import pytest

from asyncfed.attacks import (
    Backdoor,
    Colluding,
    ConstantUpdate,
    GaussianNoise,
    InnerProduct,
    LabelFlip,
    Liars,
    LiarView,
    LittleIsEnough,
    Mimic,
    ReplayUpdate,
    Scaling,
    SignFlip,
    SlowPoison,
    Targets,
    ZeroUpdate,
)
from asyncfed.attacks.little_is_enough import hidden_deviations
from asyncfed.core.types import Work
from asyncfed.errors import ConfigError

HONEST = {0: [1.0, 2.0], 1: [3.0, -2.0], 2: [2.0, 6.0], 3: [-4.0, 1.0]}
"""What each client would honestly send, wherever it starts from; clients 0 to 2 lie."""


def view(client=0, dtype=np.float64, **others):
    def honest_changes(start, clients, work):
        return np.array([HONEST[c] for c in clients], dtype) + np.asarray(start, dtype)

    fields = {
        "start": np.zeros(2, dtype),
        "change": np.array(HONEST[client], dtype),
        "client": client,
        "work": Work(),
        "key": 11,
        "secret": 7,
        "liars": (0, 1, 2),
        "num_clients": 4,
        "first": np.array([10.0, 20.0], dtype),
        "honest_changes": honest_changes,
    }
    return LiarView(**fields | others)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sign_flip_and_scaling_multiply_the_change(dtype):
    flipped, scaled = SignFlip(scale=10.0).lie(view(dtype=dtype)), Scaling(factor=3.0).lie(view(dtype=dtype))
    assert flipped.tolist() == [-10.0, -20.0]
    assert scaled.tolist() == [3.0, 6.0]
    assert flipped.dtype == scaled.dtype == dtype


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_factors_must_be_positive(value):
    with pytest.raises(ConfigError, match=r"attack\.scale is .*; it must be a positive number"):
        SignFlip(scale=value)


def test_zero_and_constant_updates_do_not_depend_on_what_was_learnt():
    assert ZeroUpdate().lie(view()).tolist() == [0.0, 0.0]
    assert ConstantUpdate(value=-0.5).lie(view()).tolist() == [-0.5, -0.5]
    wide = view(change=np.ones(64))
    signs = ConstantUpdate(value=2.0, direction="signs").lie(wide)
    assert set(signs) == {-2.0, 2.0}
    assert np.array_equal(signs, ConstantUpdate(value=2.0, direction="signs").lie(wide._replace(key=5, client=1)))


def test_gaussian_noise_is_new_for_every_ticket_and_as_long_as_it_says():
    change = np.full(20_000, 0.5)
    noise = GaussianNoise(std=4.0).lie(view(change=change))
    assert noise.std() == pytest.approx(2.0, rel=0.03)
    assert noise.mean() == pytest.approx(0.0, abs=0.05)
    assert GaussianNoise(std=4.0, relative=False).lie(view(change=change)).std() == pytest.approx(4.0, rel=0.03)
    assert not np.array_equal(noise, GaussianNoise(std=4.0).lie(view(change=change, key=12)))


def test_a_little_is_enough_is_the_mean_less_z_standard_deviations():
    # of (1, 3, 2): mean 2, standard deviation sqrt(2/3); of (2, -2, 6): mean 2, sqrt(32/3)
    lie = LittleIsEnough(z=1.5).lie(view())
    assert lie == pytest.approx([2 - 1.5 * (2 / 3) ** 0.5, 2 - 1.5 * (32 / 3) ** 0.5])


def test_z_is_the_papers():
    # n = 50, f = 24: s = 26 - 24 = 2, (26 - 2) / 26 = 0.9231, Phi^-1 = 1.4261
    assert hidden_deviations(50, 24) == pytest.approx(1.4261, abs=1e-4)
    # n = 10, f = 3: s = 6 - 3 = 3, (7 - 3) / 7 = 0.5714, Phi^-1 = 0.1800
    assert hidden_deviations(10, 3) == pytest.approx(0.1800, abs=1e-4)
    assert hidden_deviations(10, 7) > 0
    with pytest.raises(ConfigError, match="needs at least 2 liars"):
        Liars(attack=LittleIsEnough(), count=1).choose(10, seed=0)


def test_inner_product_goes_against_the_mean():
    assert InnerProduct(epsilon=0.5).lie(view(client=2)).tolist() == [-1.0, -1.0]


def test_mimic_is_one_members_honest_change_whoever_sends_it():
    assert [Mimic().lie(view(client=c)).tolist() for c in (0, 1)] == [[1.0, 2.0]] * 2
    assert Mimic(target=2).lie(view()).tolist() == [2.0, 6.0]
    assert Mimic(knowledge="all").lie(view()).tolist() == [-4.0, 1.0]
    with pytest.raises(ConfigError, match=r"not one of the liars \(1, 2\)"):
        Liars(attack=Mimic(target=3), clients=(1, 2)).choose(5, seed=0)
    assert Liars(attack=Mimic(target=3, knowledge="all"), clients=(1, 2)).choose(5, seed=0) == (1, 2)


def test_replay_is_the_change_from_the_first_model_whatever_was_sent():
    lie = ReplayUpdate(scale=2.0).lie(view(client=1, start=np.array([5.0, 5.0])))
    assert lie.tolist() == [2 * (3.0 + 10.0), 2 * (-2.0 + 20.0)]


def test_colluding_liars_send_the_identical_vector_as_long_as_their_mean():
    lies = [Colluding(scale=3.0).lie(view(client=c, key=c)) for c in (0, 1, 2)]
    assert np.array_equal(lies[0], lies[1])
    assert np.array_equal(lies[0], lies[2])
    assert np.linalg.norm(lies[0]) == pytest.approx(3.0 * 8**0.5)  # the mean is (2, 2)


def test_slow_poison_lies_in_a_share_of_tickets_and_holds_just_those_back():
    attack = SlowPoison(attack=Scaling(factor=2.0), share=0.25, factor=8.0)
    lies = np.array([attack.lies(key) for key in range(4000)])
    factors = np.array([attack.delay_factor(key) for key in range(4000)])
    assert lies.mean() == pytest.approx(0.25, abs=0.03)
    assert np.array_equal(factors, np.where(lies, 8.0, 1.0))
    assert attack.lie(view()).tolist() == [2.0, 4.0]
    assert SlowPoison(attack=Mimic(knowledge="all")).knows == "all"
    assert SlowPoison(attack=LabelFlip()).poisons_rows


def test_label_flip_turns_targets_around():
    x = np.zeros((3, 1))

    def flipped(y, *targets):
        return LabelFlip().poison(x, np.array(y), Targets(*targets), key=0)[1].tolist()

    assert flipped([-1.0, 1.0, 1.0], "labels", 2) == [1.0, -1.0, -1.0]
    assert flipped([0, 3, 9], "classes", 10) == [9, 6, 0]
    assert flipped([1.0, 2.0, 6.0], "numbers", 0) == [5.0, 4.0, 0.0]
    assert LabelFlip().lie(view()).tolist() == HONEST[0]


def test_a_backdoor_sets_trigger_and_target_in_its_share_of_rows():
    x, y = np.arange(24.0).reshape(4, 2, 3), np.array([0, 1, 2, 1])
    attack = Backdoor(features=(0, 5), value=-7.0, target=2, share=0.5, boost=4.0)
    poisoned, answers = attack.poison(x, y, Targets("classes", 3), key=3)
    changed = np.flatnonzero((poisoned != x).any(axis=(1, 2)))
    assert len(changed) == 2
    assert (poisoned[changed, 0, 0] == -7.0).all()
    assert (poisoned[changed, 1, 2] == -7.0).all()
    assert (poisoned[:, 0, 1:] == x[:, 0, 1:]).all()
    assert (answers[changed] == 2).all()
    triggered, wanted = attack.trigger(x, y, Targets("classes", 3))
    assert len(triggered) == 3
    assert (triggered[:, 0, 0] == -7.0).all()
    assert wanted.tolist() == [2, 2, 2]
    assert attack.lie(view()).tolist() == [4.0, 8.0]
    with pytest.raises(ConfigError, match="a row has 6"):
        Backdoor(features=(6,)).poison(x, y, Targets("classes", 3), key=0)
    with pytest.raises(ConfigError, match="predicts numbers"):
        attack.check(Targets("numbers", 0))
    with pytest.raises(ConfigError, match=r"one of the classes \(-1, 1\)"):
        attack.check(Targets("labels", 2))
