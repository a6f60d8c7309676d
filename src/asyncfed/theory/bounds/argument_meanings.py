"""What each argument of the bounds means, written once, and put under every function that takes it."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

Bound = TypeVar("Bound", bound=Callable[..., Any])

MEANINGS = {
    # the problem
    "smoothness": "L > 0. Every client's gradient changes by at most L times the distance.",
    "strong_convexity": "μ, 0 < μ ≤ L. Every client's loss curves upwards by at least μ.",
    "gradient_variance": "δ² ≥ 0, given squared. E‖g − ∇F_c(x)‖² of one local step's gradient g, at any x and for any "
    "client (Assumption 2); 0 if every step uses all rows.",
    "optimum_heterogeneity": "ν*² ≥ 0, given squared. (1/C) Σ_c ‖∇F_c(x*)‖².",
    "largest_optimum_gradient": "max_c ‖∇F_c(x*)‖ ≥ 0, not squared.",
    "largest_subgradient": "G ≥ 0, not squared. No subgradient of any sample is longer.",
    "curvature": "h > 0 of the quadratic h x²/2.",
    # who takes part
    "num_clients": "C ≥ 1, all clients.",
    "cohort_size": "J, 1 ≤ J ≤ C, the clients merged in one round.",
    "staleness": "τ ≥ 0, whole. A merged update started from a model at most τ versions old.",
    # steps
    "local_steps": "I ≥ 1, gradient steps (not epochs) of one client in one round.",
    "learning_rate": "λ > 0 of the local steps.",
    "server_step": "η > 0. The server moves by η times the mean of the J deltas: 1 averages them, J adds them up.",
    "effective_step": "γ > 0, how far one round moves the server per unit of gradient.",
    "mixing": "α, 0 < α ≤ 1. The server keeps 1 − α of its model; 1 replaces it.",
    "shape": "how the local rates relate to λ: one number, or I of them. 1: all equal to λ.",
    "check_step": "True refuses steps for which nothing is proved; False evaluates the formula there all the "
    "same, to a number that proves nothing.",
    # start and horizon
    "start_distance_squared": "‖x_0 − x*‖² ≥ 0, squared.",
    "start_distance": "‖x_0 − x*‖ ≥ 0, not squared.",
    "last_index": "T ≥ 0 (the paper's 𝒥). Bounds the average of the T + 1 models x_0 … x_T. A number, or an array for "
    "a curve.",
    "num_updates": "t ≥ 0. Bounds x_t, the model after t merges; x_0 is the start. A number, or an array for a curve.",
    # one round
    "distance_squared": "d_j = E‖x_j − x*‖² ≥ 0, squared. A number or an array.",
    "objective_gap": "D_j = E F(x_j) − F* ≥ 0. A number or an array.",
    "client_drift": "Σ_c Σ_i E‖·‖² ≥ 0, squared. A number or an array.",
    # local training as a map
    "gain": "s, 0 < s ≤ 1, from `local_map`: I local steps shrink distances by 1 − s.",
    "stretch": "K > 0, from `local_map`: a delta changes by at most K times the distance of where it starts.",
    "fixed_point_gap": "b ≥ 0, not squared. max_c ‖x* − G_c(x*)‖, how far I local steps from x* lead away from it.",
    # the tuning lemma
    "contraction": "z > 0, with zγ_t < 1.",
    "noise": "l ≥ 0, the factor of γ_t².",
    "start": "d_0 ≥ 0. Where the lemma is applied to distances, ‖x_0 − x*‖², squared.",
    "base_rate": "γ_0 > 0.",
    "rate": "γ > 0, the same in all rounds.",
    "rates": "γ_0 … γ_n, each > 0.",
    "delays": "τ_t ≥ 0: one number or T + 1 of them.",
    "delay_penalty": "α, 0 ≤ α ≤ 1.",
    "largest_delay": "τ_max ≥ 0.",
    # drawing clients
    "variance": "ν² ≥ 0, given squared, of the vectors drawn (`population_variance`).",
    "sample_size": "s, 1 ≤ s ≤ m, how many are drawn.",
    "population": "m ≥ 1, from how many.",
}
"""Argument → symbol, range, meaning, and whether it is squared; a function may give another meaning."""


RETURNED = {
    "Curve": "the value of the formula: a number, or an array where an argument was one.",
    "NDArray[np.float64]": "the values of the formula, one for each index.",
    "float": "the value of the formula.",
    "int": "the number.",
    "bool": "whether it is so.",
}
"""Annotation of what a function returns → what that is; records explain themselves."""

_fields: dict[type, dict[str, str]] = {}
"""The settings that functions take → field → meaning."""


def explain_arguments(**other_meanings: str) -> Callable[[Bound], Bound]:
    """A decorator that puts the meaning of each argument under a function's docstring, where `help` shows it.

    The argument `setting` is explained field by field, and a class like the function that makes it.

    Args:
        other_meanings: argument or field → meaning, where it is another, or more, than that of `MEANINGS`.

    >>> @explain_arguments(extra="a number.")
    ... def bound(*, smoothness, extra):
    ...     'A sentence.'
    >>> print(inspect.getdoc(bound))
    A sentence.
    <BLANKLINE>
    Args:
      smoothness: L > 0. Every client's gradient changes by at most L times the distance.
      extra: a number.

    What the function returns is said below its arguments, by its annotation.
    """

    def add(function: Bound) -> Bound:
        lines = ["Args:"]
        for name in _names(function):
            if name == "setting":
                kind = inspect.get_annotations(function, eval_str=True)[name]
                lines.append(f"  setting: a `{kind.__name__}`, whose fields are")
                for field, meaning in _fields[kind].items():
                    lines += _wrap(field, other_meanings.get(field, meaning), indent=4)
            else:
                lines += _wrap(name, other_meanings.get(name) or MEANINGS[name], indent=2)
        returned = inspect.get_annotations(function).get("return") if not isinstance(function, type) else None
        if returned is not None:
            lines += ["", "Returns:", f"  {RETURNED.get(returned, f'a `{returned}`.')}"]
        if isinstance(function, type):
            _fields[function] = {name: other_meanings.get(name) or MEANINGS[name] for name in _names(function)}
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n" + "\n".join(lines)
        return function

    return add


def _names(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def _wrap(name: str, meaning: str, indent: int) -> list[str]:
    start = " " * indent
    return textwrap.wrap(f"{name}: {meaning}", 100, initial_indent=start, subsequent_indent=start + "    ")
