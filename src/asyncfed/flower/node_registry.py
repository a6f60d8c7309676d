"""NodeRegistry: which nodes may take part, and the problem as the server knows it.

The server knows all of the problem if its data are generated, and the model alone if the nodes load data of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from asyncfed.experiment import Experiment
from asyncfed.flower.held_out import HeldOutProblem
from asyncfed.flower.messages import Introduction
from asyncfed.flower.node_program import BuildProblem, build_problem
from asyncfed.live.session import LiveSession
from asyncfed.live.wire import dtype_name
from asyncfed.problems.protocol import Problem

LoadTest: TypeAlias = Callable[[], tuple[Any, Any]]
"""() -> features (rows, columns) and targets (rows,) that the server evaluates the model on."""


MAX_EXAMPLES = 2**40
"""More rows are not believed: those of a million clients still have a sum that 64 bits hold."""


class NodeRegistry:
    """`header` is that of the run that is continued, or None."""

    def __init__(
        self,
        experiment: Experiment,
        load_test: LoadTest | None,
        header: dict[str, Any] | None,
        build: BuildProblem | None = None,
    ) -> None:
        self._experiment = experiment
        self._num_clients = experiment.count_clients()
        self._own_data = load_test is not None
        self.model: Problem
        if load_test is None:
            self.model = experiment.problem()
            self.examples: dict[int, int] = dict(enumerate(self.model.num_examples.tolist()))
        else:
            x, y = load_test()
            self.model = build_problem(experiment, x, y, build)
            at_start = [] if header is None else header["live"]["examples"]
            self.examples = {client: examples for client, examples in enumerate(at_start) if examples}

    def min_nodes(self, wanted: int, late: int) -> int:
        """How many nodes must be there: all but `late` if they load data of their own, whose sizes are weights."""
        return max(1, self._num_clients - late) if self._own_data else min(wanted, self._num_clients)

    def check(self, introduction: Introduction) -> str | None:
        """What is wrong with this introduction, or None. The first of a client says how many examples it has."""
        model, num_examples = self.model, introduction.num_examples
        if not 0 <= introduction.client < self._num_clients:
            return f"its partition-id is {introduction.client}; the experiment has clients 0 to {self._num_clients - 1}"
        if introduction.num_params != model.num_params or introduction.dtype != dtype_name(model.dtype):
            return (
                f"its model has {introduction.num_params} params of {introduction.dtype[:20]!r}; the server's has "
                f"{model.num_params} of {dtype_name(model.dtype)!r}. Both must run the same app on data with the same "
                "columns"
            )
        if not 1 <= num_examples <= MAX_EXAMPLES:
            return f"it has {num_examples} examples; a node may have 1 to {MAX_EXAMPLES}"
        expected = self.examples.setdefault(introduction.client, num_examples)
        if num_examples != expected:
            return f"it has {num_examples} examples; client {introduction.client} has {expected}"
        return None

    def problem(self) -> Problem:
        """The problem as the server knows it when the run begins; a client that was not there yet has 0 examples."""
        if not self._own_data:
            return self.model
        return HeldOutProblem(self.model, [self.examples.get(client, 0) for client in range(self._num_clients)])

    def remember_late(self, session: LiveSession) -> None:
        """Expect of clients that came during the run, before the server was restarted, as many examples as they had."""
        for client in range(self._num_clients):
            if examples := session.num_examples(client):
                self.examples.setdefault(client, examples)
