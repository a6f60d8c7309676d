"""The ServerApp: waits for nodes, then drives the session with Flower's push and pull until the run is over."""

from __future__ import annotations

import logging
import secrets
import time
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace, to_plain
from asyncfed.engine.model_shapes import with_model_shapes
from asyncfed.engine.plan import trusted_shard
from asyncfed.engine.progress import RunState
from asyncfed.experiment import Experiment
from asyncfed.flower.grid_driver import GridDriver
from asyncfed.flower.node_program import BuildProblem
from asyncfed.flower.node_registry import LoadTest, NodeRegistry
from asyncfed.flower.settings import FlowerSettings, read_settings, with_prefetch
from asyncfed.live.session import LiveSession
from asyncfed.presets import make_robust
from asyncfed.problems.protocol import Problem
from asyncfed.runs.cores import usable_cores
from asyncfed.runs.header import check_same_problem, new_header, same_experiment
from asyncfed.runs.live import check_fit
from asyncfed.runs.measuring_thread import MeasuringThread
from asyncfed.runs.progress import finishing, seal
from asyncfed.store.journal import Journal

log = logging.getLogger("flwr")
LOG_SECONDS = 10.0


def make_server_app(
    experiment: Experiment, load_test: LoadTest | None = None, build: BuildProblem | None = None
) -> ServerApp:
    """Flower's ServerApp for this experiment."""
    if build is not None and load_test is None:
        raise ConfigError("server_app is given a problem, but no rows to measure it on. Give it test_data=..., too.")
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        run_on_grid(grid, experiment, read_settings(context.run_config), load_test, build)

    return app


def run_on_grid(
    grid: Grid,
    experiment: Experiment,
    settings: FlowerSettings,
    load_test: LoadTest | None = None,
    build: BuildProblem | None = None,
) -> None:
    """Begin the run, or continue it if its journal exists, and drive it to its end."""
    experiment = with_prefetch(experiment, settings.prefetch)
    if settings.robust:
        strategy, words = make_robust(experiment.strategy, experiment.count_clients())
        experiment = replace(experiment, strategy=strategy)
        log.info("asyncfed: %s", words)
    check_fit(experiment)
    experiment.run_strategy().check(experiment.count_clients())
    file = Path(settings.journal or f"runs/{experiment.name}-{experiment.seed}.sqlite").resolve()
    header = _read_header(file, experiment)
    if header is not None and header["verdict"] != "interrupted":
        log.info("asyncfed: %s is finished already (%s); nothing to do", file, header["reason"])
        return
    registry = NodeRegistry(experiment, load_test, header, build)
    driver = GridDriver(
        grid,
        check=registry.check,
        log=lambda text: log.info("asyncfed: %s", text),
    )
    wanted = registry.min_nodes(settings.wait_nodes, settings.late_nodes)
    present = [] if header else _wait_for_nodes(driver, wanted, settings.poll)
    absent = header["live"]["absent"] if header else [c for c in range(experiment.count_clients()) if c not in present]
    problem = registry.problem()
    plan = replace(experiment.plan(usable_cores()), absent=tuple(absent))
    trusted_shard(problem, plan)  # refused before there is a file
    with_model_shapes(plan.strategy, problem)
    journal = _open_journal(file, header, experiment, problem, settings, absent, build is not None)
    settings = settings.with_model(problem.num_params * problem.dtype.itemsize)
    with finishing(journal), MeasuringThread() as thread:
        session = LiveSession(problem, plan, journal, name=secrets.token_hex(16), limits=settings.limits)
        log.info("asyncfed: %s %s", "continuing" if header else "beginning", file)
        session.resume()  # which starts if nothing has happened yet
        session.evaluate_with(thread.submit)
        registry.remember_late(session)
        _drive(session, driver, settings)
        seal(session, journal)
    log.info("asyncfed: %s: %s; %s updates, %s", *session.state.verdict, session.state.updates, _loss(session.state))


def _drive(session: LiveSession, driver: GridDriver, settings: FlowerSettings) -> None:
    driver.attach(session, settings.ttl * settings.prefetch)
    state = session.state
    began, logged_at = time.monotonic() - state.elapsed, 0.0
    while not session.finished:
        now = time.monotonic() - began
        driver.step(now, settings.return_seconds)
        if now - logged_at >= LOG_SECONDS:
            log.info("asyncfed: round %s, %s updates, %s", state.rounds, state.updates, _loss(state))
            logged_at = now
        time.sleep(settings.poll)


def _wait_for_nodes(driver: GridDriver, wanted: int, poll: float) -> list[int]:
    """Wait until so many nodes have introduced themselves."""
    began = logged_at = time.monotonic()
    while len(present := driver.find_clients(time.monotonic() - began)) < wanted:
        if time.monotonic() - logged_at > LOG_SECONDS:
            logged_at = time.monotonic()
            log.info("asyncfed: %s of %s nodes are ready; the run begins when all are", len(present), wanted)
        time.sleep(poll)
    return present


def _read_header(file: Path, experiment: Experiment) -> dict[str, Any] | None:
    """The header of the run that is to be continued, or None if there is none."""
    if not file.exists():
        return None
    header = Journal.open(file).header()
    same_experiment(header, experiment, file)
    return header


def _open_journal(
    file: Path,
    header: dict[str, Any] | None,
    experiment: Experiment,
    problem: Problem,
    settings: FlowerSettings,
    absent: list[int],
    own_problem: bool,
) -> Journal:
    if header is None:
        journal = Journal.create(file, _new_header(experiment, problem, settings, absent, own_problem))
    else:
        check_same_problem(header, problem, file)
        journal = Journal.open(file, write=True)
    journal.survive_power_loss()  # a run on Flower has a few updates a second at most, and can afford to wait
    return journal


def _new_header(
    experiment: Experiment, problem: Problem, settings: FlowerSettings, absent: list[int], own_problem: bool
) -> dict[str, Any]:
    live = {
        "engine": {"kind": "flower", **to_plain(settings)},
        "absent": absent,
        "examples": problem.num_examples.tolist(),
    }
    return new_header(experiment, problem, own_problem=own_problem, live=live)


def _loss(state: RunState) -> str:
    objective = state.last_metrics.get("objective")
    return "not evaluated yet" if objective is None else f"loss {objective:.6g}"
