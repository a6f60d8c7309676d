"""The ServerApp: gathers nodes, then drives the session with Flower's push and pull until the run is over."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from asyncfed.core.errors import JournalError
from asyncfed.core.record import replace, to_plain
from asyncfed.data import Clients
from asyncfed.experiment import Experiment, differences
from asyncfed.kernels.losses import CLASSIFICATION_LOSSES
from asyncfed.live.flower.content import Introduction
from asyncfed.live.flower.courier import Courier
from asyncfed.live.flower.held_out import HeldOut
from asyncfed.live.flower.settings import FlowerSettings, fetching_ahead, settings_of
from asyncfed.live.session import LiveSession
from asyncfed.live.wire import dtype_name
from asyncfed.problems.linear import Linear
from asyncfed.problems.protocol import Problem
from asyncfed.running import seal, usable_cores
from asyncfed.store.journal import Journal
from asyncfed.version import __version__

LoadTest: TypeAlias = Callable[[], tuple[Any, Any]]
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
    experiment.strategy.check(experiment.num_clients)
    file = Path(settings.journal or f"runs/{experiment.name}-{experiment.seed}.sqlite").resolve()
    known = _known(file, experiment)
    if known is not None and known["verdict"] != "interrupted":
        log.info("asyncfed: %s is finished already (%s); nothing to do", file, known["reason"])
        return
    entrance = Entrance(experiment, load_test, known)
    model = entrance.model
    courier = Courier(
        grid,
        ttl=settings.ttl * settings.prefetch,
        most_bytes=model.num_params * model.dtype.itemsize,
        admit=entrance.admit,
        tell=lambda text: log.info("asyncfed: %s", text),
    )
    if known is None:
        here = _gather(courier, entrance.at_least(settings.wait_nodes), settings.poll)
        absent = tuple(client for client in range(experiment.num_clients) if client not in here)
    else:
        absent = tuple(known["live"]["absent"])
    problem = entrance.problem()
    plan = replace(experiment.plan(usable_cores()), absent=absent)
    header = _header(experiment, problem, absent, entrance.examples)
    journal = Journal.create(file, header) if known is None else Journal.open(file, write=True)
    journal.survive_power_loss()  # a run on Flower has a few updates a second at most, and can afford to wait
    session = LiveSession(problem, plan, journal, name=secrets.token_hex(16), limits=settings.limits)
    log.info("asyncfed: %s %s", "beginning" if known is None else "continuing", file)
    _see_through(session, courier, settings, begin=session.start if known is None else session.resume)
    seal(session, journal)
    log.info("asyncfed: %s: %s; %s updates, %s", *session.verdict, session.updates, _measured(session))


def _see_through(session: LiveSession, courier: Courier, settings: FlowerSettings, begin: Callable[[], None]) -> None:
    begin()
    courier.serve(session)
    began, told_at = time.monotonic() - session.elapsed, 0.0
    while not session.finished:
        now = time.monotonic() - began
        courier.look(now, settings.return_seconds)
        if now - told_at >= TELL_SECONDS:
            log.info("asyncfed: round %s, %s updates, %s", session.rounds, session.updates, _measured(session))
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


class Entrance:
    """Who is let in, and what the server knows of the problem: all of it if it is generated, else the model alone."""

    def __init__(self, experiment: Experiment, load_test: LoadTest | None, known: dict[str, Any] | None) -> None:
        self._experiment = experiment
        self.model: Linear
        if load_test is None:
            self.model = experiment.problem()
            self.examples: dict[int, int] = dict(enumerate(self.model.num_examples.tolist()))
        else:
            x, y = load_test()
            labels = experiment.model.loss in CLASSIFICATION_LOSSES
            self.model = experiment.model.build(Clients.from_lists([x], [y], labels=labels, dtype=experiment.dtype))
            self.examples = {} if known is None else dict(enumerate(known["live"]["examples"]))
        self._own_data = load_test is not None

    def at_least(self, wanted: int) -> int:
        """Sizes of data are known from the nodes alone, and the weights need all of them."""
        return self._experiment.num_clients if self._own_data else min(wanted, self._experiment.num_clients)

    def admit(self, who: Introduction) -> str | None:
        """What is wrong with this introduction, or None."""
        model, num_clients = self.model, self._experiment.num_clients
        if not 0 <= who.client < num_clients:
            return f"its partition-id is {who.client}; the experiment has clients 0 to {num_clients - 1}"
        if who.num_params != model.num_params or who.dtype != dtype_name(model.dtype):
            return (
                f"its model has {who.num_params} params of {who.dtype[:20]!r}; the server's has {model.num_params} of "
                f"{dtype_name(model.dtype)!r}. Both must run the same app on data with the same columns"
            )
        if who.num_examples < 1:
            return f"it has {who.num_examples} examples"
        expected = self.examples.setdefault(who.client, who.num_examples)
        if who.num_examples != expected:
            return f"it has {who.num_examples} examples; client {who.client} has {expected}"
        return None

    def problem(self) -> Problem:
        if not self._own_data:
            return self.model
        return HeldOut(self.model, [self.examples[client] for client in range(self._experiment.num_clients)])


def _known(file: Path, experiment: Experiment) -> dict[str, Any] | None:
    """The header of the run that is to be continued, or None."""
    if not file.exists():
        return None
    header = Journal.open(file).header()
    changes = differences(header["experiment"], experiment)
    if changes:
        raise JournalError(
            f"{file} was started with another experiment. Changed: {'; '.join(changes)}. Continue it as it was, or "
            "name another journal in the run configuration. Nothing was changed."
        )
    return header


def _header(
    experiment: Experiment, problem: Problem, absent: tuple[int, ...], examples: dict[int, int]
) -> dict[str, Any]:
    return {
        "asyncfed": __version__,
        "experiment": to_plain(experiment),
        "problem": problem.fingerprint(),
        "num_clients": problem.num_clients,
        "own_delays": True,
        "live": {
            "engine": "flower",
            "absent": absent,
            "examples": [examples[client] for client in range(problem.num_clients)],
        },
        "verdict": "interrupted",
        "reason": "it was stopped before its end",
    }


def _measured(session: LiveSession) -> str:
    objective = session.last_metrics.get("objective")
    return "not measured yet" if objective is None else f"loss {objective:.6g}"
