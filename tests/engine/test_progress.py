"""One object shows an observer how far a run is, simulated or live."""

import pytest

from asyncfed.engine.progress import RunState
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal


@pytest.fixture
def simulation(small):
    experiment = small()
    problem = experiment.problem()
    delays = experiment.delays.bind(problem.num_clients, experiment.seed)
    return Simulation(problem, delays, experiment.plan(1), Journal.create(None, {}))


def test_the_state_shows_the_present_and_not_the_moment_it_was_made(simulation):
    state = simulation.state
    before = (state.updates, state.version, state.elapsed)
    while not simulation.advance(1):
        pass
    assert before == (0, 0, 0.0)
    assert state.rounds == 3
    assert state.updates == state.version > 0
    assert state.elapsed > 0.0
    assert state.verdict == ("finished", "all 3 rounds are done")


def test_the_last_metrics_are_those_of_the_present_model(simulation, small):
    while not simulation.advance(1):
        pass
    state = simulation.state
    assert state.last_metrics["objective"] == small().problem().evaluate(state.params)["objective"]


@pytest.mark.parametrize("name", ["params", "version", "rounds", "updates", "elapsed", "last_metrics", "verdict"])
def test_an_observer_can_change_nothing(simulation, name):
    assert isinstance(simulation.state, RunState)
    with pytest.raises(AttributeError):
        setattr(simulation.state, name, None)
