"""A ServerApp from beginning to end, on a grid whose nodes answer at once."""

import logging

import numpy as np
import pytest
from tests.flower.conftest import FakeGrid

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget
from asyncfed.flower.server_program import run_on_grid
from asyncfed.flower.settings import FlowerSettings


class PromptGrid(FakeGrid):
    """Nodes answer when they are looked at. After `breaks_after` answers the server is interrupted."""

    breaks_after = None

    def pull_messages(self, message_ids):
        for node in self.nodes:
            if self.inboxes[node]:
                self.work(node)
        if self.breaks_after is not None and len(self.answers) > self.breaks_after:
            raise KeyboardInterrupt
        return super().pull_messages(message_ids)


@pytest.fixture
def settings(tmp_path):
    return FlowerSettings(journal=str(tmp_path / "run.sqlite"), poll=1e-3, wait_nodes=3)


@pytest.fixture(autouse=True)
def _logged(caplog):
    logging.getLogger("flwr").propagate = True
    caplog.set_level(logging.INFO, "flwr")


def test_a_run_is_driven_to_its_end_and_can_be_verified(experiment, settings, caplog):
    run_on_grid(PromptGrid(experiment, range(3)), experiment, settings)
    run = af.load(settings.journal)
    assert run.verdict == "finished"
    assert run.header["live"]["engine"]["kind"] == "flower"
    assert run.header["live"]["absent"] == []
    assert af.verify(settings.journal).ok
    assert "finished: all 4 rounds are done; 12 updates, loss" in caplog.text


def test_an_interrupted_run_is_continued_by_the_same_settings(experiment, settings, caplog):
    grid = PromptGrid(experiment, range(3))
    grid.breaks_after = 9
    with pytest.raises(KeyboardInterrupt):
        run_on_grid(grid, experiment, settings)
    assert af.load(settings.journal).verdict == "interrupted"
    run_on_grid(PromptGrid(experiment, range(3)), experiment, settings)
    assert "continuing" in caplog.text
    assert af.load(settings.journal).verdict == "finished"
    assert af.verify(settings.journal).ok


def test_a_finished_run_is_left_as_it_is(experiment, settings, caplog):
    run_on_grid(PromptGrid(experiment, range(3)), experiment, settings)
    before = af.load(settings.journal).sha256
    run_on_grid(PromptGrid(experiment, range(3)), experiment, settings)
    assert "is finished already (all 4 rounds are done); nothing to do" in caplog.text
    assert af.load(settings.journal).sha256 == before


def test_another_experiment_does_not_continue_a_run(experiment, settings):
    run_on_grid(PromptGrid(experiment, range(3)), experiment, settings)
    other = replace(experiment, seed=experiment.seed + 1)
    with pytest.raises(JournalError, match="was started with another experiment"):
        run_on_grid(PromptGrid(other, range(3)), other, settings)


def test_a_run_begins_with_the_nodes_that_are_there(experiment, settings):
    run_on_grid(PromptGrid(experiment, [0, 2]), experiment, replace(settings, wait_nodes=2))
    run = af.load(settings.journal)
    assert run.header["live"]["absent"] == [1]
    assert run.participation()[1] == 0


def test_data_of_the_nodes_own_are_evaluated_on_the_servers_rows(experiment, settings):
    grid = PromptGrid(experiment, range(3))
    run_on_grid(grid, experiment, settings, lambda: (np.eye(10), np.ones(10)))
    run = af.load(settings.journal)
    assert run.header["live"]["examples"] == [16, 16, 16]
    assert run.evaluations["objective"][0] == 0.5  # of a model of zeros, on targets of one


def test_what_needs_a_simulation_is_refused(experiment, settings):
    churning = replace(experiment, churn=(af.Churn(time=1.0, client=0, event="leave"),), budget=Budget(rounds=1))
    with pytest.raises(ConfigError, match="churn is set"):
        run_on_grid(PromptGrid(experiment, range(3)), churning, settings)


def test_a_run_on_flower_is_not_continued_by_the_command_for_this_machine(experiment, settings):
    grid = PromptGrid(experiment, range(3))
    grid.breaks_after = 9
    with pytest.raises(KeyboardInterrupt):
        run_on_grid(grid, experiment, settings)
    with pytest.raises(JournalError, match=r"was run on Flower.*flwr run.*same journal"):
        af.resume(settings.journal)
