"""Which settings to try next: Optuna's tree-structured Parzen estimator, given all that was tried before.

The only place that imports Optuna. A study is made anew for each batch from the results so far, so nothing but them
and the seed decides what is proposed: not the number of processes, and not whether the search was interrupted.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from typing import Any

from asyncfed.advice.search_space import Space
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record

MOST_REPEATS = 10
"""How often a proposal may be one that is known, for each that is wanted, before fewer are accepted."""


class Tried(Record):
    """Settings that were tried.

    Args:
        levels: the level of each choice.
        rung: how far they came: the number of the last rung.
        score: what they scored there; less is better.
        complete: False if they were given up before the last rung.
    """

    levels: tuple[int, ...]
    rung: int
    score: float
    complete: bool


def load_optuna() -> Any:
    """Optuna, silent. Call it before long work that needs it, to fail early."""
    try:
        import optuna
    except ImportError as error:
        raise ConfigError('asyncfed advise needs Optuna: pip install "asyncfed[advise]".') from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def propose(space: Space, tried: Sequence[Tried], count: int, seed: int) -> list[tuple[int, ...]]:
    """New settings to try.

    Args:
        space: what is searched.
        tried: what was tried before, in order; of nothing, the strategy's own settings are the first proposal.
        count: how many settings, 1 or more; fewer come back when hardly any are left.
        seed: of the draws, 0 or more.

    Returns:
        The settings by their levels, none of them tried before.
    """
    optuna = load_optuna()
    known = {each.levels for each in tried}
    if not space.choices:
        return [] if known else [()]
    distributions = {
        choice.name: optuna.distributions.IntDistribution(0, len(choice.levels) - 1) for choice in space.choices
    }
    found: list[tuple[int, ...]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # options that Optuna calls experimental
        sampler = optuna.samplers.TPESampler(
            seed=_number(seed, space.name, len(tried)), n_startup_trials=count, multivariate=True, constant_liar=True
        )
        study = optuna.create_study(sampler=sampler)
        for each in tried:
            study.add_trial(_as_trial(optuna, space, each, distributions))
        if not tried:
            study.enqueue_trial({c.name: c.default for c in space.choices})
        for _ in range(count * MOST_REPEATS):
            trial = study.ask(distributions)
            levels = tuple(int(trial.params[choice.name]) for choice in space.choices)
            if levels not in known:
                known.add(levels)
                found.append(levels)
            if len(found) == count:
                break
    return found


def _as_trial(optuna: Any, space: Space, tried: Tried, distributions: dict[str, Any]) -> Any:
    states = optuna.trial.TrialState
    return optuna.trial.create_trial(
        state=states.COMPLETE if tried.complete else states.PRUNED,
        value=tried.score if tried.complete else None,
        params={choice.name: level for choice, level in zip(space.choices, tried.levels, strict=True)},
        distributions=distributions,
        intermediate_values={tried.rung: tried.score},
    )


def _number(*key: object) -> int:
    """A seed for Optuna, below 2**32."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:4], "little")
