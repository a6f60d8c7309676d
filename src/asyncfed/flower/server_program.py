"""The ServerApp: gathers nodes, then drives the session with Flower's push and pull until the run is over."""

from __future__ import annotations

import logging
import secrets
import time
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from asyncfed.core.record import replace, to_plain
from asyncfed.experiment import Experiment
from asyncfed.flower.grid_driver import Courier
from asyncfed.flower.node_registry import Entrance, LoadTest
from asyncfed.flower.settings import FlowerSettings, fetching_ahead, settings_of
from asyncfed.live.session import LiveSession
from asyncfed.problems.protocol import Problem
from asyncfed.runs.live import check_fit
from asyncfed.runs.simulate import check_same_problem, same_experiment, seal, usable_cores, written
from asyncfed.store.journal import Journal
from asyncfed.version import __version__

log = logging.getLogger("flwr")
TELL_SECONDS = 10.0


def make_server_app(experiment: Experiment, load_test: LoadTest | None = None) -> ServerApp:
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        run_on(grid, experiment, settings_of(context.run_config), load_test)

    return app


def run_on(grid: Grid, experiment: Experiment, settings: FlowerSettings, load_test: LoadTest | None = None) -> None:
    """Begin the run, or go on with it if its journal is there, and see it to its end."""
    experiment = fetching_ahead(experiment, settings.prefetch)
    check_fit(experiment)
    experiment.strategy.check(experiment.count_clients())
    file = Path(settings.journal or f"runs/{experiment.name}-{experiment.seed}.sqlite").resolve()
    known = _known(file, experiment)
    if known is not None and known["verdict"] != "interrupted":
        log.info("asyncfed: %s is finished already (%s); nothing to do", file, known["reason"])
        return
    entrance = Entrance(experiment, load_test, known)
    courier = Courier(
        grid,
        ttl=settings.ttl * settings.prefetch,
        most_bytes=entrance.model.num_params * entrance.model.dtype.itemsize,
        admit=entrance.admit,
        tell=lambda text: log.info("asyncfed: %s", text),
    )
    here = [] if known else _gather(courier, entrance.at_least(settings.wait_nodes), settings.poll)
    absent = known["live"]["absent"] if known else [c for c in range(experiment.count_clients()) if c not in here]
    problem = entrance.problem()
    journal = _journal(file, known, experiment, problem, settings, absent)
    plan = replace(experiment.plan(usable_cores()), absent=tuple(absent))
    session = LiveSession(problem, plan, journal, name=secrets.token_hex(16), limits=settings.limits)
    log.info("asyncfed: %s %s", "continuing" if known else "beginning", file)
    _see_through(session, courier, settings)
    seal(session, journal)
    log.info("asyncfed: %s: %s; %s updates, %s", *session.state.verdict, session.state.updates, _measured(session))


def _see_through(session: LiveSession, courier: Courier, settings: FlowerSettings) -> None:
    session.resume()  # which begins if nothing has happened yet
    courier.serve(session)
    began, told_at = time.monotonic() - session.state.elapsed, 0.0
    while not session.finished:
        now = time.monotonic() - began
        courier.look(now, settings.return_seconds)
        if now - told_at >= TELL_SECONDS:
            log.info(
                "asyncfed: round %s, %s updates, %s", session.state.rounds, session.state.updates, _measured(session)
            )
            told_at = now
        time.sleep(settings.poll)


def _gather(courier: Courier, wanted: int, poll: float) -> list[int]:
    """Wait until so many nodes have said who they are."""
    began = told_at = time.monotonic()
    while len(here := courier.gather(time.monotonic() - began)) < wanted:
        if time.monotonic() - told_at > TELL_SECONDS:
            told_at = time.monotonic()
            log.info("asyncfed: %s of %s nodes are here; the run begins when all are", len(here), wanted)
        time.sleep(poll)
    return here


def _known(file: Path, experiment: Experiment) -> dict[str, Any] | None:
    """The header of the run that is to be continued, or None."""
    if not file.exists():
        return None
    header = Journal.open(file).header()
    same_experiment(header, experiment, file)
    return header


def _journal(
    file: Path,
    known: dict[str, Any] | None,
    experiment: Experiment,
    problem: Problem,
    settings: FlowerSettings,
    absent: list[int],
) -> Journal:
    if known is None:
        journal = Journal.create(file, _header(experiment, problem, settings, absent))
    else:
        check_same_problem(known, problem, file)
        journal = Journal.open(file, write=True)
    journal.survive_power_loss()  # a run on Flower has a few updates a second at most, and can afford to wait
    return journal


def _header(experiment: Experiment, problem: Problem, settings: FlowerSettings, absent: list[int]) -> dict[str, Any]:
    return {
        "asyncfed": __version__,
        "experiment": written(experiment),
        "problem": problem.fingerprint(),
        "num_clients": problem.num_clients,
        "own_delays": False,
        "live": {
            "engine": {"kind": "flower", **to_plain(settings)},
            "absent": absent,
            "examples": problem.num_examples.tolist(),
        },
        "verdict": "interrupted",
        "reason": "it was stopped before its end",
    }


def _measured(session: LiveSession) -> str:
    objective = session.state.last_metrics.get("objective")
    return "not measured yet" if objective is None else f"loss {objective:.6g}"
