"""Each statement of the paper that is false is seen to fail, and its correction to hold, in the smallest example."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.theory import bounds
from asyncfed.theory import counter_examples as examples


def test_the_recursion_fails_with_staleness():
    example = examples.recursion_with_staleness()
    assert example.measured == pytest.approx((5 / 36) ** 2)
    assert example.printed == pytest.approx(0, abs=1e-30)
    assert example.measured <= example.corrected


def test_the_drift_bound_fails_with_staleness():
    example = examples.drift_with_staleness()
    assert example.measured == pytest.approx(25 / 36)
    assert example.printed == pytest.approx(0, abs=1e-30)


@pytest.mark.parametrize(
    ("lemma", "last_index", "reached", "printed"),
    [
        ({"contraction": 1, "gain": 1, "noise": 0, "base_rate": 0.5, "start": 1}, 0, 1.0, 0.125),
        ({"contraction": 1, "gain": 1, "noise": 0, "base_rate": 0.1, "start": 1}, 100_000, 0.0690, 0.045),
        ({"contraction": 1, "gain": 1, "noise": 0, "base_rate": 0.05, "start": 1}, 100_000, 0.0654, 0.0238),
    ],
)
def test_the_tuning_lemma_fails_for_the_start(lemma, last_index, reached, printed):
    example = examples.tuning_lemma(**lemma, last_index=last_index)
    assert example.measured == pytest.approx(reached, abs=5e-5)
    assert example.printed == pytest.approx(printed, rel=3e-3)
    assert example.refutes


def test_what_the_tuning_example_reaches_is_reached_by_a_sequence():
    """Simulated: wait, then take all that is left of the distance in the round that pays best."""
    lemma = {"contraction": 1, "gain": 1, "noise": 0, "base_rate": 0.1, "start": 1}
    rates = bounds.decayed_rates(base_rate=0.1, last_index=5000)
    weights = bounds.tuning_weights_as_printed(rates=rates, contraction=1)
    averages = []
    for taken_at in range(100):
        distance, gains = 1.0, np.zeros(len(rates))
        for t in range(taken_at + 1):
            gains[t] = (1 - rates[t]) * distance / rates[t] if t == taken_at else 0
            distance = (1 - rates[t]) * distance - rates[t] * gains[t]
        assert distance == pytest.approx(0, abs=1e-15)
        averages.append(bounds.weighted_average(gains, weights))
    assert max(averages) == pytest.approx(examples.tuning_lemma(**lemma, last_index=5000).measured)


def test_the_tuning_lemma_fails_for_the_noise():
    """The modest sequence that takes out each round's noise at once stays at d = 0 and breaks the bound already."""
    z, v, noise, last = 0.5, 1 / 3, 1.0, 100_000
    rates = bounds.decayed_rates(base_rate=0.1, last_index=last)
    gains = noise * rates / v
    printed_weights = bounds.tuning_weights_as_printed(rates=rates, contraction=z)
    reached = bounds.weighted_average(gains, printed_weights)
    assert reached == pytest.approx(0.01447, abs=5e-6)
    example = examples.tuning_lemma(contraction=z, gain=v, noise=noise, base_rate=0.1, start=0, last_index=last)
    assert example.printed == pytest.approx(0.0025)
    assert example.printed < reached < example.measured
    right_weights = bounds.tuning_weights(rates=rates, contraction=z)
    assert bounds.weighted_average(gains, right_weights) <= example.corrected * (1 + 1e-9)


def test_the_printed_weights_fail_from_52_rounds_on():
    verdicts = [examples.theorem_weights_fail(last) for last in range(200)]
    assert [example.refutes for example in verdicts] == [last >= 52 for last in range(200)]
    assert verdicts[52].measured == pytest.approx(0.06354, abs=5e-6)
    assert verdicts[52].printed == pytest.approx(0.05906, abs=5e-6)
    assert all(example.remeasured <= example.corrected for example in verdicts)
    assert examples.theorem_weights_fail(3000).measured == pytest.approx(0.353**2 / 2, rel=2e-3)


@pytest.mark.parametrize(("last_index", "measured", "printed"), [(0, 0.5, 0.045), (10, 0.111, 0.0446)])
def test_the_theorem_fails_for_short_runs(last_index, measured, printed):
    example = examples.theorem_short_run(last_index)
    assert example.measured == pytest.approx(measured, abs=5e-4)
    assert example.printed == pytest.approx(printed, abs=5e-5)
    assert example.refutes
    assert example.measured <= example.corrected
    assert not bounds.enough_rounds(strong_convexity=0.01, effective_step=1 / 6, last_index=last_index)


@pytest.mark.parametrize(("all_clients", "measured", "printed"), [(True, 2.50e-4, 1.44e-4), (False, 1.67e-4, 3.6e-5)])
def test_the_statement_drops_the_drawing_of_clients(all_clients, measured, printed):
    example = examples.dropped_sampling_term(all_clients=all_clients)
    assert example.measured == pytest.approx(measured, rel=2e-3)
    assert example.printed == pytest.approx(printed, rel=1e-9)
    assert example.refutes
    assert example.measured <= example.corrected


def test_the_exact_expectation_is_that_of_all_coin_tosses():
    """The closed sum against the mean over all 2^8 sequences of clients."""
    rate, last = 1 / 10, 8
    weights = bounds.theorem_weights(strong_convexity=1, effective_step=rate, last_index=last)
    total = 0.0
    for word in range(2**last):
        path = [0.0]
        for t in range(last):
            path.append((1 - rate) * path[-1] + (rate if word >> t & 1 else -rate))
        total += float(weights @ path) ** 2 / 2
    exact = examples.dropped_sampling_term(learning_rate=rate, last_index=last, all_clients=False)
    assert total / 2**last == pytest.approx(exact.measured)


@pytest.mark.parametrize(("staleness", "first"), [(6, 1405), (7, 99), (8, 56)])
def test_the_theorem_fails_with_staleness(staleness, first):
    assert not examples.theorem_with_staleness(staleness=staleness, last_index=first - 1).refutes
    assert examples.theorem_with_staleness(staleness=staleness, last_index=first).refutes
    assert not any(
        examples.theorem_with_staleness(staleness=staleness, last_index=last).refutes for last in range(0, first, 13)
    )


def test_at_the_papers_step_staleness_9_diverges_and_8_does_not():
    growth = {tau: np.abs(examples.delayed_descent(step=1 / 6, staleness=tau, num_updates=20_000)) for tau in (8, 9)}
    assert growth[8][-100:].max() < 1e-3
    assert growth[9][-100:].max() > 1e3


@pytest.mark.parametrize("staleness", [0, 1, 9, 30])
def test_r_star_holds_where_the_theorem_failed(staleness):
    for last in (0, 1, 10, 100, 1000):
        example = examples.staleness_within_r_star(staleness=staleness, last_index=last)
        assert example.measured <= example.corrected


@pytest.mark.parametrize("learning_rate", [1e-1, 1e-2, 1e-3, 1e-4])
def test_fast_clients_move_the_limit_at_every_rate(learning_rate):
    example = examples.client_bias(learning_rate=learning_rate, num_updates=int(20 / learning_rate))
    assert example.measured == pytest.approx(0.125, rel=1e-6)
    assert example.refutes == (learning_rate <= 0.01)


def test_the_fast_clients_limit_is_that_of_a_simulated_cycle():
    model = 0.0
    for t in range(200_000):
        model += 1e-3 * ((-1 if t % 4 == 3 else 1) - model)
    assert model == pytest.approx(0.5, abs=2e-3)


def test_wrong_arguments_are_called_as_they_were_given():
    for example in (examples.theorem_weights_fail, examples.theorem_short_run):
        with pytest.raises(ConfigError, match=r"^last_index is -1, but must be at least 0"):
            example(-1)
    with pytest.raises(ConfigError, match=r"^learning_rate is 2, but must be above 0 and at most 0.166667"):
        examples.client_bias(learning_rate=2, num_updates=3)
    with pytest.raises(ConfigError, match=r"^gain is -1, but must be above 0"):
        examples.tuning_lemma(contraction=1, gain=-1, noise=0, base_rate=0.5, start=1, last_index=0)
