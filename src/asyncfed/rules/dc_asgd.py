"""DC-ASGD: a stale gradient, corrected to first order for how far the model has moved since.

    w = w - eta (g + lam g*g*(w - w_b)),     adaptive: lam = lam0 / sqrt(meansq + eps),  meansq = m meansq + (1 - m) g*g

w is the server's model, w_b the one the gradient g was made at; products are element by element, and lam g*g stands for
the diagonal of the Hessian. A client that makes one step sends D = -eta g; after several, g = -D / (sum of the rates of
its steps) is the mean gradient of its pass, which goes beyond the paper. With `adaptive`, one vector is kept. Paper,
use and mistakes of others: the card of the algorithm, `strategies/dc_asgd.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Work
from asyncfed.registry import register
from asyncfed.rules.local_rates import sum_of_rates
from asyncfed.rules.mean import Mean
from asyncfed.rules.preparing import PreparingRule
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule
from asyncfed.rules.work_checks import refuse_settings


@register("rule")
class DcAsgd(PreparingRule, Config, tag_field="kind", tag="dc_asgd"):
    """DC-ASGD: each change D is corrected for the move of the model since its start w_b.

        D <- D - rates lam g*g*(w - w_b),     g = -D / rates

    rates is the sum of the learning rates of its steps, and w the model before the merge, also for several updates in
    one. The paper's rule is that of strategies that add the change of each update on arrival with weight 1; a strategy
    that mixes models mixes `w_b` plus the corrected change. See the head of the module for the whole algorithm.

    Args:
        compensation: lam, 0 (plain merges) or more.
        adaptive: divide by the root of a moving mean square of g, one number per parameter.
        adaptive_compensation: lam0, which takes the place of lam if adaptive, 0 or more.
        mean_square_memory: m, how much of the mean square is kept with each update, from 0 to below 1.
        epsilon: added to the mean square, above 0.
        rule: how the corrected changes become the next model.

    >>> DcAsgd(compensation=-1.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.compensation is -1.0; it must be zero or a positive number.

    Zheng et al., "Asynchronous Stochastic Gradient Descent with Delay Compensation", ICML 2017.
    """

    compensation: float = 0.04
    adaptive: bool = False
    adaptive_compensation: float = 2.0
    mean_square_memory: float = 0.95
    epsilon: float = 1e-7
    rule: ServerRule = Mean()

    def __post_init__(self) -> None:
        for name in ("compensation", "adaptive_compensation"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ConfigError(f"rule.{name} is {getattr(self, name)}; it must be zero or a positive number.")
        if not 0 <= self.mean_square_memory < 1:
            raise ConfigError(f"rule.mean_square_memory is {self.mean_square_memory}; it must be 0 or more, below 1.")
        if not (isfinite(self.epsilon) and self.epsilon > 0):
            raise ConfigError(f"rule.epsilon is {self.epsilon}; it must be a positive number.")

    def check(self, work: Work) -> None:
        """Clients have to make plain steps from the server's model."""
        refuse_settings("DC-ASGD", work, momentum="a change with momentum is no mean gradient")
        refuse_settings("DC-ASGD", work, start="it compensates for what the server's model moved since the start")
        self.rule.check(work)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """The mean square, 0 at first, if there is one."""
        memory = super().init(params, num_clients)
        return {**memory, "mean_square": np.zeros(params.size)} if self.adaptive else memory

    def prepare(self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """Each model with its change corrected."""
        return [self._compensate(memory, params, arrival) if arrival.steps else arrival for arrival in arrivals]

    def _compensate(self, memory: Arrays, params: np.ndarray, arrival: Arrival) -> Arrival:
        rates = sum_of_rates(arrival.work, arrival.steps, arrival.num_examples)
        square = (arrival.change / rates) ** 2
        strength: float | np.ndarray = self.compensation
        if self.adaptive:
            m, mean_square = self.mean_square_memory, memory["mean_square"]
            mean_square[:] = m * mean_square + (1 - m) * square
            strength = self.adaptive_compensation / np.sqrt(mean_square + self.epsilon)
        correction = rates * strength * square * (params - arrival.start)
        return arrival._replace(model=(arrival.model - correction).astype(params.dtype))
