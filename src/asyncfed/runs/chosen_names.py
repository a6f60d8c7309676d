"""Parts of a study that are asked for by name."""

from __future__ import annotations

from collections.abc import Iterable

from asyncfed.core.errors import ConfigError, did_you_mean


def choose_names(study: str, what: str, names: Iterable[str], known: Iterable[str]) -> list[str]:
    """These names in the order of those that are known; one that is not is refused.

    >>> choose_names("study", "problem", ["b", "a"], ["a", "b", "c"])
    ['a', 'b']
    """
    wanted, every = list(names), list(known)
    for name in wanted:
        if name not in every:
            raise ConfigError(f'The {study} has no {what} "{name}". {did_you_mean(name, every)}')
    return [name for name in every if name in wanted]
