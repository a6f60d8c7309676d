"""Certificates: which theorem covers which run, and that nothing measured contradicts what is guaranteed."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.certificates import certificate as certificates
from asyncfed.certificates import certify, with_theory_rate
from asyncfed.core.record import Config
from asyncfed.core.types import Combine, Merge, Train
from asyncfed.errors import ConfigError, JournalError
from asyncfed.rules.vectors import COMBINERS
from asyncfed.strategies.discounts import Polynomial

ALL_ROWS = 10_000


def experiment(strategy="sync", *, rounds=30, batch_size=ALL_ROWS, l2=0.0, epochs=4, loss="least_squares", **changes):
    """The paper's regression in small, with a constant rate."""
    base = af.presets.regression(rounds=rounds, strategy=strategy, reading="published")
    work = af.Work(epochs=epochs, batch_size=batch_size, learning_rate=1e-3)
    strategy = af.replace(base.strategy, work=work, schedule=af.ConstantRate(), **changes)
    data = af.data.PaperRegression(num_samples=400, num_features=3)
    if loss not in ("least_squares", "mse"):
        data = af.data.PaperClassification(num_samples=400, num_features=3)
    model = af.replace(base.model, loss=loss, l2=l2)
    return af.replace(base, data=data, model=model, strategy=strategy)


def named(certificate, name):
    return next(g for g in certificate.guarantees if g.name == name)


def applying(certificate):
    return {g.name for g in certificate.applying}


def check(certificate, word):
    return next(one for one in certificate.assumption_checks if word in one.question)


class TestWhichTheoremApplies:
    def test_synchronous_with_full_gradients_at_the_theory_rate(self):
        slowed, theorem = with_theory_rate(experiment("sync"))
        found = certify(slowed, seeds=3)
        assert theorem.name == "R*"
        assert {"R*", "R", "R-conv", "M"} <= applying(found)
        assert named(found, "R*").step_factor == pytest.approx(1.0)
        assert found.ok
        assert found.path.name == "M along the path"

    def test_a_rate_ten_times_too_large_is_said_so(self):
        slowed, _ = with_theory_rate(experiment("sync"))
        rate = slowed.strategy.work.learning_rate
        faster = af.replace(
            slowed, strategy=af.replace(slowed.strategy, work=af.replace(slowed.strategy.work, learning_rate=10 * rate))
        )
        found = named(certify(faster, seeds=0), "R*")
        assert not found.applies
        assert found.step_factor == pytest.approx(10.0)
        assert "10 times too large" in found.obstacles[-1]

    def test_steps_along_stale_deltas_are_covered_by_p_alone(self):
        slowed, theorem = with_theory_rate(experiment("afl_delta_mean", max_staleness=3))
        found = certify(slowed, seeds=2)
        assert theorem.name == "P"
        assert applying(found) == {"P"}
        assert found.setting.observed_staleness <= 3
        assert found.ok
        assert "independently" in named(found, "R*").missing[0]

    def test_mixing_is_covered_by_m_whatever_the_staleness(self):
        found = certify(experiment("afl_mixing", max_staleness=20), seeds=2)
        assert applying(found) == {"M"}
        assert found.ok

    def test_the_mean_of_latest_models_is_covered_along_the_path_only(self):
        found = certify(experiment("afl"), seeds=1)
        assert applying(found) == set()
        assert found.path.name == "M along the path"
        assert "along the recorded path only" in named(found, "M").missing[0]
        assert found.ok

    def test_a_whole_rounds_sum_is_what_the_paper_proves(self):
        summed = experiment("afl_delta_sum", max_staleness=0, when_stale="wait")
        found = certify(summed, seeds=0)
        limit = named(found, "Theorem 1, corrected").largest_rate
        assert limit == pytest.approx(1 / (6 * found.constants.smoothness * 5 * 4))
        work = af.replace(summed.strategy.work, learning_rate=limit)
        found = certify(af.replace(summed, strategy=af.replace(summed.strategy, work=work)), seeds=3)
        assert "Theorem 1, corrected" in applying(found)
        assert "Theorem 1, as printed" not in applying(found), "J < C: the printed one drops a term"
        assert found.ok

    def test_reshuffled_batches_leave_r_conv(self):
        even = af.replace(experiment("sync", batch_size=10), split=af.data.IID())
        assert set(even.problem().num_examples.tolist()) == {40}
        slowed, theorem = with_theory_rate(even)
        found = certify(slowed, seeds=3)
        assert theorem.name == "R-conv"
        assert {"R-conv"} <= applying(found)
        assert "conditionally unbiased" in named(found, "R*").missing[-1]
        assert found.ok

    def test_uneven_batches_leave_the_bound_along_the_path(self):
        found = certify(experiment("afl_mixing", batch_size=16), seeds=1)
        assert applying(found) == set()
        assert found.path is not None
        assert found.ok

    def test_the_published_scripts_are_described_by_nothing(self):
        base = af.presets.regression(rounds=3, strategy="published", reading="published")
        found = certify(base, seeds=1)
        assert applying(found) == set()
        assert found.path is None

    def test_a_rule_is_never_paired_with_a_bound_that_does_not_cover_it(self):
        for strategy in ("afl", "afl_mixing", "afl_delta_mean", "afl_delta_sum", "fedbuff", "fedasync", "cyclic"):
            found = certify(experiment(strategy, rounds=4), seeds=1)
            form = found.setting.rule.form
            assert "P" not in applying(found) or form == "deltas"
            assert "M" not in applying(found) or form == "models"
            assert not {"R*", "R", "R-conv", "Theorem 1, corrected"} & applying(found)
            assert found.ok

    @pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
    def test_smooth_classification_with_a_penalty_has_path_bounds(self, loss):
        found = certify(
            experiment("afl_mixing", loss=loss, l2=0.1, batch_size=16, rounds=10, max_staleness=30), seeds=1
        )
        assert applying(found) == {"M"}
        assert found.path.name == "M along the path"
        assert found.ok

    def test_plain_hinge_has_the_subgradient_bound_and_no_other(self):
        found = certify(experiment("sync", loss="hinge", rounds=10), seeds=2)
        assert applying(found) == {"hinge"}
        assert check(found, "Smooth").state == "no"
        measured = np.mean([run.averaged_gap for run in found.runs], axis=0)
        assert (measured <= named(found, "hinge").gap[found.runs[0].versions]).all()


class TestSituationsInWhichAProofDoesNotHold:
    """Each was once certified, and a measured run then left the bound."""

    @staticmethod
    def narrow(strategy, **changes):
        """Six clients with the same single feature and full gradients: as little room as possible under a bound."""
        data = af.data.PaperRegression(num_samples=120, num_features=1, low=0.99, high=1.01, noise=0.1, bias=0.0)
        return af.Experiment(
            num_clients=6,
            data=data,
            model=af.problems.LinearModel(fit_bias=False),
            strategy=strategy,
            budget=af.Budget(rounds=40),
            **changes,
        )

    @staticmethod
    def afl(rate, **settings):
        work = af.Work(epochs=1, batch_size=1000, learning_rate=rate)
        return af.strategies.AFL(work=work, schedule=af.ConstantRate(), **settings)

    @pytest.mark.parametrize("aggregate", ["delta_sum", "delta_mean"])
    def test_waiting_updates_are_merged_several_at_once(self, aggregate):
        waits = self.afl(0.7, concurrency=5, aggregate=aggregate, max_staleness=1, when_stale="wait")
        exponential = af.delays.Delays(compute=af.delays.Exponential(mean=1.0))
        found = certify(self.narrow(waits, delays=exponential), seeds=1)
        assert applying(found) == set()
        assert found.ok
        assert found.path is not None

    def test_an_average_over_a_whole_round_with_lost_tickets(self):
        barrier = self.afl(0.9, concurrency=5, aggregate="delta_mean", max_staleness=0, when_stale="wait")
        found = certify(self.narrow(barrier, delays=af.delays.Delays(dropout=0.7)), seeds=1)
        assert "P" not in applying(found)
        assert found.ok

    def test_damping_with_weights_by_samples(self):
        damping = af.strategies.AFL(
            concurrency=2,
            aggregate="delta_mean",
            weighting="samples",
            max_staleness=0,
            when_stale="damp",
            damping=Polynomial(power=30.0),
            work=af.Work(epochs=1, batch_size=1000, learning_rate=0.9),
            schedule=af.ConstantRate(),
        )
        assert applying(certify(self.narrow(damping), seeds=1)) == set()

    def test_unequal_numbers_of_steps_lower_the_rate_of_p(self):
        base = af.presets.regression(rounds=3, strategy="afl_delta_mean")
        uneven = af.replace(
            base, model=af.replace(base.model, l2=0.1), strategy=af.replace(base.strategy, max_staleness=8)
        )
        slowed, theorem = with_theory_rate(uneven)
        found = certify(slowed, seeds=1)
        assert theorem.name == "P"
        assert "P" in applying(found)
        assert found.ok

    def test_a_chance_of_losing_tickets_is_seen_before_any_run(self):
        lossy = af.replace(experiment("sync"), delays=af.delays.Delays(dropout=0.4))
        assert not {"R*", "R", "R-conv"} & applying(certify(with_theory_rate_of_sync(lossy), seeds=0))

    @pytest.mark.parametrize(("dtype", "rate"), [("float64", 6.5), ("float32", 7.0)])
    def test_rounding_of_huge_numbers_is_no_violation(self, dtype, rate):
        data = af.data.PaperRegression(num_samples=20, num_features=1, low=-1.0, high=1.0)
        work = af.Work(epochs=1, batch_size=1000, learning_rate=rate)
        diverging = af.Experiment(
            num_clients=1,
            data=data,
            dtype=dtype,
            model=af.problems.LinearModel(fit_bias=False),
            strategy=af.strategies.FedAvg(cohort_size=1, weighting="equal", work=work),
            budget=af.Budget(rounds=300),
        )
        assert certify(diverging, seeds=1).ok

    @pytest.mark.parametrize("what", ["hinge", "proximal", "dropout"])
    def test_lemma_six_is_not_said_to_hold_where_it_does_not(self, what):
        summed = experiment("afl_delta_sum", max_staleness=0, when_stale="wait", rounds=3)
        slow = af.replace(summed.strategy.work, learning_rate=1e-5, proximal=0.1 if what == "proximal" else 0.0)
        summed = af.replace(summed, strategy=af.replace(summed.strategy, work=slow))
        if what == "hinge":
            summed = af.replace(experiment("afl_delta_sum", loss="hinge"), strategy=summed.strategy)
        if what == "dropout":
            summed = af.replace(summed, delays=af.delays.Delays(dropout=0.3))
        assert "no guarantee" in certify(summed, seeds=1).drift_note


def with_theory_rate_of_sync(experiment):
    slowed, _ = with_theory_rate(af.replace(experiment, delays=af.delays.Delays()))
    return af.replace(experiment, strategy=slowed.strategy)


class TestAssumptionChecks:
    def test_the_text_preset(self):
        found = certify(af.presets.regression(rounds=400), seeds=0)
        states = {one.question.split("?")[0]: one.state for one in found.assumption_checks}
        assert states["Smooth"] == "yes"
        assert states["Constant step"] == "no"
        assert states["Staleness bounded"] == "no"
        assert check(found, "paper's step").factor > 100

    def test_declared_and_observed_staleness_are_both_given(self):
        found = certify(experiment("afl_mixing", max_staleness=4, rounds=5), seeds=1)
        assert check(found, "Staleness").answer.startswith("at most 4 versions; observed")

    def test_enough_rounds(self):
        assert check(certify(experiment("sync", rounds=3), seeds=0), "Enough").state == "no"
        assert check(certify(experiment("sync", rounds=5000), seeds=0), "Enough").state == "yes"

    def test_a_delay_aware_rate_that_never_changed_counts_as_constant(self):
        base = experiment("sync", rounds=3)
        adaptive = af.replace(base.strategy, schedule=af.DelayAware(over="nothing"))
        same_speed = af.replace(base, strategy=adaptive, delays=af.delays.Delays())
        assert check(certify(same_speed, seeds=0), "Constant").state == "no"
        assert check(certify(same_speed, seeds=1), "Constant").state == "yes"


class TestTheoryRate:
    def test_without_a_declared_bound_deltas_have_none(self):
        with pytest.raises(ConfigError, match=r"No theorem covers .*max_staleness"):
            with_theory_rate(experiment("afl_delta_mean"))

    def test_plain_hinge_has_none(self):
        with pytest.raises(ConfigError, match="not smooth"):
            with_theory_rate(af.presets.svm(rounds=3))

    def test_the_schedule_becomes_constant(self):
        slowed, _ = with_theory_rate(af.replace(experiment("afl_mixing", max_staleness=5), name="x"))
        assert slowed.strategy.schedule == af.ConstantRate()


class TestViolations:
    def test_a_run_outside_a_path_wise_bound_is_called_a_bug(self):
        slack = certificates.Slack(1e-10, 1e-9)
        said = certificates._outside("M", 7, np.array([2.0, 1.9]), np.array([2.0, 1.0]), slack)
        assert "VIOLATED by the run with seed 7" in said
        assert "bug in AsyncFed" in said
        assert certificates._outside("M", 7, np.array([2.0, 0.9]), np.array([2.0, 1.0]), slack) == ""

    def test_a_mean_is_judged_with_its_sampling_error(self):
        slowed, _ = with_theory_rate(experiment("sync", rounds=3))
        bound = named(certify(slowed, seeds=0), "R*")
        inside = [bound.distance * factor for factor in (0.9, 1.0, 1.05)]
        none = certificates.Slack(0.0, 0.0)
        assert certificates._mean_outside(bound, inside, none) == ""
        outside = [bound.distance * factor for factor in (1.5, 1.51, 1.49)]
        assert "exceeded beyond sampling error" in certificates._mean_outside(bound, outside, none)


def test_a_run_gives_its_own_certificate(tmp_path):
    af.run(experiment("afl_mixing", rounds=5, max_staleness=9), out=tmp_path / "run.sqlite")
    found = af.load(tmp_path / "run.sqlite").certificate()
    assert len(found.runs) == 1
    assert applying(found) == {"M"}
    assert found.plot().axes


class TestProblemsOfOnesOwn:
    """A run made with `problem=` is certified on that problem, not on the one its experiment describes."""

    @pytest.fixture
    def other(self):
        data = af.data.PaperRegression(num_samples=400, num_features=3, noise=5.0, bias=-7.0)
        return af.replace(experiment("afl_mixing", rounds=3), data=data).problem()

    def test_the_constants_are_those_of_the_problem_that_was_learnt(self, other):
        run = af.run(experiment("afl_mixing", rounds=3), problem=other)
        assert run.certificate().constants.optimum == pytest.approx(other.optimum())

    def test_a_file_without_its_problem_is_refused(self, other, tmp_path):
        af.run(experiment("afl_mixing", rounds=3), problem=other, out=tmp_path / "run.sqlite")
        with pytest.raises(JournalError, match="problem="):
            af.load(tmp_path / "run.sqlite").certificate()
        found = af.load(tmp_path / "run.sqlite", problem=other).certificate()
        assert found.constants.optimum == pytest.approx(other.optimum())

    def test_the_described_problem_in_a_wrapper_is_found(self):
        described = experiment("afl_mixing", rounds=3)
        run = af.run(described, problem=Wrapped(described.problem()))
        assert applying(run.certificate()) == applying(certify(described, seeds=1))

    def test_a_problem_that_is_no_linear_model_is_refused_by_name(self, other):
        with pytest.raises(ConfigError, match=r"is a Wrapped; certificates are made for linear models and softmax"):
            certify(experiment("afl_mixing"), problem=Wrapped(other))


class Wrapped:
    """A problem that is another one inside, as `af.Workers` is."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class Own(Config, tag_field="kind", tag="my_own"):
    """One client after another, merged by a rule that no theorem knows. No work, schedule or sampler of its own."""

    rule: str | None = None

    @property
    def state_type(self):
        return int

    def check(self, num_clients):
        pass

    def start(self, view):
        return 0, [self._train(0)]

    def on_update(self, state, update, view):
        ticket = update.dispatch.ticket
        combiner = None if self.rule is None else Combine(self.rule, (("factor", 0.5),))
        merge = Merge((ticket,), (0.5,), of="delta", combiner=combiner, ends_round=True)
        return state + 1, [merge, self._train((state + 1) % len(view.clients))]

    def on_lost(self, state, dispatch, view):
        return state, [self._train(dispatch.client)]

    def on_join(self, state, client, view):
        return state, []

    def on_leave(self, state, client, view):
        return state, []

    def _train(self, client):
        return Train(client, af.Work(epochs=2, batch_size=ALL_ROWS, learning_rate=1e-3))


class Halving:
    """A vector rule of somebody's own: half a step along every delta."""

    name = "halving"

    def init(self, params):
        return None

    def apply(self, memory, params, payloads, weights, clients, settings):
        return params + 0.5 * sum(payloads), memory, {}

    def dump(self, memory):
        return {}

    def load(self, arrays):
        return None


class TestStrategiesOfOnesOwn:
    @pytest.mark.parametrize("seeds", [0, 2])
    @pytest.mark.parametrize("rule", [None, "halving"])
    def test_no_theorem_covers_them_and_the_certificate_says_so(self, rule, seeds, monkeypatch):
        monkeypatch.setitem(COMBINERS, "halving", Halving())
        found = certify(af.replace(experiment("sync", rounds=4), strategy=Own(rule=rule)), seeds=seeds)
        assert applying(found) == set()
        assert found.path is None
        assert found.ok
        assert all('no theorem covers the strategy "my_own"' in g.missing for g in found.guarantees)
        assert found.setting.learning_rate == 1e-3
        assert "Own does not say how it dispatches" in found.client_influence.prediction_note

    def test_a_run_of_such_a_strategy_can_be_certified(self, monkeypatch):
        monkeypatch.setitem(COMBINERS, "halving", Halving())
        run = af.run(af.replace(experiment("sync", rounds=4), strategy=Own(rule="halving")))
        found = run.certificate()
        assert found.runs[0].trajectory.steps[0].rule == "halving"
        assert found.applying == ()

    def test_what_inherits_from_a_shipped_strategy_is_not_taken_for_it(self):
        class Odd(af.strategies.FedAvg, tag_field="kind", tag="odd"):
            def on_update(self, state, update, view):
                return super().on_update(state, update, view)

        base = experiment("sync", rounds=2)
        odd = Odd(cohort_size=5, work=base.strategy.work)
        assert applying(certify(af.replace(base, strategy=odd), seeds=1)) == set()


def test_what_was_just_run_is_not_replayed(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a replay")

    monkeypatch.setattr("asyncfed.engine.trajectory.replay", refuse)
    assert certify(experiment("afl_mixing", rounds=3), seeds=2).path is not None


def test_a_run_and_its_file_have_the_same_certificate(tmp_path):
    described = af.replace(experiment("sync", rounds=6), evaluation=af.Evaluation(drift=True))
    af.run(described, out=tmp_path / "run.sqlite")
    run, file = certify(described, seeds=1), af.load(tmp_path / "run.sqlite").certificate()
    assert run.runs[0].trajectory.distances.tobytes() == file.runs[0].trajectory.distances.tobytes()
    assert run.path.distance.tobytes() == file.path.distance.tobytes()
    assert run.runs[0].averaged_gap.tobytes() == file.runs[0].averaged_gap.tobytes()
    assert applying(run) == applying(file)


def test_drift_is_below_its_bound():
    summed = experiment("afl_delta_sum", max_staleness=0, when_stale="wait", rounds=20)
    limit = named(certify(summed, seeds=0), "Theorem 1, corrected").largest_rate
    work = af.replace(summed.strategy.work, learning_rate=limit)
    found = certify(af.replace(summed, strategy=af.replace(summed.strategy, work=work)), seeds=3)
    drift = np.mean([run.drift[1:] for run in found.runs], axis=0)
    assert found.drift_note == "Lemma 6 holds here."
    assert (drift <= found.drift_bound).all()


def test_the_same_experiment_gives_the_same_certificate():
    one, two = (certify(experiment("afl_mixing", rounds=4), seeds=2, threads=threads) for threads in (1, 2))
    assert one.path.distance.tobytes() == two.path.distance.tobytes()
    assert [r.gap.tobytes() for r in one.runs] == [r.gap.tobytes() for r in two.runs]
