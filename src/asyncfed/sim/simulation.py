"""The virtual-time engine: a heap of arrivals, ordered by time and, at the same time, by ticket."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, cast

from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Dispatch, Merge, Report
from asyncfed.delays import DelayModel, LimitsBandwidth, Timing, check_timing
from asyncfed.delays.work_amount import completed_fraction
from asyncfed.engine.checkpoint_check import TIMERS, check_simulation_state
from asyncfed.engine.execution import MergeObserver
from asyncfed.engine.execution_setup import set_up
from asyncfed.engine.plan import Checkpoint, Churn, Plan, most_drops
from asyncfed.engine.progress import RunState
from asyncfed.engine.training import LateTraining, known_before
from asyncfed.problems.client_sizes import client_sizes
from asyncfed.problems.protocol import Problem
from asyncfed.sim.drift import DriftMeter
from asyncfed.sim.loop_candidate import FIRST_ARRIVALS, Candidate, find_candidate
from asyncfed.store.error_messages import explain_damage
from asyncfed.store.journal import Journal
from asyncfed.uplinks.chain import declared_size

if TYPE_CHECKING:
    from asyncfed.sim.compiled_loop import CompiledLoop


class Simulation:
    """Call `advance` until it returns True, or `close`; commit the journal with `checkpoint()` in between.

    The `observer` is called with every merge just before it is carried out. Where all decisions follow from numbers, a
    compiled loop takes over after the first arrivals (`compiled_loop.py`), unless `compiled` is False; the bytes are
    the same.
    """

    def __init__(
        self,
        problem: Problem,
        delays: DelayModel,
        plan: Plan,
        journal: Journal,
        checkpoint: Checkpoint | None = None,
        observer: MergeObserver | None = None,
        compiled: bool = True,
    ) -> None:
        self._delays = delays
        limited = isinstance(delays, LimitsBandwidth) and delays.limits_bandwidth
        self._links = cast(LimitsBandwidth, delays) if limited else None  # found out once: it takes long to ask
        self._examples = client_sizes(problem)
        self._heap: list[tuple[float, int, float, float, bool]] = []
        self._free_at: dict[int, float] = {}
        self._queued: set[int] = set()  # clients that were given a ticket while they computed another
        self._entries: dict[int, tuple[float, int, float, float, bool]] = {}  # of the heap, when a ticket was cancelled
        self._kept = 0  # entries of the heap when those of cancelled tickets were last removed
        self._churn = plan.churn_in_order()
        self._time_limit = inf if plan.budget.elapsed is None else float(plan.budget.elapsed)
        self.finished = False
        self._execution = set_up(problem, plan, journal, checkpoint)
        self._execution.most_drops = most_drops(problem.num_clients, plan)
        self.state = RunState(self._execution)
        rule = self._execution.rule
        self._training = LateTraining(problem, self._execution.vectors, plan.seed, plan.threads, rule)
        self._execution.on_dispatch = self._scheduler()
        self._execution.on_wake = self._set_timer
        self._execution.on_cancel = self._cancel
        observers: list[Callable[[Merge], None]] = []
        if plan.evaluation.drift:
            observers.append(DriftMeter(problem, self._execution, self._training.key, plan.threads).measure)
        if observer is not None:
            observers.append(partial(observer, self._execution))
        if observers:
            self._execution.on_merge = partial(_call_all, observers)
        if checkpoint is None:
            for number, churn in enumerate(self._churn):
                heappush(self._heap, (churn.time, number - len(self._churn), 0.0, 0.0, False))
            self._execution.start()
        else:
            with explain_damage(journal.path, "checkpoint"):
                wakes = hasattr(plan.strategy, "on_wake")
                check_simulation_state(checkpoint[0], problem.num_clients, len(self._churn), wakes)
                self._restore(checkpoint[0])
        self._problem, self._plan = problem, plan
        self._candidate = find_candidate(problem, delays, plan, self._execution) if compiled else None
        if self._candidate is None:  # else the loop trains: it has to know what is pending
            self._training.train_ahead()
        self._loop: CompiledLoop | None = None
        self._stepped = 0  # arrivals, since the simulation was made

    # ---- virtual time ----------------------------------------------------------------------------------------

    def advance(self, arrivals: int) -> bool:
        """Let up to so many arrivals happen. True when the run is over."""
        if self._candidate is not None and not self.finished:
            arrivals = self._advance_compiled(self._candidate, arrivals)
        self._step(arrivals)
        execution, server = self._execution, self._execution.server
        if self._loop is None and server.stopped is None and not self._heap:
            execution.halt("starved: nobody is at work and nobody will join, so nothing more can happen")
        if server.stopped is not None and not self.finished:
            self.finished = True
            self._training.end()
            execution.conclude()
        return self.finished

    def close(self) -> None:
        """Nobody will advance it any more: other threads need not train what is out."""
        self._training.end()

    def _advance_compiled(self, candidate: Candidate, arrivals: int) -> int:
        """Let the compiled loop handle arrivals, once it is time for it; answers with how many are left to step."""
        if self._loop is None:
            first = min(arrivals, FIRST_ARRIVALS - self._stepped)
            self._step(first)
            self._stepped, arrivals = self._stepped + first, arrivals - first
            if not arrivals or self._execution.server.stopped is not None or not self._heap:
                return arrivals
            from asyncfed.sim.compiled_loop import begin_loop, is_worth_its_time  # loads the compiled loop
            from asyncfed.sim.loop_arrays import Clock

            if not is_worth_its_time(arrivals):
                return arrivals
            clock = Clock(self._heap, self._free_at, self._training)
            self._loop = begin_loop(candidate, self._execution, clock, self._problem, self._plan, self._delays)
            if self._loop is None:
                self._candidate = None
                return arrivals
        arrivals = self._loop.advance(arrivals)
        if arrivals or self._execution.server.stopped is not None:
            self._loop.store()
            self._loop = None
        return arrivals

    def _step(self, arrivals: int) -> None:
        """Let up to so many arrivals happen, one after another."""
        execution, heap = self._execution, self._heap
        server, trained, examples = execution.server, execution.vectors.trained, self._examples
        training, measured, skipped = self._training, self._training.measured, execution.vectors.skipped
        for _ in range(arrivals):
            if server.stopped is not None or not heap:
                break
            time, ticket, duration, energy, lost = heappop(heap)
            if time > self._time_limit:
                execution.now = self._time_limit
                execution.halt(f"the time budget of {self._time_limit:g} s is spent")
                break
            if ticket < 0:
                execution.now = time
                self._apply_churn(self._churn[ticket + len(self._churn)])
                continue
            dispatch = server.outstanding.get(ticket)
            if dispatch is None:
                if ticket >= TIMERS:
                    execution.now = time
                    execution.wake(ticket - TIMERS)
                continue  # its client left meanwhile, or it was cancelled
            execution.now = time
            if lost:
                execution.lose(ticket, duration, energy)
                continue
            if ticket not in trained:
                training.train_for(ticket)
            client = dispatch.client
            if ticket in skipped:
                measured.pop(ticket, None)
                execution.skip(ticket, duration, energy, dispatch.memory)
                continue
            if dispatch.work.start == "own":
                execution.vectors.own[client] = trained[ticket]
            if execution.has_extras:
                metrics, memory = measured.pop(ticket, None), dispatch.memory
                execution.receive(Report(ticket, client, time, duration, examples[client], metrics, memory), energy)
            else:
                execution.receive(Report(ticket, client, time, duration, examples[client]), energy)

    def _scheduler(self) -> Callable[[Dispatch], None]:
        """What puts a ticket's arrival on the heap. A client computes one ticket at a time, in the order of dispatch.

        A function with everything at hand, because it is called once per update.
        """
        execution, heap, free_at, add = self._execution, self._heap, self._free_at, self._training.add
        delays, examples, queued = self._delays, self._examples, self._queued
        timing_of, watts, finish_compute = delays.timing, delays.watts, delays.finish_compute
        params, trained, last, refined = execution.vectors.params, execution.vectors.trained, None, False
        limited = self._links is not None

        def schedule(dispatch: Dispatch) -> None:
            nonlocal last, refined
            ticket, client, work, now = dispatch.ticket, dispatch.client, dispatch.work, execution.now
            timing = timing_of(client, ticket, work, examples[client])
            check_timing(timing, client, ticket)
            if work is not last:
                last, refined = work, limited or not known_before(work, params.size, params.itemsize)
            if refined:
                timing = self._refine(dispatch, timing)
            compute, upload = timing.compute, timing.upload
            energy = watts(client) * compute
            begin = now + timing.download
            if timing.lost:
                after = delays.lost_after(client, ticket, timing)
                heappush(heap, (now + after, ticket, after, energy, True))
                return
            free = free_at.get(client)
            if free is not None and free > now:
                queued.add(client)
                if free > begin:
                    begin = free
            free_at[client] = done = finish_compute(client, begin, compute)
            if not refined or ticket not in trained:
                add(dispatch)
            heappush(heap, (done + upload, ticket, timing.download + (done - begin) + upload, energy, False))

        return schedule

    def _refine(self, dispatch: Dispatch, timing: Timing) -> Timing:
        """The timing with what depends on the steps made and on the bytes that go down and up.

        If either is known only after training, the ticket is trained now.
        """
        ticket, client, work, links = dispatch.ticket, dispatch.client, dispatch.work, self._links
        params, trained = self._execution.vectors.params, self._execution.vectors.trained
        if not (timing.lost or ticket in trained or known_before(work, params.size, params.itemsize)):
            self._training.train([dispatch])
        measured = self._training.measured.get(ticket, {})
        if "steps" in measured:
            done = completed_fraction(work, self._examples[client], int(measured["steps"]))
            timing = replace(timing, compute=timing.compute * done)
        if links is not None:
            timing = timing.with_transfer(*links.transfer_seconds(client, *self._bytes(dispatch, measured)))
        return timing

    def _bytes(self, dispatch: Dispatch, measured: dict[str, float]) -> tuple[int, int]:
        """How many go down and up with this ticket; a lost one counts as if its message were as long as the model."""
        execution, work, params = self._execution, dispatch.work, self._execution.vectors.params
        down = execution.vectors.sent_bytes(dispatch.ticket) if work.start == "server" else 0
        if execution.rule is not None:
            down += sum(array.nbytes for array in execution.rule.sent_with(dispatch.ticket).values())
            if execution.rule.upload_size is not None:
                return down, execution.rule.upload_size
        if work.uplink is UNSET:
            return down, params.nbytes
        declared = declared_size(work.uplink, params.size, params.itemsize)
        return down, int(measured.get("bytes", params.nbytes)) if declared is None else declared

    def _set_timer(self, due: float, number: int) -> None:
        heappush(self._heap, (due, TIMERS + number, 0.0, 0.0, False))

    def _cancel(self, dispatch: Dispatch) -> tuple[float, float]:
        """What a ticket has cost so far: seconds since it was sent, and the joules of what was computed till now.

        Its client begins its next ticket at once, if it has no other one: those that wait in its queue keep the times
        they had, and what comes next waits for them.
        """
        ticket, client, now = dispatch.ticket, dispatch.client, self._execution.now
        self._remove_cancelled()
        if ticket not in self._entries:  # it went out since a ticket was last looked up
            self._entries = {entry[1]: entry for entry in self._heap}
        arrives, _, duration, energy, lost = self._entries.pop(ticket)
        timing = self._delays.timing(client, ticket, dispatch.work, self._examples[client])
        timing = self._refine(dispatch, timing)
        sent = arrives - duration
        computing = timing.compute if lost else max(duration - timing.download - timing.upload, 0.0)
        computed = now - (sent + timing.download)
        share = min(max(computed / computing, 0.0), 1.0) if computing > 0 else float(computed >= 0)
        alone = not (client in self._queued and self._has_another(client, ticket))
        if not lost and computed < computing and alone:
            self._free_at.pop(client, None)
        self._training.measured.pop(ticket, None)
        return max(now - sent, 0.0), energy * share

    def _has_another(self, client: int, ticket: int) -> bool:
        """Whether the client has another ticket that is to arrive."""
        dispatches = self._execution.dispatches
        others = (entry[1] for entry in self._heap if entry[1] != ticket and entry[1] in dispatches)
        return any(dispatches[other].client == client for other in others)

    def _remove_cancelled(self) -> None:
        """Once the heap has doubled, remove what no longer comes: cancelled tickets would stay until their time."""
        heap, dispatches = self._heap, self._execution.dispatches
        if len(heap) > 2 * self._kept + 64:
            heap[:] = [entry for entry in heap if not 0 <= entry[1] < TIMERS or entry[1] in dispatches]
            heapify(heap)
            self._kept = len(heap)

    def _apply_churn(self, churn: Churn) -> None:
        if churn.event == "join":
            self._execution.join(churn.client, self._examples[churn.client])
        else:
            self._free_at.pop(churn.client, None)  # it comes back with nothing left to do
            self._execution.leave(churn.client)

    # ---- checkpoints -----------------------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint:
        if self._loop is not None:
            self._loop.store()
        now = self._execution.now
        state = {
            **self._execution.snapshot(),
            "heap": self._heap,
            "free_at": sorted([c, t] for c, t in self._free_at.items() if t > now),
            "finished": self.finished,
            **({"queued": sorted(self._queued)} if self._queued else {}),
            **({"kept": self._kept} if self._kept else {}),
            "measured": [[t, m] for t, m in self._training.measured.items() if t in self._execution.dispatches],
        }
        return state, self._execution.dump()

    def _restore(self, state: dict[str, Any]) -> None:
        self._heap.extend((t, k, d, e, lost) for t, k, d, e, lost in state["heap"])
        heapify(self._heap)
        self._free_at.update(state["free_at"])
        self._queued.update(state.get("queued", ()))
        self._kept = state.get("kept", 0)
        self._training.measured.update(state.get("measured", ()))
        self.finished = state["finished"]
        trained, in_flight = self._execution.vectors.trained, self._execution.server.outstanding
        for ticket in sorted(k for _, k, _, _, lost in self._heap if not lost and k in in_flight):
            if ticket not in trained:
                self._training.pending[ticket] = in_flight[ticket]


def _call_all(observers: list[Callable[[Merge], None]], merge: Merge) -> None:
    for observe in observers:
        observe(merge)
