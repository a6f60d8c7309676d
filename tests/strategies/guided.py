"""Views and reports for samplers that are guided by reports."""

from types import SimpleNamespace

from asyncfed.core.pool import ClientPool
from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.types import Dispatch, Report, Update, Work


def view_of(idle, round=0, seed=0, busy=(), examples=None):
    return SimpleNamespace(
        idle=ClientPool(sorted(idle)),
        clients=ClientPool(sorted({*idle, *busy})),
        round=round,
        num_examples=lambda client: 1 if examples is None else examples[client],
        rng=Stream(purpose_key(seed, "guided")),
    )


def update_of(client, examples=1, duration=1.0, staleness=0, **metrics):
    report = Report(client, client, 0.0, duration, examples, metrics)
    return Update(Dispatch(client, client, 0, Work()), report, staleness)


def told(sampler, *updates, rounds=None):
    """The sampler's memory after these updates, in the given rounds."""
    memory = sampler.start()
    for number, update in enumerate(updates):
        memory = sampler.observe(memory, update, view_of([], rounds[number] if rounds else 0))
    return memory
