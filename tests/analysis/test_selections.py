"""Each way of choosing clients fits every host, and hosts that cannot have one are refused."""

import pytest

from asyncfed.analysis.selections import SELECTIONS, with_selection
from asyncfed.core.errors import ConfigError
from asyncfed.rules import QFair, Scaffold
from asyncfed.strategies import AsyncSGD, BoundedStaleness, FedAsync, FedAvg, FedBuff, FedCompass, PublishedScripts
from asyncfed.strategies.samplers import UniformIdle


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("host", [FedBuff(concurrency=3), FedAsync(concurrency=3), FedAvg(cohort_size=3), AsyncSGD()])
def test_it_fits(name, host):
    made = with_selection(name, host)
    made.check(6)
    assert type(made) is type(host)
    assert with_selection("uniform", host).sampler == UniformIdle()


def test_candidates_follow_from_how_many_are_drawn_at_once():
    assert with_selection("power_of_choice", FedAvg(cohort_size=4)).sampler.candidates == 8
    assert with_selection("power_of_choice", FedBuff(concurrency=4)).sampler.candidates == 2


def test_a_rule_of_the_host_is_kept():
    assert with_selection("qfair", FedBuff(rule=Scaffold())).rule == QFair(rule=Scaffold())
    assert with_selection("oort", FedBuff(rule=Scaffold())).rule == Scaffold()


@pytest.mark.parametrize(
    ("name", "host", "words"),
    [
        ("ort", FedBuff(), 'There is no selection "ort". Did you mean "oort"'),
        ("oort", FedCompass(), "FedCompass has no `sampler` of its own"),
        ("oort", BoundedStaleness(strategy=FedBuff(), max_staleness=1), "has no `sampler` of its own"),
        ("qfair", PublishedScripts(), "has no `rule`, so clients cannot be weighed by qfair"),
    ],
)
def test_what_does_not_fit_is_refused(name, host, words):
    with pytest.raises(ConfigError, match=words):
        with_selection(name, host)
