"""Every decision of each strategy in a fixed random schedule, so that no change of behaviour goes unseen.

Regenerate with `pytest tests/strategies/test_golden.py --regenerate-golden`; see tests/golden/README.md.
"""

import json
from pathlib import Path

import pytest

from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.record import UNSET, to_plain
from asyncfed.core.server import Server
from asyncfed.core.types import Cancel, Dispatch, Drop, Merge, Report, Wake, Work
from asyncfed.strategies import (
    AFL,
    AFLGuard,
    CyclicWeightTransfer,
    FedAsync,
    FedAvg,
    FedBuff,
    FedCompass,
    PublishedScripts,
    Ringmaster,
    algorithms,
)
from asyncfed.strategies.discounts import Hinge, NoDiscount
from asyncfed.strategies.samplers import ShuffledCycle, UniformAll, Weighted
from asyncfed.strategies.schedules import DelayAware

FOLDER = Path(__file__).parent.parent / "golden"
NUM_CLIENTS = 6
STEPS = 60

CASES = {
    "afl_latest": AFL(concurrency=3),
    "afl_latest_samples_damp": AFL(concurrency=4, weighting="samples", max_staleness=1, when_stale="damp"),
    "afl_mixing_drop": AFL(concurrency=4, aggregate="mixing", max_staleness=1),
    "afl_delta_mean_wait": AFL(concurrency=4, aggregate="delta_mean", max_staleness=1, when_stale="wait"),
    "afl_delta_sum_queue": AFL(concurrency=4, aggregate="delta_sum", sampler=UniformAll()),
    "afl_weighted_sampler": AFL(concurrency=3, sampler=Weighted(weights=(1.0, 2.0, 4.0, 8.0))),
    "aflguard": AFLGuard(concurrency=4, trusted_client=2),
    "cyclic_weight_transfer": CyclicWeightTransfer(),
    "fedasync_constant": FedAsync(concurrency=3, discount=NoDiscount()),
    "fedasync_hinge": FedAsync(concurrency=4, discount=Hinge(slope=2.0, grace=1), sampler=ShuffledCycle()),
    "fedasync_polynomial": FedAsync(concurrency=4, schedule=DelayAware(delay_penalty=0.5, over="round")),
    "fedavg_equal": FedAvg(cohort_size=3, weighting="equal", sampler=ShuffledCycle()),
    "fedavg_samples": FedAvg(cohort_size=4),
    "fedbuff": FedBuff(concurrency=4, buffer_size=3),
    "fedcompass": FedCompass(min_steps=2, max_steps=10),
    "ringmaster": Ringmaster(concurrency=4, staleness_threshold=2, server_lr=0.5),
    "ringmaster_without_stops": Ringmaster(concurrency=4, staleness_threshold=2, stops=False),
    "published_scripts_afl": PublishedScripts(mode="afl", cohort_size=3),
    "published_scripts_sync": PublishedScripts(mode="sync", cohort_size=3),
}


ALGORITHMS = algorithms()
"""Each as it is made by its name; the cases above are settings of theirs that deserve a file of their own."""


@pytest.mark.parametrize("name", ALGORITHMS)
def test_decisions_of_every_algorithm(name, request):
    algorithm = ALGORITHMS[name]
    strategy = algorithm.make(4, Work(epochs=2), DelayAware(delay_penalty=0.5))
    compare(FOLDER / "named" / f"{name}.json", decided(strategy, algorithm.metrics), request)


@pytest.mark.parametrize("name", CASES)
def test_decisions_are_the_recorded_ones(name, request):
    compare(FOLDER / f"{name}.json", decided(CASES[name], ("distance", "trusted_norm")), request)


def compare(path, story, request):
    if request.config.getoption("--regenerate-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("[\n" + ",\n".join(map(json.dumps, story)) + "\n]\n")
    recorded = json.loads(path.read_text())
    for number, (line, expected) in enumerate(zip(story, recorded, strict=False)):
        assert line == expected, f"line {number + 1} of {path.name}"
    assert len(story) == len(recorded)


def test_nothing_is_recorded_that_is_not_checked():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)
    assert {path.stem for path in FOLDER.glob("named/*.json")} == set(ALGORITHMS)


def decided(strategy, metrics):
    """One line per input: what came in, then everything decided."""
    server = Server(strategy, [2 * client + 1 for client in range(NUM_CLIENTS)], seed=1)
    chance = Stream(purpose_key(1, "golden schedule"))
    measured = Stream(purpose_key(1, "golden measurements"))
    story = [["start", *map(written, server.start())]]
    timers = timers_set(story[-1], 0.0)
    for step in range(STEPS):
        while timers and (timers[0][0] <= step or not server.outstanding):
            due, number = timers.pop(0)
            story.append([f"wake {number}", *map(written, server.wake(number, due))])
            timers = sorted([*timers, *timers_set(story[-1], due)])
        here, away = list(server.clients), [c for c in range(NUM_CLIENTS) if c not in server.clients]
        lot = chance.unit()
        if lot < 0.06 and len(here) > 4:
            client = here[chance.below(len(here))]
            story.append([f"leave {client}", *map(written, server.leave(client))])
        elif lot < 0.2 and away:
            story.append([f"join {away[0]}", *map(written, server.join(away[0], 5))])
        else:
            tickets = list(server.outstanding)
            ticket = tickets[chance.below(len(tickets))]
            if lot > 0.9:
                story.append([f"lose {ticket}", *map(written, server.lose(ticket))])
            else:
                client = server.outstanding[ticket].client
                numbers = {name: measured.unit() for name in metrics}
                examples = server.num_examples(client)
                report = Report(ticket, client, float(step), 4.0 * chance.unit(), examples, numbers)
                story.append([f"report {ticket}", *map(written, server.receive(report))])
        timers = sorted([*timers, *timers_set(story[-1], float(step))])
        story[-1].append({"version": server.version, "round": server.round})
    return json.loads(json.dumps(story))


def timers_set(line, now):
    return [(now + said["wake"], said["number"]) for said in line[1:] if "wake" in said]


def written(output):
    if isinstance(output, Dispatch):
        work = output.work
        return ({} if work.steps is UNSET else {"steps": work.steps}) | {
            "train": output.ticket,
            "client": output.client,
            "from": output.base_version,
            "rate": [work.learning_rate, work.decay, work.start],
        }
    if isinstance(output, Merge):
        return {"merge": list(output.tickets), **to_plain(output)} | {"tickets": len(output.tickets)}
    if isinstance(output, Cancel):
        return {"cancel": output.ticket, "reason": output.reason}
    if isinstance(output, Wake):
        return {"wake": output.after, "number": output.number}
    assert isinstance(output, Drop)
    return {"drop": output.ticket, "reason": output.reason}
