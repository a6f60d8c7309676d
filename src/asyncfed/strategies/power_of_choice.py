"""Power-of-choice: of d candidates, those whose loss was largest.

Paper: Cho, Wang & Joshi, "Client Selection in Federated Learning: Convergence Analysis and Power-of-Choice Selection
Strategies", 2020; as "Towards Understanding Biased Client Selection in Federated Learning", AISTATS 2022.

Rule:

    candidates:  d idle clients, without replacement, in proportion to their samples
    chosen:      the m of them with the largest F_i, the mean loss that each last reported; the unknown ones first
    server:      the plain mean of the m models

State: of each client its last report. Bytes beyond the model: one number up.

When to use it: the worst-off clients are to be helped, or training is to be faster at first. With d = m it is sampling
by data share; the larger d, the greedier, and the more the model is biased towards clients that are hard to fit.

What goes wrong elsewhere: polling d candidates for their losses is a round trip in which nobody works, which
comparisons leave out of the clock; candidates drawn uniformly while models are averaged equally, which forgets samples.

Confirmed: the variant without polling (rpow-d) against a public reproduction of the experiments, whose main loop was
read: the last loss of each client that took part stands for its loss, infinity for one that never did. A review of the
paper quotes that clients send a mean of their losses over the local steps; here it is the loss of the model that they
start from. The candidates by data share, and the plain mean, rest on excerpts of public implementations; the text of
the paper was not read beyond its abstract.
"""

from __future__ import annotations

from math import inf
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedavg import FedAvg
from asyncfed.strategies.protocol import View
from asyncfed.strategies.report_history import ReportHistory, add_report, draw_by_weight
from asyncfed.strategies.samplers import require_measurement


@register("sampler")
class PowerOfChoice(Config, tag_field="kind", tag="power_of_choice"):
    """The clients with the largest losses among candidates drawn by data share.

    Losses are those that clients last reported (`work.start_loss`); who has not reported comes first, in the order in
    which the candidates were drawn.

    Args:
        candidates: the paper's d, 1 or more; where more clients are wanted at once, as many as are wanted.

    >>> PowerOfChoice(candidates=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: sampler.candidates is 0; it must be at least 1 client.

    Cho, Wang & Joshi, "Towards Understanding Biased Client Selection in Federated Learning", AISTATS 2022.
    """

    candidates: int = 10

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise ConfigError(f"sampler.candidates is {self.candidates}; it must be at least 1 client.")

    @property
    def queues(self) -> bool:
        return False

    @property
    def memory_type(self) -> Any:
        return ReportHistory

    def check(self, work: Work) -> None:
        """Refuse work that does not measure `start_loss`."""
        require_measurement("power_of_choice", work, "start_loss")

    def start(self) -> ReportHistory:
        return ReportHistory()

    def observe(self, memory: ReportHistory, update: Update, view: View) -> ReportHistory:
        """Remember the client's loss."""
        return add_report(memory, update, view, "start_loss")

    def draw(self, memory: ReportHistory, view: View, k: int) -> tuple[list[int], ReportHistory]:
        idle = [view.idle[place] for place in range(len(view.idle))]
        samples = [float(view.num_examples(client)) for client in idle]
        candidates = draw_by_weight(view.rng, idle, samples, max(k, self.candidates))
        reports = {client: memory.report(client) for client in candidates}
        candidates.sort(key=lambda client: -inf if (report := reports[client]) is None else -report.loss)
        return candidates[:k], memory


add_algorithm(
    Algorithm(
        name="power_of_choice",
        summary="power-of-choice: FedAvg with the clients of the largest losses among twice as many candidates",
        make=lambda tickets, work, rate: FedAvg(
            cohort_size=tickets,
            weighting="equal",
            sampler=PowerOfChoice(candidates=2 * tickets),
            work=replace(work, start_loss=True),
        ),
        family="selection and fairness",
        year=2020,
        timing="synchronous",
        data="similar",
        server_memory="a few numbers a client",
        extra_up="1 number",
        evidence="adaptation",
        metrics=("start_loss",),
    ),
    __name__,
)
