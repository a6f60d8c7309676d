"""Pisces: its utilities and its pace by hand, and the bound on staleness that the pace is for."""

from heapq import heappop, heappush

import pytest
from tests.strategies.guided import told, update_of, view_of

from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Dispatch, Merge, Report, Wake
from asyncfed.strategies.pisces import Pisces, PiscesSampler
from asyncfed.strategies.samplers import UniformIdle

SURE = {"exploration": 0.0, "least_exploration": 0.0}


def test_utilities_by_hand():
    """10 * 2 = 20 with staleness 3 of 5 counts half; 30 with none is first, 12 last."""
    sampler = PiscesSampler(**SURE)
    memory = told(
        sampler,
        *[update_of(0, examples=10, start_rms=2.0, staleness=tau) for tau in (9, 2, 3, 3, 3, 4)],
        update_of(1, examples=30, start_rms=1.0),
        update_of(2, examples=12, start_rms=1.0),
    )
    assert [sampler.utility(memory, client) for client in range(4)] == pytest.approx([10.0, 30.0, 12.0, 0.0])
    assert sampler.draw(memory, view_of(range(3)), 3)[0] == [1, 2, 0]


def test_without_staleness_losses_alone_decide():
    sampler, updates = PiscesSampler(**SURE), [update_of(c, start_rms=rms) for c, rms in enumerate([1.0, 4.0, 2.0])]
    assert sampler.draw(told(sampler, *updates), view_of(range(3)), 3)[0] == [1, 2, 0]
    late = [update_of(c, start_rms=rms, staleness=9 * c) for c, rms in enumerate([1.0, 4.0, 2.0])]
    blind = PiscesSampler(**SURE, staleness_power=0.0)
    assert blind.draw(told(blind, *late), view_of(range(3)), 3)[0] == [1, 2, 0]


def test_the_unknown_get_their_share_of_single_tickets():
    sampler = PiscesSampler()
    memory = told(sampler, update_of(0, start_rms=1.0))
    unknown = sum(sampler.draw(memory, view_of([0, 1], 500, seed), 1)[0] == [1] for seed in range(1000))
    assert unknown / 1000 == pytest.approx(0.3, abs=0.05)


def outputs_of(outputs):
    return [(o.client if isinstance(o, Dispatch) else o) for o in outputs]


def test_the_pace_by_hand():
    """Two of two clients are at work; merges wait for half of the other's known duration."""
    server = Server(Pisces(concurrency=2, staleness_bound=2), [10, 10])
    first, second = outputs_of(server.start())

    def report(ticket, now, duration):
        client = server.outstanding[ticket].client
        return outputs_of(server.receive(Report(ticket, client, now, duration, 10, {"start_rms": 1.0})))

    def merge(tickets, weights):
        return Merge(tickets, pytest.approx(weights), keep=1.0, of="delta", ends_round=True)

    assert report(0, 4.0, 4.0) == [merge((0,), (1.0,)), first]  # the other's duration is not known
    assert report(1, 6.0, 6.0) == [merge((1,), (2**-0.5,)), second]  # 4 s / 2 since 4 s
    assert report(2, 7.0, 3.0) == [Wake(2.0, 2), first]  # 6 s / 2 since 6 s: at 9 s
    assert report(4, 8.0, 1.0) == [first]
    assert outputs_of(server.wake(2, 9.0)) == [merge((2, 4), (0.5 * 2**-0.5, 0.5))]
    assert server.wake(2, 9.0) == []  # it is merged
    assert report(5, 9.5, 1.5) == [Wake(2.5, 3), first]
    assert report(6, 12.0, 2.5) == [merge((5, 6), (0.5 * 2**-0.5, 0.5)), first]


def test_staleness_stays_within_the_bound_once_durations_are_known():
    durations, bound = [1.0, 1.3, 0.7, 9.0], 4
    server = Server(Pisces(concurrency=4, staleness_bound=bound, sampler=UniformIdle()), [5] * 4)
    heap, reports, order = [], [0] * 4, 0
    outputs, now = server.start(), 0.0
    seen = []
    for _ in range(400):
        for output in outputs:
            order += 1
            if isinstance(output, Dispatch):
                heappush(heap, (now + durations[output.client], order, output.ticket))
            elif isinstance(output, Wake):
                heappush(heap, (now + output.after, order, -1 - output.number))
        now, _, what = heappop(heap)
        if what < 0:
            outputs = server.wake(-1 - what, now)
            continue
        dispatch = server.outstanding[what]
        if reports[dispatch.client]:
            seen.append(server.version - dispatch.base_version)
        reports[dispatch.client] += 1
        report = Report(what, dispatch.client, now, durations[dispatch.client], 5, {"start_rms": 1.0})
        outputs = server.receive(report)
    assert max(seen) <= bound
    assert max(seen) >= bound - 1  # and it is not slower than it needs to be
    assert server.version > 60


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Pisces(staleness_bound=0), "strategy.staleness_bound is 0"),
        (lambda: Pisces(server_lr=0.0), "strategy.server_lr is 0.0"),
        (lambda: PiscesSampler(staleness_power=-1.0), "sampler.staleness_power is -1.0"),
        (lambda: PiscesSampler(exploration=2.0), "sampler.exploration is 2.0"),
        (lambda: PiscesSampler(decay=0.0), "sampler.decay is 0.0"),
    ],
)
def test_settings_out_of_range_are_refused(make, words):
    with pytest.raises(ConfigError, match=words):
        make()
