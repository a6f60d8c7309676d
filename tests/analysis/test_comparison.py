import importlib

import numpy as np
import pytest

from asyncfed import presets
from asyncfed.analysis.comparison import Comparison, compare
from asyncfed.analysis.comparison_runs import Outcome, ProblemMemory
from asyncfed.analysis.statistics import geometric_interval
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.data import Holdout, PaperRegression
from asyncfed.delays import heavy_tailed
from asyncfed.engine.evaluation import Evaluation

NAMES = ("afl", "sync")


def strategies(*names):
    return {name: presets.regression(strategy=name).strategy for name in names or NAMES}


def brief(rounds=3):
    return presets.regression(rounds=rounds)


def outcome(label, seed, objective, elapsed, verdict="finished"):
    """A run with one evaluation and one round of 5 updates per objective after the first."""
    count = len(objective)
    steps = np.arange(count)
    return Outcome(
        label=label,
        seed=seed,
        verdict=verdict,
        reason="",
        evaluations={
            "updates": 5 * steps,
            "round": steps,
            "elapsed": np.array(elapsed, float),
            "objective": np.array(objective, float),
        },
        rounds={
            "updates": 5 * steps[1:],
            "bytes_down": 100 * steps[1:],
            "bytes_up": 10 * steps[1:],
            "energy": 7.0 * steps[1:],
        },
        participation=np.ones(3),
        sha256={},
    )


def made(runs, target=None):
    labels = tuple(dict.fromkeys(run.label for run in runs))
    seeds = tuple(dict.fromkeys(run.seed for run in runs))
    table = {label: {run.seed: run for run in runs if run.label == label} for label in labels}
    return Comparison("made up", labels, seeds, table, target)


TWO_SEEDS = [
    outcome("slow", 0, [9, 4, 1], [0, 10, 20]),
    outcome("slow", 1, [9, 4, 1], [0, 40, 80]),
    outcome("fast", 0, [9, 1, 1], [0, 5, 10]),
    outcome("fast", 1, [9, 1, 0.5], [0, 5, 10]),
]


# ---- what is derived -----------------------------------------------------------------------------------------


def test_the_default_target_is_most_of_the_progress_of_the_best_run_with_the_seed():
    comparison = made(TWO_SEEDS)
    assert comparison.targets == {0: pytest.approx(9 - 0.95 * 8), 1: pytest.approx(9 - 0.95 * 8.5)}
    assert comparison.target == pytest.approx(np.mean(list(comparison.targets.values())))
    assert comparison.time_to_target("fast", "round").tolist() == [1, 2]
    assert comparison.time_to_target("slow", "round")[0] == 2
    assert comparison.notes == ("slow did not reach the target with seed 1",)


def test_diverged_runs_do_not_set_the_target_and_never_reach_it():
    gone = outcome("gone", 0, [9, 0.1, 1e12], [0, 1, 2], verdict="diverged")
    comparison = made([outcome("fine", 0, [9, 2], [0, 1]), gone])
    assert comparison.target == pytest.approx(9 - 0.95 * 7)
    assert np.isnan(comparison.time_to_target("gone", "elapsed")).all()
    assert "gone diverged with seed 0; try a smaller learning rate" in comparison.notes
    assert np.isnan(made([gone]).target)


def test_a_run_that_never_improves_has_no_target_and_it_is_said():
    comparison = made([outcome("flat", 0, [9, 9, 10], [0, 1, 2]), outcome("flat", 1, [9, 8, np.nan], [0, 1, 2])])
    assert np.isnan(comparison.targets[0])
    assert comparison.target == comparison.targets[1] == pytest.approx(8.05)
    assert comparison.notes == ("no run improved on its start with seed 0, so there was no target",)


def test_an_accuracy_is_to_rise():
    run = replace_evaluations(TWO_SEEDS[0], test_accuracy=np.array([0.5, 0.8, 0.9]))
    comparison = Comparison("made up", ("slow",), (0,), {"slow": {0: run}}, metric="test_accuracy")
    assert comparison.target == pytest.approx(0.88)
    assert comparison.time_to_target("slow", "elapsed").tolist() == [20]
    asked = Comparison("made up", ("slow",), (0,), {"slow": {0: run}}, 0.75, "test_accuracy")
    assert asked.time_to_target("slow", "elapsed").tolist() == [10]


def test_the_kept_model_is_the_final_one():
    kept = {name: getattr(TWO_SEEDS[0], name) for name in Outcome.__dataclass_fields__}
    assert TWO_SEEDS[0].final("objective") == 1
    assert Outcome(**{**kept, "kept": 1}).final("objective") == 4


@pytest.mark.parametrize(
    ("axis", "slow", "fast"),
    [
        ("round", [2, 2], [1, 1]),
        ("elapsed", [20, 80], [5, 5]),
        ("bytes", [220, 220], [110, 110]),
        ("energy", [14, 14], [7, 7]),
    ],
)
def test_time_to_target_on_every_axis(axis, slow, fast):
    comparison = made(TWO_SEEDS, target=2.0)
    assert comparison.time_to_target("slow", axis).tolist() == slow
    assert comparison.time_to_target("fast", axis).tolist() == fast


def test_ratio_is_the_paired_geometric_mean():
    ratio = made(TWO_SEEDS, target=2.0).ratio("slow", "fast", "elapsed")
    by_hand = geometric_interval([20 / 5, 80 / 5])
    assert (ratio.mean, ratio.low, ratio.high) == (by_hand.mean, by_hand.low, by_hand.high)
    assert ratio.mean == pytest.approx(8.0)
    assert (ratio.n, ratio.left_out) == (2, 0)


def test_seeds_that_missed_the_target_are_left_out_and_counted():
    comparison = made([*TWO_SEEDS[:3], outcome("fast", 1, [9, 8, 8], [0, 5, 10])], target=2.0)
    ratio = comparison.ratio("slow", "fast", "elapsed")
    assert (ratio.mean, ratio.n, ratio.left_out) == (pytest.approx(4.0), 1, 1)
    assert np.isnan(ratio.low)


def test_a_target_reached_before_training_gives_no_ratio():
    comparison = made(TWO_SEEDS, target=100.0)
    ratio = comparison.ratio("slow", "fast", "elapsed")
    assert (ratio.n, ratio.left_out) == (0, 2)
    assert comparison.notes == ("the target is met before training with seeds 0, 1; ask for a harder one",)


def test_an_evaluation_within_a_round_gets_its_share_of_the_cost():
    run = outcome("one", 0, [9, 4, 1], [0, 1, 2])
    within = replace_evaluations(run, updates=np.array([0, 2, 10]))
    assert within.positions("bytes").tolist() == [0, 44, 220]
    assert within.positions("energy") == pytest.approx([0, 2.8, 14])


def replace_evaluations(run, **changes):
    kept = {name: getattr(run, name) for name in Outcome.__dataclass_fields__}
    return Outcome(**{**kept, "evaluations": {**run.evaluations, **changes}})


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda c: c.time_to_target("sloww", "round"), 'no strategy "sloww". Did you mean "slow"'),
        (lambda c: c.ratio("slow", "nobody", "round"), 'no strategy "nobody"'),
        (lambda c: c.time_to_target("slow", "elapse"), 'no axis "elapse". Did you mean "elapsed"'),
    ],
)
def test_misspelt_questions_are_explained(ask, message):
    with pytest.raises(ConfigError, match=message):
        ask(made(TWO_SEEDS))


# ---- running -------------------------------------------------------------------------------------------------


def test_same_seed_means_same_start_for_all_strategies_and_another_seed_another():
    comparison = compare(brief(), strategies(), [0, 1], workers=1)
    first = {label: [comparison.runs[label][seed].objective[0] for seed in (0, 1)] for label in comparison.labels}
    assert first["afl"] == first["sync"]
    assert first["afl"][0] != first["afl"][1]


@pytest.mark.slow
def test_workers_change_nothing_but_the_speed():
    seen = []
    inline = compare(brief(), strategies(), [3, 1], workers=1)
    pooled = compare(brief(), strategies(), [3, 1], workers=2, watch=lambda *news: seen.append(news))
    assert (pooled.labels, pooled.seeds, pooled.target) == (inline.labels, inline.seeds, inline.target)
    assert list(pooled.runs["afl"]) == [3, 1]
    for label in inline.labels:
        for seed in inline.seeds:
            one, other = inline.runs[label][seed], pooled.runs[label][seed]
            assert one.sha256 == other.sha256
            assert all(np.array_equal(one.rounds[k], other.rounds[k]) for k in one.rounds)
            assert all(np.array_equal(one.evaluations[k], other.evaluations[k]) for k in one.evaluations)
    assert [news[:2] for news in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {news[2:] for news in seen} == {(label, seed) for label in NAMES for seed in (3, 1)}


def test_bytes_and_energy_are_those_of_the_ledger():
    run = compare(brief(), strategies("sync"), [0], workers=1).runs["sync"][0]
    assert run.positions("bytes")[0] == 0
    assert run.positions("bytes")[1:].tolist() == (run.rounds["bytes_down"] + run.rounds["bytes_up"]).tolist()
    assert run.positions("energy")[1:].tolist() == run.rounds["energy"].tolist()


def test_costs_never_fall_when_every_update_is_evaluated():
    experiment = replace(brief(), evaluation=Evaluation(every=1, unit="update"))
    run = compare(experiment, strategies("afl"), [0], workers=1).runs["afl"][0]
    assert len(run.objective) > 10
    assert all((np.diff(run.positions(axis)) >= 0).all() for axis in ("round", "elapsed", "bytes", "energy"))


def test_a_diverged_run_is_a_result():
    wild = replace(strategies("sync")["sync"], work=Work(epochs=50, learning_rate=1.0))
    comparison = compare(brief(), {"wild": wild, **strategies("sync")}, [0], workers=1)
    assert comparison.runs["wild"][0].verdict == "diverged"
    assert comparison.ratio("wild", "sync", "round").left_out == 1
    assert np.isfinite(comparison.target)


def test_the_metric_is_the_objective_unless_another_is_named():
    experiment = replace(brief(), holdout=Holdout())
    comparison = compare(experiment, strategies(), [0], workers=1, metric="validation_loss")
    assert comparison.metric == "validation_loss"
    assert {"test_loss", "objective"} <= set(comparison.measured)
    assert compare(experiment, strategies("afl"), [0], workers=1, metric="distance").metric == "distance"
    assert compare(brief(), strategies("afl"), [0], workers=1).metric == "objective"


def test_data_are_prepared_once_for_all_runs_of_a_seed():
    made = []

    class Counted(PaperRegression, tag="counted_in_a_test"):
        def prepare(self, request):
            made.append(request.seed)
            return super().prepare(request)

    experiment = replace(brief(), data=Counted())
    prepared = experiment.prepare_data()
    compare(experiment, strategies("afl", "sync", "fedbuff"), [0, 1], workers=1, prepared=prepared)
    assert made == [0, 1]


def test_the_last_problem_is_kept_until_another_is_needed():
    memory = ProblemMemory()
    one = memory.of(brief())
    assert memory.of(replace(brief(7), strategy=strategies("sync")["sync"])) is one
    assert memory.of(replace(brief(), seed=1)) is not one


class Broken:
    """A strategy that passes its check and breaks when it starts."""

    state_type = None

    def __init__(self, error):
        self.error = error

    def check(self, num_clients):
        pass

    def start(self, view):
        raise self.error


@pytest.fixture
def any_strategy_in_a_header(monkeypatch):
    monkeypatch.setattr("asyncfed.runs.header.to_plain", lambda value: {})


@pytest.mark.usefixtures("any_strategy_in_a_header")
def test_errors_name_strategy_and_seed():
    with pytest.raises(ConfigError, match='strategy "mine", seed 7: too many cooks'):
        compare(brief(), {"mine": Broken(ConfigError("too many cooks"))}, [7], workers=1)
    with pytest.raises(ZeroDivisionError) as caught:
        compare(brief(), {"mine": Broken(ZeroDivisionError())}, [7], workers=1)
    assert 'strategy "mine", seed 7' in caught.value.__notes__[0]


def test_a_strategy_that_cannot_travel_is_refused_before_anything_runs():
    local = Broken(ValueError())
    local.error = lambda: None
    with pytest.raises(ConfigError, match=r'strategy "mine", seed 0 cannot be handed .* workers=1'):
        compare(brief(), {"mine": local}, [0, 1], workers=2)


OWN_STRATEGY = """
from asyncfed.registry import register
from asyncfed.strategies import FedAvg

@register("strategy")
class Patient(FedAvg, tag="patient_of_a_test"):
    cohort_size: int = 2

class Unregistered(FedAvg, tag="unregistered_of_a_test"):
    cohort_size: int = 2
"""


@pytest.mark.slow
def test_strategies_of_ones_own_are_compared_by_worker_processes(tmp_path, monkeypatch):
    (tmp_path / "own_strategies_of_a_test.py").write_text(OWN_STRATEGY)
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module("own_strategies_of_a_test")
    work = strategies("sync")["sync"].work
    mine = {"registered": own.Patient(work=work), "not registered": own.Unregistered(work=work)}
    pooled, inline = (compare(brief(), mine, [0], workers=count) for count in (2, 1))
    for label in mine:
        assert pooled.runs[label][0].verdict == "finished"
        assert pooled.runs[label][0].sha256 == inline.runs[label][0].sha256


@pytest.mark.slow
def test_ctrl_c_stops_everything():
    def press(*news):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(
            brief(rounds=100_000_000),
            {"sync": strategies("sync")["sync"], **short_lived()},
            [0],
            workers=2,
            watch=press,
        )


def short_lived():
    """Diverges at once, so that there is a first result while the other run would go on for days."""
    return {"wild": replace(strategies("sync")["sync"], work=Work(epochs=50, learning_rate=1.0))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategies": {}}, "no strategies to compare"),
        ({"seeds": []}, "there are no seeds"),
        ({"seeds": [1, 2, 1]}, "hold a number twice"),
        ({"workers": 0}, "workers is 0; it must be at least 1"),
        ({"target": 0.0}, "target is 0.0; the objective to reach must be positive"),
        ({"metric": "objectiv"}, 'no metric "objectiv". Did you mean "objective"'),
        ({"metric": "test_loss"}, 'no metric "test_loss".*Hold rows out'),
        ({"strategies": {"crowd": presets.regression(num_clients=99).strategy}}, 'strategy "crowd": .*49'),
    ],
)
def test_impossible_comparisons_are_refused(changes, message):
    asked = {"strategies": strategies(), "seeds": [0], **changes}
    with pytest.raises(ConfigError, match=message):
        compare(brief(), **asked)


@pytest.mark.slow
@pytest.mark.parametrize("aggregate", ["afl_mixing", "afl_delta_mean"])
def test_with_heavy_tailed_delays_asynchrony_is_faster_at_the_same_rate(aggregate):
    base = presets.regression(rounds=200, delays=heavy_tailed(shape=1.1))
    strategies = {name: presets.strategy_like(name, base.strategy, "same") for name in (aggregate, "sync")}
    comparison = compare(base, strategies, range(6), workers=2)
    times_faster = comparison.ratio("sync", aggregate, "elapsed")
    assert times_faster.n == 6
    assert times_faster.low > 1.0
