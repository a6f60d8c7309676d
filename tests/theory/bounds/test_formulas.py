"""Curves in one call, edges of the conditions, the literature's rows, and what the errors say."""

import inspect
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.theory import bounds
from asyncfed.theory.counter_examples import delayed_descent

RUN = {
    "smoothness": 4.0,
    "strong_convexity": 0.5,
    "gradient_variance": 2.0,
    "optimum_heterogeneity": 1.5,
    "num_clients": 10,
    "cohort_size": 5,
    "local_steps": 20,
    "start_distance_squared": 3.0,
}
STALE = {**RUN, "learning_rate": 1 / 2560, "staleness": 3, "server_step": 1.0}
PATH = {
    "smoothness": 4.0,
    "strong_convexity": 0.5,
    "learning_rate": 0.002,
    "local_steps": 5,
    "staleness": 2,
    "largest_optimum_gradient": 0.3,
}
ROUNDS = np.array([100, 300, 2000])


def stale(**changes):
    return bounds.StaleSetting(**{**STALE, **changes})


def theorem(**changes):
    return bounds.TheoremSetting(**{**RUN, "learning_rate": 1 / 2400, **changes})


@pytest.mark.parametrize(
    "name", ["r_star_averaged", "r_star_last", "r_averaged", "r_last", "r_conv_averaged", "r_conv_last"]
)
def test_a_curve_is_its_points(name):
    bound = getattr(bounds, name)
    curve = bound(stale(), last_index=ROUNDS)
    assert curve == pytest.approx([bound(stale(), last_index=int(last)) for last in ROUNDS], rel=1e-14)
    assert np.all(np.diff(curve) < 0)
    assert isinstance(bound(stale(), last_index=7), float)


@pytest.mark.parametrize("name", ["theorem_of_proof", "theorem_exponential", "theorem_corrected"])
def test_a_theorem_curve_is_its_points(name):
    bound = getattr(bounds, name)
    curve = bound(theorem(), last_index=ROUNDS)
    assert curve == pytest.approx([bound(theorem(), last_index=int(n)) for n in ROUNDS], rel=1e-14)


def test_very_long_runs_leave_only_the_floor():
    floor = bounds.r_star_averaged(stale(start_distance_squared=0.0), last_index=10**9)
    assert bounds.r_star_averaged(stale(), last_index=10**9) == pytest.approx(floor, rel=1e-14)


def test_equal_local_rates_may_be_spelt_out():
    spelt = stale(learning_rate=np.full(20, 1 / 2560))
    assert bounds.r_star_last(spelt, last_index=50) == pytest.approx(bounds.r_star_last(stale(), last_index=50))
    rates = np.linspace(2, 1, 20) / 5120
    noise = bounds.stale_noise(stale(optimum_heterogeneity=0.0, learning_rate=rates, staleness=0))
    assert noise.first_order == pytest.approx(2 * np.sum(rates**2) / np.sum(rates) ** 2 / 5)
    assert noise.first_order > 2 / 100


def test_the_largest_rates_are_the_edges():
    for server_step in (1.0, 5.0, 0.5):
        rate = bounds.largest_stale_learning_rate(smoothness=4, staleness=3, local_steps=20, server_step=server_step)
        bounds.r_star_last(stale(server_step=server_step, learning_rate=rate), last_index=5)
        steeper = stale(server_step=server_step, learning_rate=1.01 * rate)
        with pytest.raises(ConfigError, match=r"proved up to 1/\(8 L m\).*Divide learning_rate by 1.01"):
            bounds.r_star_last(steeper, last_index=5)
        bounds.r_star_last(steeper, last_index=5, check_step=False)
    assert bounds.delay_factor(staleness=0, server_step=5) == 1
    assert bounds.delay_factor(staleness=2, server_step=0.5) == 4


def test_rounds_needed_is_the_edge_of_enough_rounds():
    for step in (1e-4, 1e-2, 0.5):
        needed = bounds.rounds_needed(strong_convexity=1, effective_step=step)
        edge = bounds.enough_rounds(strong_convexity=1, effective_step=step, last_index=[needed - 1, needed - 2])
        assert edge.tolist() == [True, False]
    with pytest.raises(
        ConfigError, match=r"last_index is 5, but must be at least 38. .*theorem_corrected holds for any"
    ):
        bounds.theorem_exponential(theorem(), last_index=5)


def test_the_exponential_is_above_the_exact_transient_once_rounds_suffice():
    needed = bounds.rounds_needed(strong_convexity=0.5, effective_step=1 / 24)
    rounds = np.arange(needed - 1, 2000)
    exact = bounds.theorem_corrected(theorem(), last_index=rounds)
    assert np.all(exact <= bounds.theorem_exponential(theorem(), last_index=rounds))


def test_the_theorem_refuses_larger_steps_unless_told_not_to():
    with pytest.raises(ConfigError, match=r"at most 1/\(6 L\) = 0.0416667. Divide learning_rate by 2.4,"):
        bounds.theorem_of_proof(theorem(learning_rate=1e-3), last_index=10)
    assert bounds.theorem_of_proof(theorem(learning_rate=1e-3), last_index=10, check_step=False) > 0


def test_every_step_check_can_be_switched_off():
    steep = theorem(learning_rate=1e-3)
    for bound in (bounds.theorem_corrected, bounds.theorem_exponential, bounds.theorem_of_proof):
        with pytest.raises(ConfigError, match=r"Divide learning_rate by 2.4, .*check_step=False"):
            bound(steep, last_index=100)
        assert bound(steep, last_index=100, check_step=False) > bounds.theorem_noise(steep)
    run = {"learning_rate": 1e-3, **{key: value for key, value in RUN.items() if key != "start_distance_squared"}}
    for bound, more in (
        (bounds.round_recursion, {"distance_squared": 3, "objective_gap": 0.7, "client_drift": 0.01}),
        (bounds.client_drift_bound, {"objective_gap": 0.7}),
    ):
        taken = {key: run[key] for key in run if key in inspect.signature(bound).parameters}
        with pytest.raises(ConfigError, match=r"1/\(6 L J I\) = 0.000416667. Divide it by 2.4, .*check_step=False"):
            bound(**taken, **more)
        assert bound(**taken, **more, check_step=False) > 0


def test_steps_without_contraction_are_called_by_their_name():
    for bound in (bounds.r_star_averaged, bounds.r_last):
        with pytest.raises(ConfigError, match=r"strong_convexity \* server_step \* sum of local rates / 2 is 5.0"):
            bound(stale(learning_rate=1.0), last_index=5, check_step=False)


STATEMENTS = [name for name in bounds.__all__ if name.startswith(("r_", "theorem_", "p_", "m_", "tuning_"))]


SETTINGS = {"StaleSetting": STALE, "TheoremSetting": {**RUN, "learning_rate": 1e-4}, "PathSetting": PATH}


@pytest.mark.parametrize("name", [*STATEMENTS, *SETTINGS, "round_recursion", "client_drift_bound", "hinge_bound"])
def test_signatures_and_help_name_every_argument(name):
    bound = getattr(bounds, name)
    parameters = dict(inspect.signature(bound).parameters)
    explained = inspect.getdoc(bound).partition("Args:")[2]
    assert [argument for argument in parameters if f"\n  {argument}: " not in explained] == []
    taken = parameters.pop("setting", None)
    if taken is not None:
        kind = inspect.get_annotations(bound, eval_str=True)["setting"]
        fields = inspect.signature(kind).parameters
        assert [field for field in fields if f"\n    {field}: " not in explained] == []
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'foo'"):
        bound(**dict.fromkeys(inspect.signature(bound).parameters, 1), foo=2)
    with pytest.raises(TypeError, match=r"missing \d+ required"):
        bound()


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_a_frozen_value(name):
    kind, fields = getattr(bounds, name), SETTINGS[name]
    assert kind(**fields) == kind(**fields)
    assert len({kind(**fields), kind(**fields)}) == 1
    with pytest.raises(FrozenInstanceError):
        kind(**fields).smoothness = 1.0


def test_local_rates_of_a_setting_cannot_be_changed_from_outside():
    rates = np.full(20, 1 / 2560)
    setting = stale(learning_rate=rates)
    rates[:] = 1.0
    assert setting.learning_rate == (1 / 2560,) * 20
    assert setting == stale(learning_rate=[1 / 2560] * 20)


def test_the_theorem_knows_no_staleness():
    with pytest.raises(TypeError, match="unexpected keyword argument 'staleness'"):
        theorem(staleness=3)
    with pytest.raises(AttributeError):
        bounds.theorem_corrected(stale(), last_index=9)


def test_the_table_of_statements_names_what_exists():
    table = inspect.getdoc(bounds)
    for name in [*STATEMENTS, "participation_sum", "hinge_bound", "round_recursion", "client_drift_bound"]:
        assert re.search(rf"\b{name}\b", table), name
    named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", table)) - {"last_index", "num_updates", "x_t", "g_t"}
    assert named <= set(bounds.__all__)


def test_the_statement_equals_the_proof_when_all_clients_take_part():
    everyone = bounds.theorem_of_proof(theorem(cohort_size=10, learning_rate=1 / 4800), last_index=300)
    for size in (1, 5, 10):
        printed = bounds.theorem_as_printed(theorem(cohort_size=size, learning_rate=1 / 4800), last_index=300)
        assert printed == everyone


def test_the_decayed_schedule_meets_the_condition_from_the_round_said():
    at = {"smoothness": 3.0, "cohort_size": 2, "local_steps": 5}
    limit = bounds.largest_paper_learning_rate(**at)
    first = bounds.met_from_round(base_learning_rate=7.3 * limit, **at)
    rates = bounds.decayed_rates(base_rate=7.3 * limit, last_index=first)
    assert (rates <= limit).tolist().index(True) + 1 == first
    assert bounds.met_from_round(base_learning_rate=limit, **at) == 1
    assert bounds.met_from_round(base_learning_rate=2 * limit, **at) == 4


@pytest.mark.parametrize("staleness", range(12))
def test_the_stability_limit_is_where_the_largest_root_leaves_the_circle(staleness):
    def largest_root(step):
        polynomial = np.zeros(staleness + 2)
        polynomial[0], polynomial[1], polynomial[-1] = 1, -1, polynomial[-1] + step
        if staleness == 0:
            polynomial = np.array([1, step - 1])
        return np.abs(np.roots(polynomial)).max()

    limit = bounds.delay_stability_limit(staleness)
    assert largest_root(limit * 0.999) < 1 < largest_root(limit * 1.001)
    assert bounds.is_stable(effective_step=limit / 2 * 0.999, curvature=2, staleness=staleness)
    assert not bounds.is_stable(effective_step=limit, curvature=1, staleness=staleness)


def test_a_horizon_below_zero_is_refused():
    with pytest.raises(ConfigError, match=r"last_index is -1, but must be at least 0.$"):
        bounds.r_star_averaged(stale(), last_index=-1)


def test_literature_gives_numbers_only_where_sure():
    numbers = [row for row in bounds.LITERATURE if row.step_limit is not None]
    assert [row.source.split()[0] for row in numbers] == ["Levin", "Stich", "Choi,"]
    for row in numbers:
        # Every step range must lie within the exact limit of stability, and does converge.
        for staleness in (1, 2, 5):
            step = row.step_limit(1.0, staleness)
            assert step <= bounds.delay_stability_limit(staleness)
            path = delayed_descent(step=0.9 * step, staleness=staleness, num_updates=3000)
            assert abs(path[-1]) < 1e-6


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"smoothness": 0.0}, "smoothness is 0.0, but must be above 0"),
        ({"smoothness": float("nan")}, "smoothness is nan"),
        (
            {"strong_convexity": 5.0},
            "strong_convexity is 5.0, but must be above 0 and at most 4. No loss is more convex than smooth",
        ),
        ({"strong_convexity": 0.0}, "without strong convexity these bounds say nothing"),
        ({"cohort_size": 11}, "cohort_size is 11, .*at most 10. A cohort is drawn without replacement"),
        ({"local_steps": 2.5}, "local_steps is 2.5, but must be a whole number"),
        ({"gradient_variance": -1.0}, "gradient_variance is -1.0, but must be at least 0"),
        ({"staleness": -1}, "staleness is -1, but must be at least 0"),
        ({"server_step": 0.0}, "server_step is 0.0, but must be above 0"),
        ({"learning_rate": [1e-4, 1e-4]}, r"learning_rate has shape \(2,\), but there are 20 local_steps"),
        ({"smoothness": [1.0, 2.0]}, r"smoothness has shape \(2,\), but must be one number"),
    ],
)
def test_errors_name_the_argument_its_value_and_limit(change, says):
    with pytest.raises(ConfigError, match=says):
        bounds.r_star_averaged(stale(**change), last_index=5)
