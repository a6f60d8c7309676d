"""Who is let in, and what the server knows of the problem: all of it if it is generated, else the model alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from asyncfed.experiment import Experiment
from asyncfed.flower.held_out import HeldOut
from asyncfed.flower.messages import Introduction
from asyncfed.flower.node_program import alone
from asyncfed.live.wire import dtype_name
from asyncfed.problems.linear import Linear
from asyncfed.problems.protocol import Problem

LoadTest: TypeAlias = Callable[[], tuple[Any, Any]]
"""() -> features (rows, columns) and targets (rows,) that the server measures the model on."""


class Entrance:
    """`known` is the header of the run that is continued, if one is."""

    def __init__(self, experiment: Experiment, load_test: LoadTest | None, known: dict[str, Any] | None) -> None:
        self._experiment = experiment
        self.model: Linear
        if load_test is None:
            self.model = experiment.problem()
            self.examples: dict[int, int] = dict(enumerate(self.model.num_examples.tolist()))
        else:
            x, y = load_test()
            self.model = alone(experiment, x, y)
            self.examples = {} if known is None else dict(enumerate(known["live"]["examples"]))
        self._own_data = load_test is not None

    def at_least(self, wanted: int) -> int:
        """Sizes of data are known from the nodes alone, and the weights need all of them."""
        return self._experiment.count_clients() if self._own_data else min(wanted, self._experiment.count_clients())

    def admit(self, who: Introduction) -> str | None:
        """What is wrong with this introduction, or None."""
        model, num_clients = self.model, self._experiment.count_clients()
        if not 0 <= who.client < num_clients:
            return f"its partition-id is {who.client}; the experiment has clients 0 to {num_clients - 1}"
        if who.num_params != model.num_params or who.dtype != dtype_name(model.dtype):
            return (
                f"its model has {who.num_params} params of {who.dtype[:20]!r}; the server's has {model.num_params} of "
                f"{dtype_name(model.dtype)!r}. Both must run the same app on data with the same columns"
            )
        if who.num_examples < 1:
            return f"it has {who.num_examples} examples"
        expected = self.examples.setdefault(who.client, who.num_examples)
        if who.num_examples != expected:
            return f"it has {who.num_examples} examples; client {who.client} has {expected}"
        return None

    def problem(self) -> Problem:
        if not self._own_data:
            return self.model
        return HeldOut(self.model, [self.examples[client] for client in range(self._experiment.count_clients())])
