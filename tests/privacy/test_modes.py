"""The modes: a newcomer's two settings make a sound run, which keeps its caps, resumes and replays."""

from collections import Counter
from itertools import pairwise

import pytest

import asyncfed as af
from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Budget, Work
from asyncfed.experiment import Experiment, from_toml, to_toml
from asyncfed.privacy import Central, Local, Setting, Tree, epsilon_of, epsilon_of_tree
from asyncfed.rules import Adam, Clipped, Mean, Noised, Optimised, TreeNoised
from asyncfed.rules.protocol import rule_of
from asyncfed.store.events import recorded_merges
from asyncfed.store.schema import DISPATCH
from asyncfed.strategies import AFL, BoundedStaleness, FedAsync, FedBuff, ParticipationCaps
from asyncfed.testing import check_strategy
from asyncfed.uplinks import QSGD, Clip, ErrorFeedback, LocalNoise, TopK

WORK = Work(epochs=1, batch_size=8, learning_rate=0.05)
BUFFERED = FedBuff(concurrency=4, buffer_size=4, work=WORK)
SETTING = Setting(num_clients=20, budget=Budget(rounds=12))
MODES = {
    "central": (Central(epsilon=2.0), BUFFERED),
    "tree": (Tree(epsilon=2.0), BUFFERED),
    "local": (Local(epsilon=8.0), FedAsync(concurrency=4, work=WORK)),
}


def experiment_with(mode, strategy, **settings):
    return Experiment(num_clients=20, strategy=strategy, budget=Budget(rounds=12), privacy=mode, **settings)


def test_two_settings_are_enough():
    toml = """
        num_clients = 20
        budget = {rounds = 12}
        strategy = {kind = "fedbuff", concurrency = 4, buffer_size = 4}
        privacy = {kind = "central", epsilon = 2.0}
    """
    claim = from_toml(toml).privacy_claim()
    assert (claim.epsilon, claim.delta, claim.participations, claim.divisor) == (2.0, 1e-5, 4, 4)
    assert epsilon_of(claim.multiplier, 4, 1e-5) == pytest.approx(2.0)
    assert claim.noise == claim.multiplier / 4


def test_experiments_without_privacy_are_written_as_they_were():
    assert Experiment().privacy is UNSET
    assert "privacy" not in to_toml(Experiment())
    assert Experiment().privacy_claim() is None


@pytest.mark.parametrize("name", MODES)
def test_the_text_of_a_private_experiment_makes_it_again(name):
    experiment = experiment_with(*MODES[name])
    assert from_toml(to_toml(experiment)) == experiment


def test_central_puts_clipping_noise_and_caps_where_they_belong():
    composed = Central(multiplier=3.0, clip=0.5, participations=5, separation=1).compose(BUFFERED, SETTING)
    assert isinstance(composed, ParticipationCaps)
    assert (composed.participations, composed.separation, composed.num_clients) == (5, 1, 20)
    assert composed.work.uplink == (Clip(norm=0.5),)
    assert rule_of(composed) == Noised(clip=0.5, multiplier=3.0, divisor=4, rule=Mean())
    check_strategy(Central(multiplier=3.0).compose(BUFFERED, replace(SETTING, num_clients=6)), num_clients=6)


def test_a_server_optimiser_goes_on_with_what_is_released():
    strategy = replace(BUFFERED, rule=Optimised(optimiser=Adam()))
    rule = rule_of(Central(multiplier=3.0).compose(strategy, SETTING))
    assert isinstance(rule, Optimised)
    assert isinstance(rule.rule, Noised)


@pytest.mark.parametrize("uplink", [(TopK(),), (ErrorFeedback(codec=TopK()),), (Clip(norm=1.0), QSGD())])
def test_what_codecs_lengthen_is_clipped_again_by_the_server(uplink):
    strategy = replace(BUFFERED, work=replace(WORK, uplink=uplink))
    composed = Central(multiplier=3.0).compose(strategy, SETTING)
    assert composed.work.uplink == uplink
    assert rule_of(composed).rule == Clipped(norm=1.0)


def test_strategies_around_strategies():
    strategy = BoundedStaleness(strategy=BUFFERED, max_staleness=3)
    composed = Central(multiplier=3.0).compose(strategy, SETTING)
    assert isinstance(composed.strategy, BoundedStaleness)
    assert isinstance(rule_of(composed), Noised)


def test_tree_has_a_node_for_every_release():
    composed = Tree(epsilon=2.0, participations=3, separation=2).compose(BUFFERED, SETTING)
    rule = rule_of(composed)
    assert isinstance(rule, TreeNoised)
    assert (rule.releases, composed.releases, composed.separation) == (12, 12, 2)
    assert epsilon_of_tree(rule.multiplier, 12, 3, 2, 1e-5) == pytest.approx(2.0)


@pytest.mark.parametrize("strategy", [FedAsync(concurrency=4), AFL(concurrency=4), BUFFERED])
def test_local_noise_comes_first_and_every_ticket_counts(strategy):
    strategy = replace(strategy, work=replace(WORK, uplink=(TopK(),)))
    composed = Local(epsilon=8.0, uploads=3).compose(strategy, SETTING)
    noise, codec = composed.work.uplink
    assert isinstance(noise, LocalNoise)
    assert codec == TopK()
    assert (composed.counts, composed.participations) == ("tickets", 3)
    assert epsilon_of(noise.multiplier, 3, 1e-5) == pytest.approx(8.0)


@pytest.mark.parametrize("name", MODES)
def test_a_private_run_keeps_its_caps_measures_nothing_and_replays(name, tmp_path):
    mode, strategy = MODES[name]
    experiment = experiment_with(mode, strategy)
    run = af.run(experiment, out=tmp_path / "run.sqlite")
    claim = experiment.privacy_claim()
    assert run.verdict == "finished"
    assert set(run.evaluations) == {"updates", "version", "round", "elapsed"}
    taken, tickets = merges_by_client(run), tickets_by_client(run)
    if name == "local":
        assert max(tickets.values()) <= claim.participations
    for releases in taken.values() if name != "local" else ():
        assert len(releases) <= claim.participations
        assert all(after - before > claim.separation for before, after in pairwise(releases))
    assert af.verify(tmp_path / "run.sqlite").ok


def merges_by_client(run):
    """The releases each client took part in, from the journal's merges."""
    taken = {}
    for number, merge in enumerate(recorded_merges(run.journal.event_rows())):
        for update in merge.updates:
            taken.setdefault(update.client, []).append(number)
    return taken


def tickets_by_client(run):
    return Counter(event.client for event in run.journal.event_rows() if event.kind == DISPATCH)


def test_a_run_that_has_spent_its_budget_says_so():
    run = af.run(experiment_with(Central(epsilon=2.0, participations=1), BUFFERED))
    assert run.verdict == "finished"
    assert run.header["reason"].startswith("privacy budget spent: 20 of 20 clients have taken part once")


def test_measured_only_if_it_is_said_that_it_is_not_protected():
    run = af.run(experiment_with(Central(epsilon=2.0, unprotected_evaluation=True), BUFFERED))
    assert "objective" in run.evaluations


def test_with_little_noise_and_long_clips_it_is_the_strategy_itself():
    """A claim that promises nothing costs nothing: the model is that of the same strategy with caps."""
    loud = Central(multiplier=1e-12, clip=1e6, unprotected_evaluation=True)
    private = af.run(experiment_with(loud, BUFFERED))
    caps = ParticipationCaps(strategy=BUFFERED, num_clients=20, participations=4)
    plain = af.run(Experiment(num_clients=20, strategy=caps, budget=Budget(rounds=12)))
    assert private.params == pytest.approx(plain.params, rel=1e-4)
