"""Driving the compiled event loop: whether a run can be left to it, and what it asks for meanwhile.

The loop (`kernels/arrival_loop.py`) handles arrivals by itself and stops where Python is needed: at the end of a round,
when something is to be measured, interned, computed anew or trained on several threads. Between two arrivals a run can
be taken over from its objects and given back to them, so stepping and looping may alternate; the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from asyncfed.core.random import purpose_key
from asyncfed.core.types import Merge
from asyncfed.delays import DelayModel, check_timing
from asyncfed.delays.delay_numbers import DelayNumbers, TicketDraws
from asyncfed.engine.execution import Execution
from asyncfed.engine.plan import Plan
from asyncfed.kernels import arrival_loop
from asyncfed.kernels.compiled import is_compiled
from asyncfed.kernels.drawn_sizes import DrawnSizes
from asyncfed.kernels.duration_draws import SHAPES, agrees
from asyncfed.kernels.keyed_words import draw_keys
from asyncfed.kernels.threads import SMALL
from asyncfed.problems.protocol import CompiledTraining, Jobs, Problem, TrainsInLoop
from asyncfed.problems.sgd_tasks import work_numbers
from asyncfed.registry import promises
from asyncfed.sim import loop_candidate
from asyncfed.sim.loop_arrays import Clock, LoopArrays
from asyncfed.sim.loop_candidate import Candidate

if TYPE_CHECKING:
    from asyncfed.rules.latest_average import LatestMemory

FIRST_WEIGHTS = 64

KINDS = {
    "add": arrival_loop.ADD,
    "mix": arrival_loop.MIX,
    "latest": arrival_loop.LATEST,
    "hold": arrival_loop.HOLD,
    "cohort": arrival_loop.COHORT,
}


class CompiledLoop:
    """A run in the hands of the loop. Call `advance`, and `store` before anybody looks at its tickets or clients.

    Args:
        candidate: what is run.
        execution: the run; between two arrivals, with all tickets out.
        clock: the simulation's own part of it.
        problem: what is trained.
        plan: seed, budget, evaluation and threads.
        delays: the delay model, and
        numbers: the same in numbers.
    """

    def __init__(
        self,
        candidate: Candidate,
        execution: Execution,
        clock: Clock,
        problem: Problem,
        plan: Plan,
        delays: DelayModel,
        numbers: DelayNumbers,
    ) -> None:
        self._candidate, self._execution, self._problem, self._plan = candidate, execution, problem, plan
        self._delays, self._numbers, strategy, rule = delays, numbers, candidate.strategy, candidate.rule
        hold = rule.hold if rule.kind == "hold" else rule.tickets if rule.kind == "cohort" else 0
        latest = self._memory().row_of if rule.kind == "latest" else {}
        self._arrays = LoopArrays(execution, clock, rule.tickets, hold, problem.num_clients, latest)
        self._arrays.load(work_numbers)
        s = self._arrays.state
        s.rule, s.hold = KINDS[rule.kind], hold
        s.tickets = s.round_size = rule.tickets
        s.most_updates = plan.budget.updates or np.iinfo(np.int64).max
        s.time_limit = inf if plan.budget.elapsed is None else plan.budget.elapsed
        s.evaluate_every = plan.evaluation.every if execution.evaluator.per_update else 0
        s.draws, s.train = purpose_key(plan.seed, "strategy"), purpose_key(plan.seed, "train")
        self._forms = [self._form(ends_round=False), self._form(ends_round=True)]
        s.merge_detail = s.last_merge_detail = -1
        self._weights = np.array([rule.weight(staleness) for staleness in range(FIRST_WEIGHTS)])
        self._set_delays(numbers)
        self._load_latest()
        training = cast(TrainsInLoop, problem).compiled_training() if promises(problem, "compiled_training") else None
        self._set_sizes(candidate.sizes)
        rows = int(self._examples.max(initial=1))
        cost = 2.0 * rows * problem.num_params * strategy.work.epochs * rule.tickets
        self._trains = training is not None and (plan.threads == 1 or cost < SMALL)
        self._training = training if training is not None else _no_training(problem)
        self._most_rows = rows if self._trains else 0
        self._set_work()
        self._arguments = self._all_arguments()

    def _form(self, ends_round: bool) -> Merge:
        """A merge that reads in the journal as all those of this run do."""
        rule = self._candidate.rule
        of: Any = "delta" if rule.kind == "add" else "model"
        return Merge((0,), (1.0,), of=of, combiner=rule.combiner, ends_round=ends_round)

    def _set_delays(self, numbers: DelayNumbers) -> None:
        s = self._arrays.state
        for name in ("compute", "download", "upload", "slowness"):
            draws: TicketDraws = getattr(numbers, name)
            shape, a, b = draws.distribution.as_numbers()
            for field, number in (("", draws.purpose), ("_shape", SHAPES[shape]), ("_a", a), ("_b", b)):
                setattr(s, name + field, number)
        s.dropout, s.may_lose, s.device = numbers.dropout, numbers.may_lose, numbers.classes.purpose
        s.timeout = -1.0 if numbers.timeout is None else numbers.timeout
        of = numbers.classes
        self._devices = (of.slowness, of.watts, of.comes_back, of.first_units, of.first_clients)

    def _set_sizes(self, sizes: Sequence[int]) -> None:
        """How many rows each client has: as a list, or as numbers, where they follow from a client's own number."""
        s = self._arrays.state
        if isinstance(sizes, DrawnSizes):
            s.least_rows, s.rows_key = sizes.least, sizes.key
            self._examples, self._row_units = np.zeros(0, np.int64), sizes.bounds
        else:
            listed = sizes if isinstance(sizes, list) else ()  # those that are asked for one by one are not read here
            self._examples, self._row_units = np.array(listed, np.int64), np.zeros(0)

    def _set_work(self) -> None:
        """The work of the next tickets, at the rate of this round."""
        arrays, server, strategy = self._arrays, self._execution.server, self._candidate.strategy
        work, schedule = strategy.work, strategy.schedule
        work = work if schedule is None else schedule.plan(work, server.round, server.delay_spread)
        s, per_sample = arrays.state, self._numbers.per_sample
        s.work, s.work_detail = arrays.number_of(work), self._execution.intern_work(work)
        s.seconds_per_row = per_sample * work.epochs if per_sample > 0.0 else -1.0
        arrays.work[:] = work_numbers(work)

    # ---- the mean of the latest models -----------------------------------------------------------------------

    def _memory(self) -> LatestMemory:
        combiner = self._candidate.rule.combiner
        assert combiner is not None
        return cast("LatestMemory", self._execution.vectors.combiner_memory(combiner.name))

    def _load_latest(self) -> None:
        s, params = self._arrays.state, self._arrays.params
        self._latest = np.empty((0, params.size), params.dtype)
        if self._candidate.rule.kind == "latest":
            memory = self._memory()
            s.rows, s.merges_left, s.share = len(memory.shares), memory.merges_left, 1.0 / memory.total
            self._latest = memory.slots[: len(memory.shares)].copy()
            self._add_rows()

    def _add_rows(self) -> None:
        """Room for more clients, each beginning at the first model."""
        memory, used = self._memory(), len(self._latest)
        grown = np.empty(
            (min(max(16, 2 * used), self._problem.num_clients), self._arrays.params.size), memory.origin.dtype
        )
        grown[:used], grown[used:] = self._latest, memory.origin
        self._latest = grown

    def _store_latest(self) -> None:
        if self._candidate.rule.kind != "latest":
            return
        memory, s = self._memory(), self._arrays.state
        memory.row_of = self._arrays.books.rows()
        memory.slots, memory.shares = self._latest[: s.rows].copy(), [1] * s.rows
        memory.merges_left = s.merges_left

    def _compute_mean(self) -> None:
        memory, s = self._memory(), self._arrays.state
        memory.slots, memory.shares = self._latest, [1] * s.rows
        self._arrays.params[:] = memory.mean()
        s.merges_left = memory.merges_left

    # ---- running ---------------------------------------------------------------------------------------------

    def advance(self, arrivals: int) -> int:
        """Let up to so many arrivals happen; fewer if the run ends.

        Answers with how many are left to be stepped through, after `store`: the next one is beyond the time budget, or
        at no time that a float can hold.
        """
        loop, run = arrival_loop, arrival_loop.run_arrivals
        answers: dict[int, Callable[[], bool]] = {
            loop.ROOM_IS_FULL: self._empty_room,
            loop.NEEDS_TRAINING: self._train,
            loop.NEEDS_DETAIL: self._intern_form,
            loop.NEEDS_WEIGHTS: self._add_weights,
            loop.NEEDS_ROWS: self._need_rows,
            loop.MEAN_IS_DUE: self._renew_mean,
            loop.MERGE_IS_DONE: self._finish_merge,
            loop.HELD_ARE_DUE: self._merge_held,
            loop.BAD_TIMING: self._refuse_timing,
            loop.NEEDS_TABLES: self._make_room,
        }
        goes_on = True
        while goes_on:
            why, handled = run(self._arrays.state.record, arrivals, *self._arguments)
            arrivals -= handled
            goes_on = why in answers and answers[why]()
        self._arrays.store_progress()
        return arrivals if why == loop.MUST_STEP else 0

    def store(self) -> None:
        """Give everything back to the objects of the run; the loop may go on afterwards."""
        self._arrays.store()
        self._store_latest()

    def _all_arguments(self) -> tuple[Any, ...]:
        a, books, training = self._arrays, self._arrays.books, self._training
        return (
            *(a.slots, a.heap, a.free, a.held, a.starts, a.models, a.params, a.works, a.work),
            *(books.clients, a.moved, a.drawn, self._devices, self._examples, self._row_units),
            *(books.first_merged, self._weights, self._latest, a.out),
            *(self._trains, training.x, training.y, training.offsets, self._most_rows, training.model),
        )

    # ---- what the loop asks for; False: the run is over ------------------------------------------------------

    def _empty_room(self) -> bool:
        self._arrays.store_progress()
        return True

    def _train(self) -> bool:
        """Train all that is out and not trained, in one call that may use every thread."""
        a, key = self._arrays, self._arrays.state.train
        out = a.heap[: a.state.heap]
        slots = out[(a.slots["is_trained"][out] == 0) & (a.slots["is_lost"][out] == 0)]
        slots = slots[np.argsort(a.slots["ticket"][slots])]  # the very calls that stepping makes
        clients, tickets = a.slots["client"][slots], a.slots["ticket"][slots]
        keys = draw_keys(np.uint64(key), clients, tickets).tolist()
        jobs = Jobs(a.starts[slots], clients.tolist(), a.works_of(slots), keys, True)
        a.models[slots] = self._problem.local_train_many(jobs, self._plan.threads)
        a.slots["is_trained"][slots] = 1
        return True

    def _intern_form(self) -> bool:
        s = self._arrays.state
        detail = self._execution.intern_form(self._forms[s.ends_round])
        setattr(s, "last_merge_detail" if s.ends_round else "merge_detail", detail)
        return True

    def _add_weights(self) -> bool:
        weight, known = self._candidate.rule.weight, len(self._weights)
        more = [weight(staleness) for staleness in range(known, 2 * known)]
        self._weights = np.concatenate([self._weights, more])
        self._arguments = self._all_arguments()
        return True

    def _need_rows(self) -> bool:
        self._add_rows()
        self._arguments = self._all_arguments()
        return True

    def _make_room(self) -> bool:
        self._arrays.books.grow()
        self._arguments = self._all_arguments()
        return True

    def _renew_mean(self) -> bool:
        self._compute_mean()
        return True

    def _merge_held(self) -> bool:
        """A merge of several, which ends a round."""
        a, s, execution, rule = self._arrays, self._arrays.state, self._execution, self._candidate.rule
        held = a.slots[a.held[: s.held]]
        assert rule.merge_held is not None
        counts = held["weight"] if rule.kind == "hold" else held["weight"].astype(np.int64)
        merge = rule.merge_held(tuple(held["ticket"].tolist()), tuple(counts.tolist()))
        a.store_events()
        execution.write_merge(merge, int(held["client"][0]))
        vectors = (a.starts, a.models, a.params, a.books.clients, a.books.first_merged)
        weights = np.array(merge.weights)
        arrival_loop.merge_held(
            a.state.record, a.slots, a.held, a.free, *vectors, weights, merge.keep, merge.of == "model"
        )
        s.version, s.updates, s.seq = execution.version, execution.updates, execution.journal.next_seq
        return self._finish(merge)

    def _finish_merge(self) -> bool:
        return self._finish(self._forms[self._arrays.state.ends_round])

    def _finish(self, merge: Merge) -> bool:
        """What follows a merge that ends a round, is measured, or is the last."""
        a, s, execution, server = self._arrays, self._arrays.state, self._execution, self._execution.server
        a.store_progress()
        if merge.ends_round:
            server.end_round(s.shortest, s.longest)
            s.shortest, s.longest = inf, 0.0
        spent = server.spent(merge.ends_round)
        outputs = [] if spent is None else server.halt(spent)
        execution.finish_merge(merge)
        a.load_ledger()
        if not execution.halted and outputs:
            execution.carry_out(outputs)
        s.seq = execution.journal.next_seq
        if server.stopped is not None:
            return False
        if merge.ends_round:
            self._set_work()
        return True

    def _refuse_timing(self) -> bool:
        ticket = self._arrays.slots[self._arrays.state.slot]
        client, number = int(ticket["client"]), int(ticket["ticket"])
        timing = self._delays.timing(client, number, self._candidate.strategy.work, self._candidate.sizes[client])
        check_timing(timing, client, number)
        raise AssertionError(f"compiled delays of ticket {number} differ from {timing}")


_stepped = 0
"""Arrivals that were stepped through in this process because the loop was not compiled. No result depends on it."""


def is_worth_its_time(arrivals: int) -> bool:
    """Whether to use the loop for the next arrivals: it is compiled, or so many were stepped that it should be."""
    global _stepped
    _stepped += arrivals
    return _stepped > loop_candidate.ARRIVALS_WORTH_COMPILING or is_compiled(arrival_loop.run_arrivals)


def begin_loop(
    candidate: Candidate, execution: Execution, clock: Clock, problem: Problem, plan: Plan, delays: DelayModel
) -> CompiledLoop | None:
    """The loop, in charge of the run from here on; None if the run is not in a state that the loop can take over.

    All tickets must be out, unless there are cohorts; with "latest" everybody must count the same, which is so from the
    first merge on unless clients come and go. Compiled draws must be those of Python to the last bit.
    """
    numbers, server, rule = candidate.delays.as_numbers(), execution.server, candidate.rule
    if numbers is None or numbers.num_clients < problem.num_clients:
        return None  # clients that the delays were not bound to are drawn when they are first asked for
    reads_sizes = rule.kind == "cohort" or numbers.per_sample > 0.0
    if reads_sizes and not isinstance(candidate.sizes, list | DrawnSizes):
        return None  # the loop cannot ask how many rows a client has
    if execution.has_extras or (rule.kind != "cohort" and server.in_flight != rule.tickets):
        return None
    for draws in (numbers.compute, numbers.download, numbers.upload, numbers.slowness):
        shape, a, b = draws.distribution.as_numbers()
        if shape not in SHAPES or not agrees((SHAPES[shape], a, b), draws.distribution.draw):
            return None
    if rule.combiner is not None:
        memory = cast("LatestMemory | None", execution.vectors.combiner_memory(rule.combiner.name))
        if memory is None or memory.total != len(server.clients) or set(memory.shares) != {1}:
            return None
    return CompiledLoop(candidate, execution, clock, problem, plan, delays, numbers)


def _no_training(problem: Problem) -> CompiledTraining:
    """Arrays of the right types, for problems that the loop does not train itself."""
    x, y = np.empty((0, 0), problem.dtype), np.empty(0, problem.dtype)
    return CompiledTraining(x, y, np.zeros(1, np.int64), (0, 0.0, False, False, 1.0)).frozen()
