"""A ServerApp from beginning to end, on a grid whose nodes answer at once."""

import logging

import numpy as np
import pytest
from tests.flower.conftest import FakeGrid

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget
from asyncfed.flower.node_program import make_client_app
from asyncfed.flower.server_program import run_on_grid
from asyncfed.flower.settings import FlowerSettings
from asyncfed.store.schema import KIND_NAMES


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


def own_rows(client, node):
    chance = np.random.default_rng(client)
    return chance.normal(size=(8 + client, 10)), np.ones(8 + client)


class GridWithLateNode(PromptGrid):
    """Client 2 comes after so many answers."""

    late = 7

    def pull_messages(self, message_ids):
        if len(self.answers) >= self.late and 2 not in self.nodes.values():
            self.add(2)
        return super().pull_messages(message_ids)


def test_a_node_with_data_of_its_own_may_come_late_and_its_size_survives_a_restart(experiment, settings, caplog):
    settings, learning = replace(settings, late_nodes=1), replace(experiment, budget=Budget(updates=30))
    grid = GridWithLateNode(learning, range(2))
    grid.app, grid.breaks_after = make_client_app(learning, own_rows), 18
    with pytest.raises(KeyboardInterrupt):
        run_on_grid(grid, learning, settings, lambda: own_rows(9, {}))
    assert af.load(settings.journal).header["live"] | {"engine": 0} == {
        "engine": 0,
        "absent": [2],
        "examples": [8, 9, 0],
    }
    changed = PromptGrid(learning, range(3))
    changed.app = make_client_app(learning, lambda client, node: own_rows(client + (client == 2), node))
    changed.breaks_after = 12
    with pytest.raises(KeyboardInterrupt):
        run_on_grid(changed, learning, settings, lambda: own_rows(9, {}))
    assert "it has 11 examples; client 2 has 10" in caplog.text
    again = PromptGrid(learning, range(3))
    again.app = make_client_app(learning, own_rows)
    run_on_grid(again, learning, settings, lambda: own_rows(9, {}))
    run = af.load(settings.journal)
    assert run.verdict == "finished"
    assert run.participation()[2] > 0
    joins = [event for event in run.journal.event_rows() if KIND_NAMES[event.kind] == "join"]
    assert {(event.client, event.num_examples) for event in joins} >= {(2, 10)}


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
