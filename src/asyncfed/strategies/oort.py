"""Oort: cohorts of clients whose losses are large and that are not too slow.

Paper: Lai, Zhu, Madhyastha & Chowdhury, "Oort: Efficient Federated Learning via Guided Participant Selection", OSDI
2021.

Rule: among idle clients that have reported, with n_i samples, R the present round, last_i that of its last report:

    U_i = n_i sqrt(mean over its rows of loss^2) + sqrt(0.1 ln R / last_i);     U_i = U_i (T / t_i)^a   if t_i > T
    a share 1 - e of the cohort: drawn in proportion to U_i among those with U_i >= 95 % of the last place's utility
    a share e: clients that have not reported, drawn uniformly;     e = max(0.2, 0.9 * 0.98^round)
    pacer: T is a quantile of the known durations t_i, which rises every 20 rounds in which the reported utility fell

Merged as FedAvg. The sampler goes with any strategy; the shares of an asynchronous one, which draws one client at a
time, hold on average.

State: of each client its last report and how many tickets it had; the quantile and two sums. Bytes beyond the model:
one number up. The client measures the losses of its rows with the model it starts from, which costs about a forward
pass and no simulated time.

When to use it: many clients of which few can be used, in rounds that wait for the slowest; data are unevenly useful.
It takes from slow clients and from those the model fits well, and so from fairness: `asyncfed fairness` shows how much.

What goes wrong elsewhere: a share of a cohort cut to a whole number explores nobody in small cohorts (with 1 ticket,
never); taking the first clients above the cut-off instead of drawing among them; Plato's present version adds neither
the second term nor the pacer. A client can report any loss it likes and is then drawn: see `clip` and `blacklist`.

Confirmed: formula, penalty, quantile, exploration, cut-off and blacklist against FedScale's thirdparty/oort and Plato's
example, which were read. FedScale differs from the rule above: utilities are clipped at a quantile and scaled to 0..1
(`normalize`), and its pacer moves T where utility is flat. That the pacer looks for a fall, e's 0.2 and a = 2 are the
paper's as remembered, which was not read. Over-commitment (1.3 times as many clients, the last ones dropped) is not
part of the sampler. The unknown are drawn uniformly, not by speed, which nobody knows before their first report.
"""

from __future__ import annotations

from math import inf, log, sqrt
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, Record, replace
from asyncfed.core.types import Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg
from asyncfed.strategies.protocol import View
from asyncfed.strategies.report_history import (
    ReportHistory,
    add_report,
    add_tickets,
    check_share,
    draw_by_weight,
    draw_count,
    explore_and_exploit,
    split_by_report,
)
from asyncfed.strategies.samplers import require_measurement


class OortMemory(Record):
    """What Oort remembers.

    Args:
        history: of the clients.
        preferred: the quantile of durations that is not penalised, 0 to 1.
        window: which window of rounds the sums belong to.
        utility: reported in this window so far.
        utility_before: reported in the one before; -1 if there was none.
    """

    history: ReportHistory
    preferred: float
    window: int = 0
    utility: float = 0.0
    utility_before: float = -1.0


@register("sampler")
class OortSampler(Config, tag_field="kind", tag="oort"):
    """Oort's selection: clients of large losses that are fast enough, and some that are not known yet.

        U_i = n_i start_rms_i + sqrt(0.1 ln R / last_i),  times (T / t_i)^penalty if t_i > T

    A client none of whose first three tickets came back is drawn only where nobody else is idle.

    Args:
        penalty: the paper's alpha, the power with which slowness counts, 0 or more.
        exploration: the share of tickets for clients that have not reported, at first; 0 to 1.
        decay: what exploration is multiplied by with every round, above 0 and at most 1.
        least_exploration: it does not fall below this, 0 to 1.
        cut_off: who reaches this share of the utility at the last place may be drawn, 0 to 1.
        preferred: the quantile of the known durations that is T at first, 0 to 1; 1 for no penalty.
        pacer_rounds: every so many rounds the pacer compares utilities, 1 or more.
        pacer_step: how much the quantile rises if utility fell, 0 or more; 0 switches the pacer off.
        blacklist: a client that had so many tickets is drawn only where nobody else is idle, 1 or more; None for
            never.
        clip: utilities count at most as much as this quantile of them, above 0 and at most 1; 1 clips nothing.
        normalize: whether n_i start_rms_i is scaled to 0..1 among the known clients before the second term is added,
            which otherwise hardly ever matters.

    >>> OortSampler().memory_type.__name__
    'OortMemory'

    Lai et al., "Oort: Efficient Federated Learning via Guided Participant Selection", OSDI 2021.
    """

    penalty: float = 2.0
    exploration: float = 0.9
    decay: float = 0.98
    least_exploration: float = 0.2
    cut_off: float = 0.95
    preferred: float = 0.3
    pacer_rounds: int = 20
    pacer_step: float = 0.05
    blacklist: int | None = None
    clip: float = 1.0
    normalize: bool = False

    def __post_init__(self) -> None:
        for name in ("exploration", "least_exploration", "cut_off", "preferred", "decay", "clip"):
            check_share(name, getattr(self, name))
        for name in ("penalty", "pacer_step"):
            if not 0.0 <= getattr(self, name) < inf:
                raise ConfigError(f"sampler.{name} is {getattr(self, name)}; it must be zero or a positive number.")
        if not self.decay > 0 or not self.clip > 0:
            raise ConfigError(f"sampler.decay is {self.decay} and sampler.clip {self.clip}; both must be above 0.")
        if self.pacer_rounds < 1:
            raise ConfigError(f"sampler.pacer_rounds is {self.pacer_rounds}; it must be at least 1 round.")
        if self.blacklist is not None and self.blacklist < 1:
            raise ConfigError(f"sampler.blacklist is {self.blacklist}; it must be at least 1 ticket, or left out.")

    @property
    def queues(self) -> bool:
        return False

    @property
    def memory_type(self) -> Any:
        return OortMemory

    def check(self, work: Work) -> None:
        """Refuse work that does not measure `start_rms`."""
        require_measurement("oort", work, "start_rms")

    def start(self) -> OortMemory:
        return OortMemory(ReportHistory(), self.preferred)

    def observe(self, memory: OortMemory, update: Update, view: View) -> OortMemory:
        """Remember the report, and let the pacer compare, if a window is over."""
        memory = self._pace(memory, view.round)
        history = add_report(memory.history, update, view, "start_rms")
        last = history.report(update.report.client)
        assert last is not None
        return replace(memory, history=history, utility=memory.utility + last.loss * last.num_examples)

    def draw(self, memory: OortMemory, view: View, k: int) -> tuple[list[int], OortMemory]:
        memory = self._pace(memory, view.round)
        history, rng = memory.history, view.rng
        known, unknown, given_up = split_by_report(history, view)
        if self.blacklist is not None:
            given_up += [client for client in known if history.count(client) >= self.blacklist]
            known = [client for client in known if history.count(client) < self.blacklist]
        share = max(self.least_exploration, self.exploration * self.decay**view.round)
        explored = min(len(unknown), draw_count(rng, k, share))
        best = self._draw_best(memory, known, k - explored, view)
        chosen = explore_and_exploit(rng, k, explored, best, unknown, given_up)
        return chosen, replace(memory, history=add_tickets(history, chosen))

    def utilities(self, memory: OortMemory, clients: list[int], round: int) -> list[float]:
        """The utility of each of these clients, which have reported, in this round, counted from 0."""
        reports = [report for client in clients if (report := memory.history.report(client)) is not None]
        worth = [report.num_examples * report.loss for report in reports]
        bound = _quantile(sorted(worth), self.clip)
        worth = [min(value, bound) for value in worth]
        if self.normalize and worth:
            least, spread = min(worth), max(worth) - min(worth)
            worth = [(value - least) / spread if spread > 0 else 0.0 for value in worth]
        fast = _quantile(sorted(r.duration for r in memory.history.reports if r is not None), memory.preferred)
        values = []
        for value, report in zip(worth, reports, strict=True):
            value += sqrt(0.1 * log(round + 1) / report.round)
            values.append(value * (fast / report.duration) ** self.penalty if report.duration > fast else value)
        return values

    def _draw_best(self, memory: OortMemory, known: list[int], k: int, view: View) -> list[int]:
        """k of the known clients, in proportion to their utility, from those above the cut-off."""
        k = min(k, len(known))
        if k <= 0:
            return []
        values = dict(zip(known, self.utilities(memory, known, view.round), strict=True))
        order = sorted(known, key=lambda client: (-values[client], client))
        least = self.cut_off * values[order[k - 1]]
        above = [client for client in order if values[client] >= least]
        return draw_by_weight(view.rng, above, [values[client] for client in above], k)

    def _pace(self, memory: OortMemory, round: int) -> OortMemory:
        """When a window of rounds is over: slower clients are welcome if less utility was reported than before."""
        window = round // self.pacer_rounds
        if window == memory.window:
            return memory
        preferred = memory.preferred
        if memory.utility < memory.utility_before:
            preferred = min(1.0, preferred + self.pacer_step)
        return OortMemory(memory.history, preferred, window, 0.0, memory.utility)


def _quantile(ordered: list[float], share: float) -> float:
    """The value at this share of an ordered list; infinity for a share of 1, or where there is none."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered and share < 1.0 else inf


add_algorithm(
    Algorithm(
        name="oort",
        summary="Oort: FedAvg with cohorts of clients that are fast and have large losses",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets, sampler=OortSampler(), work=replace(work, start_rms=True)
        ),
        family="selection and fairness",
        year=2020,
        timing="synchronous",
        data="similar",
        server_memory="a few numbers a client",
        extra_up="1 number",
        evidence="code",
        metrics=("start_rms",),
    ),
    __name__,
)
