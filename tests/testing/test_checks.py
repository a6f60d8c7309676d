"""The conformance checks refuse what is broken, and say why; strategies/test_conformance.py shows what they accept."""

from hashlib import sha256

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, Record, replace
from asyncfed.core.types import Cancel, Drop, Merge, Stop, Train, Wake, Work
from asyncfed.delays import (
    Availability,
    Constant,
    Delays,
    Device,
    Exponential,
    FunctionDelays,
    Timing,
    heavy_tailed,
    published_laptop,
    stragglers,
)
from asyncfed.problems.linear import Linear
from asyncfed.testing import check_delay, check_problem, check_strategy

# ---- strategies ------------------------------------------------------------------------------------------------------


class Nothing(Record):
    """The state of a strategy that needs none."""


class Sound(Config):
    """A strategy that passes: mixes every arrival and keeps `concurrency` tickets out. The broken ones below are it."""

    concurrency: int = 3

    @property
    def state_type(self):
        return Nothing

    def check(self, num_clients):
        if num_clients < self.concurrency:
            raise ConfigError("too few clients")

    def start(self, view):
        return Nothing(), self.top_up(view)

    def on_update(self, state, update, view):
        return state, [Merge((update.report.ticket,), (0.5,), 0.5, "model"), *self.top_up(view)]

    def on_lost(self, state, dispatch, view):
        return state, self.top_up(view)

    def on_join(self, state, client, view):
        return state, self.top_up(view)

    def on_leave(self, state, client, view):
        return state, []

    def top_up(self, view):
        free = max(0, min(self.concurrency - view.in_flight, len(view.idle)))
        return [Train(view.idle[place], Work()) for place in range(free)]


def test_the_strategy_the_broken_ones_are_made_from_passes():
    check_strategy(Sound())
    check_strategy(Sound(concurrency=1), num_clients=1)


class StopsEarly(Sound):
    def on_update(self, state, update, view):
        if view.version >= 10:
            return state, [Drop(update.report.ticket, "enough"), Stop("enough")]
        return super().on_update(state, update, view)


def test_a_strategy_that_stops_by_itself_passes():
    check_strategy(StopsEarly())


class Rests(Sound):
    """Merges what it has collected, and dispatches again, only when its timer comes."""

    @property
    def state_type(self):
        return Collected

    def start(self, view):
        return Collected(), [Wake(1.0), *self.top_up(view)]

    def on_update(self, state, update, view):
        return Collected((*state.tickets, update.report.ticket)), []

    def on_lost(self, state, dispatch, view):
        return state, []

    def on_join(self, state, client, view):
        return state, []

    def on_wake(self, state, number, now, view):
        tickets = state.tickets
        merges = [Merge(tickets, (1.0 / len(tickets),) * len(tickets))] if tickets else []
        return Collected(), [*merges, Wake(1.0), *self.top_up(view)]


class Collected(Record):
    tickets: tuple[int, ...] = ()


class Restarts(Sound):
    """Cancels everything that is out with every merge, and dispatches anew."""

    def on_update(self, state, update, view):
        restarts = [a for d in view.outstanding.values() for a in (Cancel(d.ticket, "old"), Train(d.client, Work()))]
        return state, [Merge((update.report.ticket,), (0.5,), 0.5, "model"), *restarts, *self.top_up(view)]


class ByANumber(Sound):
    """Merges only what its rule has measured as small."""

    def on_update(self, state, update, view):
        if update.report.metrics["distance"] < 0.5:
            return super().on_update(state, update, view)
        return state, [Drop(update.report.ticket, "far"), *self.top_up(view)]


def test_strategies_with_timers_cancels_and_measurements_pass():
    check_strategy(Rests())
    check_strategy(Restarts())
    check_strategy(ByANumber(), metrics=["distance"])


class WakesForEver(Rests):
    """Goes on setting timers, but dispatches nothing after the start."""

    def on_wake(self, state, number, now, view):
        _, actions = super().on_wake(state, number, now, view)
        return Collected(), [action for action in actions if not isinstance(action, Train)]


class ForgetsItsTimer(Rests):
    def on_wake(self, state, number, now, view):
        _, actions = super().on_wake(state, number, now, view)
        return Collected(), [action for action in actions if isinstance(action, Merge)]


class CancelsWhatCame(Sound):
    def on_update(self, state, update, view):
        return state, [Cancel(update.report.ticket, "too late")]


class CannotBeWoken(Sound):
    def start(self, view):
        return Nothing(), [Wake(1.0), *self.top_up(view)]


class HangsAfterLoss(Sound):
    def on_lost(self, state, dispatch, view):
        return state, []


class OneForOne(Sound):
    """Hands out one ticket per report: each loss costs it one for ever."""

    def on_update(self, state, update, view):
        return state, [Merge((update.report.ticket,), (0.5,), 0.5, "model"), Train(update.report.client, Work())]

    def on_lost(self, state, dispatch, view):
        return state, [] if view.in_flight else self.top_up(view)


class ForgetsWhoLeft(Sound):
    """Replaces the ticket of a client that is still there only."""

    def on_lost(self, state, dispatch, view):
        return state, self.top_up(view) if dispatch.client in view.clients or not view.in_flight else []

    def on_update(self, state, update, view):
        return state, [Merge((update.report.ticket,), (0.5,), 0.5, "model"), Train(update.report.client, Work())]


class IgnoresJoins(Sound):
    def on_join(self, state, client, view):
        return state, []


class MergesTwice(Sound):
    def on_update(self, state, update, view):
        merge = Merge((update.report.ticket,), (0.5,), 0.5, "model")
        return state, [merge, merge, *self.top_up(view)]


class MergesAndDrops(Sound):
    def on_update(self, state, update, view):
        state, actions = super().on_update(state, update, view)
        return state, [*actions, Drop(update.report.ticket, "again")]


class MergesNaN(Sound):
    def on_update(self, state, update, view):
        return state, [Merge((update.report.ticket,), (float("nan"),)), *self.top_up(view)]


class NeverMerges(Sound):
    def on_update(self, state, update, view):
        return state, [Drop(update.report.ticket, "no"), *self.top_up(view)]


class ForgetsReports(Sound):
    """Merges every other report and says nothing of the rest."""

    def on_update(self, state, update, view):
        if update.report.ticket % 2:
            return state, self.top_up(view)
        return super().on_update(state, update, view)


class TakesAnyCrowd(Sound):
    def check(self, num_clients):
        pass


class RefusesEverybody(Sound):
    def check(self, num_clients):
        raise ConfigError("never")


class Crashes(Sound):
    def on_leave(self, state, client, view):
        raise KeyError(client)


class CountsInAGlobal(Sound):
    """Decides by something that no snapshot holds."""

    def on_update(self, state, update, view):
        CALLS.append(1)
        merge = Merge((update.report.ticket,), (1.0 / len(CALLS),), 0.5, "model")
        return state, [merge, *self.top_up(view)]


CALLS: list[int] = []


class StateWithAnObject(Sound):
    """Its state does not survive JSON: the tickets come back as texts."""

    @property
    def state_type(self):
        return dict

    def start(self, view):
        return {}, self.top_up(view)

    def on_update(self, state, update, view):
        ticket = update.report.ticket
        return {**state, ticket: True}, [Merge((ticket,), (0.5,), 0.5, "model"), *self.top_up(view)]


class MutableSelf:
    """No frozen value: it counts in itself. Equality is by content, so only what a run does to it gives it away."""

    def __init__(self):
        self.seen = 0

    def __eq__(self, other):
        return self.__dict__ == other.__dict__

    def __hash__(self):
        return 0

    state_type = Nothing

    def check(self, num_clients):
        Sound().check(num_clients)

    def start(self, view):
        return Sound().start(view)

    def on_update(self, state, update, view):
        self.seen += 1
        return Sound().on_update(state, update, view)

    def on_lost(self, state, dispatch, view):
        return Sound().on_lost(state, dispatch, view)

    def on_join(self, state, client, view):
        return Sound().on_join(state, client, view)

    def on_leave(self, state, client, view):
        return state, []


class ComparedByIdentity(MutableSelf):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class WithLists(Sound):
    numbers: list[int] = []  # noqa: RUF012


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (HangsAfterLoss(), "nothing is in flight, no timer is set and"),
        (OneForOne(), "dispatches no ticket in place of the lost one"),
        (ForgetsWhoLeft(), "after the leave of ticket .* dispatches no ticket"),
        (IgnoresJoins(), "joins: nothing is in flight, no timer is set and 1 clients are idle"),
        (WakesForEver(), "200 timers in a row passed with nothing in flight and 5 clients idle"),
        (ForgetsItsTimer(), "nothing is in flight, no timer is set and"),
        (CancelsWhatCame(), "cancels ticket .*, which is not out"),
        (CannotBeWoken(), "it needs `on_wake`"),
        (MergesTwice(), "which is not a reported, unmerged one"),
        (MergesAndDrops(), "which is not a reported one"),
        (MergesNaN(), "all must be finite"),
        (NeverMerges(), "200 arrivals brought no merge"),
        (ForgetsReports(), "is not merged or dropped"),
        (TakesAnyCrowd(), r"check\(2\) accepts fewer clients than the 3 tickets"),
        (RefusesEverybody(), "check refuses the number of clients"),
        (Crashes(), "leaves: KeyError"),
        (CountsInAGlobal(), "run twice on the same inputs: step"),
        (StateWithAnObject(), "not the same after a snapshot went through JSON"),
        (MutableSelf(), "the strategy changed while it was driven"),
        (ComparedByIdentity(), "not equal to its pickled copy"),
        (WithLists(), "not hashable"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_check_strategy_refuses(broken, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_strategy(broken)


def test_check_strategy_refuses_what_cannot_be_pickled():
    class Local(Sound):
        pass

    with pytest.raises(AssertionError, match="cannot be pickled"):
        check_strategy(Local())


# ---- problems --------------------------------------------------------------------------------------------------------


class Rows:
    """Three clients of uneven size."""

    def __init__(self, dtype=np.float64):
        draws = np.random.default_rng(0)
        self.x = draws.normal(size=(40, 3)).astype(dtype)
        self.y = draws.choice([-1.0, 1.0], 40).astype(dtype)
        self.offsets = np.array([0, 25, 26, 40])

    def sha256(self):
        return sha256(self.x.tobytes() + self.y.tobytes()).hexdigest()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", ["least_squares", "mse", "logistic", "hinge", "squared_hinge"])
def test_linear_problems_pass(loss, dtype):
    check_problem(Linear(Rows(dtype), loss=loss, l2=0.1, penalize_bias=False))


class TrainsInPlace(Linear):
    def local_train(self, params, client, work, key):
        params += 1.0
        return params.copy()


class TrainsOnOwnLuck(Linear):
    calls = 0

    def local_train(self, params, client, work, key):
        self.calls += 1
        return super().local_train(params, client, work, key + self.calls)


class OtherInABatch(Linear):
    def local_train(self, params, client, work, key):
        return super().local_train(params, client, work, key + 1)


class PooledObjective(Linear):
    def evaluate(self, params, threads=1):
        measured = super().evaluate(params, threads)
        return measured | {"objective": measured["pooled_loss"]}


class ForgetsThePenalty(Linear):
    def gradient(self, params, client):
        return super().gradient(params, client) - self.model.l2 * params


class WrongDtype(Linear):
    def init(self, seed, client=None, how="zeros"):
        return super().init(seed, client, how).astype(np.float16)


class IgnoresCorrections(Linear):
    def local_train_many(self, jobs, threads=1):
        return super().local_train_many(jobs._replace(corrections=None), threads)


class ForgetsTheRate(Linear):
    def local_train_many(self, jobs, threads=1):
        trained = super().local_train_many(jobs._replace(corrections=None), threads)
        return trained if jobs.corrections is None else trained - jobs.corrections


class IgnoresSteps(Linear):
    def local_train_many(self, jobs, threads=1):
        done, works = jobs.steps_done, [replace(work, steps=UNSET) for work in jobs.works]
        trained = super().local_train_many(jobs._replace(works=works), threads)
        if done is not None:
            done[:] = [w.count_steps(int(self.num_examples[c])) for w, c in zip(jobs.works, jobs.clients, strict=True)]
        return trained


class WholeEpochs(Linear):
    """Rounds the steps up to whole epochs."""

    def local_train_many(self, jobs, threads=1):
        def rounded(work, client):
            if work.steps is UNSET:
                return work
            per_epoch = -(-int(self.num_examples[client]) // work.batch_size)
            return replace(work, steps=-(-work.steps // per_epoch) * per_epoch)

        works = [rounded(work, client) for work, client in zip(jobs.works, jobs.clients, strict=True)]
        trained = super().local_train_many(jobs._replace(works=works), threads)
        if jobs.steps_done is not None:
            jobs.steps_done[:] = [
                w.count_steps(int(self.num_examples[c])) for w, c in zip(jobs.works, jobs.clients, strict=True)
            ]
        return trained


class DoesNotCount(Linear):
    def local_train_many(self, jobs, threads=1):
        return super().local_train_many(jobs._replace(steps_done=None), threads)


class Miscounts(Linear):
    def local_train_many(self, jobs, threads=1):
        trained = super().local_train_many(jobs, threads)
        if jobs.steps_done is not None:
            jobs.steps_done[:] = 1
        return trained


class RefusesBoth(Linear):
    """Without corrections and steps, and says so."""

    def local_train_many(self, jobs, threads=1):
        if jobs.corrections is not None or any(work.steps is not UNSET for work in jobs.works):
            raise ConfigError("neither corrections nor steps are known here.")
        return super().local_train_many(jobs, threads)


def test_a_problem_may_refuse_corrections_and_steps():
    check_problem(RefusesBoth(Rows(), loss="logistic", l2=0.5))


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (IgnoresCorrections, r"ignores jobs\.corrections.*or raise a ConfigError"),
        (ForgetsTheRate, r"the correction .* of param 0 moved it by .*moves it by"),
        (IgnoresSteps, r"work\.steps is ignored.*Make exactly work\.steps mini-batch steps"),
        (WholeEpochs, r"ends where it does after .* the last epoch has to be cut short"),
        (DoesNotCount, r"ignores jobs\.steps_done.*fill it with the number of mini-batch steps"),
        (Miscounts, r"steps_done says \[1, 1, 1, 1\], but"),
        (TrainsInPlace, "local_train changed the params it was given"),
        (TrainsOnOwnLuck, "local_train is not repeatable"),
        (OtherInABatch, "local_train_many with 1 threads differs"),
        (PooledObjective, "the objective and the mean of client_losses differ"),
        (ForgetsThePenalty, "the gradient of client . says"),
        (WrongDtype, "holds float16; dtype says float64"),
    ],
)
def test_check_problem_refuses(kind, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_problem(kind(Rows(), loss="logistic", l2=0.5))


# ---- delays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "delays",
    [
        Delays(),
        Delays(
            compute=Exponential(mean=2.0),
            upload=Constant(value=0.1),
            dropout=0.3,
            timeout=4.0,
            availability=Availability(period=10.0, on_fraction=0.3),
        ),
        Delays(
            bandwidth_down=Exponential(mean=1e6),
            devices=(Device(name="phone", share=0.5, bandwidth_up=1e3),),
        ),
        published_laptop(),
        heavy_tailed(),
        stragglers(),
        FunctionDelays(lambda client, ticket, work: client + 0.1 * ticket),
    ],
)
def test_shipped_delays_pass(delays):
    check_delay(delays, num_clients=4)


class HandMade(Config):
    """Delays that are wrong in one way."""

    wrong: str

    def bind(self, num_clients, seed):
        return HandMadeModel(self.wrong)


class HandMadeModel:
    def __init__(self, wrong):
        self.wrong, self.asked = wrong, 0

    def timing(self, client, ticket, work, num_examples):
        self.asked += 1
        compute = {"counts": float(self.asked), "negative": -1.0, "endless": float("inf")}.get(self.wrong, 1.0)
        return Timing(0.0, compute, 0.0, True)

    def watts(self, client):
        return -5.0 if self.wrong == "watts" else 5.0

    def finish_compute(self, client, start, seconds):
        if self.wrong == "before":
            return start
        return max(start + seconds, 2000.0 - start) if self.wrong == "backwards" else start + seconds

    def lost_after(self, client, ticket, timing):
        return float("nan") if self.wrong == "lost" else 1.0


class HandMadeLinks(Config):
    """Delays with links that are wrong in one way."""

    wrong: str

    def bind(self, num_clients, seed):
        return HandMadeLinksModel(self.wrong)


class HandMadeLinksModel(HandMadeModel):
    @property
    def limits_bandwidth(self):
        return self.wrong != "unlimited"

    def transfer_seconds(self, client, bytes_down, bytes_up):
        self.asked += 1
        up = {"negative link": -1.0, "endless link": float("inf"), "counting link": float(self.asked)}.get(self.wrong)
        if self.wrong == "falling link":
            up = 1.0 / (1.0 + bytes_up)
        return bytes_down / 10.0, bytes_up / 5.0 if up is None else up


def test_the_links_the_broken_ones_are_made_from_pass():
    check_delay(HandMadeLinks(wrong="nothing"))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("negative link", r"0 bytes down and 0 up, is -1\.0; it must be finite and not negative"),
        ("endless link", "is inf; it must be finite"),
        ("counting link", "an answer must depend on its arguments alone"),
        ("falling link", "more bytes must not take less time"),
        ("unlimited", "limits_bandwidth is False, but client 0 needs"),
    ],
)
def test_check_delay_refuses_links(wrong, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_delay(HandMadeLinks(wrong=wrong))


def test_the_delays_the_broken_ones_are_made_from_pass():
    check_delay(HandMade(wrong="nothing"))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ("counts", "an answer must depend on its arguments alone"),
        ("negative", "each must be finite and >= 0"),
        ("endless", "each must be finite and >= 0"),
        ("watts", "watts of client 0 is -5.0"),
        ("before", "ends before start"),
        ("backwards", "ends earlier when it begins later"),
        ("lost", "lost_after of client 0 is nan"),
    ],
)
def test_check_delay_refuses(wrong, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_delay(HandMade(wrong=wrong))
