"""Samplers that are shown every report: once each, before the strategy decides, through wrappers and snapshots."""

import json
from typing import Any

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.server import Server
from asyncfed.core.types import Report, Work
from asyncfed.strategies import AFL, BoundedStaleness, FedAsync, FedAvg, FedBuff, ParticipationWeighted
from asyncfed.strategies.samplers import ObservingSampler, UniformIdle, require_measurement
from asyncfed.testing import check_strategy


class Watching(Config, tag_field="kind", tag="test_watching"):
    """Remembers (client, staleness) of every report; draws the idle client with the lowest number."""

    queues = False
    memory_type = tuple[tuple[int, int], ...]

    def start(self) -> Any:
        return ()

    def draw(self, memory, view, k):
        return sorted(view.idle)[:k], memory

    def observe(self, memory, update, view):
        return (*memory, (update.report.client, update.staleness))

    def check(self, work):
        require_measurement("test_watching", work, "start_loss")


WORK = Work(start_loss=True)
STRATEGIES = {
    "fedasync": FedAsync(concurrency=2, sampler=Watching(), work=WORK),
    "fedbuff": FedBuff(concurrency=2, buffer_size=2, sampler=Watching(), work=WORK),
    "fedavg": FedAvg(cohort_size=2, sampler=Watching(), work=WORK),
    "afl": AFL(concurrency=2, max_staleness=0, when_stale="wait", sampler=Watching(), work=WORK),
}
STRATEGIES |= {
    "bounded": BoundedStaleness(strategy=STRATEGIES["fedasync"], max_staleness=0),
    "waiting": BoundedStaleness(strategy=STRATEGIES["fedasync"], max_staleness=0, when_stale="wait"),
    "weighted": ParticipationWeighted(strategy=BoundedStaleness(strategy=STRATEGIES["fedasync"], max_staleness=0)),
}


def seen_by(strategy, snapshot):
    """The sampler's memory within the strategy's state."""
    state = snapshot["state"]
    while "inner" in state:
        state = state["inner"]
    return [tuple(one) for one in state["sampling"]]


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_report_is_observed_once_with_its_staleness(name):
    strategy = STRATEGIES[name]
    server = Server(strategy, [4, 4, 4])
    server.start()
    expected = []
    for _ in range(6):
        ticket = max(server.outstanding)  # the youngest first, so that the others become stale
        dispatch = server.outstanding[ticket]
        expected.append((dispatch.client, server.version - dispatch.base_version))
        server.receive(Report(ticket, dispatch.client, 1.0, 1.0, 4, {"start_loss": 1.0}))
        assert seen_by(strategy, server.snapshot()) == expected
        copy = Server(strategy, [4, 4, 4])
        copy.restore(json.loads(json.dumps(server.snapshot())))
        server = copy
    server.lose(min(server.outstanding))
    assert seen_by(strategy, server.snapshot()) == expected


def test_it_passes_the_conformance_check():
    check_strategy(STRATEGIES["weighted"], metrics=["start_loss"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in STRATEGIES if name != "weighted"])
def test_everything_passes_the_conformance_check(name):
    check_strategy(STRATEGIES[name], metrics=["start_loss"])


def test_the_sampler_sees_the_report_before_it_draws():
    """The next ticket goes to whom the sampler names with the report in its memory."""

    class Rewarding(Watching, tag_field="kind", tag="test_rewarding"):
        def draw(self, memory, view, k):
            last = memory[-1][0] if memory else 0
            return sorted(view.idle, key=lambda client: (client != last, client))[:k], memory

    server = Server(FedAsync(concurrency=2, sampler=Rewarding(), work=WORK), [4] * 5)
    assert [output.client for output in server.start()] == [0, 1]
    outputs = server.receive(Report(1, 1, 1.0, 1.0, 4, {"start_loss": 1.0}))
    assert outputs[-1].client == 1


def test_who_does_not_observe_is_not_asked():
    assert not FedAsync().observes
    assert not BoundedStaleness(strategy=FedAsync(), max_staleness=1).observes
    assert STRATEGIES["weighted"].observes
    assert isinstance(Watching(), ObservingSampler)
    assert not isinstance(UniformIdle(), ObservingSampler)
    assert Server(FedAsync(), [1])._observe is None


def test_work_that_does_not_measure_what_the_sampler_needs_is_refused():
    STRATEGIES["fedasync"].check(3)
    unmeasured = FedAsync(concurrency=2, sampler=Watching(), work=Work(loss=True))
    with pytest.raises(ConfigError, match="draws clients by their start_loss, which work does not ask for"):
        unmeasured.check(3)
    with pytest.raises(ConfigError, match="start_loss"):
        BoundedStaleness(strategy=unmeasured, max_staleness=1).check(3)
    with pytest.raises(ConfigError, match="start_loss"):
        FedAvg(cohort_size=2, sampler=Watching()).check(3)
