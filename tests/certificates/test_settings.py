"""An experiment as the theorems see it."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.certificates.settings import planned_work, schedule_of, setting_of, with_observations
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Train
from asyncfed.engine.trajectory import MergedStep, MergedTicket, Trajectory
from asyncfed.uplinks import TopK

ROWS = np.array([40, 40, 25])


def test_steps_and_batches_follow_from_the_rows(small_experiment):
    work = af.Work(epochs=3, batch_size=16, learning_rate=0.01)
    setting = setting_of(small_experiment(work=work), ROWS)
    assert (setting.fewest_steps, setting.most_steps, setting.batches) == (6, 9, "uneven")
    assert setting.shape.tolist() == [1.0] * 9
    assert setting_of(small_experiment(work=work), np.array([32, 48])).batches == "equal"
    assert setting_of(small_experiment(), ROWS).batches == "full"


def test_rates_that_decay_within_a_ticket_shape_it(small_experiment):
    work = af.Work(epochs=2, batch_size=20, learning_rate=0.01, decay=1.0)
    assert setting_of(small_experiment(work=work), ROWS[:2]).rates == pytest.approx([0.01, 0.01, 0.005, 0.005])


def test_so_many_steps_are_those_of_every_client(small_experiment):
    work = af.Work(steps=7, batch_size=16, learning_rate=0.01)
    setting = setting_of(small_experiment(work=work), ROWS)
    assert (setting.epochs, setting.fewest_steps, setting.most_steps) == (4, 7, 7)
    assert setting.shape.tolist() == [1.0] * 7
    falling = af.replace(work, decay=1.0)
    assert setting_of(small_experiment(work=falling), ROWS[:2]).shape == pytest.approx([1, 1, 1, 0.5, 0.5, 0.5, 1 / 3])


def test_budgets_become_versions(small_experiment):
    by_rounds = small_experiment("sync", rounds=7)
    assert (setting_of(by_rounds, ROWS).num_rounds, setting_of(by_rounds, ROWS).num_versions) == (7, 7)
    one_by_one = af.replace(small_experiment("afl_mixing"), budget=af.Budget(updates=12))
    assert (setting_of(one_by_one, ROWS).num_rounds, setting_of(one_by_one, ROWS).num_versions) == (3, 15)
    assert setting_of(af.replace(by_rounds, budget=af.Budget(elapsed=3.0)), ROWS).num_rounds is None


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        (af.ConstantRate(), ""),
        (af.DelayAware(over="round", delay_penalty=0.0), "the rate falls as 1/sqrt(round)"),
        (af.DelayAware(over="nothing", delay_penalty=0.1), "the rate follows the delay spread"),
    ],
)
def test_why_rates_change(small_experiment, schedule, why):
    base = small_experiment()
    assert (
        setting_of(af.replace(base, strategy=af.replace(base.strategy, schedule=schedule)), ROWS).changing_rate == why
    )


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        ({"proximal": 0.1}, "proximal"),
        ({"momentum": 0.5}, "momentum"),
        ({"patience": 2}, "stop early"),
        ({"start": "own"}, "own models"),
        ({"uplink": (TopK(),)}, "uplinks"),
    ],
)
def test_local_work_that_no_bound_covers(small_experiment, work, reason):
    setting = setting_of(small_experiment(work=af.Work(batch_size=1000, **work)), ROWS)
    assert [words for words in setting.outside if reason in words]


def test_codecs_are_named_with_their_constants(small_experiment):
    work = af.Work(batch_size=1000, uplink=(TopK(fraction=0.25),))
    (words,) = setting_of(small_experiment(work=work), ROWS, num_params=1000).outside
    assert words.endswith("no bound covers compressed changes (top_k: δ = 0.25, biased)")


def test_lost_tickets_and_churn_are_known_before_a_run(small_experiment):
    assert setting_of(small_experiment(), ROWS).lossless
    lossy = af.replace(small_experiment(), delays=af.delays.Delays(dropout=0.1))
    assert not setting_of(lossy, ROWS).lossless
    leaving = af.replace(small_experiment(), churn=(af.Churn(time=1.0, event="leave", client=0),))
    assert setting_of(leaving, ROWS).outside == ("clients join and leave",)


class Silent:
    """A strategy that dispatches nothing; with `trains`, one ticket of its own work."""

    state_type = int

    def __init__(self, *trains):
        self.trains = trains

    def start(self, view):
        return 0, list(self.trains)


def test_the_work_of_a_strategy_without_that_field_is_its_first_tickets():
    work = af.Work(epochs=2, learning_rate=0.3)
    assert planned_work(Silent(Train(1, work)), ROWS, seed=0) == work
    assert schedule_of(Silent()) == {}
    with pytest.raises(ConfigError, match="Silent dispatches no ticket when a run starts"):
        planned_work(Silent(), ROWS, seed=0)


def trajectory(*rates, base=0):
    tickets = [MergedTicket(i, 0, base, af.Work(learning_rate=rate), 0, 1.0) for i, rate in enumerate(rates)]
    return Trajectory([MergedStep(1.0, "delta", (ticket,)) for ticket in tickets], np.zeros(len(rates) + 1), {})


def test_what_runs_showed_replaces_what_was_planned(small_experiment):
    base = small_experiment("afl_mixing")
    adaptive = af.replace(base, strategy=af.replace(base.strategy, schedule=af.DelayAware(over="nothing")))
    planned = setting_of(adaptive, ROWS)
    assert planned.changing_rate
    steady = with_observations(planned, [trajectory(0.2, 0.2, 0.2)], lossless=True)
    assert (steady.changing_rate, steady.learning_rate) == ("", 0.2)
    assert (steady.observed_staleness, steady.num_versions, steady.lossless) == (2, 3, True)
    changing = with_observations(planned, [trajectory(0.2, 0.1)], lossless=False)
    assert (changing.changing_rate, changing.learning_rate) == (planned.changing_rate, planned.learning_rate)
    assert not changing.lossless
