"""Experiments by short names."""

from __future__ import annotations

from collections.abc import Callable

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.experiment import Experiment
from asyncfed.presets.paper_experiments import regression, svm
from asyncfed.presets.populations import population
from asyncfed.presets.unequal_clients import unequal

PRESETS: dict[str, tuple[str, Callable[..., Experiment]]] = {
    "regression": ("the paper's linear regression: 10 clients, 400 rounds of 50 local epochs", regression),
    "svm": ("the paper's linear SVM: 10 clients, 1,000 rounds of 100 local epochs", svm),
    "unequal": ("20 clients that differ, a fifth of them ten times slower: FedBuff, 200 rounds of 1 epoch", unequal),
    "population": ("a million phones, or 100,000,000, whose data are made when they train: FedBuff", population),
}


def preset(name: str) -> Callable[..., Experiment]:
    """The function that makes a preset.

    Args:
        name: one of `PRESETS`.

    Returns:
        The function.
    """
    if name not in PRESETS:
        raise ConfigError(f'There is no preset "{name}". {did_you_mean(name, PRESETS)}')
    return PRESETS[name][1]
